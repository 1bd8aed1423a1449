"""Frames to arrays and back, without loss: codes for levels, reals for numbers, the frame's own dtypes on return.

A table becomes one float64 matrix, a column per feature: a number as it is (NaN when missing), a level as its code
(the code after the last level when missing). Two views of that matrix are derived: the *parts* that distances are
measured on, and the *reals* (scaled numbers and one-hot blocks) that the paper's flows are trained on.
"""

from __future__ import annotations

__all__ = ["Encoding", "Kept", "Parts"]

import json
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import QueryError, SchemaError, named
from dicoflex.runtime.threads import THREADED, in_threads
from dicoflex.table.feature import Feature, Level, dtype_of
from dicoflex.table.schema import Schema
from dicoflex.values import plain, typed

Values = NDArray[np.float64]
FEW = 32
PLAIN = (str, bool, int, float)
# Dtypes that hold every value of their grid, as far as a float64 does.
EXACT = (np.dtype("float64"), np.dtype("int64"))


@dataclass(frozen=True)
class Parts:
    """A table split for distances: codes that match or don't, and standardised numbers that are apart by so much."""

    codes: NDArray[np.int32]
    numbers: NDArray[np.float64]
    code_feature: NDArray[np.int64]
    number_feature: NDArray[np.int64]


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
class Encoding:
    """The two-way map between frames with `schema` and matrices; `mean` and `scale` standardise the numbers.

    >>> frame = pd.DataFrame({"age": [31, 52], "job": ["cook", "nurse"]})
    >>> encoding = Encoding.fit(frame, Schema.infer(frame))
    >>> encoding.encode(frame)
    array([[31.,  0.],
           [52.,  1.]])
    >>> encoding.decode(encoding.encode(frame)).equals(frame)
    True
    """

    schema: Schema
    mean: Values
    scale: Values

    @classmethod
    def fit(cls, frame: pd.DataFrame, schema: Schema) -> Encoding:
        """The encoding of `schema`, with the numbers' mean and standard deviation taken from `frame`."""
        unit = cls(schema, np.zeros(len(schema)), np.ones(len(schema)))
        values = unit.encode(frame)
        mean, scale = np.zeros(len(schema)), np.ones(len(schema))
        for j, feature in enumerate(schema.features):
            present = values[~np.isnan(values[:, j]), j]
            if feature.is_number and len(present):
                _refuse_beyond(feature, present)
                mean[j] = present.mean()
                scale[j] = _deviation(present)
        return cls(schema, mean, scale)

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

        kept: cells that are some frame's own, bit for bit, whatever the limits; the others were snapped before.
        """
        rows = pd.RangeIndex(len(values)) if index is None else index
        columns: dict[Hashable, Any] = {}
        settled = self._settle(values) if kept is None else values
        for j, feature in enumerate(self.schema.features):
            column = self._decode_column(j, settled[:, j])
            if kept is not None:
                column = kept.put_back(j, feature.name, column)
            # A frame would read a text dtype into an array of objects; it leaves a series as it is.
            columns[feature.name] = pd.Series(column, rows, dtype=object) if self._dtypes[j] == object else column
        return pd.DataFrame(columns, index=rows, copy=False)

    def conform(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, Values]:
        """`frame` with the training columns, order and dtypes, and its matrix.

        Values that already have the dtype stay bit for bit; others are encoded as the dtype holds them, so that what
        changes on the way to float32 is not taken for a change of a draw's.
        """
        values = self.encode(frame)
        conformed = (frame if self._in_order(frame) else frame[self._names]).copy()
        dtypes = conformed.dtypes.tolist()
        for j, feature in enumerate(self.schema.features):
            if not _same_dtype(dtypes[j], self._dtypes[j]):
                column = self._decode_column(j, values[:, j])
                conformed[feature.name] = pd.Series(column, frame.index, dtype=self._dtypes[j])
                values[:, j] = self._encode_column(j, conformed[feature.name])
        return conformed, values

    def check_columns(self, frame: Any) -> None:
        """Refuse rows that lack a training column or bring one of their own."""
        if not isinstance(frame, pd.DataFrame):
            raise QueryError(f"rows must be a pandas DataFrame with the training columns, got {type(frame).__name__}")
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
        return _few_numbers(feature, cells) if feature.is_number else self._few_codes(j, cells)

    def _encode_column(self, j: int, column: pd.Series) -> Values:
        feature = self.schema.features[j]
        absent = column.isna().to_numpy()
        if absent.any() and not feature.missing:
            raise QueryError(
                f"column {feature.name!r} has missing values, and none were seen in training; fill them in, "
                "or fit on rows that have some"
            )
        if feature.is_number:
            return _numbers(feature, column, absent)
        codes = np.full(len(column), float(len(feature.levels)))
        codes[~absent] = self._codes(j, column[~absent])
        return codes

    def _few_codes(self, j: int, cells: list[Any]) -> list[float] | None:
        lookup = self._lookups[j]
        codes = [lookup.get(typed(v)) if type(v) in PLAIN else None for v in cells]
        return None if None in codes else [float(code) for code in codes if code is not None]

    def _codes(self, j: int, column: pd.Series) -> NDArray[np.float64]:
        """Level codes, looked up once per distinct value."""
        feature, lookup = self.schema.features[j], self._lookups[j]
        keys, uniques = _factorize(column)
        codes = np.empty(len(uniques))
        for i, value in enumerate(uniques):
            found = lookup.get(typed(value), lookup.get(("any", value))) if isinstance(value, Level) else None
            if found is None:
                known = ", ".join(map(repr, feature.levels[:12]))
                raise QueryError(
                    f"column {feature.name!r} has the value {value!r}, never seen in training; known: {known}"
                )
            codes[i] = found
        return codes[keys] if len(uniques) else np.empty(0)

    def _decode_column(self, j: int, values: Values) -> Any:
        """Values on their grid as an array of the training dtype."""
        if not self.schema.features[j].is_number:
            return self._level_arrays[j].take(values.astype(np.int64))
        dtype = self._dtypes[j]
        if isinstance(dtype, np.dtype) and dtype != object:
            return values.astype(dtype)
        return pd.Series(values).astype(dtype).array

    @cached_property
    def _dtypes(self) -> list[Any]:
        return [_dtype(feature) for feature in self.schema.features]

    @cached_property
    def _level_arrays(self) -> list[Any]:
        return [None if f.is_number else _level_array(f, self._dtypes[j]) for j, f in enumerate(self.schema.features)]

    @cached_property
    def _lookups(self) -> list[dict[Any, int]]:
        """Level to code: by value and type first; by value alone where that is not ambiguous (1 read back as 1.0)."""
        return [_lookup(feature.levels) for feature in self.schema.features]

    # -- views --------------------------------------------------------------------------------------------------

    @cached_property
    def code_feature(self) -> NDArray[np.int64]:
        """Which feature each code column of `parts` belongs to: picked features, and numbers that may be missing."""
        return np.array([j for j, f in enumerate(self.schema.features) if not f.is_number or f.missing], dtype=np.int64)

    @cached_property
    def number_feature(self) -> NDArray[np.int64]:
        """Which feature each number column of `parts` belongs to."""
        return np.array([j for j, f in enumerate(self.schema.features) if f.is_number], dtype=np.int64)

    def parts(self, values: Values) -> Parts:
        """The matrix split for distances; a missing number is a code of its own and stands at the mean."""
        numeric = np.array([f.is_number for f in self.schema.features])
        codes = values[:, self.code_feature]
        missing_flag = np.isnan(codes)
        whole = np.where(numeric[self.code_feature], missing_flag, codes).astype(np.int32)
        return Parts(whole, self.standardise(values), self.code_feature, self.number_feature)

    def standardise(self, values: Values) -> Values:
        """The number columns alone, standardised, missing ones at 0."""
        at = self.number_feature
        return np.nan_to_num((values[:, at] - self.mean[at]) / self.scale[at], nan=0.0)

    @cached_property
    def blocks(self) -> list[slice]:
        """Where each feature stands among the reals."""
        edges, start = [], 0
        for feature in self.schema.features:
            width = (1 + 2 * feature.missing) if feature.is_number else feature.n_states
            edges.append(slice(start, start + width))
            start += width
        return edges

    @property
    def n_reals(self) -> int:
        """The width of the one-hot table."""
        return int(self.blocks[-1].stop)

    @cached_property
    def is_onehot(self) -> NDArray[np.bool_]:
        """Which reals belong to one-hot blocks, and not to scaled numbers."""
        flags = np.ones(self.n_reals, dtype=bool)
        for feature, block in zip(self.schema.features, self.blocks, strict=True):
            if feature.is_number:
                flags[block.start] = False
        return flags

    def to_reals(self, values: Values) -> NDArray[np.float32]:
        """The paper's encoding: standardised numbers and one-hot levels; one that may be missing has a pair too."""
        reals = np.zeros((len(values), self.n_reals), dtype=np.float32)
        reals[:, self.places[0]] = self.standardise(values)
        reals[np.arange(len(values))[:, None], self._ones_at(values)] = 1.0
        return reals

    def _ones_at(self, values: Values) -> NDArray[np.int64]:
        """Where the ones of each row's one-hot blocks stand among its reals (n, blocks)."""
        _, level_at, may_be_missing = self.places
        codes = values[:, self.code_feature]
        at: NDArray[np.int64] = level_at + np.where(may_be_missing, np.isnan(codes), codes).astype(np.int64)
        return at

    @cached_property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Where numbers stand among the reals, where blocks of levels start, and which of those are a number's pair."""
        starts = np.array([block.start for block in self.blocks], dtype=np.int64)
        of_number = np.isin(self.code_feature, self.number_feature)
        return starts[self.number_feature], starts[self.code_feature] + of_number, of_number

    def from_reals(self, reals: NDArray[Any]) -> Values:
        """The matrix nearest to some reals: a block's largest; the number unscaled, clipped, on its grid."""
        values = np.empty((len(reals), len(self.schema)))
        for j, (feature, block) in enumerate(zip(self.schema.features, self.blocks, strict=True)):
            part = np.asarray(reals[:, block], dtype=np.float64)
            if not feature.is_number:
                values[:, j] = part.argmax(axis=1)
                continue
            number = np.clip(part[:, 0] * self.scale[j] + self.mean[j], feature.minimum, feature.maximum)
            values[:, j] = np.rint(number) if feature.is_whole else number
            if feature.missing:
                values[part[:, 2] > part[:, 1], j] = np.nan
        return values

    def real_mask(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """A mask over features (n, d) spread over the reals (n, D)."""
        widths = [block.stop - block.start for block in self.blocks]
        return np.repeat(mask, widths, axis=1)

    def snap(self, values: Values) -> Values:
        """Values as a frame of the training dtypes would hold them, so that what is scored is what is shown."""
        snapped = self._settle(values)
        for j in self._grids[3]:
            decoded = self._decode_column(j, snapped[:, j])
            if not isinstance(decoded, np.ndarray):
                decoded = decoded.to_numpy(dtype=np.float64, na_value=np.nan)
            snapped[:, j] = decoded
        return snapped

    def finish(
        self, values: Values, query: Values, frozen: NDArray[np.bool_]
    ) -> tuple[Values, NDArray[np.bool_]]:  # fmt: skip
        """Draws (n, each, d) of n queries as rows of a frame, one after the other, and which differ from their query.

        What is frozen or equals the query's value stays as it is, whatever the limits; the rest is snapped.
        """
        least, greatest, whole, others = self._grids
        each = values.shape[1]
        rows, moved = np.empty((len(query) * each, values.shape[2])), np.empty(len(query) * each, dtype=bool)

        def work(low: int, high: int) -> None:
            _finish(low, high, values, query, frozen, least, greatest, whole, rows, moved)

        in_threads(work, len(query), least=max(1, THREADED // each))
        if others:
            own = np.repeat(query, each, axis=0)
            changed = self.differs(rows, own)
            rows = np.where(changed, self.snap(rows), own)
            moved = np.asarray(self.differs(rows, own).any(axis=1))
        return rows, moved

    def _settle(self, values: Values) -> Values:
        """Numbers within their limits, whole ones rounded."""
        least, greatest, whole, _ = self._grids
        settled = np.clip(values, least, greatest)
        np.rint(settled, out=settled, where=whole)
        return settled

    @cached_property
    def _grids(self) -> tuple[Values, Values, NDArray[np.bool_], list[int]]:
        """Per feature its limits and whether it is whole; and the numbers whose dtype holds less than a float64."""
        features = self.schema.features
        least = np.array([f.minimum if f.is_number else -np.inf for f in features], dtype=float)
        greatest = np.array([f.maximum if f.is_number else np.inf for f in features], dtype=float)
        whole = np.array([f.is_number and f.is_whole for f in features])
        others = [j for j, f in enumerate(features) if f.is_number and self._dtypes[j] not in EXACT]
        return least, greatest, whole, others

    def differs(self, values: Values, other: Values) -> NDArray[np.bool_]:
        """Where two matrices differ; missing equals missing."""
        different: NDArray[np.bool_] = (values != other) & ~(np.isnan(values) & np.isnan(other))
        return different

    def is_exact(self, values: Values) -> NDArray[np.bool_]:
        """Where the matrix has all that there is to a cell, so that `decode` gives it back bit for bit.

        It has so for levels, and for int64 within its limits; a zero of floats has a sign, and other dtypes may hold
        what a float64 does not.
        """
        least, greatest, _, _ = self._grids
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
    def from_state(cls, state: dict[str, Any]) -> Encoding:
        """The encoding that `state` describes."""
        schema = Schema.from_json(json.dumps(state["schema"]))
        return cls(schema, np.asarray(state["mean"], dtype=float), np.asarray(state["scale"], dtype=float))


def _deviation(values: Values) -> float:
    """The standard deviation to divide by; 1 where all values are one, which rounding would make a tiny number."""
    deviation = float(values.std()) if values.min() < values.max() else 0.0
    return deviation if deviation > 0.0 else 1.0


def _refuse_beyond(feature: Feature, values: Values) -> None:
    low, high = values.min(), values.max()
    if low < feature.minimum or high > feature.maximum:
        raise SchemaError(
            f"column {feature.name!r} holds {low:g} to {high:g}, beyond its schema's {feature.minimum:g} to "
            f"{feature.maximum:g}; infer the schema from these rows, or widen it with limits={{...}}"
        )


def _few_numbers(feature: Feature, cells: list[Any]) -> list[float] | None:
    least, greatest = feature.bounds
    whole = feature.is_whole
    for v in cells:
        if not (type(v) is int or type(v) is float) or not least <= v <= greatest or (whole and v % 1):
            return None
    return cells


def _numbers(feature: Feature, column: pd.Series, absent: NDArray[np.bool_]) -> Values:
    if absent.all():
        return np.full(len(column), np.nan)
    if not _holds_numbers(column):
        text = f"column {feature.name!r} is {feature.kind} and holds values that are not numbers (dtype {column.dtype})"
        raise QueryError(f"{text}; convert it with pd.to_numeric")
    values: Values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    present = values[~absent]
    if not np.isfinite(present).all():
        raise QueryError(f"column {feature.name!r} holds infinite numbers; replace them")
    if feature.is_whole and (np.mod(present, 1.0) != 0.0).any():
        raise QueryError(f"column {feature.name!r} holds fractions, and training had whole numbers alone; round them")
    least, greatest = feature.bounds
    if present.min() < least or present.max() > greatest:
        far = present.max() if present.max() > greatest else present.min()
        raise QueryError(
            f"column {feature.name!r} holds {far:.16g}, and its dtype in training, {feature.dtype}, holds "
            f"{least:.16g} to {greatest:.16g}; replace it, or fit on a wider dtype"
        )
    return values


NUMBER_OBJECTS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean"}


def _holds_numbers(column: pd.Series) -> bool:
    """Whether the column is of numbers already; text that looks like one, and dates, are not."""
    values = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    if values.dtype == object:
        return pd.api.types.infer_dtype(values, skipna=True) in NUMBER_OBJECTS
    return pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_complex_dtype(values.dtype)


def _same_dtype(dtype: Any, other: Any) -> bool:
    """Whether two dtypes are one; pandas holds unordered categories for equal in any order."""
    if dtype is other:
        return True
    if not isinstance(dtype, pd.CategoricalDtype) or not isinstance(other, pd.CategoricalDtype):
        return bool(dtype == other)
    same = dtype.ordered == other.ordered and dtype.categories.dtype == other.categories.dtype
    return same and list(map(typed, dtype.categories)) == list(map(typed, other.categories))


def _factorize(column: pd.Series) -> tuple[NDArray[Any], list[Any]]:
    """Codes and plain distinct values; in object columns 1, 1.0 and True are told apart."""
    if column.dtype == object:
        cells = [plain(v) for v in column]
        odd = [v for v in cells if not isinstance(v, Level)]
        if odd:
            return np.zeros(len(cells), dtype=np.int64), odd[:1]
        table: dict[Any, int] = {}
        keys = np.array([table.setdefault(typed(v), len(table)) for v in cells], dtype=np.int64)
        return keys, [value for _, value in table]
    keys, uniques = pd.factorize(column)
    return keys, [plain(v) for v in uniques]


def _lookup(levels: tuple[Any, ...]) -> dict[Any, int]:
    lookup: dict[Any, int] = {typed(value): code for code, value in enumerate(levels)}
    for code, value in enumerate(levels):
        if sum(value == other for other in levels) == 1:
            lookup[("any", value)] = code
    return lookup


def _dtype(feature: Feature) -> Any:
    if feature.categories is None:
        return dtype_of(feature.dtype)
    inner = dtype_of(feature.categories_dtype or "object")
    return pd.CategoricalDtype(pd.Index(list(feature.categories), dtype=inner), ordered=feature.ordered)


def _level_array(feature: Feature, dtype: Any) -> Any:
    """The levels, and the missing value after them, as an array of the column's dtype to take codes from."""
    values = [*feature.levels, None] if feature.missing else list(feature.levels)
    if dtype == object:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        if feature.missing:
            array[-1] = MISSING_OBJECTS[feature.missing_object]
        return array
    if isinstance(dtype, np.dtype):
        return np.array([np.nan if v is None else v for v in values], dtype=dtype)
    return pd.array(values, dtype=dtype)


MISSING_OBJECTS = {"None": None, "nan": np.nan, "NA": pd.NA}


@numba.njit(cache=True, nogil=True)
def _finish(first, last, values, query, frozen, least, greatest, whole, rows, moved):  # type: ignore[no-untyped-def]
    """Queries first to last: fill in their rows, and whether each differs from its query; see `Encoding.finish`."""
    each, d = values.shape[1], values.shape[2]
    for i in range(first, last):
        for t in range(each):
            at = i * each + t
            moved[at] = False
            for j in range(d):
                x, q = values[i, t, j], query[i, j]
                if frozen[i, j] or x == q or (np.isnan(x) and np.isnan(q)):
                    rows[at, j] = q
                    continue
                x = min(max(x, least[j]), greatest[j]) if not np.isnan(x) else x
                rows[at, j] = np.rint(x) if whole[j] else x
                moved[at] |= not (rows[at, j] == q or (np.isnan(x) and np.isnan(q)))
