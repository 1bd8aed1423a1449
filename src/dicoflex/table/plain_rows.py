"""Rows of plain values, and single cells of them: read and written, with errors that name the feature."""

from __future__ import annotations

__all__ = ["CellError", "Cells", "PlainRows", "Row", "cells_of", "plain_row"]

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from dicoflex.errors import QueryError, named
from dicoflex.table.columns import EXACT, code_lookup, column_dtype, level_array
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.feature import Feature
from dicoflex.values import is_missing, plain, typed

PLAIN = (str, bool, int, float)
Row = Sequence[Any]
Reader = Callable[[Any], float | None]
Writer = Callable[[list[float]], list[Any]]


class PlainRows:
    """Rows as lists of plain values in the order of the features, None for what is missing.

    What is read is what a frame of these cells would be read as, and what is written is what a frame would hold.

    >>> frame = pd.DataFrame({"age": [31, 52], "job": ["cook", "nurse"]})
    >>> rows = PlainRows(Encoding.fit(frame, frame.pipe(__import__("dicoflex").Schema.infer)))
    >>> rows.encode([[40, "nurse"]])
    array([[40.,  1.]])
    >>> rows.decode(np.array([[52.0, 0.0]]))
    [[52, 'cook']]
    """

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.names = [str(name) for name in encoding.schema.names]
        features = encoding.schema.features
        self.readers = [_number_reader(f) if f.is_number else _level_reader(f) for f in features]
        self.writers = [_number_writer(f) if f.is_number else _level_writer(f) for f in features]

    def encode(self, rows: Sequence[Row]) -> Values:
        """The matrix of some rows, as columns of the training dtypes hold them; a `QueryError` says what does not fit.

        A cell that needs a closer look is given to a frame, which says the same of it as of a caller's own.
        """
        cells = [[read(cell) for read, cell in zip(self.readers, row, strict=True)] for row in rows]
        if any(None in row for row in cells):
            return self.encoding.conform(self.frame(rows))[1]
        values = np.array(cells, dtype=np.float64).reshape(len(cells), len(self.readers))
        for j, kind in self.encoding.narrow:
            values[:, j] = values[:, j].astype(kind)
        return values

    def decode(self, values: Values) -> list[list[Any]]:
        """The rows of a matrix whose values lie on their columns' grids."""
        columns = [write(column) for write, column in zip(self.writers, values.T.tolist(), strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]

    def frame(self, rows: Sequence[Row]) -> pd.DataFrame:
        """The rows as a frame."""
        columns = zip(*rows, strict=True)
        names = self.encoding.schema.names
        return pd.DataFrame({name: list(cells) for name, cells in zip(names, columns, strict=True)})


def cells_of(frame: pd.DataFrame) -> list[list[Any]]:
    """The rows of a frame as plain values, each column in its own type; what is missing stays as the column has it.

    >>> cells_of(pd.DataFrame({"age": [31], "rate": [0.5], "own": [True]}))
    [[31, 0.5, True]]
    """
    # One look at all columns is cheaper than one at each.
    return [[plain(cell) for cell in row] for row in frame.to_numpy(dtype=object).tolist()]


def plain_row(cells: Row) -> list[Any]:
    """Cells of any types as plain values, None for what is missing.

    >>> plain_row([np.int64(3), float("nan"), "a"])
    [3, None, 'a']
    """
    return [None if is_missing(cell) else plain(cell) for cell in cells]


def _number_reader(feature: Feature) -> Reader:
    """Reads a number; None where a frame is to say what it is."""
    (least, greatest), whole, narrow = feature.bounds, feature.is_whole, feature.narrow is not None
    absent = float("nan") if feature.missing else None

    def read(cell: Any) -> float | None:
        kind = type(cell)
        if kind is not int and kind is not float:
            return absent if cell is None else None
        if not least <= cell <= greatest or (whole and cell % 1) or (kind is int and not -EXACT <= cell <= EXACT):
            return None
        return None if narrow and feature.rounds(np.array([cell], dtype=np.float64))[0] else float(cell)

    return read


def _level_reader(feature: Feature) -> Reader:
    """Reads a level as its code, by value and type, or by value alone where that is not ambiguous."""
    codes = {key: float(code) for key, code in code_lookup(feature.levels).items()}
    absent = float(len(feature.levels)) if feature.missing else None

    def read(cell: Any) -> float | None:
        if cell is None:
            return absent
        if type(cell) not in PLAIN:
            return None
        return codes.get(typed(cell), codes.get(("any", cell)))

    return read


def _number_writer(feature: Feature) -> Writer:
    if pd.api.types.is_integer_dtype(column_dtype(feature)):
        return lambda column: [None if value != value else int(value) for value in column]
    return lambda column: [None if value != value else value for value in column]


def _level_writer(feature: Feature) -> Writer:
    dtype = column_dtype(feature)
    cells = plain_row(pd.Series(level_array(feature, dtype), dtype=dtype).astype(object).tolist())
    return lambda column: [cells[int(code)] for code in column]


Cell = bool | int | float | str | None


class CellError(QueryError):
    """A value does not fit its feature, which `feature` names."""

    def __init__(self, message: str, feature: Any) -> None:
        super().__init__(message)
        self.feature = feature


class Cells:
    """Reads and writes single plain rows and cells, and says of which feature a value is that does not fit.

    >>> import pandas as pd
    >>> from dicoflex.table.encoding import Encoding
    >>> from dicoflex.table.schema import Schema
    >>> frame = pd.DataFrame({"age": [30, 41], "job": ["cook", "nurse"]})
    >>> cells = Cells(PlainRows(Encoding.fit(frame, Schema.infer(frame))))
    >>> cells.encoded([33, "nurse"])
    array([33.,  1.])
    >>> cells.plain(np.array([33.0, 1.0]))
    [33, 'nurse']
    """

    def __init__(self, rows: PlainRows) -> None:
        self.rows, self.schema = rows, rows.encoding.schema
        self._narrow = dict(rows.encoding.narrow)

    def plain(self, values: Values) -> list[Cell]:
        """One encoded row as plain values."""
        return self.rows.decode(values[None])[0]

    def encoded(self, cells: Sequence[Any]) -> Values:
        """Plain values as one encoded row; a `CellError` names the feature whose value does not fit."""
        return np.array([self.one(j, cell) for j, cell in enumerate(cells)], dtype=np.float64)

    def one(self, j: int, cell: Any) -> float:
        """The encoded value of feature j."""
        value = self.rows.readers[j](None if is_missing(cell) else cell)
        if value is None:
            _refuse(self.schema.features[j], cell)
        return float(self._narrow[j].type(value)) if j in self._narrow else float(value or 0.0)

    def shown(self, j: int, value: float) -> Cell:
        """The plain value of feature j."""
        found: Cell = self.rows.writers[j]([value])[0]
        return found

    def by_name(self, values: Mapping[Any, Any], names: Sequence[Any]) -> list[Any]:
        """The cells of a mapping by these names of the features, in order; one too few or too many is an error."""
        lacking = next((name for name in names if name not in values), None)
        if lacking is not None:
            raise CellError(f"the row lacks {lacking!r}; give null for a missing value", lacking)
        other = next((name for name in values if name not in names), None)
        if other is not None:
            raise CellError(named("feature", other, names), other)
        return [values[name] for name in names]


def _refuse(feature: Feature, cell: Any) -> NoReturn:
    name = feature.name
    if is_missing(cell):
        raise CellError(f"{name} is missing, and it never was in training; give a value", name)
    if not feature.is_number:
        raise CellError(f"{name}: {named('value', cell, feature.levels)}", name)
    if type(cell) not in (int, float):
        raise CellError(f"{name} is {cell!r}, which is no number; give one", name)
    why = "whole numbers alone" if feature.is_whole and cell % 1 else f"{feature.dtype}, which rounds or exceeds that"
    raise CellError(f"{name} is {cell!r}, and its column holds {why}; give another number", name)
