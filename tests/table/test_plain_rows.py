"""Rows of plain cells are read and written as frames of every dtype are, and refused in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from dicoflex.errors import QueryError
from dicoflex.table.plain_rows import PlainRows, plain_row
from table.test_encoding import fitted, frames, quickly


@quickly
@given(frames())
def test_cells_are_read_and_written_as_frames_are(frame: pd.DataFrame) -> None:
    encoding = fitted(frame)
    rows, values = PlainRows(encoding), encoding.encode(frame)
    cells = [plain_row(row) for row in frame.astype(object).to_numpy(dtype=object).tolist()]
    for i, row in enumerate(cells):
        np.testing.assert_array_equal(rows.encode([row])[0], values[i])
    assert list(map(repr, rows.decode(values))) == list(map(repr, cells))


FRAME = pd.DataFrame(
    {
        "age": pd.array([31, 52], dtype="Int8"),
        "wage": pd.Series([0.5, None], dtype="float32"),
        "job": ["cook", None],
        "area": pd.Categorical([1, 2]),
        "member": [True, False],
        "x": [0.5, 1.5],
    }
)
GOOD = [40, 0.1, "cook", 2, True, -0.0]
ODD: list[tuple[int, Any]] = [
    (0, "x"), (0, 1.5), (0, None), (0, 200), (0, 2**60), (0, True), (1, "a"), (1, float("inf")), (1, 1e300),
    (2, "king"), (2, 3), (3, "1"), (3, 5), (3, None), (4, "yes"), (4, None), (5, None), (5, 10**400), (2, ["a"]),
    (5, [1]),
]  # fmt: skip


@pytest.mark.parametrize(("place", "cell"), ODD)
def test_what_does_not_fit_is_refused_in_the_words_of_frames(place: int, cell: Any) -> None:
    rows = PlainRows(fitted(FRAME))
    row = [*GOOD[:place], cell, *GOOD[place + 1 :]]
    with pytest.raises(QueryError) as told:
        rows.encode([GOOD, row])
    with pytest.raises(QueryError) as expected:
        rows.encoding.conform(rows.frame([GOOD, row]))
    assert str(told.value) == str(expected.value)


@pytest.mark.parametrize(("place", "cell", "read"), [(3, 2.0, 1.0), (4, 1, 1.0), (5, 3, 3.0), (0, 33.0, 33.0)])
def test_numbers_that_json_writes_otherwise_are_taken(place: int, cell: Any, read: float) -> None:
    rows = PlainRows(fitted(FRAME))
    values = rows.encode([[*GOOD[:place], cell, *GOOD[place + 1 :]]])
    assert values[0, place] == read
    assert values[0, 1] == np.float32(0.1)
    assert rows.decode(values)[0][:5] == rows.decode(rows.encoding.conform(rows.frame([GOOD]))[1])[0][:5] or place == 0
