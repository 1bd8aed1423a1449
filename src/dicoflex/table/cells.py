"""Rows as plain values, without frames: JSON's numbers, texts and truths to encoded values, and back."""

from __future__ import annotations

__all__ = ["CellError", "Cells"]

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dicoflex.errors import QueryError, named
from dicoflex.table.columns import code_lookup, column_dtype
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema
from dicoflex.values import is_missing, plain, typed

Cell = bool | int | float | str | None


class CellError(QueryError):
    """A value does not fit its feature, which `feature` names."""

    def __init__(self, message: str, feature: Any) -> None:
        super().__init__(message)
        self.feature = feature


class Cells:
    """Reads and writes plain rows of a schema's features, in their order; missing is None.

    >>> import pandas as pd
    >>> cells = Cells(Schema.infer(pd.DataFrame({"age": [30, 41], "job": ["cook", "nurse"]})))
    >>> cells.encoded([33, "nurse"])
    array([33.,  1.])
    >>> cells.plain(np.array([33.0, 1.0]))
    [33, 'nurse']
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._write = [_writer(feature) for feature in schema.features]
        self._read = [_reader(feature) for feature in schema.features]

    def plain(self, values: Values) -> list[Cell]:
        """One encoded row as plain values."""
        return [write(value) for write, value in zip(self._write, values.tolist(), strict=True)]

    def encoded(self, cells: Sequence[Any]) -> Values:
        """Plain values as one encoded row; a `CellError` names the feature whose value does not fit."""
        return np.array([read(cell) for read, cell in zip(self._read, cells, strict=True)], dtype=np.float64)

    def one(self, j: int, cell: Any) -> float:
        """The encoded value of feature j."""
        return self._read[j](cell)

    def shown(self, j: int, value: float) -> Cell:
        """The plain value of feature j."""
        return self._write[j](value)

    def by_name(self, values: Mapping[Any, Any], names: Sequence[Any]) -> list[Any]:
        """The cells of a mapping by these names of the features, in order; one too few or too many is an error."""
        lacking = next((name for name in names if name not in values), None)
        if lacking is not None:
            raise CellError(f"the row lacks {lacking!r}; give null for a missing value", lacking)
        other = next((name for name in values if name not in names), None)
        if other is not None:
            raise CellError(named("feature", other, names), other)
        return [values[name] for name in names]


def _writer(feature: Feature) -> Callable[[float], Cell]:
    if not feature.is_number:
        states = [*map(plain, feature.levels), None]
        return lambda code: states[int(code)]
    whole = np.issubdtype(_numbers(feature), np.integer)
    return lambda value: None if value != value else int(value) if whole else value


def _reader(feature: Feature) -> Callable[[Any], float]:
    return _number_reader(feature) if feature.is_number else _level_reader(feature)


def _number_reader(feature: Feature) -> Callable[[Any], float]:
    least, greatest = feature.bounds
    kind, whole = _numbers(feature), feature.is_whole
    narrow = np.issubdtype(kind, np.floating) and kind != np.float64

    def read(cell: Any) -> float:
        if is_missing(cell):
            return float("nan") if feature.missing else _refuse(feature, cell)
        if type(cell) not in (int, float) or not least <= cell <= greatest or (whole and cell % 1):
            return _refuse(feature, cell)
        return float(kind.type(cell)) if narrow else float(cell)

    return read


def _level_reader(feature: Feature) -> Callable[[Any], float]:
    codes = code_lookup(feature.levels)

    def read(cell: Any) -> float:
        if is_missing(cell):
            return float(len(feature.levels)) if feature.missing else _refuse(feature, cell)
        if not isinstance(cell, str | bool | int | float):
            return _refuse(feature, cell)
        code = codes.get(typed(cell), codes.get(("any", cell)))
        return _refuse(feature, cell) if code is None else float(code)

    return read


def _refuse(feature: Feature, cell: Any) -> float:
    name = feature.name
    if is_missing(cell):
        raise CellError(f"{name} is missing, and it never was in training; give a value", name)
    if not feature.is_number:
        raise CellError(f"{name}: {named('value', cell, feature.levels)}", name)
    if type(cell) not in (int, float):
        raise CellError(f"{name} is {cell!r}, which is no number; give one", name)
    why = "whole numbers alone" if feature.is_whole and cell % 1 else f"{feature.dtype}"
    raise CellError(f"{name} is {cell!r}, and its column holds {why}; give another number", name)


def _numbers(feature: Feature) -> np.dtype[Any]:
    """The numpy dtype that a number's column keeps its values in."""
    dtype = column_dtype(feature)
    found: np.dtype[Any] = np.dtype(getattr(dtype, "numpy_dtype", dtype))
    return found
