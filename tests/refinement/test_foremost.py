"""Which rows refinement goes on with: the nearest of each way first, none twice."""

from __future__ import annotations

import numpy as np

from dicoflex import _core

QUERY = np.zeros((2, 2))
NEAR, FAR, OTHER = [1.0, 0.0], [3.0, 0.0], [0.0, 2.0]


def marked(rows: list[list[float]], which: list[int], most: int, stands: list[bool] | None = None) -> list[bool]:
    kept, fine = np.zeros(len(rows), dtype=bool), np.ones(len(rows), dtype=bool) if stands is None else stands
    _core.mark_foremost(
        rows=np.array(rows),
        query=QUERY,
        which=np.array(which),
        number=np.ones(2, dtype=bool),
        scale=np.ones(2),
        gaps=np.zeros(2),
        stands=np.array(fine),
        most=most,
        kept=kept,
    )
    found: list[bool] = kept.tolist()
    return found


def test_each_way_comes_before_the_next_of_another() -> None:
    assert marked([FAR, NEAR, OTHER], [0, 0, 0], 2) == [False, True, True]


def test_no_row_is_taken_twice() -> None:
    assert marked([NEAR, NEAR, FAR], [0, 0, 0], 3) == [True, False, True]


def test_queries_are_counted_apart() -> None:
    assert marked([NEAR, FAR, NEAR, FAR], [0, 0, 1, 1], 1) == [True, False, True, False]


def test_what_does_not_stand_is_left_out() -> None:
    assert marked([NEAR, FAR], [0, 0], 2, [False, True]) == [False, True]


def test_missing_values_are_one_way() -> None:
    gone = [np.nan, 0.0]
    assert marked([gone, gone, FAR], [0, 0, 0], 3) == [True, False, True]
