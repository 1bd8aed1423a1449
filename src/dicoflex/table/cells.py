"""Single cells of plain rows, read and written, with errors that name their feature."""

from __future__ import annotations

__all__ = ["CellError", "Cells"]

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from dicoflex.errors import QueryError, named
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature
from dicoflex.table.plain_rows import PlainRows
from dicoflex.values import is_missing

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
