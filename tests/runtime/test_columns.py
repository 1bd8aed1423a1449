"""Records of columns: what is taken is right, and nothing is copied for all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dicoflex.runtime.columns import Columns


@dataclass(frozen=True)
class Points(Columns):
    WHOLE = ("unit",)

    x: Any
    y: Any
    unit: str


@pytest.mark.parametrize(
    ("n", "index"),
    [
        (1, np.array([0])),
        (3, slice(None)),
        (3, slice(0, 7)),
        (3, np.array([True, True, True])),
        (0, np.zeros(0, dtype=bool)),
    ],
    ids=["one", "slice", "long slice", "mask", "none"],
)
def test_all_rows_are_the_record_itself(n: int, index: Any) -> None:
    points = Points(np.arange(n), np.arange(n) * 10, "m")
    assert points.take(index) is points


@pytest.mark.parametrize(
    "index",
    [
        np.array([2, 1, 0]), np.array([0, 0, 0]), np.array([0]), np.array([-1]), slice(1, 3), slice(0, 3, 2),
        slice(None, None, -1), np.array([True, False, True]),
    ],
    ids=str,
)  # fmt: skip
def test_some_rows_are_those_of_each_column(index: Any) -> None:
    points = Points(np.arange(3), np.arange(3) * 10, "m")
    taken = points.take(index)
    np.testing.assert_array_equal(taken.x, np.arange(3)[index])
    np.testing.assert_array_equal(taken.y, taken.x * 10)
    assert taken.unit == "m"


def test_one_row_taken_twice_is_two() -> None:
    point = Points(np.arange(1), np.arange(1), "m")
    assert len(point.take(np.array([0, 0]))) == 2
    assert len(point.take(np.array([False]))) == 0
