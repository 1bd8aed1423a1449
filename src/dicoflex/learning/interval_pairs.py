"""Pairs to learn from where scores are asked for: a row, an interval that its score is not in, rows near it that are.

Intervals are drawn once per fit, in ranks: open ones and ones between two numbers, wide and narrow. A pair's target is
the number of its interval.
"""

from __future__ import annotations

__all__ = ["IntervalTeacher", "Intervals"]

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dicoflex.generators.base import Table
from dicoflex.learning.pairs import Conditions, Pairs, some, weighted
from dicoflex.neighbours import Pool, nearest
from dicoflex.runtime.columns import Columns
from dicoflex.score import inside
from dicoflex.table.encoding import Parts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
INTERVALS = 384
PER_PASS = 40
OPEN_ABOVE, OPEN_BELOW = 0.4, 0.6
"""Up to the first share of the intervals have no upper end, from there to the second no lower one."""
FARTHEST = 0.97
NARROWEST, WIDEST = 0.06, 0.6
LEAST_INSIDE = 10
ROOM = 0.95


@dataclass(frozen=True)
class Intervals(Columns):
    """Intervals of ranks; an end that is open is infinite."""

    low: Floats
    high: Floats

    @classmethod
    def drawn(cls, rng: np.random.Generator, n: int = INTERVALS) -> Intervals:
        """`n` intervals at random."""
        kind, width = rng.random(n), rng.uniform(NARROWEST, WIDEST, n)
        low = rng.uniform(0.0, 1.0 - width)
        edge = rng.uniform(1.0 - FARTHEST, FARTHEST, n)
        above, below = kind < OPEN_ABOVE, (kind >= OPEN_ABOVE) & (kind < OPEN_BELOW)
        return cls(
            np.where(above, edge, np.where(below, -np.inf, low)),
            np.where(above, np.inf, np.where(below, edge, low + width)),
        )

    def hold(self, ranks: Floats, which: Ints) -> NDArray[np.bool_]:
        """Whether each rank lies in the interval of that number."""
        held: NDArray[np.bool_] = (ranks >= self.low[which]) & (ranks <= self.high[which])
        return held

    def chance(self, ranks: Floats, which: Ints, spread: float) -> Floats:
        """The probability that each score lies in the interval of that number, where a surrogate says these ranks."""
        return inside(ranks, self.low[which], self.high[which], spread)

    def surest(self, spread: float) -> Floats:
        """The greatest probability that each interval can have: that of its middle."""
        middle = np.where(np.isinf(self.low) | np.isinf(self.high), np.nan, (self.low + self.high) / 2)
        return np.where(np.isnan(middle), 1.0, inside(np.nan_to_num(middle), self.low, self.high, spread))


@dataclass
class IntervalTeacher:
    """Draws training pairs from a table whose rows have these ranks; `spread` is set when the surrogate is known."""

    table: Table
    ranks: Floats
    intervals: Intervals
    conditions: Conditions
    k: int
    alpha: float
    level_weight: float
    spread: float = 0.05

    def propose(
        self,
        anchors: Ints,
        *,
        rng: np.random.Generator,
        k: int | None = None,
        each: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> Pairs:
        """Pairs of each anchor with its nearest rows inside an interval that the anchor's own score is not in."""
        chosen = rng.choice(len(self.intervals), min(PER_PASS, len(self.intervals)), replace=False)
        which = chosen[rng.integers(len(chosen), size=len(anchors))]
        parts = weighted(self.table.encoding.parts(self.table.values), self.level_weight)
        found = []
        for number in chosen:
            mine = anchors[which == number]
            if advance is not None:
                advance(len(mine))
            mine = mine[~self.intervals.hold(self.ranks[mine], np.full(len(mine), number))]
            inner = np.flatnonzero(self.intervals.hold(self.ranks, np.full(len(self.ranks), number)))
            if len(mine) and len(inner) >= LEAST_INSIDE:
                found.append(self._near(mine, int(number), parts, inner, rng, (k or self.k, each)))
        return Pairs.join(found)

    def _near(
        self,
        anchors: Ints,
        number: int,
        parts: Parts,
        inner: Ints,
        rng: np.random.Generator,
        counts: tuple[int, int | None],
    ) -> Pairs:
        k, each = counts
        only = np.zeros(len(anchors), dtype=np.int64)
        p, mask, confidence = self.conditions.draw(only, self.table.values.shape[1], rng)
        interval = self.intervals.take(np.array([number]))
        confidence = np.minimum(confidence, ROOM * interval.surest(self.spread)[0])
        sure = interval.chance(self.ranks[inner], np.zeros(len(inner), dtype=np.int64), self.spread)
        pool = Pool.group(_rows(parts, inner), np.zeros(len(inner), dtype=np.int64), 1, sure)
        rows = nearest(
            _rows(parts, anchors), pool,
            target=only, p=p, mask=mask, confidence=confidence, k=min(k, len(inner)), alpha=self.alpha,
        ).rows  # fmt: skip
        which, rank = np.nonzero(some(rows >= 0, each, rng))
        return Pairs(
            anchor=anchors[which].astype(np.int32),
            row=inner[rows[which, rank]].astype(np.int32),
            kept=np.zeros((len(which), mask.shape[1]), dtype=bool),
            frozen=mask[which],
            target=np.full(len(which), number, dtype=np.int16),
            p=p[which].astype(np.float32),
            confidence=confidence[which].astype(np.float32),
        )


def _rows(parts: Parts, index: Ints) -> Parts:
    return replace(parts, codes=parts.codes[index], numbers=parts.numbers[index])
