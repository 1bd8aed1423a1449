"""How many rows have what, feature by feature: counts of levels and in few bins of numbers; no small count is told."""

from __future__ import annotations

__all__ = ["LEAST_COUNT", "Marginals", "by_factors", "is_skewed"]

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Arrays, Floats, Ints
from dicoflex.model_file.taking import refuse, refuse_others, taken
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.feature import Feature
from dicoflex.table.rarity import round_count
from dicoflex.table.schema import Schema

LEAST_COUNT = 10
"""What fewer rows have is told as 0."""
MOST_BINS = 40
SKEWED = 10.0
"""A number that reaches over more standard deviations than this is shown on a scale that grows by factors."""


@dataclass(frozen=True)
class Marginals:
    """Feature j owns count[count_at[j]:count_at[j + 1]] and, if it is a number, edge[edge_at[j]:edge_at[j + 1]].

    The counts of a picked feature are those of its levels, in order. A number has one edge more than counts: a bin goes
    from its edge up to the next one; the last edge may lie beyond the greatest number. Missing values are not counted.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"hours": [20] * 30 + [22] * 15 + [60], "remote": [True] * 44 + [False] * 2})
    >>> encoding = Encoding.fit(rows, Schema.infer(rows))
    >>> found = Marginals.of(encoding, encoding.encode(rows))
    >>> found.counts(1), found.edges(0)[[0, 1, -1]], found.counts(0)[:3]
    (array([ 0, 44]), array([20., 22., 62.]), array([30, 15,  0]))
    """

    edge: Floats
    edge_at: Ints
    count: Ints
    count_at: Ints

    @classmethod
    def of(cls, encoding: Encoding, values: Values, min_count: int = 1) -> Marginals:
        """The marginals of encoded rows. min_count: with more than one, counts are merged to two digits."""
        features = encoding.schema.features
        edges = [_edges(feature, float(encoding.scale[j])) for j, feature in enumerate(features)]
        least = max(LEAST_COUNT, min_count)
        counts = [_told(_counts(f, e, values[:, j]), least, min_count) for j, (f, e) in _each(features, edges)]
        return cls(np.concatenate(edges), _places(edges), np.concatenate(counts), _places(counts))

    def edges(self, j: int) -> Floats:
        """The edges of the bins of feature j; none where it is picked from levels."""
        return self.edge[self.edge_at[j] : self.edge_at[j + 1]]

    def counts(self, j: int) -> Ints:
        """How many rows feature j has in each bin, or of each level; 0 where there are few."""
        return self.count[self.count_at[j] : self.count_at[j + 1]]

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        return {"edge": self.edge, "edge_at": self.edge_at, "count": self.count, "count_at": self.count_at}

    @classmethod
    def restore(cls, schema: Schema, arrays: Arrays) -> Marginals:
        """What `arrays` were taken from; refused where they don't fit the schema, or tell a small count."""
        d = len(schema)
        refuse_others(arrays, ("edge", "edge_at", "count", "count_at"))
        edge, count = taken(arrays, "edge", np.float64, (None,)), taken(arrays, "count", np.int64, (None,))
        places = {name: taken(arrays, name, np.int64, (d + 1,)) for name in ("edge_at", "count_at")}
        for (name, at), own in zip(places.items(), (edge, count), strict=True):
            if at[0] != 0 or at[-1] != len(own) or (np.diff(at) < 0).any():
                refuse(name, "does not rise from 0 to the number of its entries")
        if ((count < 0) | ((count > 0) & (count < LEAST_COUNT))).any():
            refuse("count", f"has counts below {LEAST_COUNT}")
        found = cls(edge, places["edge_at"], count, places["count_at"])
        for j, feature in enumerate(schema.features):
            found._check(j, feature)
        return found

    def _check(self, j: int, feature: Feature) -> None:
        edges, counts = self.edges(j), self.counts(j)
        if not feature.is_number:
            fits = len(edges) == 0 and len(counts) == len(feature.levels)
        else:
            fits = len(edges) == len(counts) + 1 and len(counts) <= MOST_BINS and not (np.diff(edges) <= 0).any()
        if not fits:
            refuse("edge", f"and the counts beside it are none of {feature.name!r}")


def is_skewed(feature: Feature, scale: float) -> bool:
    """Whether a number reaches so far beyond its standard deviation that equal steps would show little of it."""
    return feature.is_number and (feature.maximum or 0.0) - (feature.minimum or 0.0) > SKEWED * scale


def by_factors(low: float, high: float, n: int, scale: float) -> Floats:
    """`n` numbers from `low` to `high`, evenly spaced around 0 and growing by factors beyond a hundredth of `scale`.

    >>> by_factors(0.0, 1000.0, 4, 100.0).round(1)
    array([   0. ,    6.3,   79.4, 1000. ])
    """
    unit = 0.01 * scale
    even = np.linspace(np.arcsinh(low / unit), np.arcsinh(high / unit), n)
    numbers: Floats = np.sinh(even) * unit
    numbers[0], numbers[-1] = low, high
    return numbers


def _each(features: Iterable[Feature], edges: list[Floats]) -> Iterable[tuple[int, tuple[Feature, Floats]]]:
    return enumerate(zip(features, edges, strict=True))


def _edges(feature: Feature, scale: float) -> Floats:
    """The edges of a number's bins, which follow from its limits alone; none for what is picked from levels."""
    if not feature.is_number:
        return np.zeros(0)
    low, high = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
    if is_skewed(feature, scale):
        edges = by_factors(low, high, MOST_BINS + 1, scale)
        edges = np.rint(edges) if feature.is_whole else edges
    elif feature.is_whole:
        # As many whole numbers in each, so that no bin is high for being wide.
        width = max(1.0, np.ceil((high - low + 1) / MOST_BINS))
        edges = np.arange(low, high + width + 0.5, width)
    else:
        edges = np.linspace(low, high, MOST_BINS + 1)
    edges = np.unique(edges)
    return edges if len(edges) > 1 else np.array([low, low + 1.0])


def _counts(feature: Feature, edges: Floats, column: Floats) -> Ints:
    if feature.is_number:
        return np.histogram(column[~np.isnan(column)], bins=edges)[0].astype(np.int64)
    return np.bincount(column.astype(np.int64), minlength=feature.n_states)[: len(feature.levels)].astype(np.int64)


def _told(counts: Ints, least: int, min_count: int) -> Ints:
    merged = [0 if count < least else max(least, round_count(count, min_count)) for count in counts.tolist()]
    return np.array(merged, dtype=np.int64)


def _places(parts: list[NDArray[np.float64]] | list[NDArray[np.int64]]) -> Ints:
    return np.cumsum([0, *map(len, parts)]).astype(np.int64)
