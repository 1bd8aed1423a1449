"""What goes together is told of no fewer than `min_count` rows: edges, pairs, stops, tables, quantiles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dicoflex.coherence import Coherence
from dicoflex.coherence.row_density import QUANTILES
from dicoflex.coherence.seen_pairs import Bins
from dicoflex.generators.base import Table
from dicoflex.learning.coherence import learn_coherence
from dicoflex.learning.dependencies import find_dependencies
from dicoflex.table.encoding import Encoding
from dicoflex.table.rarity import means_of_rows, round_near
from dicoflex.table.schema import Schema

N = 900
SALARY, PRICE = 2, 3


def people() -> pd.DataFrame:
    """Salaries are whole and nobody's twice; prices are shared by many, and two odd ones by three rows each."""
    rng = np.random.default_rng(0)
    price = rng.choice([9.5, 19.5, 29.5], N)
    price[:3], price[3:6] = 13.25, 17.75
    return pd.DataFrame(
        {
            "job": rng.choice(["cook", "nurse", "smith"], N),
            "age": rng.integers(20, 60, N),
            "salary": rng.permutation(90_000)[:N] + 10_000,
            "price": price,
        }
    )


PEOPLE = people()
ENCODING = Encoding.fit(PEOPLE, Schema.infer(PEOPLE))
VALUES = ENCODING.encode(PEOPLE)
RARE = {j: np.unique(VALUES[:, j], return_counts=True) for j in (SALARY, PRICE)}
FEW = np.concatenate([values[counts < 5] for values, counts in RARE.values()])


def learned(min_count: int) -> Coherence:
    labels = (VALUES[:, SALARY] > 50_000).astype(np.int64)
    return learn_coherence(Table(ENCODING, VALUES, labels, 2, min_count=min_count), seed=0)


@pytest.fixture(scope="module")
def told() -> Coherence:
    return learned(5)


@pytest.fixture(scope="module")
def everything() -> Coherence:
    return learned(1)


def numbers_of(coherence: Coherence) -> np.ndarray:
    found = [array[np.isfinite(array)].ravel() for array in coherence.arrays().values() if array.dtype == np.float64]
    return np.concatenate(found)


def test_no_number_is_that_of_a_few_rows(told: Coherence, everything: Coherence) -> None:
    """Round numbers may meet a salary by chance, as one in 99 of all whole numbers does."""
    assert np.isin(everything.stops.typical, FEW).sum() + np.isin(everything.density.bins.edge, FEW).sum() > 3
    assert np.isin(numbers_of(told), FEW).sum() <= 1
    assert not np.isin([13.25, 17.75], numbers_of(told)).any()


def test_cells_are_those_of_enough_rows(told: Coherence) -> None:
    for bins in (told.density.bins, told.pairs.bins):
        cells = bins.locate(VALUES)
        for j in range(len(ENCODING.schema)):
            counts = np.bincount(cells[:, j], minlength=bins.size[j])
            assert counts.min() >= 5


def test_edges_of_few_values_leave_nobody_alone() -> None:
    frame = pd.DataFrame({"a": np.repeat([0, 1, 7, 8], [500, 2, 2, 500])})
    values = frame.to_numpy(float)
    bins = Bins.build(Schema.infer(frame), values, n=20, min_count=5)
    assert np.bincount(bins.locate(values)[:, 0]).min() >= 5
    assert len(Bins.build(Schema.infer(frame), values[:4], n=20, min_count=5).edge) == 0


def test_quantiles_of_held_out_rows_are_means_of_several(told: Coherence, everything: Coherence) -> None:
    density = told.density
    for table in (density.held, density.weakest):
        assert (np.diff(table, axis=1) >= 0).all()
    np.testing.assert_allclose(density.held[:, [0, -1]], np.round(density.held[:, [0, -1]], 2), atol=1e-12)
    scores = everything.density.judge(VALUES)[0]
    ends = everything.density.held[:, [0, -1]].ravel()
    assert all(np.isclose(end, scores, atol=1e-12).any() for end in ends)
    mine = density.judge(VALUES)[0]
    assert not any(np.isclose(end, mine, rtol=0, atol=1e-9).any() for end in density.held[:, [0, -1]].ravel())


def test_means_of_rows_lie_among_them_and_one_row_is_itself() -> None:
    ordered = np.sort(np.random.default_rng(0).normal(size=40))
    means = means_of_rows(ordered, 5)
    assert len(means) == 36
    np.testing.assert_allclose(means[0], ordered[:5].mean(), atol=0.005)
    assert (np.diff(np.quantile(means, QUANTILES)) >= 0).all()
    assert means_of_rows(ordered, 1) is ordered
    assert len(means_of_rows(ordered[:3], 5)) == 1


def test_tables_of_what_follows_leave_out_what_few_rows_have() -> None:
    zones = np.repeat([10.0, 20.0, 30.0, 40.0], [300, 300, 297, 3])
    frame = pd.DataFrame({"zone": zones, "fee": zones / 10 % 3})
    schema = Schema.infer(frame)
    (whole,) = find_dependencies(schema, frame.to_numpy(), min_count=1).found
    (told,) = find_dependencies(schema, frame.to_numpy(), min_count=5).found
    assert whole.keys == (10.0, 20.0, 30.0, 40.0)
    assert told.keys == (10.0, 20.0, 30.0)


def test_a_round_number_is_near_and_a_shared_one_is_itself() -> None:
    ordered = np.sort(PEOPLE["salary"].to_numpy(float))
    for at in range(0, N, 37):
        number = round_near(ordered, at, at, 5)
        assert abs(int(np.searchsorted(ordered, number)) - at) <= 3
    assert round_near(np.array([1.0, 2.5, 2.5, 2.5, 2.5, 2.5, 9.0]), 3, 3, 5) == 2.5
