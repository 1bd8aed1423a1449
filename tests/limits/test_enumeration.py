"""All rows that are allowed: none twice, none left out, and evenly drawn where they are too many."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex.constraints import Constraints
from dicoflex.limits.enumeration import Allowed
from dicoflex.limits.limits import Limits
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.schema import Schema

FRAME = pd.DataFrame(
    {
        "count": pd.array([1, 2, 3, 4, None, 6], dtype="Int64"),
        "tag": ["a", "b", "c", "a", None, "b"],
        "grade": pd.Categorical(["low", "mid", "high", "mid", "low", "low"], ["low", "mid", "high"], ordered=True),
        "rate": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "on": [True, False, True, False, True, True],
    }
)
SCHEMA = Schema.infer(FRAME)
ENCODING = Encoding.fit(FRAME, SCHEMA)
QUERY = ENCODING.encode(FRAME.iloc[[1]])
CASES: dict[str, dict[str, Any]] = {
    "all but the number with a fraction": {"frozen": ["rate"]},
    "a budget": {"frozen": ["rate"], "max_changes": 2},
    "one change": {"frozen": ["rate"], "max_changes": 1},
    "a list": {"allowed": {"rate": [0.2, 0.25, 0.5], "tag": ["c", None]}, "max_changes": 3},
    "steps and directions": {"steps": {"rate": 0.2}, "increase": ["count", "grade"]},
    "forbidden": {"frozen": ["rate", "on"], "forbidden": {"count": [3, None], "tag": ["a"]}},
    "what has to change": {"frozen": ["rate"], "ranges": {"count": (4, 6)}, "strict": True, "max_changes": 2},
}


def allowed(**wish: Any) -> tuple[Allowed, Limits]:
    bound = Constraints(**wish)
    limits = Limits.build(bound, ENCODING, QUERY, SCHEMA.mask(list(bound.frozen))[None])
    return Allowed.of(limits, QUERY, 0), limits


def every_row() -> Values:
    """All rows of values that the table knows, and the points between that a list or steps may name."""
    counts, rates = [1, 2, 3, 4, 5, 6, np.nan], [0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6]
    return np.array(list(product(counts, [0, 1, 2, 3], [0, 1, 2], rates, [0, 1])), dtype=float)


def as_set(rows: Values) -> set[tuple[float, ...]]:
    return {tuple(np.nan_to_num(row, nan=-1.0).round(9)) for row in rows}


@pytest.mark.parametrize("case", CASES)
def test_every_allowed_row_comes_once(case: str) -> None:
    found, limits = allowed(**CASES[case])
    rows = np.concatenate(list(found.rows()))
    grid = every_row()
    own = np.tile(QUERY, (len(grid), 1))
    fine = ~limits.broken(grid, own, np.zeros(len(grid), dtype=np.int64))
    differs = ((grid != own) & ~(np.isnan(grid) & np.isnan(own))).any(axis=1)
    frozen = (np.isclose(grid, own) | ~limits.frozen[0]).all(axis=1)
    expected = as_set(grid[fine & differs & frozen])
    assert len(as_set(rows)) == len(rows)
    assert as_set(rows) == expected
    query_counts = bool(found.keeps.all())
    assert found.count == len(rows) + query_counts
    assert len(rows) > 2


def test_a_number_with_a_fraction_has_more_values_than_can_be_listed() -> None:
    found, _ = allowed()
    assert found.count == np.inf
    assert found.others[SCHEMA.position("rate")] is None


@pytest.mark.parametrize("case", ["a budget", "a list"])
def test_rows_are_drawn_evenly(case: str) -> None:
    found, _ = allowed(**CASES[case])
    every = sorted(as_set(np.concatenate(list(found.rows()))) | as_set(QUERY))
    n = 400 * len(every)
    drawn = np.nan_to_num(found.drawn(n, seed=3), nan=-1.0).round(9)
    rows, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(row) for row in rows} == set(every)
    assert (np.abs(counts - 400) < 5.5 * np.sqrt(400)).all()


def test_drawn_numbers_lie_between_their_ends_and_budgets_are_kept() -> None:
    found, limits = allowed(ranges={"rate": (0.15, 0.35)}, max_changes=2)
    drawn = found.drawn(5000, seed=1)
    own = np.tile(QUERY, (len(drawn), 1))
    assert not limits.broken(drawn, own, np.zeros(len(drawn), dtype=np.int64)).any()
    rates = drawn[drawn[:, 3] != QUERY[0, 3], 3]
    assert 0.15 <= rates.min() < 0.16 < 0.34 < rates.max() <= 0.35


def test_what_can_not_be_kept_and_has_no_other_value_leaves_no_row() -> None:
    found, _ = allowed(frozen=["count", "tag", "grade", "on"], allowed={"rate": [0.2]})
    assert list(found.rows()) == [] or all(len(batch) == 0 for batch in found.rows())
