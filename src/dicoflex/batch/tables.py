"""The three tables of a batch as Arrow has them: which columns, of which types, whatever the rows."""

from __future__ import annotations

__all__ = ["Tables", "column", "digest"]

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dicoflex.answers.query import bind
from dicoflex.errors import QueryError
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.feature import Feature, dtype_of
from dicoflex.values import is_missing

NUMBER, COUNT, TEXT = pa.float64(), pa.int64(), pa.string()


@dataclass(frozen=True)
class Tables:
    """The columns of answers, shortfall and errors for a model, a request and the columns that name a row.

    keys: the columns that name a row, such as a customer's number.
    """

    model: Model
    request: Request
    keys: pa.Schema

    def __post_init__(self) -> None:
        taken = [name for name in self.keys.names if name in self._features]
        if taken:
            raise QueryError(f"id column {taken[0]!r} is a feature of the model; give a copy of it under another name")

    @property
    def _features(self) -> dict[str, Feature]:
        return {str(feature.name): feature for feature in self.model.schema.features}

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        """The type of each feature, by its name as text."""
        return {name: _type_of(feature) for name, feature in self._features.items()}

    @cached_property
    def told(self) -> dict[str, tuple[str, pa.DataType]]:
        """What is told of each answer: by its name in `Counterfactuals.info`, the column and its type."""
        model, request = self.model, self.request
        scored = model.score is not None
        types = {
            "target": _type_of_values([] if scored else model.labels),
            "log_density": NUMBER,
            "n_changed": COUNT,
            "proximity": NUMBER,
            "probability": NUMBER,
            "valid": pa.bool_(),
        }
        types |= {"cost": NUMBER} if bind(model, request).constraints.cost else {}
        if request.refine and model.coherence is not None:
            types |= {"plausibility": NUMBER, "way": COUNT, "valid_at_least": NUMBER}
        types |= {"score": NUMBER} if scored else {}
        return {name: (self.free(name), type_) for name, type_ in types.items()}

    def free(self, name: str) -> str:
        """The name of a column beside features and keys."""
        while name in self.types or name in self.keys.names:
            name = f"info_{name}"
        return name

    @cached_property
    def answers(self) -> pa.Schema:
        """An answer a row: who it is for, its number, the features, what is told of it, and its row's status."""
        fields = [(self.free("cf"), COUNT), *self.types.items(), *self.told.values(), (self.free("status"), TEXT)]
        return pa.schema([*self.keys, *(pa.field(*one) for one in fields)])

    @cached_property
    def shortfall(self) -> pa.Schema:
        """A row for each that got fewer answers than asked for."""
        return pa.schema([*self.keys, ("status", TEXT), ("wanted", COUNT), ("got", COUNT), ("reason", TEXT)])

    @cached_property
    def errors(self) -> pa.Schema:
        """A row for each that could not be read."""
        return pa.schema([*self.keys, ("reason", TEXT)])


def _type_of(feature: Feature) -> pa.DataType:
    if not feature.is_number:
        return _type_of_values(feature.levels)
    dtype = dtype_of(feature.dtype)
    held = np.dtype(getattr(dtype, "numpy_dtype", dtype))
    return NUMBER if held == object else pa.from_numpy_dtype(held)


def _type_of_values(values: Sequence[Any]) -> pa.DataType:
    """The type that holds some levels or labels; text where they are of several kinds."""
    kinds = {type(value) for value in values}
    one = kinds.pop() if len(kinds) == 1 else str
    return {bool: pa.bool_(), int: COUNT, float: NUMBER}.get(one, TEXT)


def column(cells: Any, type_: pa.DataType) -> pa.Array:
    """Cells as an array of a type; where that is text, others are written as text."""
    if isinstance(cells, pd.Series) and isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    if type_ != TEXT:
        return pa.array(cells, type=type_, from_pandas=True)
    try:
        return pa.array(cells, type=TEXT, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if is_missing(cell) else str(cell) for cell in cells], type=TEXT)


# -- comparing tables ----------------------------------------------------------------------------------------------


def digest(table: pa.Table, seed: int = 0) -> int:
    """A number for the rows of a table, whatever their order; those of parts add up to that of the whole, modulo 2**64.

    >>> table = pa.table({"id": ["a", "b"], "x": [1.5, None]})
    >>> digest(table) == (digest(table[1:]) + digest(table[:1])) % 2**64
    True
    """
    if table.num_rows == 0:
        return 0
    columns = [one for name in table.column_names for one in _numbers(table.column(name).combine_chunks())]
    keys = row_keys(np.column_stack(columns), seed)
    return int(np.add.reduce(keys))


def _numbers(array: Any) -> list[NDArray[np.float64]]:
    """A column as numbers that differ where its values do, but for rare texts."""
    if pa.types.is_integer(array.type) or pa.types.is_boolean(array.type):
        whole = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        absent = np.asarray(array.is_null(), dtype=np.float64)
        return [(whole >> 32) + absent / 2, (whole & 0xFFFFFFFF).astype(np.float64)]
    if pa.types.is_floating(array.type):
        floats = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return [np.where(np.isnan(floats), np.nan, floats)]
    coded = array.cast(TEXT).dictionary_encode()
    values = np.array([_of_text(text) for text in coded.dictionary.to_pylist()] + [-1.0])
    codes = coded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)
    return [values[codes]]


def _of_text(text: str) -> float:
    return float(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big"))
