"""Splits of trees that tell of no row: moved to round numbers, past few rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dicoflex.learning import surrogate as learning
from dicoflex.learning.surrogate import learn, learn_trees, round_splits
from dicoflex.surrogate import Forest
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

pytestmark = pytest.mark.usefixtures("one_thread")

N = 600


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "ROUNDS", 30)


def make_table() -> tuple[Encoding, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "b": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "c": rng.integers(0, 30, N),
            "d": rng.choice(["x", "y", "z"], N),
        }
    )
    encoding = Encoding.fit(frame, Schema.infer(frame))
    values = encoding.encode(frame)
    score = values[:, 0] + np.nan_to_num(values[:, 1], nan=1.0) + (values[:, 2] > 12) + (values[:, 3] == 0)
    yes = 1 / (1 + np.exp(-2 * (score - 1)))
    return encoding, values, np.column_stack([1 - yes, yes])


ENCODING, VALUES, ANSWERS = make_table()


def digits(number: float) -> int:
    return len(repr(float(number)).replace("-", "").replace(".", "").lstrip("0"))


def test_splits_of_numbers_are_moved_to_round_ones_past_few_rows() -> None:
    forest = learn_trees(ENCODING, VALUES, ANSWERS, 0)
    rounded = round_splits(forest, ENCODING, VALUES, 5)
    numbers = np.isin(forest.feature, ENCODING.number_feature) & np.isfinite(forest.threshold)
    assert np.array_equal(rounded.threshold[~numbers], forest.threshold[~numbers])
    first = np.flatnonzero(numbers & (forest.feature == 0))
    assert len(first) > 50
    assert np.median([digits(t) for t in forest.threshold[first]]) > 14
    assert max(digits(t) for t in rounded.threshold[first]) <= 4
    assert (np.mod(rounded.threshold[numbers & (forest.feature == 2)], 1.0) == 0.5).all()
    for node in first:
        column = VALUES[:, 0]
        assert ((column <= forest.threshold[node]) != (column <= rounded.threshold[node])).sum() <= 3
    before, after = (model.probabilities(VALUES) for model in (forest, rounded))
    assert (before.argmax(axis=1) == after.argmax(axis=1)).mean() > 0.97


def test_trees_of_a_table_that_tells_all_keep_their_splits() -> None:
    given = {"seed": 0, "kinds": ("trees",)}
    exact, rounded = (learn(ENCODING, VALUES, ANSWERS, min_count=n, **given)[0] for n in (1, 5))
    assert isinstance(exact, Forest)
    assert isinstance(rounded, Forest)
    assert np.array_equal(exact.feature, rounded.feature)
    assert not np.array_equal(exact.threshold, rounded.threshold)
