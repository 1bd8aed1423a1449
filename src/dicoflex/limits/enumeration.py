"""All rows that limits allow a query, one after the other, or some of them drawn evenly.

Every feature has a list of values that it may take, its own first where it may be kept. A number with a fraction that
is limited to no list has more values than can be listed, and is then only drawn from.
"""

from __future__ import annotations

__all__ = ["Allowed"]

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dicoflex import _core
from dicoflex._types import Bools, Floats
from dicoflex.limits.limits import Limits
from dicoflex.table.encoding import Values

BATCH = 65_536
MOST_LISTED = 1_000_000
ENDLESS = 1e9
"""How many values a number counts for that has more than can be listed."""


@dataclass(frozen=True)
class Allowed:
    """What the features of one query's answers may be.

    own: the query (d,). others: per feature the other values that it may take, or None where they can't be listed.
    ends: between which such a number lies (d, 2). keeps: which features may be kept. counted: which count as changes.
    """

    own: Floats
    others: tuple[Floats | None, ...]
    ends: Floats
    keeps: Bools
    counted: Bools
    most_changes: int

    @classmethod
    def of(cls, limits: Limits, query: Values, i: int) -> Allowed:
        """What limits allow the query at place i; what follows from others is its own until it is set."""
        free = limits.can_change[i] & ~limits.uncounted
        return cls(
            own=query[i],
            others=tuple(_others(limits, query, i, j) if free[j] else np.zeros(0) for j in range(query.shape[1])),
            ends=np.column_stack([limits.low[i], limits.high[i]]),
            keeps=limits.may_keep[i] | ~free,
            counted=free,
            most_changes=limits.most_changes,
        )

    @cached_property
    def sizes(self) -> Floats:
        """How many other values each feature may take."""
        return np.array([ENDLESS if some is None else float(len(some)) for some in self.others])

    @cached_property
    def count(self) -> float:
        """How many rows there are, rules and costs aside; infinitely many where a feature's values can't be listed."""
        if any(some is None for some in self.others):
            return np.inf
        return float(self._ways()[0, -1])

    def _ways(self) -> Floats:
        """How many rows the features from j on have with at most r changes left (d + 1, most + 1)."""
        d = len(self.own)
        most = min(self.most_changes, int(self.counted.sum()))
        ways = np.ones((d + 1, most + 1))
        for j in range(d - 1, -1, -1):
            fewer = np.concatenate([[0.0], ways[j + 1, :-1]])
            ways[j] = self.keeps[j] * ways[j + 1] + self.sizes[j] * fewer
        return ways

    def rows(self) -> Iterator[Values]:
        """Every row but the query itself, in batches."""
        values = [self._listed(j) for j in range(len(self.own))]
        value, at = np.concatenate(values), np.cumsum([0, *map(len, values)])
        turn = np.zeros(len(self.own) + 1, dtype=np.int64)
        turn[-1] = int(any(len(some) == 0 for some in values))
        while not turn[-1]:
            batch = np.empty((BATCH, len(self.own)))
            filled = _core.fill_rows(
                turn=turn, value=value, at=at, keeps=self.keeps, most_changes=self.most_changes, rows=batch
            )
            yield batch[:filled]

    def _listed(self, j: int) -> Floats:
        others = self.others[j]
        assert others is not None
        return np.concatenate([self.own[[j]], others]) if self.keeps[j] else others

    def drawn(self, n: int, seed: int) -> Values:
        """`n` rows, each as likely as any other."""
        rng, ways = np.random.default_rng(seed), self._ways()
        left = np.full(n, ways.shape[1] - 1)
        rows = np.tile(self.own, (n, 1))
        for j in np.flatnonzero(self.sizes > 0):
            fewer = np.where(left > 0, ways[j + 1, left - 1], 0.0)
            total = self.keeps[j] * ways[j + 1, left] + self.sizes[j] * fewer
            changed = rng.random(n) * np.maximum(total, 1e-300) < self.sizes[j] * fewer
            rows[changed, j] = self._some(int(j), int(changed.sum()), rng)
            left -= changed
        return rows

    def _some(self, j: int, n: int, rng: np.random.Generator) -> Floats:
        others, (low, high) = self.others[j], self.ends[j]
        found: Floats = rng.choice(others, n) if others is not None else rng.uniform(float(low), float(high), n)
        return found


def _others(limits: Limits, query: Values, i: int, j: int) -> Floats | None:
    """The values besides its own that feature j of query i may take, missing among them; None if there are too many."""
    feature, own, at = limits.encoding.schema.features[j], query[i, j], limits.offset[j]
    if not feature.is_number:
        codes: Floats = np.flatnonzero(limits.states[i, at : limits.offset[j + 1]]).astype(np.float64)
        return np.asarray(codes[codes != own])
    low, high, points = limits.low[i, j], limits.high[i, j], limits.points[j]
    if points is not None:
        found = points[(points >= low) & (points <= high)]
    elif low >= high:
        found = np.array([low] if low == high else [])
    elif feature.is_whole and high - low < MOST_LISTED:
        found = np.arange(low, high + 1)
    else:
        return None
    found = found[~np.isin(found, limits.banned.get(j, np.zeros(0))) & (found != own)]
    may_vanish = feature.missing and limits.states[i, at] and not np.isnan(own)
    return np.append(found, np.nan) if may_vanish else found
