"""What the measures read from frames: codes, points, pairs of rows, sets of answers."""

from __future__ import annotations

__all__ = [
    "MISSING",
    "Codes",
    "Flags",
    "Reals",
    "answer_sets",
    "as_labels",
    "as_points",
    "check_columns",
    "differs",
    "joint_codes",
    "level_codes",
    "mean_or_nan",
    "number_pairs",
    "query_positions",
    "reals",
    "row_labels",
    "width",
]

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import DataError, named
from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema
from dicoflex.values import plain, typed

Codes = NDArray[np.int64]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]
MISSING = -1


def width(feature: Feature) -> float:
    return (feature.maximum or 0.0) - (feature.minimum or 0.0)


def reals(column: pd.Series) -> Reals:
    return column.astype(object).to_numpy(dtype=np.float64, na_value=np.nan)


def joint_codes(columns: Sequence[pd.Series], feature: Feature | None = None) -> list[Codes]:
    """Codes of several columns over their joint values: equal values have equal codes, missing ones have `MISSING`."""
    if feature is not None and feature.is_number:
        values: Any = np.concatenate([reals(c) for c in columns])
    else:
        values = np.concatenate([c.astype(object).to_numpy() for c in columns])
        if feature is not None and len(set(feature.levels)) < len(feature.levels):
            values = _typed_values(values)
    codes = pd.factorize(values)[0].astype(np.int64)
    return np.split(codes, np.cumsum([len(c) for c in columns])[:-1])


def _typed_values(values: NDArray[np.object_]) -> NDArray[np.object_]:
    """The values as keys under which 1, 1.0 and True differ, for features that have such levels side by side."""
    keys = np.empty(len(values), dtype=object)
    for i, (value, is_missing) in enumerate(zip(values, pd.isna(values), strict=True)):
        keys[i] = None if is_missing else typed(plain(value))
    return keys


def as_points(frame: pd.DataFrame, schema: Schema) -> Reals:
    """Rows as points: scaled numbers with a mark for missing, and one-hot levels."""
    check_columns(schema.names, frame)
    blocks = [_number_block(frame[f.name], f) if f.is_number else _one_hot(frame[f.name], f) for f in schema.features]
    return np.hstack(blocks)


def _number_block(column: pd.Series, feature: Feature) -> Reals:
    values = reals(column)
    is_missing = np.isnan(values)
    scaled = (values - (feature.minimum or 0.0)) / (width(feature) or 1.0)
    # The middle of the range keeps missing equally far from both ends; the mark sets it apart from the middle itself.
    return np.column_stack([np.where(is_missing, 0.5, scaled), is_missing])


def _one_hot(column: pd.Series, feature: Feature) -> Reals:
    """One column per level, one for values that are no level, one for missing ones."""
    n = len(feature.levels)
    codes = level_codes(column, feature)
    return np.eye(n + 2)[np.where(codes == MISSING, n + 1, np.minimum(codes, n))]


def level_codes(column: pd.Series, feature: Feature) -> Codes:
    """The places of the values among the feature's levels; their number or more for unknown values."""
    return joint_codes([pd.Series(feature.levels, dtype=object), column], feature)[1]


def as_labels(labels: Any, n: int) -> pd.Series:
    """`n` labels as objects, from an array or from one label for all."""
    if pd.api.types.is_scalar(labels):
        return pd.Series([labels] * n, dtype=object)
    series = pd.Series(np.asarray(labels, dtype=object))
    if len(series) != n:
        raise DataError(f"{len(series)} targets for {n} rows; give one target each, or one for all")
    return series


def check_columns(names: Sequence[Any], *frames: pd.DataFrame) -> None:
    for frame in frames:
        for name in names:
            if name not in frame.columns:
                raise DataError(named("feature", name, frame.columns))


def row_labels(counterfactuals: pd.DataFrame) -> pd.Index:
    index = counterfactuals.index
    if index.nlevels < 2:
        raise DataError(
            "counterfactuals need an index of two levels (row, cf), got one level; use pd.MultiIndex.from_arrays"
        )
    return index.get_level_values("row" if "row" in index.names else 0)


def answer_sets(counterfactuals: pd.DataFrame) -> Iterator[tuple[Any, NDArray[np.intp]]]:
    """Each query's label and the positions of its counterfactuals, in the order of their first appearance."""
    codes, labels = pd.factorize(row_labels(counterfactuals))
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(codes, minlength=len(labels)))[:-1])
    yield from zip(labels, members, strict=False)


def query_positions(queries: pd.DataFrame, counterfactuals: pd.DataFrame) -> NDArray[np.intp]:
    """For each counterfactual, the position of its query."""
    if not queries.index.is_unique:
        raise DataError("the queries' index repeats; make it unique with queries.reset_index(drop=True)")
    labels = row_labels(counterfactuals)
    positions = queries.index.get_indexer(labels)
    if (positions < 0).any():
        stray = labels[positions < 0][0]
        raise DataError(
            f"a counterfactual is for row {stray!r}, which the queries' index lacks; give its query as well"
        )
    return positions


def differs(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, positions: NDArray[np.intp], feature: Feature | Any
) -> Flags:
    """Where a column of the counterfactuals differs from its queries; `feature` is a feature or just its name."""
    known = feature if isinstance(feature, Feature) else None
    name = known.name if known else feature
    before, after = joint_codes([queries[name], counterfactuals[name]], known)
    flags: Flags = before[positions] != after
    return flags


def number_pairs(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, numbers: Sequence[Feature]
) -> tuple[Reals, Reals]:
    """The numbers of each counterfactual's query and of the counterfactual, a column per feature."""
    check_columns([f.name for f in numbers], queries, counterfactuals)
    positions = query_positions(queries, counterfactuals)
    shape = (len(positions), len(numbers))
    before, after = np.empty(shape), np.empty(shape)
    for j, feature in enumerate(numbers):
        before[:, j] = reals(queries[feature.name])[positions]
        after[:, j] = reals(counterfactuals[feature.name])
    return before, after


def mean_or_nan(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
