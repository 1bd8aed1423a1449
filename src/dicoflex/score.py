"""The scores that a black box gave the training rows: how they are spread, and how well the surrogate knows them.

Scores are told by their *rank*: the share of the training rows with a lower score, interpolated between knots and
continued straight beyond them. So an interval of scores has a width that means the same in every unit. The surrogate
predicts ranks; what it says of a row may be off as a logistic with the scale `spread` is, so that

    P(low <= rank <= high | it says r) = 1 / (1 + exp((low - r) / spread) + exp((r - high) / spread))
"""

from __future__ import annotations

__all__ = ["Score", "inside"]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Arrays, Floats
from dicoflex.model_file.taking import refuse, refuse_others, taken
from dicoflex.table.rarity import round_count, round_near

KNOTS = 51
ROWS_PER_KNOT = 8
CODE_KNOTS = np.linspace(0.0, 1.0, 11)
ARRAYS = ("knots", "below", "upto", "spread", "rows")


@dataclass(frozen=True)
class Score:
    """knots: scores, rising. below, upto: the share of the training rows with a lower one, and with no higher one.

    spread: how far off the surrogate is, in rank. rows: how many rows there are, about.
    """

    knots: Floats
    below: Floats
    upto: Floats
    spread: float
    rows: int

    CODE = 2 * (len(CODE_KNOTS) + 1)
    """How many numbers tell a density an interval."""

    @classmethod
    def of(cls, scores: Floats, min_count: int = 1) -> Score:
        """How these scores are spread; with `min_count`, knots are round numbers that no single row has."""
        ordered, n = np.sort(scores), len(scores)
        count = int(np.clip(n // ROWS_PER_KNOT, 2, KNOTS))
        reach = min(min_count - 1, (n - 1) // 2)
        at = np.linspace(reach, n - 1 - reach, count).round().astype(np.int64)
        told = [ordered[i] if min_count == 1 else round_near(ordered, int(i), int(i), min_count) for i in at]
        knots = np.unique(np.array(told, dtype=np.float64))
        below, upto = (np.searchsorted(ordered, knots, side=side) / n for side in ("left", "right"))
        if min_count > 1:
            below, upto = np.round(below, 2), np.round(upto, 2)
        return cls(knots, below, upto, 0.0, round_count(n, min_count))

    @property
    def ranks(self) -> Floats:
        """The rank of each knot, rising."""
        middle: Floats = np.maximum.accumulate((self.below + self.upto) / 2) + np.arange(len(self.knots)) * 1e-6
        return middle

    def rank(self, scores: Floats) -> Floats:
        """The ranks of scores; beyond the knots they go on as steeply as the knots do on the whole."""
        return _through(np.asarray(scores, dtype=np.float64), self.knots, self.ranks)

    def score(self, ranks: Floats) -> Floats:
        """The scores that have these ranks."""
        return _through(np.asarray(ranks, dtype=np.float64), self.ranks, self.knots)

    def share(self, low: float, high: float) -> float:
        """About which share of the training rows has a score between two numbers, ends included."""
        upto = 1.0 if high >= self.knots[-1] else float(np.interp(high, self.knots, self.upto, left=0.0))
        below = 0.0 if low <= self.knots[0] else float(np.interp(low, self.knots, self.below, right=1.0))
        return max(0.0, upto - below)

    def code(self, low: Floats, high: Floats) -> NDArray[np.float32]:
        """Intervals of ranks as numbers for a density (n, CODE): where each end lies among knots, or that it is open.

        >>> Score.of(np.arange(50.0)).code(np.array([0.25]), np.array([np.inf]))[0, [2, 3, 11, -1]].tolist()
        [0.5, 0.5, 0.0, 1.0]
        """
        return np.concatenate([_code(low), _code(high)], axis=1).astype(np.float32)

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        return {
            "knots": self.knots, "below": self.below, "upto": self.upto,
            "spread": np.array([self.spread]), "rows": np.array([self.rows], dtype=np.int64),
        }  # fmt: skip

    @classmethod
    def restore(cls, arrays: Arrays) -> Score:
        """What `arrays` were taken from; refused where they are no distribution of scores."""
        refuse_others(arrays, ARRAYS)
        knots = taken(arrays, "knots", np.float64, (None,))
        below, upto = (taken(arrays, name, np.float64, (len(knots),)) for name in ("below", "upto"))
        spread, rows = taken(arrays, "spread", np.float64, (1,)), taken(arrays, "rows", np.int64, (1,))
        if len(knots) < 2 or (np.diff(knots) <= 0).any():
            refuse("knots", "does not rise")
        for name, shares in (("below", below), ("upto", upto)):
            if (np.diff(shares) < 0).any() or shares[0] < 0 or shares[-1] > 1:
                refuse(name, "holds no rising shares")
        if not 0 < spread[0] <= 10 or rows[0] < 1:
            refuse("spread", "is no deviation, or of no rows")
        return cls(knots, below, upto, float(spread[0]), int(rows[0]))


def inside(ranks: Floats, low: Floats, high: Floats, spread: float) -> Floats:
    """The probability that scores lie in intervals, where the surrogate says these ranks.

    >>> inside(np.array([0.5, 0.7]), np.array([0.5, 0.5]), np.array([np.inf, np.inf]), 0.05).round(3)
    array([0.5  , 0.982])
    """
    with np.errstate(over="ignore"):
        chance: Floats = 1.0 / (1.0 + np.exp((low - ranks) / spread) + np.exp((ranks - high) / spread))
    return chance


def _through(x: Floats, at: Floats, to: Floats) -> Floats:
    slope = (to[-1] - to[0]) / (at[-1] - at[0])
    beyond = np.minimum(x - at[0], 0.0) + np.maximum(x - at[-1], 0.0)
    found: Floats = np.interp(x, at, to) + slope * beyond
    return found


def _code(ends: Floats) -> Floats:
    is_open = np.isinf(ends)
    at = np.interp(np.where(is_open, 0.0, ends), CODE_KNOTS, np.arange(len(CODE_KNOTS)))
    weight = np.maximum(0.0, 1.0 - np.abs(at[:, None] - np.arange(len(CODE_KNOTS))))
    return np.column_stack([np.where(is_open[:, None], 0.0, weight), is_open])
