"""Pairs of values that go together in no training row."""

from __future__ import annotations

__all__ = ["KnownPairs", "unseen"]

from itertools import combinations

import numpy as np
import pandas as pd

from dicoflex.metrics.frames import (
    MISSING,
    Codes,
    Flags,
    Reals,
    check_columns,
    level_codes,
    mean_or_nan,
    query_positions,
    reals,
)
from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema

DECILES = np.linspace(0.1, 0.9, 9)


class KnownPairs:
    """Which values of two features some training row has together; numbers count by decile. Made once per table.

    A level is its own cell, and so is missing, in numbers as well. A number's cells are bounded by the distinct ones of
    its nine deciles e_1 < e_2 < … over the training rows that have it; a value on a bound belongs to the cell below:
    cell(v) = how many bounds are less than v.

    >>> train = pd.DataFrame({"sex": ["f", "m", "f"], "role": ["wife", "husband", "single"]})
    >>> KnownPairs(train, Schema.infer(train)).unseen(pd.DataFrame({"sex": ["f", "m"], "role": ["single", "wife"]}))
    array([False,  True])
    """

    def __init__(self, train: pd.DataFrame, schema: Schema) -> None:
        check_columns(schema.names, train)
        self.schema = schema
        self._bounds = [_bounds(train[f.name]) if f.is_number else None for f in schema.features]
        cells = self._cells(train)
        self._seen: dict[tuple[int, int], Flags] = {}
        for a, b in combinations(range(len(schema)), 2):
            self._seen[a, b] = np.zeros((self._count(a), self._count(b)), dtype=bool)
            self._seen[a, b][cells[:, a], cells[:, b]] = True

    def unseen(self, frame: pd.DataFrame, queries: pd.DataFrame | None = None) -> Flags:
        """For each row, whether some pair of its cells is in no training row; nor in its query, where there is one.

        queries: the rows that counterfactuals in `frame` belong to; a pair that the query has too is not held against
        the answer.
        """
        cells = self._cells(frame)
        own = None if queries is None else self._cells(queries)[query_positions(queries, frame)]
        found = np.zeros(len(frame), dtype=bool)
        for (a, b), seen in self._seen.items():
            strange = ~seen[cells[:, a], cells[:, b]]
            if own is not None:
                strange &= (cells[:, a] != own[:, a]) | (cells[:, b] != own[:, b])
            found |= strange
        return found

    def _cells(self, frame: pd.DataFrame) -> Codes:
        columns = zip(self.schema.features, self._bounds, strict=True)
        return np.column_stack([_cell_of(frame[f.name], f, bounds) for f, bounds in columns])

    def _count(self, j: int) -> int:
        """How many cells a feature has: n levels and one for unknown ones, or n + 1 between n bounds; and missing."""
        bounds = self._bounds[j]
        return 2 + (len(self.schema.features[j].levels) if bounds is None else len(bounds))


def unseen(queries: pd.DataFrame, counterfactuals: pd.DataFrame, known: KnownPairs) -> float:
    """The share of answers with a pair of values that no training row has and the query has not.

    mean over i of max over a < b of [no training row t has cell(t_a) = cell(x'_ia) and cell(t_b) = cell(x'_ib)] ·
    [cell(x'_ia) ≠ cell(x_ia) or cell(x'_ib) ≠ cell(x_ib)], with the cells of `KnownPairs`.
    """
    return mean_or_nan(known.unseen(counterfactuals, queries))


def _bounds(column: pd.Series) -> Reals:
    values = reals(column)
    known = values[~np.isnan(values)]
    return np.unique(np.quantile(known, DECILES)) if len(known) else np.empty(0)


def _cell_of(column: pd.Series, feature: Feature, bounds: Reals | None) -> Codes:
    """The cell of each value; the last is for missing ones, and for levels the one before for unknown ones."""
    if bounds is None:
        codes, n = level_codes(column, feature), len(feature.levels)
        return np.where(codes == MISSING, n + 1, np.minimum(codes, n))
    values = reals(column)
    return np.where(np.isnan(values), len(bounds) + 1, np.searchsorted(bounds, values, side="left"))
