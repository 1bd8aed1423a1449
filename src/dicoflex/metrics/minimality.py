"""Whether an answer changes more than it must: changes that could be undone, numbers that could come nearer."""

from __future__ import annotations

__all__ = ["Fine", "closer", "halvable", "needless", "reducible", "undoable"]

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dicoflex.errors import DataError
from dicoflex.metrics.changes import changed, number_features
from dicoflex.metrics.frames import Flags, Reals, check_columns, mean_or_nan, number_pairs, query_positions, reals
from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema

Places = NDArray[np.intp]
Fine = Callable[[pd.DataFrame], ArrayLike]
"""From rows, indexed as the counterfactuals that they were made of, to whether each would do as an answer."""


def undoable(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, fine: Fine) -> pd.DataFrame:
    """Which changes could be undone: a frame like the counterfactuals, <NA> where nothing changed.

    u_ij = [fine(x'_i with x_ij in place of x'_ij)]: each change is undone alone, and the rest of the row stays.

    fine: who says whether a row would do. A margin is no fault, so it should ask for a little more than was asked of
    the answers; our pages ask for the target, surer by 0.05, in a row that is neither `rare` nor has an `unseen` pair.

    >>> queries = pd.DataFrame({"income": [20], "job": ["cook"]}, index=["ann"])
    >>> index = pd.MultiIndex.from_tuples([("ann", 0), ("ann", 1)], names=["row", "cf"])
    >>> cfs = pd.DataFrame({"income": [50, 60], "job": ["nurse", "cook"]}, index=index)
    >>> undoable(queries, cfs, Schema.infer(cfs), lambda rows: rows["income"] > 40)
            income   job
    row cf
    ann 0    False  True
        1    False  <NA>
    """
    flags = changed(queries, counterfactuals, schema)
    row, feature = np.nonzero(flags.to_numpy())
    home = query_positions(queries, counterfactuals)[row]
    undone = _with_one_other(counterfactuals, row, [schema.names[j] for j in feature], queries, home)
    return _marked(flags, row, feature, _verdicts(fine, undone))


def needless(flags: pd.DataFrame) -> float:
    """The share of needless changes: sum of u_ij over the changes, divided by how many changes there are.

    flags: what `undoable` found.

    >>> needless(pd.DataFrame({"age": [True, None], "job": [False, False]}, dtype="boolean"))
    0.3333333333333333
    """
    return _share(flags)


def reducible(flags: pd.DataFrame) -> float:
    """The share of answers with at least one needless change: mean over i of [max_j u_ij = 1].

    flags: what `undoable` found.

    >>> reducible(pd.DataFrame({"age": [True, None], "job": [False, False]}, dtype="boolean"))
    0.5
    """
    return mean_or_nan((_verdicts_or_nan(flags) == 1.0).any(axis=1))


def halvable(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, fine: Fine, train: pd.DataFrame
) -> pd.DataFrame:
    """Which changed numbers could go half of the way back: a column per number, <NA> where it did not change.

    h_ij = [v is nearer to x_ij than x'_ij is, and fine(x'_i with v in place of x'_ij)], where v is the value of the
    training rows that is nearest to (x_ij + x'_ij) / 2, the lower of two equally near ones. A number that was or became
    missing has no half way and is <NA>.

    fine: as in `undoable`. train: the training rows.

    >>> train = pd.DataFrame({"income": [20, 30, 40, 50, 60]})
    >>> cfs = train.tail(2).set_axis(pd.MultiIndex.from_tuples([(0, 0), (0, 1)], names=["row", "cf"]))
    >>> halvable(train.head(1), cfs, Schema.infer(train), lambda rows: rows["income"] > 35, train)
            income
    row cf
    0   0    False
        1     True
    """
    numbers = number_features(schema)
    names = [f.name for f in numbers]
    check_columns(names, train)
    before, after = number_pairs(queries, counterfactuals, numbers)
    row, column = np.nonzero((before != after) & ~np.isnan(before) & ~np.isnan(after))
    old, new = before[row, column], after[row, column]
    at, value = _nearest(train, numbers, column, (old + new) / 2)
    nearer = np.abs(value - old) < np.abs(new - old)
    back = _with_one_other(counterfactuals, row[nearer], [names[j] for j in column[nearer]], train, at[nearer])
    verdicts = np.zeros(len(row), dtype=bool)
    verdicts[nearer] = _verdicts(fine, back)
    return _marked(pd.DataFrame(index=counterfactuals.index, columns=names), row, column, verdicts)


def closer(flags: pd.DataFrame) -> float:
    """The share of changed numbers that could be closer: sum of h_ij over them, divided by how many there are.

    flags: what `halvable` found.

    >>> closer(pd.DataFrame({"age": [True, None], "income": [True, False]}, dtype="boolean"))
    0.6666666666666666
    """
    return _share(flags)


def _with_one_other(
    counterfactuals: pd.DataFrame, row: Places, names: list[Any], source: pd.DataFrame, at: Places
) -> pd.DataFrame:
    """The counterfactuals at `row`, each with its value of one feature taken from row `at` of another frame."""
    columns = {}
    place = {name: j for j, name in enumerate(counterfactuals.columns)}
    feature = np.array([place[name] for name in names], dtype=np.intp)
    for name, j in place.items():
        if name not in source.columns:
            columns[name] = counterfactuals[name].array.take(row)
            continue
        # Both in one column keep their dtype, or get one that holds both.
        both = pd.concat([counterfactuals[name], source[name]], ignore_index=True)
        columns[name] = both.array.take(np.where(feature == j, len(counterfactuals) + at, row))
    return pd.DataFrame(columns, index=counterfactuals.index.take(row))


def _nearest(train: pd.DataFrame, numbers: list[Feature], column: Places, wanted: Reals) -> tuple[Places, Reals]:
    """For each wanted value of a number, the training row that has the nearest one, and that value."""
    at, value = np.zeros(len(wanted), dtype=np.intp), np.full(len(wanted), np.inf)
    for j, feature in enumerate(numbers):
        mine = column == j
        known = reals(train[feature.name])
        values, first = np.unique(known, return_index=True)
        values, first = values[~np.isnan(values)], first[~np.isnan(values)]
        if mine.any() and len(values):
            above = np.clip(np.searchsorted(values, wanted[mine]), 0, len(values) - 1)
            below = np.maximum(above - 1, 0)
            up = np.abs(values[above] - wanted[mine]) < np.abs(values[below] - wanted[mine])
            chosen = np.where(up, above, below)
            at[mine], value[mine] = first[chosen], values[chosen]
    return at, value


def _verdicts(fine: Fine, rows: pd.DataFrame) -> Flags:
    """What `fine` says of rows; it is not asked about none."""
    if len(rows) == 0:
        return np.zeros(0, dtype=bool)
    said = np.asarray(fine(rows), dtype=bool)
    if said.shape != (len(rows),):
        raise DataError(f"fine gave an array of shape {said.shape} for {len(rows)} rows; it should say one thing each")
    return said


def _marked(like: pd.DataFrame, row: Places, column: Places, verdicts: Flags) -> pd.DataFrame:
    """The verdicts in their cells, and <NA> in all others."""
    said, absent = np.zeros(like.shape, dtype=bool), np.ones(like.shape, dtype=bool)
    said[row, column], absent[row, column] = verdicts, False
    arrays = {name: pd.arrays.BooleanArray(said[:, j], absent[:, j]) for j, name in enumerate(like.columns)}
    return pd.DataFrame(arrays, index=like.index)


def _verdicts_or_nan(flags: pd.DataFrame) -> Reals:
    return flags.astype("boolean").to_numpy(dtype=np.float64, na_value=np.nan)


def _share(flags: pd.DataFrame) -> float:
    """The share of True among what is known."""
    said = _verdicts_or_nan(flags)
    return mean_or_nan(said[~np.isnan(said)])
