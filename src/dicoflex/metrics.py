"""Measures of counterfactuals, on frames: usable on any method's output.

Queries are a frame with one row each and a unique index. Counterfactuals are a frame with the same columns and a
MultiIndex (row, cf), whose first level holds labels of the queries' index. A value that is missing in both places
is unchanged, a value that is missing in one is changed. Numbers and levels are compared by value, not by dtype: 36 and
36.0 are the same. Means over nothing (no counterfactuals, no feature of the kind) are NaN.
"""

from __future__ import annotations

__all__ = [
    "LogLof",
    "changed",
    "epsilon_sparsity",
    "gower",
    "mean_pairwise_gower",
    "number_scale",
    "proximity",
    "share_categories_changed",
    "share_numbers_changed",
    "share_of_copies",
    "validity",
    "violations",
]

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import LocalOutlierFactor

from dicoflex.errors import DataError, named
from dicoflex.schema import Feature, Schema, typed

Codes = NDArray[np.int64]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

MISSING = -1


def validity(predicted: ArrayLike | pd.Series, targets: Any) -> float:
    """The share of counterfactuals that got the label asked for: mean of [predicted_i = target_i].

    targets: one label per counterfactual, or one label for all. Both are matched by position, not by index.

    >>> validity(["yes", "no", "yes", "yes"], "yes")
    0.75
    """
    labels = pd.Series(np.asarray(predicted, dtype=object))
    if pd.api.types.is_scalar(targets):
        wanted = pd.Series([targets] * len(labels), dtype=object)
    else:
        wanted = pd.Series(np.asarray(targets, dtype=object))
    if len(wanted) != len(labels):
        raise DataError(
            f"{len(labels)} predicted labels but {len(wanted)} targets; give one target each, or one for all"
        )
    got, asked = _joint_codes([labels, wanted])
    return _mean((got == asked) & (got != MISSING))


def changed(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """A frame of booleans, like the counterfactuals: True where a value differs exactly from its query's.

    >>> queries = pd.DataFrame({"age": [30], "job": ["cook"]}, index=["ann"])
    >>> index = pd.MultiIndex.from_tuples([("ann", 0), ("ann", 1)], names=["row", "cf"])
    >>> cfs = pd.DataFrame({"age": [30, 35], "job": ["nurse", "cook"]}, index=index)
    >>> changed(queries, cfs, Schema.infer(queries))
              age    job
    row cf
    ann 0   False   True
        1    True  False
    """
    _check_columns(schema.names, queries, counterfactuals)
    positions = _positions(queries, counterfactuals)
    flags = {f.name: _differs(queries, counterfactuals, positions, f) for f in schema.features}
    return pd.DataFrame(flags, index=counterfactuals.index)


def share_categories_changed(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """The sparsity of categories: the share of cells of levels (not numbers) that differ from the query.

    For N counterfactuals and C such features: sum over i, j of [x'_ij ≠ x_ij], divided by N·C.
    """
    flags = changed(queries, counterfactuals, schema)
    return _mean(flags[[f.name for f in schema.features if not f.is_number]].to_numpy(dtype=bool))


def share_numbers_changed(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """The exact sparsity of numbers: the share of number cells that differ from the query, however little.

    For N counterfactuals and M number features: sum over i, j of [x'_ij ≠ x_ij], divided by N·M.
    """
    flags = changed(queries, counterfactuals, schema)
    return _mean(flags[[f.name for f in _numbers(schema)]].to_numpy(dtype=bool))


def epsilon_sparsity(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, *, epsilon: float = 0.05
) -> float:
    """The share of number cells that moved by more than `epsilon` of the feature's range.

    For N counterfactuals and M number features: sum over i, j of [|x'_ij - x_ij| > epsilon · (max_j - min_j)], divided
    by N·M, with the limits of the schema. A number that became missing, or was, counts as moved.
    """
    numbers = _numbers(schema)
    before, after = _number_pairs(queries, counterfactuals, numbers)
    widths = np.array([_width(f) for f in numbers])
    with np.errstate(invalid="ignore"):
        far = np.abs(after - before) > epsilon * widths
    return _mean(far | (np.isnan(before) != np.isnan(after)))


def number_scale(train: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Mean and standard deviation of each number feature, for `proximity`; a constant feature gets deviation 1.

    >>> frame = pd.DataFrame({"age": [20.0, 40.0], "rooms": [3, 3]})
    >>> number_scale(frame, Schema.infer(frame))
           mean   std
    age    30.0  10.0
    rooms   3.0   1.0
    """
    numbers = _numbers(schema)
    _check_columns([f.name for f in numbers], train)
    columns = [_reals(train[f.name]) for f in numbers]
    means = [float(np.nanmean(c)) for c in columns]
    deviations = [float(np.nanstd(c)) or 1.0 for c in columns]
    return pd.DataFrame({"mean": means, "std": deviations}, index=[f.name for f in numbers], dtype=float)


def proximity(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, scale: pd.DataFrame
) -> pd.DataFrame:
    """How far each counterfactual is from its query: columns `euclidean` and `l1`, indexed as the counterfactuals.

    With z = (x - mean) / std over the number features: euclidean = sqrt(sum_j (z'_j - z_j)²), l1 = sum_j |z'_j - z_j|.
    A missing number stands at the mean (z = 0).

    scale: mean and std per number feature, as `number_scale` takes them from the training rows.
    """
    numbers = _numbers(schema)
    absent = [f.name for f in numbers if f.name not in scale.index]
    if absent:
        raise DataError(f"scale lacks the number feature {absent[0]!r}; make it with number_scale(train, schema)")
    known = scale.loc[[f.name for f in numbers]]
    mean, std = known["mean"].to_numpy(dtype=float), known["std"].to_numpy(dtype=float)
    before, after = _number_pairs(queries, counterfactuals, numbers)
    moves = np.nan_to_num((after - mean) / std) - np.nan_to_num((before - mean) / std)
    distances = {"euclidean": np.sqrt((moves**2).sum(axis=1)), "l1": np.abs(moves).sum(axis=1)}
    return pd.DataFrame(distances, index=counterfactuals.index)


def violations(queries: pd.DataFrame, counterfactuals: pd.DataFrame, frozen: Sequence[Any]) -> int:
    """How many cells of the frozen features differ from the query: sum over i and frozen j of [x'_ij ≠ x_ij]."""
    _check_columns(frozen, queries, counterfactuals)
    positions = _positions(queries, counterfactuals)
    return sum(int(_differs(queries, counterfactuals, positions, name).sum()) for name in frozen)


def share_of_copies(frame: pd.DataFrame, train: pd.DataFrame, schema: Schema) -> float:
    """The share of rows that equal some training row in every feature.

    >>> train = pd.DataFrame({"age": [30, 40], "job": ["cook", "nurse"]})
    >>> share_of_copies(pd.DataFrame({"age": [30, 40], "job": ["cook", "cook"]}), train, Schema.infer(train))
    0.5
    """
    _check_columns(schema.names, frame, train)
    ids = np.zeros(len(frame) + len(train), dtype=np.int64)
    for feature in schema.features:
        codes = np.concatenate(_joint_codes([frame[feature.name], train[feature.name]], feature)) - MISSING
        # Numbering the pairs anew after each feature keeps the products small enough to be exact.
        ids = pd.factorize(ids * (int(codes.max(initial=0)) + 1) + codes)[0].astype(np.int64)
    return _mean(np.isin(ids[: len(frame)], ids[len(frame) :]))


def gower(frame: pd.DataFrame, schema: Schema) -> float:
    """The mean Gower distance over all pairs of rows in one set; NaN for fewer than two rows.

    d(a, b) = (1/D) · sum_j d_j over all D features: |a_j - b_j| / (max_j - min_j) for numbers, with the limits of the
    schema; [a_j ≠ b_j] for levels, and for numbers whose limits coincide. Missing is a state of its own: at
    distance 0 from itself and 1 from any value.

    >>> frame = pd.DataFrame({"age": [20, 30, 40], "job": ["cook", "nurse", "nurse"]})
    >>> round(gower(frame, Schema.infer(frame)), 4)  # pairs: 1.5/2, 2/2, 0.5/2
    0.6667
    """
    return _mean(_gower_by_set(frame, np.zeros(len(frame), dtype=np.int64), schema))


def mean_pairwise_gower(counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """How different the answers to one query are: `gower` of each query's counterfactuals, averaged over the queries.

    Queries with fewer than two counterfactuals have no pairs and are left out.
    """
    sets, _ = pd.factorize(_row_labels(counterfactuals))
    return _mean(_gower_by_set(counterfactuals, sets.astype(np.int64), schema))


class LogLof:
    """The local outlier factor against training rows, as a natural logarithm: 0 is inside, above 0 is sparser.

    LOF_k(a) = mean over the k nearest training rows b of density(b) / density(a), with the reachability densities of
    Breunig et al. (2000), as scikit-learn computes it. Distances are Euclidean on numbers scaled to [0, 1] by the
    schema's limits and levels in one-hot form; missing is a level of its own, in numbers as well.

    >>> frame = pd.DataFrame({"x": np.linspace(0, 1, 50)})
    >>> inside, outside = LogLof(frame, Schema.infer(frame), k=5).score(pd.DataFrame({"x": [0.5, 3.0]}))
    >>> bool(abs(inside) < 0.1), bool(outside > 1)
    (True, True)
    """

    def __init__(self, train: pd.DataFrame, schema: Schema, *, k: int = 20) -> None:
        if len(train) <= k:
            raise DataError(f"LOF with k={k} needs more than {k} rows, got {len(train)}; lower k or give more rows")
        self.schema = schema
        self._lof = LocalOutlierFactor(n_neighbors=k, novelty=True).fit(_points(train, schema))

    def score(self, frame: pd.DataFrame) -> Reals:
        """One log LOF per row of `frame`."""
        if len(frame) == 0:
            return np.empty(0)
        scores: Reals = np.log(-self._lof.score_samples(_points(frame, self.schema)))
        return scores


# -- columns as arrays ------------------------------------------------------------------------------------------


def _numbers(schema: Schema) -> list[Feature]:
    return [f for f in schema.features if f.is_number]


def _width(feature: Feature) -> float:
    return (feature.maximum or 0.0) - (feature.minimum or 0.0)


def _reals(column: pd.Series) -> Reals:
    return column.astype(object).to_numpy(dtype=np.float64, na_value=np.nan)


def _joint_codes(columns: Sequence[pd.Series], feature: Feature | None = None) -> list[Codes]:
    """Codes of several columns over their joint values: equal values have equal codes, missing ones have `MISSING`."""
    if feature is not None and feature.is_number:
        values: Any = np.concatenate([_reals(c) for c in columns])
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
        keys[i] = None if is_missing else typed(value.item() if isinstance(value, np.generic) else value)
    return keys


def _points(frame: pd.DataFrame, schema: Schema) -> Reals:
    """Rows as points: scaled numbers with a mark for missing, and one-hot levels."""
    _check_columns(schema.names, frame)
    blocks = [_number_block(frame[f.name], f) if f.is_number else _one_hot(frame[f.name], f) for f in schema.features]
    return np.hstack(blocks)


def _number_block(column: pd.Series, feature: Feature) -> Reals:
    values = _reals(column)
    is_missing = np.isnan(values)
    scaled = (values - (feature.minimum or 0.0)) / (_width(feature) or 1.0)
    # The middle of the range keeps missing equally far from both ends; the mark sets it apart from the middle itself.
    return np.column_stack([np.where(is_missing, 0.5, scaled), is_missing])


def _one_hot(column: pd.Series, feature: Feature) -> Reals:
    """One column per level, one for values that are no level, one for missing ones."""
    levels = pd.Series(feature.levels, dtype=object)
    known, codes = _joint_codes([levels, column], feature)
    n = len(known)
    return np.eye(n + 2)[np.where(codes == MISSING, n + 1, np.minimum(codes, n))]


# -- counterfactuals and their queries --------------------------------------------------------------------------


def _check_columns(names: Sequence[Any], *frames: pd.DataFrame) -> None:
    for frame in frames:
        for name in names:
            if name not in frame.columns:
                raise DataError(named("feature", name, frame.columns))


def _row_labels(counterfactuals: pd.DataFrame) -> pd.Index:
    index = counterfactuals.index
    if index.nlevels < 2:
        raise DataError(
            "counterfactuals need an index of two levels (row, cf), got one level; use pd.MultiIndex.from_arrays"
        )
    return index.get_level_values("row" if "row" in index.names else 0)


def _positions(queries: pd.DataFrame, counterfactuals: pd.DataFrame) -> NDArray[np.intp]:
    """For each counterfactual, the position of its query."""
    if not queries.index.is_unique:
        raise DataError("the queries' index repeats; make it unique with queries.reset_index(drop=True)")
    labels = _row_labels(counterfactuals)
    positions = queries.index.get_indexer(labels)
    if (positions < 0).any():
        stray = labels[positions < 0][0]
        raise DataError(
            f"a counterfactual is for row {stray!r}, which the queries' index lacks; give its query as well"
        )
    return positions


def _differs(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, positions: NDArray[np.intp], feature: Feature | Any
) -> Flags:
    """Where a column of the counterfactuals differs from its queries; `feature` is a feature or just its name."""
    known = feature if isinstance(feature, Feature) else None
    name = known.name if known else feature
    before, after = _joint_codes([queries[name], counterfactuals[name]], known)
    flags: Flags = before[positions] != after
    return flags


def _number_pairs(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, numbers: Sequence[Feature]
) -> tuple[Reals, Reals]:
    """The numbers of each counterfactual's query and of the counterfactual, a column per feature."""
    _check_columns([f.name for f in numbers], queries, counterfactuals)
    positions = _positions(queries, counterfactuals)
    shape = (len(positions), len(numbers))
    before, after = np.empty(shape), np.empty(shape)
    for j, feature in enumerate(numbers):
        before[:, j] = _reals(queries[feature.name])[positions]
        after[:, j] = _reals(counterfactuals[feature.name])
    return before, after


# -- sums over pairs without the pairs --------------------------------------------------------------------------


def _gower_by_set(frame: pd.DataFrame, sets: Codes, schema: Schema) -> Reals:
    """The mean Gower distance inside each set of rows that has at least two; `sets` numbers the sets from 0."""
    _check_columns(schema.names, frame)
    sizes = np.bincount(sets)
    total = np.zeros(len(sizes))
    for feature in schema.features:
        column = frame[feature.name]
        if feature.is_number and _width(feature) > 0:
            scaled = (_reals(column) - (feature.minimum or 0.0)) / _width(feature)
            total += _sum_of_gaps(scaled, sets, sizes)
        else:
            total += _unequal_pairs(_joint_codes([column], feature)[0], sets, sizes)
    enough = sizes > 1
    mean: Reals = total[enough] / (_pairs(sizes[enough]) * len(schema))
    return mean


def _pairs(sizes: NDArray[Any]) -> Reals:
    pairs: Reals = sizes * (sizes - 1) / 2.0
    return pairs


def _unequal_pairs(codes: Codes, sets: Codes, sizes: Codes) -> Reals:
    """Per set, how many pairs have different codes: all pairs less those inside one code."""
    groups, counts = np.unique(np.column_stack([sets, codes]), axis=0, return_counts=True)
    return _pairs(sizes) - np.bincount(groups[:, 0], weights=_pairs(counts), minlength=len(sizes))


def _sum_of_gaps(values: Reals, sets: Codes, sizes: Codes) -> Reals:
    """Per set, the sum of |a - b| over its pairs, where a missing value is 1 from every other.

    Sorted, the value at place i of n is added i times and taken away n - 1 - i times.
    """
    present = ~np.isnan(values)
    known_values, known_sets = values[present], sets[present]
    known = np.bincount(known_sets, minlength=len(sizes))
    order = np.lexsort((known_values, known_sets))
    ordered_sets = known_sets[order]
    place = np.arange(len(order)) - (np.cumsum(known) - known)[ordered_sets]
    weights = known_values[order] * (2 * place - known[ordered_sets] + 1)
    gaps = np.bincount(ordered_sets, weights=weights, minlength=len(sizes)).astype(float)
    return gaps + known * (sizes - known)


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
