from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicoflex import metrics
from dicoflex.answers.ways import gower, ranges_of, select
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, 120),
            "job": rng.choice(["a", "b", "c", None], 120),
            "wage": np.where(rng.random(120) < 0.2, np.nan, rng.random(120)),
            "same": 7,
            "ok": rng.random(120) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def encoding(frame: pd.DataFrame) -> Encoding:
    return Encoding.fit(frame, Schema.infer(frame))


def line(*, high: float = 10.0) -> Encoding:
    """One number from 0 to `high`."""
    frame = pd.DataFrame({"x": [0.0, high / 3, high]})
    return Encoding.fit(frame, Schema.infer(frame))


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


# -- distances ---------------------------------------------------------------------------------------------------


def naive_gower(a: np.ndarray, b: np.ndarray, encoding: Encoding) -> float:
    parts = []
    for x, y, feature in zip(a, b, encoding.schema.features, strict=True):
        if np.isnan(x) or np.isnan(y):
            parts.append(float(np.isnan(x) != np.isnan(y)))
        elif feature.is_number and feature.maximum > feature.minimum:
            parts.append(min(abs(x - y) / (feature.maximum - feature.minimum), 1.0))
        else:
            parts.append(float(x != y))
    return float(np.mean(parts))


def spans(encoding: Encoding) -> np.ndarray:
    return np.array([f.maximum - f.minimum if f.is_number else 0.0 for f in encoding.schema.features])


def test_gower_is_the_mean_difference_per_feature(frame: pd.DataFrame, encoding: Encoding) -> None:
    values = encoding.encode(frame)
    found = gower(values[:30], values[30:50], spans(encoding))
    expected = [[naive_gower(a, b, encoding) for b in values[30:50]] for a in values[:30]]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_gower_agrees_with_the_measure_on_frames(frame: pd.DataFrame, encoding: Encoding) -> None:
    values = encoding.encode(frame)
    between = gower(values, values, spans(encoding))
    np.testing.assert_allclose(between, between.T)
    np.testing.assert_array_equal(np.diag(between), 0.0)
    mean = between[np.triu_indices(len(values), 1)].mean()
    assert mean == pytest.approx(metrics.gower(frame, encoding.schema))


def test_gower_is_at_most_one_beyond_the_range() -> None:
    assert gower(column(-50.0), column(50.0), np.array([10.0])) == 1.0
    assert gower(column(np.nan), column(np.nan, 3.0), np.array([10.0])).tolist() == [[0.0, 1.0]]


# -- selection ---------------------------------------------------------------------------------------------------


def test_the_first_is_near_and_likely() -> None:
    density = np.array([-3.0, -1.0, -2.0])
    assert select(ranges_of(line().schema), np.array([0.0]), column(5.0, 1.0, 9.0), density, 1).tolist() == [1]


def test_the_likelier_of_equally_near_ones_comes_first() -> None:
    near = column(2.0, 2.0 + 1e-12, 9.0)
    assert select(ranges_of(line().schema), np.array([0.0]), near, np.array([-1.0, -9.0, -5.0]), 1).tolist() == [0]


def test_the_next_is_unlike_the_first() -> None:
    """Three at the low end and one at the high: two of them are one of each."""
    candidates = column(1.0, 1.1, 1.2, 9.0)
    assert select(ranges_of(line().schema), np.array([0.0]), candidates, np.zeros(4), 2).tolist() == [0, 3]
    assert select(ranges_of(line().schema), np.array([0.0]), candidates, np.zeros(4), 2, diversity=0.0).tolist() == [
        0,
        1,
    ]


def test_variety_one_spreads_out() -> None:
    candidates = column(1.0, 2.0, 5.0, 8.0, 9.0)
    chosen = select(ranges_of(line().schema), np.array([0.0]), candidates, np.zeros(5), 3, diversity=1.0)
    assert chosen[1:].tolist() == [4, 2]


def test_more_are_asked_for_than_there_are() -> None:
    chosen = select(ranges_of(line().schema), np.array([0.0]), column(3.0, 1.0, 2.0), np.zeros(3), 10)
    assert sorted(chosen) == [0, 1, 2]
    assert chosen.dtype == np.int64


def test_none_and_one() -> None:
    assert select(ranges_of(line().schema), np.array([0.0]), np.zeros((0, 1)), np.zeros(0), 5).shape == (0,)
    assert select(ranges_of(line().schema), np.array([0.0]), column(4.0), np.array([-np.inf]), 5).tolist() == [0]


def test_equals_are_taken_once() -> None:
    chosen = select(ranges_of(line().schema), np.array([0.0]), column(1.0, 1.0, 1.0, 2.0), np.zeros(4), 4)
    assert sorted(column(1.0, 1.0, 1.0, 2.0)[chosen, 0]) == [1.0, 2.0]
    assert len(select(ranges_of(line().schema), np.array([0.0]), column(1.0, 1.0), np.zeros(2), 2)) == 1


def test_a_draw_of_no_density_comes_last_unless_it_is_nearest() -> None:
    candidates, density = column(2.0 + 1e-12, 2.0, 9.0), np.array([-np.inf, -5.0, -1.0])
    assert select(ranges_of(line().schema), np.array([0.0]), candidates, density, 3, diversity=0.0).tolist() == [
        1,
        2,
        0,
    ]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 60), st.floats(0, 1))
def test_never_the_same_twice(seed: int, rows: int, n: int, diversity: float) -> None:
    rng = np.random.default_rng(seed)
    candidates = rng.integers(0, 10, (rows, 1)).astype(float)
    chosen = select(
        ranges_of(line().schema), np.array([0.0]), candidates, rng.normal(size=rows), n, diversity=diversity
    )
    assert len(chosen) == min(n, len(np.unique(candidates)))
    assert len(np.unique(candidates[chosen])) == len(chosen)


def test_chosen_ones_are_close_and_diverse(frame: pd.DataFrame, encoding: Encoding) -> None:
    """Nearer to the query than all are on average, and further apart than the nearest ones are."""
    values = encoding.encode(frame.drop_duplicates())
    query, candidates = values[0], values[1:]
    density = np.zeros(len(candidates))
    chosen = select(ranges_of(encoding.schema), query, candidates, density, 8)
    distance = gower(candidates, query[None], spans(encoding))[:, 0]
    nearest = np.argsort(distance)[:8]

    def apart(rows: np.ndarray) -> float:
        return float(gower(candidates[rows], candidates[rows], spans(encoding))[np.triu_indices(8, 1)].mean())

    assert distance[chosen].mean() < distance.mean()
    assert apart(chosen) > apart(nearest)


def test_a_longer_answer_begins_with_the_shorter(frame: pd.DataFrame, encoding: Encoding) -> None:
    values = encoding.encode(frame)
    density = np.random.default_rng(3).normal(size=len(values))
    short = select(ranges_of(encoding.schema), values[0], values, density, 4)
    assert select(ranges_of(encoding.schema), values[0], values, density, 9)[:4].tolist() == short.tolist()


def test_where_effort_is_given_it_counts_in_place_of_nearness() -> None:
    frame = pd.DataFrame({"a": [0.0, 10.0], "b": [0.0, 10.0]})
    encoding = Encoding.fit(frame, Schema.infer(frame))
    candidates, log_density = np.array([[1.0, 0.0], [0.0, 5.0]]), np.array([-1.0, 0.0])
    assert select(ranges_of(encoding.schema), np.zeros(2), candidates, log_density, 1).tolist() == [0]
    assert select(
        ranges_of(encoding.schema), np.zeros(2), candidates, log_density, 1, effort=np.array([3.0, 1.0])
    ).tolist() == [1]
