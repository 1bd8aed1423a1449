"""How much an answer changes, and how far."""

from __future__ import annotations

__all__ = [
    "EPSILON",
    "changed",
    "epsilon_sparsity",
    "moved",
    "number_features",
    "number_scale",
    "percentile_shift",
    "proximity",
    "share_categories_changed",
    "share_numbers_changed",
]

import numpy as np
import pandas as pd

from dicoflex.errors import DataError
from dicoflex.metrics.frames import (
    Flags,
    check_columns,
    differs,
    mean_or_nan,
    number_pairs,
    query_positions,
    reals,
    width,
)
from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema

EPSILON = 0.05  # the paper's share of the range below which a number has not moved


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
    check_columns(schema.names, queries, counterfactuals)
    positions = query_positions(queries, counterfactuals)
    flags = {f.name: differs(queries, counterfactuals, positions, f) for f in schema.features}
    return pd.DataFrame(flags, index=counterfactuals.index)


def share_categories_changed(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """The sparsity of categories: the share of cells of levels (not numbers) that differ from the query.

    For N counterfactuals and C such features: sum over i, j of [x'_ij ≠ x_ij], divided by N·C.
    """
    flags = changed(queries, counterfactuals, schema)
    return mean_or_nan(flags[[f.name for f in schema.features if not f.is_number]].to_numpy(dtype=bool))


def share_numbers_changed(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """The exact sparsity of numbers: the share of number cells that differ from the query, however little.

    For N counterfactuals and M number features: sum over i, j of [x'_ij ≠ x_ij], divided by N·M.
    """
    flags = changed(queries, counterfactuals, schema)
    return mean_or_nan(flags[[f.name for f in number_features(schema)]].to_numpy(dtype=bool))


def epsilon_sparsity(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, *, epsilon: float = EPSILON
) -> float:
    """The share of number cells that moved by more than `epsilon` of the feature's range.

    For N counterfactuals and M number features: sum over i, j of [|x'_ij - x_ij| > epsilon · (max_j - min_j)], divided
    by N·M, with the limits of the schema. A number that became missing, or was, counts as moved.
    """
    return mean_or_nan(moved(queries, counterfactuals, schema, epsilon))


def number_scale(train: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Mean and standard deviation of each number feature, for `proximity`; a constant feature gets deviation 1.

    >>> frame = pd.DataFrame({"age": [20.0, 40.0], "rooms": [3, 3]})
    >>> number_scale(frame, Schema.infer(frame))
           mean   std
    age    30.0  10.0
    rooms   3.0   1.0
    """
    numbers = number_features(schema)
    check_columns([f.name for f in numbers], train)
    columns = [reals(train[f.name]) for f in numbers]
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
    numbers = number_features(schema)
    absent = [f.name for f in numbers if f.name not in scale.index]
    if absent:
        raise DataError(f"scale lacks the number feature {absent[0]!r}; make it with number_scale(train, schema)")
    known = scale.loc[[f.name for f in numbers]]
    mean, std = known["mean"].to_numpy(dtype=float), known["std"].to_numpy(dtype=float)
    before, after = number_pairs(queries, counterfactuals, numbers)
    moves = np.nan_to_num((after - mean) / std) - np.nan_to_num((before - mean) / std)
    distances = {"euclidean": np.sqrt((moves**2).sum(axis=1)), "l1": np.abs(moves).sum(axis=1)}
    return pd.DataFrame(distances, index=counterfactuals.index)


def percentile_shift(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, train: pd.DataFrame
) -> pd.DataFrame:
    """How many people each counterfactual overtakes: columns `total` and `largest`, indexed as the counterfactuals.

    With F_j(v) = the share of training rows whose number j is at most v: total = sum_j |F_j(x'_j) - F_j(x_j)|, largest
    = max_j of the same. A number that became missing, or was, shifts by 1.

    >>> train = pd.DataFrame({"age": [20, 30, 40, 50], "rooms": [1, 1, 1, 9]})
    >>> cfs = pd.DataFrame({"age": [40], "rooms": [9]}, index=pd.MultiIndex.from_tuples([(0, 0)], names=["row", "cf"]))
    >>> percentile_shift(train.head(1), cfs, Schema.infer(train), train).iloc[0].to_dict()
    {'total': 0.75, 'largest': 0.5}
    """
    numbers = number_features(schema)
    check_columns([f.name for f in numbers], train)
    before, after = number_pairs(queries, counterfactuals, numbers)
    shifts = np.zeros(before.shape)
    for j, feature in enumerate(numbers):
        values = reals(train[feature.name])
        known = np.sort(values[~np.isnan(values)])
        ranks = [np.searchsorted(known, side[:, j], side="right") for side in (before, after)]
        shifts[:, j] = np.abs(ranks[1] - ranks[0]) / max(len(known), 1)
    absent = np.isnan(before) | np.isnan(after)
    shifts = np.where(absent, np.isnan(before) != np.isnan(after), shifts)
    return pd.DataFrame(
        {"total": shifts.sum(axis=1), "largest": shifts.max(axis=1, initial=0.0)}, index=counterfactuals.index
    )


def number_features(schema: Schema) -> list[Feature]:
    return [f for f in schema.features if f.is_number]


def moved(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, epsilon: float) -> Flags:
    """Number cells that moved by more than `epsilon` of the range, or became missing or known."""
    numbers = number_features(schema)
    before, after = number_pairs(queries, counterfactuals, numbers)
    widths = np.array([width(f) for f in numbers])
    with np.errstate(invalid="ignore"):
        far: Flags = np.abs(after - before) > epsilon * widths
    far |= np.isnan(before) != np.isnan(after)
    return far
