"""A result as CSV: cells that did not change as they were written, and none that a spreadsheet would run."""

from __future__ import annotations

__all__ = ["neutral", "neutralised", "with_written"]

import csv
import io
from typing import Any

import numpy as np
import pandas as pd

FORMULA = ("=", "@", "+", "-", "\t", "\r")


def neutral(value: Any) -> Any:
    """Text that a spreadsheet takes for text: what would be a formula gets an apostrophe before it.

    >>> neutral("=1+1"), neutral("-2.5"), neutral("own")
    ("'=1+1", '-2.5', 'own')
    """
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def neutralised(table: pd.DataFrame) -> pd.DataFrame:
    """The table with every text, name and label neutral."""
    columns = {j: table.iloc[:, j] for j in range(table.shape[1])}
    for j, column in columns.items():
        if not pd.api.types.is_numeric_dtype(column.dtype):
            cells = [neutral(value) for value in column.astype(object)]
            if any(a is not b for a, b in zip(cells, column.astype(object), strict=True)):
                columns[j] = pd.Series(cells, table.index, dtype=object)
    labels = [[neutral(label) for label in table.index.get_level_values(k)] for k in range(table.index.nlevels)]
    index = pd.MultiIndex.from_arrays(labels, names=table.index.names)
    made = pd.DataFrame(columns).set_axis([neutral(name) for name in table.columns], axis=1)
    return made.set_axis(index)


def with_written(
    frame: pd.DataFrame, changed: np.ndarray, positions: np.ndarray, written: pd.DataFrame
) -> pd.DataFrame:  # fmt: skip
    """The frame with the text of its cells that did not change as a file had them, `written`, row by row.

    A column in which that makes no difference stays as it is.
    """
    made = frame.copy()
    for j, name in enumerate(frame.columns):
        shown, own = _texts(frame.iloc[:, j]), written[str(name)].iloc[positions].tolist()
        texts = [new if moved else old for moved, new, old in zip(changed[:, j], shown, own, strict=True)]
        if texts != shown:
            made[name] = pd.Series([text or None for text in texts], frame.index, dtype=object)
    return made


def _texts(column: pd.Series) -> list[str]:
    """The cells as pandas writes them."""
    lines = column.to_frame("x").assign(end="|").to_csv(index=False, header=False, lineterminator="\n")
    return [line[0] for line in csv.reader(io.StringIO(lines, newline=""))]
