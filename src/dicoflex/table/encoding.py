"""Frames to arrays and back, without loss: codes for levels, reals for numbers, the frame's own dtypes on return.

A table becomes one float64 matrix, a column per feature: a number as it is (NaN when missing), a level as its code
(the code after the last level when missing). Its derived views stand in `reals`.
"""

from __future__ import annotations

__all__ = ["Encoding", "Kept", "Parts", "Values", "check_limits"]

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.errors import ModelFileError, QueryError, SchemaError, UnseenError, named
from dicoflex.runtime.threads import THREADED, in_threads
from dicoflex.table.columns import (
    code_lookup,
    column_dtype,
    extends,
    factorize,
    few_numbers,
    level_array,
    read_numbers,
    same_dtype,
)
from dicoflex.table.feature import Level
from dicoflex.table.inference import FRAMES, kind_of_frame
from dicoflex.table.reals import Parts, Reals, Values
from dicoflex.table.schema import Schema
from dicoflex.values import differ, typed

FEW = 32
PLAIN = (str, bool, int, float)


@dataclass(frozen=True)
class Kept:
    """Cells of a decoded frame that equal those of another one: `frame` at row `at`, where `mask` (rows, features)."""

    frame: pd.DataFrame
    at: NDArray[np.int64]
    mask: NDArray[np.bool_]

    def put_back(self, j: int, name: Any, column: Any) -> Any:
        """A decoded column with the kept cells as they are in the other frame."""
        mask = self.mask[:, j]
        if not mask.any():
            return column
        own = self.frame[name].array.take(self.at[mask])
        column = column.copy()
        column[mask] = own.to_numpy() if isinstance(column, np.ndarray) else own
        return column


@dataclass(frozen=True)
class Encoding(Reals):
    """The two-way map between frames with `schema` and matrices; `mean` and `scale` standardise the numbers.

    declared: by column, the dtype of the training frame, where it has categories that the schema does not name because
    too few rows have them. Frames that are made have it, so that codes are those of the training frame; no file keeps
    it, as it names what few rows have.

    >>> frame = pd.DataFrame({"age": [31, 52], "job": ["cook", "nurse"]})
    >>> encoding = Encoding.fit(frame, Schema.infer(frame))
    >>> encoding.encode(frame)
    array([[31.,  0.],
           [52.,  1.]])
    >>> encoding.decode(encoding.encode(frame)).equals(frame)
    True
    """

    declared: Mapping[Any, pd.CategoricalDtype] = field(default_factory=dict)

    @classmethod
    def unit(cls, schema: Schema) -> Encoding:
        """The encoding of `schema` that scales nothing: enough to turn frames into values."""
        return cls(schema, np.zeros(len(schema)), np.ones(len(schema)))

    @classmethod
    def fit(cls, frame: pd.DataFrame, schema: Schema) -> Encoding:
        """The encoding of `schema`, with the numbers' mean and standard deviation taken from `frame`."""
        return cls.of_values(schema, cls.unit(schema).encode(frame))

    @classmethod
    def of_values(cls, schema: Schema, values: Values) -> Encoding:
        """The encoding of `schema`, with means and deviations of a matrix that `unit` made."""
        check_limits(schema, values)
        mean, scale = np.zeros(len(schema)), np.ones(len(schema))
        for j, feature in enumerate(schema.features):
            present = values[~np.isnan(values[:, j]), j]
            if feature.is_number and len(present):
                mean[j] = present.mean()
                scale[j] = _deviation(present)
        return cls(schema, mean, scale)

    def declaring(self, frame: pd.DataFrame) -> Encoding:
        """This encoding with the categories that the columns of the training frame declare beyond the schema's."""
        declared = {}
        for feature in self.schema.features:
            own = frame[feature.name].dtype
            if isinstance(own, pd.CategoricalDtype) and extends(own, column_dtype(feature)):
                declared[feature.name] = own
        return replace(self, declared=declared)

    # -- frames -------------------------------------------------------------------------------------------------

    def encode(self, frame: pd.DataFrame) -> Values:
        """The matrix of `frame`; a `QueryError` names the first column or value that does not fit the schema."""
        self.check_columns(frame)
        values = np.empty((len(frame), len(self.schema)))
        plain = self._few_cells(frame)
        for j, feature in enumerate(self.schema.features):
            few = None if plain is None else self._encode_few(j, plain[j])
            values[:, j] = self._encode_column(j, frame[feature.name]) if few is None else few
        return values

    def decode(self, values: Values, index: pd.Index | None = None, *, kept: Kept | None = None) -> pd.DataFrame:
        """The frame of a matrix: numbers clipped to their limits and rounded to their grid, dtypes as in training.

        kept: cells that are some frame's own, bit for bit, whatever the limits; the others were snapped before. Where
        that frame's columns have more categories than the training's, so do those of the frame that is made.
        """
        rows = pd.RangeIndex(len(values)) if index is None else index
        columns: dict[Hashable, Any] = {}
        settled = self._settle(values) if kept is None else values
        for j, feature in enumerate(self.schema.features):
            column = self._decode_column(j, settled[:, j], None if kept is None else kept.frame[feature.name].dtype)
            if kept is not None:
                column = kept.put_back(j, feature.name, column)
            # A frame would read a text dtype into an array of objects; it leaves a series as it is.
            columns[feature.name] = pd.Series(column, rows, dtype=object) if self._dtypes[j] == object else column
        return pd.DataFrame(columns, index=rows, copy=False)

    def conform(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, Values]:
        """`frame` with the training columns, order and dtypes, and its matrix.

        Values that already have the dtype stay bit for bit; others are encoded as the dtype holds them, so that what
        changes on the way to float32 is not taken for a change of a draw's. Categories beyond those of training, which
        a model file does not name where few rows have them, stay declared.
        """
        values = self.encode(frame)
        conformed = (frame if self._in_order(frame) else frame[self._names]).copy()
        dtypes = conformed.dtypes.tolist()
        for j, feature in enumerate(self.schema.features):
            if not same_dtype(dtypes[j], self._dtypes[j]) and not extends(dtypes[j], self._dtypes[j]):
                column = self._decode_column(j, values[:, j])
                conformed[feature.name] = pd.Series(column, frame.index, dtype=self._dtypes[j])
                values[:, j] = self._encode_column(j, conformed[feature.name])
        return conformed, values

    def check_columns(self, frame: Any) -> None:
        """Refuse rows that lack a training column or bring one of their own."""
        if not isinstance(frame, pd.DataFrame):
            raise QueryError(f"rows must be {FRAMES}, with the training columns, got {kind_of_frame(frame)}")
        if self._in_order(frame):
            return
        if frame.columns.duplicated().any():
            raise QueryError(f"column names repeat: {frame.columns[frame.columns.duplicated()].tolist()}")
        lacking = [name for name in self.schema.names if name not in frame.columns]
        if lacking:
            raise QueryError(f"rows lack the column {lacking[0]!r}; the model was fitted on {self.schema.names}")
        extra = [name for name in frame.columns if name not in self.schema.names]
        if extra:
            message = named("column", extra[0], self.schema.names)
            raise QueryError(f"{message}; pass only the training columns, rows[model.schema_.names]")

    @cached_property
    def _names(self) -> list[Any]:
        return self.schema.names

    def _in_order(self, frame: pd.DataFrame) -> bool:
        """Whether the columns are the training columns, in their order."""
        return frame.columns.tolist() == self._names

    def _few_cells(self, frame: pd.DataFrame) -> list[list[Any]] | None:
        """The cells of a small frame by feature; one look at all columns is cheaper than one at each."""
        if len(frame) > FEW or not self._in_order(frame):
            return None
        cells: list[list[Any]] = frame.to_numpy(dtype=object).T.tolist()
        return cells

    def _encode_few(self, j: int, cells: list[Any]) -> list[float] | None:
        """A few plain values, without the cost of pandas' ways; None where one needs a closer look."""
        feature = self.schema.features[j]
        return few_numbers(feature, cells) if feature.is_number else self._few_codes(j, cells)

    def _encode_column(self, j: int, column: pd.Series) -> Values:
        feature = self.schema.features[j]
        absent = column.isna().to_numpy()
        if absent.any() and not feature.missing:
            raise UnseenError(
                f"column {feature.name!r} has missing values, and none were seen in training{self._or_rarely}; "
                "fill them in, or fit on rows that have some"
            )
        if feature.is_number:
            return read_numbers(feature, column, absent)
        codes = np.full(len(column), float(len(feature.levels)))
        codes[~absent] = self._codes(j, column[~absent])
        return codes

    @property
    def _or_rarely(self) -> str:
        least = self.schema.min_count
        return f" or in fewer than {least} rows" if least > 1 else ""

    def _few_codes(self, j: int, cells: list[Any]) -> list[float] | None:
        lookup = self._lookups[j]
        codes = [lookup.get(typed(v)) if type(v) in PLAIN else None for v in cells]
        return None if None in codes else [float(code) for code in codes if code is not None]

    def _codes(self, j: int, column: pd.Series) -> NDArray[np.float64]:
        """Level codes, looked up once per distinct value."""
        feature, lookup = self.schema.features[j], self._lookups[j]
        keys, uniques = factorize(column)
        codes = np.empty(len(uniques))
        for i, value in enumerate(uniques):
            found = lookup.get(typed(value), lookup.get(("any", value))) if isinstance(value, Level) else None
            if found is None:
                known = ", ".join(map(repr, feature.levels[:12]))
                unseen = f"never seen in training{self._or_rarely}"
                raise UnseenError(f"column {feature.name!r} has the value {value!r}, {unseen}; known: {known}")
            codes[i] = found
        return codes[keys] if len(uniques) else np.empty(0)

    def _decode_column(self, j: int, values: Values, like: Any = None) -> Any:
        """Values on their grid as an array of the training dtype, or of one `like` it with more categories."""
        if not self.schema.features[j].is_number:
            wider = like is not None and extends(like, self._dtypes[j])
            levels = level_array(self.schema.features[j], like) if wider else self._level_arrays[j]
            return levels.take(values.astype(np.int64))
        dtype = self._dtypes[j]
        if isinstance(dtype, np.dtype) and dtype != object:
            return values.astype(dtype)
        return pd.Series(values).astype(dtype).array

    @cached_property
    def _dtypes(self) -> list[Any]:
        return [self.declared.get(feature.name) or column_dtype(feature) for feature in self.schema.features]

    @cached_property
    def _level_arrays(self) -> list[Any]:
        return [None if f.is_number else level_array(f, self._dtypes[j]) for j, f in enumerate(self.schema.features)]

    @cached_property
    def _lookups(self) -> list[dict[Any, int]]:
        """Level to code: by value and type first; by value alone where that is not ambiguous (1 read back as 1.0)."""
        return [code_lookup(feature.levels) for feature in self.schema.features]

    def snap(self, values: Values) -> Values:
        """Values as a frame of the training dtypes would hold them, so that what is scored is what is shown."""
        snapped = self._settle(values)
        for j, kind in self.narrow:
            snapped[:, j] = snapped[:, j].astype(kind)
        return snapped

    def finish(
        self, values: Values, query: Values, frozen: NDArray[np.bool_]
    ) -> tuple[Values, NDArray[np.bool_]]:  # fmt: skip
        """Draws (n, each, d) of n queries as rows of a frame, one after the other, and which differ from their query.

        What is frozen or equals the query's value stays as it is, whatever the limits; the rest is snapped.
        """
        least, greatest, whole = self._grids
        each = values.shape[1]
        rows, moved = np.empty((len(query) * each, values.shape[2])), np.empty(len(query) * each, dtype=bool)

        def work(low: int, high: int) -> None:
            _core.finish(
                values=values, query=query, frozen=frozen, least=least, greatest=greatest, whole=whole, low=low,
                high=high, rows=rows, moved=moved,
            )  # fmt: skip

        in_threads(work, len(query), least=max(1, THREADED // each))
        if self.narrow:
            own = np.repeat(query, each, axis=0)
            changed = self.differs(rows, own)
            rows = np.where(changed, self.snap(rows), own)
            moved = np.asarray(self.differs(rows, own).any(axis=1))
        return rows, moved

    def _settle(self, values: Values) -> Values:
        """Numbers within their limits, whole ones rounded."""
        least, greatest, whole = self._grids
        settled = np.clip(values, least, greatest)
        np.rint(settled, out=settled, where=whole)
        return settled

    @cached_property
    def _grids(self) -> tuple[Values, Values, NDArray[np.bool_]]:
        """Per feature its limits and whether it is whole."""
        features = self.schema.features
        least = np.array([f.minimum if f.is_number else -np.inf for f in features], dtype=float)
        greatest = np.array([f.maximum if f.is_number else np.inf for f in features], dtype=float)
        whole = np.array([f.is_number and f.is_whole for f in features])
        return least, greatest, whole

    @cached_property
    def narrow(self) -> list[tuple[int, np.dtype[Any]]]:
        """The numbers whose dtype rounds what a float64 holds, and the floats that it is made of.

        Dtypes of whole numbers hold all that lie on their grid.
        """
        return [(j, f.narrow) for j, f in enumerate(self.schema.features) if f.narrow is not None]

    def differs(self, values: Values, other: Values) -> NDArray[np.bool_]:
        """Where two matrices differ; missing equals missing."""
        return differ(values, other)

    def is_exact(self, values: Values) -> NDArray[np.bool_]:
        """Where the matrix has all that there is to a cell, so that `decode` gives it back bit for bit.

        It has so for levels, and for int64 within its limits; a zero of floats has a sign, and other dtypes may hold
        what a float64 does not.
        """
        least, greatest, _ = self._grids
        integers, levels = self._sorts
        held = integers & (np.abs(values) < 2.0**53) & (least <= values) & (values <= greatest)
        exact: NDArray[np.bool_] = levels | held
        return exact

    @cached_property
    def _sorts(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which features are numbers of dtype int64, and which are picked from levels."""
        levels = np.array([not f.is_number for f in self.schema.features])
        return np.array([dtype == np.int64 for dtype in self._dtypes]) & ~levels, levels

    def state(self) -> dict[str, Any]:
        """What a model file keeps of the encoding, as plain JSON."""
        return {
            "schema": self.schema.model_dump(mode="json"),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_state(cls, state: Any) -> Encoding:
        """The encoding that `state` describes; one that describes none is a `ModelFileError`."""
        try:
            schema = Schema.from_json(json.dumps(state["schema"]))
            mean, scale = (_finite(state[name], len(schema)) for name in ("mean", "scale"))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"the model file describes no table: {error}; save the model again") from None
        if not (scale > 0).all():
            raise ModelFileError("the model file has a scale that is not above 0; it is damaged: save the model again")
        encoding = cls(schema, mean, scale)
        encoding._check_levels()
        return encoding

    def _check_levels(self) -> None:
        """Refuse levels that their column's dtype does not hold: answers could not be shown."""
        for j, feature in enumerate(self.schema.features):
            if feature.is_number:
                continue
            codes = np.arange(feature.n_states, dtype=float)
            try:
                column = pd.Series(self._decode_column(j, codes), dtype=self._dtypes[j])
                fits = np.array_equal(self._encode_column(j, column), codes)
            except Exception as error:
                raise ModelFileError(f"the levels of {feature.name!r} are no {feature.dtype} ({error})") from None
            if not fits:
                raise ModelFileError(f"the levels of {feature.name!r} are no {feature.dtype}; save the model again")


def _finite(numbers: Any, n: int) -> Values:
    """A list of `n` numbers from a header."""
    if not isinstance(numbers, list) or len(numbers) != n or not all(type(x) in (int, float) for x in numbers):
        raise ValueError(f"means and scales are lists of {n} numbers")
    found = np.array([float(x) for x in numbers])
    if not np.isfinite(found).all():
        raise ValueError("means and scales are finite numbers")
    return found


def _deviation(values: Values) -> float:
    """The standard deviation to divide by; 1 where all values are one, which rounding would make a tiny number."""
    deviation = float(values.std()) if values.min() < values.max() else 0.0
    return deviation if deviation > 0.0 else 1.0


def check_limits(schema: Schema, values: Values) -> None:
    """Refuse values that lie beyond the limits of their features, on one side as many as the schema would tell of."""
    for feature, column in zip(schema.features, values.T, strict=True):
        present = column[~np.isnan(column)]
        if not feature.is_number or len(present) == 0:
            continue
        if max((present < feature.minimum).sum(), (present > feature.maximum).sum()) >= schema.min_count:
            low, high = present.min(), present.max()
            raise SchemaError(
                f"column {feature.name!r} holds {low:g} to {high:g}, beyond its schema's {feature.minimum:g} to "
                f"{feature.maximum:g}; infer the schema from these rows, or widen it with limits={{...}}"
            )
