"""A density of rows that judges answers and that no method learns from: boosted trees, feature by feature."""

from __future__ import annotations

__all__ = ["RowJudge"]

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from dicoflex.runtime.threads import one_openmp_thread
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.schema import Schema

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
BINS = 20
ROUNDS, LEAVES, RATE = 25, 12, 0.2
# Fewer rows of a class make boosting of many classes diverge: such classes get their plain share.
FEWEST = 20
# A tenth of fewer rows would be too few to tell when to stop.
ROWS_TO_STOP_EARLY = 10_000
# The log probability of what no training row has, and the least probability that trees are taken at their word for.
NEVER, LEAST = -12.0, 1e-12


class RowJudge:
    """log p(row) = sum over k of log p(feature k | the features before it), levels first, then numbers by 20 quantiles.

    Each conditional is scikit-learn's histogram gradient boosting on the codes of the features before: their levels,
    and the bins of their numbers. Missing is a level, or a bin.
    """

    def __init__(self, train: pd.DataFrame, schema: Schema) -> None:
        self.encoding = Encoding.fit(train, schema)
        values = self.encoding.encode(train)
        is_number = [f.is_number for f in schema.features]
        self.order = sorted(range(len(schema)), key=lambda j: is_number[j])
        self.edges = [_edges(values[:, j]) if number else None for j, number in enumerate(is_number)]
        codes = self._codes(values)
        levels = sum(not number for number in is_number)
        with one_openmp_thread():
            self.conditionals = [_Conditional.of(codes[:, :k], codes[:, k], min(k, levels)) for k in range(len(schema))]

    def log_density(self, frame: pd.DataFrame) -> Floats:
        """The log density of each row."""
        codes, back = np.unique(self._codes(self.encoding.encode(frame)), axis=0, return_inverse=True)
        total = np.zeros(len(codes))
        with one_openmp_thread():
            for k, conditional in enumerate(self.conditionals):
                total += conditional.log_chance(codes[:, :k], codes[:, k])
        return total[back.ravel()]

    def _codes(self, values: Values) -> Codes:
        """Levels and bins, a column per feature in the order in which they are judged."""
        return np.column_stack([_coded(values[:, j], self.edges[j]) for j in self.order])


def _edges(column: Floats) -> Floats:
    known = column[~np.isnan(column)]
    return np.unique(np.quantile(known, np.arange(1, BINS) / BINS)) if len(known) else np.empty(0)


def _coded(column: Floats, edges: Floats | None) -> Codes:
    if edges is None:
        return column.astype(np.int64)
    return np.where(np.isnan(column), len(edges) + 1, np.searchsorted(edges, column))


@dataclass(frozen=True)
class _Conditional:
    """One feature given those before it: shares of classes by code, and trees for the classes that have many rows.

    shares: log of each code's share of the training rows. trees: None if the shares are all there is. rest: log of the
    share of all rows that the trees are about.
    """

    shares: Floats
    trees: Any = None
    rest: float = 0.0

    @classmethod
    def of(cls, before: Codes, codes: Codes, levels: int) -> _Conditional:
        """Learned from the codes of training rows; the first `levels` of the features before are levels."""
        counts = np.bincount(codes)
        with np.errstate(divide="ignore"):
            shares = np.where(counts > 0, np.log(counts / len(codes)), NEVER)
        many = counts >= FEWEST
        if before.shape[1] == 0 or many.sum() < 2:
            return cls(shares)
        kept = many[codes]
        trees = HistGradientBoostingClassifier(
            max_iter=ROUNDS,
            max_leaf_nodes=LEAVES,
            learning_rate=RATE,
            categorical_features=list(range(levels)),
            early_stopping=len(codes) > ROWS_TO_STOP_EARLY,
            random_state=0,
        )
        return cls(shares, trees.fit(before[kept], codes[kept]), float(np.log(kept.mean())))

    def log_chance(self, before: Codes, codes: Codes) -> Floats:
        """The log probability of each code after those before it."""
        known = codes < len(self.shares)
        plain = np.where(known, self.shares[np.where(known, codes, 0)], NEVER)
        if self.trees is None:
            return plain
        classes = self.trees.classes_
        place = np.minimum(np.searchsorted(classes, codes), len(classes) - 1)
        chance = self.trees.predict_proba(before)[np.arange(len(codes)), place]
        return np.where(classes[place] == codes, np.log(np.maximum(chance, LEAST)) + self.rest, plain)
