"""Answers that are different to a person: other features first, other amounts of the same only after that.

A *way* is a set of features that change. Each next answer has the greatest

    merit - variety * (times its way was taken) + variety / 5 * (distance to the nearest one taken of its way)
    merit = nearness * (1 - r(distance)) + (1 - nearness) * r(likely) - handicap

with ranks r from 0 to 1 among the candidates of a query. The handicap keeps away from the edge of what is plausible.
"""

from __future__ import annotations

__all__ = ["Merits", "choose", "ways_of"]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex.runtime.columns import Columns
from dicoflex.runtime.compiled import compiled
from dicoflex.table.encoding import Values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEARNESS = 0.65
SAME = 0.02
"""Rows of one way that are no further apart, in shares of ranges, are the same advice: taken when all else is."""
LAST = 10.0


@dataclass(frozen=True)
class Merits(Columns):
    """What speaks for candidates: how far they are, how likely, and what is taken from their merit."""

    distance: Floats
    likely: Floats
    handicap: Floats


def ways_of(changed: NDArray[np.bool_]) -> Ints:
    """The number of each row's way, in the order in which they first appear.

    >>> ways_of(np.array([[True, False], [False, True], [True, False]]))
    array([0, 1, 0])
    """
    ways = np.empty(len(changed), dtype=np.int64)
    _number_ways(changed, ways)
    return ways


def choose(values: Values, way: Ints, merits: Merits, ranges: Floats, n: int, *, variety: float) -> Ints:
    """The positions of at most `n` of different candidates, best first; `ranges` as `selection.ranges_of` has them."""
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    merit = NEARNESS * (1.0 - _rank(merits.distance)) + (1.0 - NEARNESS) * _rank(merits.likely) - merits.handicap
    chosen: Ints = _choose(np.ascontiguousarray(values), way, merit, ranges, min(n, len(values)), variety)
    return chosen


def _rank(values: Floats) -> Floats:
    """Ranks from 0 (least) to 1 (greatest)."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable") / max(len(values) - 1, 1)


@compiled()
def _number_ways(changed, ways):  # type: ignore[no-untyped-def]
    """Number rows by their like among the first of each way."""
    first, n = np.empty(len(changed), dtype=np.int64), 0
    for i in range(len(changed)):
        way = 0
        while way < n:
            same = True
            for j in range(changed.shape[1]):
                if changed[i, j] != changed[first[way], j]:
                    same = False
                    break
            if same:
                break
            way += 1
        if way == n:
            first[n] = i
            n += 1
        ways[i] = way


@compiled()
def _choose(values, way, merit, ranges, n, variety):  # type: ignore[no-untyped-def]
    chosen = np.empty(n, dtype=np.int64)
    used = np.zeros(way.max() + 1, dtype=np.int64)
    nearest = np.full(len(merit), np.inf)
    for step in range(n):
        best, best_score = -1, -np.inf
        for i in range(len(merit)):
            if nearest[i] <= 0.0:
                continue
            score = merit[i] - variety * used[way[i]]
            if used[way[i]] > 0:
                score += 0.2 * variety * min(nearest[i], 1.0)
                if nearest[i] < SAME:
                    score -= LAST
            if score > best_score:
                best, best_score = i, score
        if best < 0:
            return chosen[:step]
        chosen[step] = best
        used[way[best]] += 1
        for i in range(len(merit)):
            if way[i] == way[best]:
                nearest[i] = min(nearest[i], _apart(values[i], values[best], ranges))
    return chosen


@compiled()
def _apart(a, b, ranges):  # type: ignore[no-untyped-def]
    """How far two rows are apart: 1 for another level or a missing value, a share of its range for a number."""
    total = 0.0
    for k in range(len(a)):
        if a[k] == b[k] or (np.isnan(a[k]) and np.isnan(b[k])):
            continue
        apart = abs(a[k] - b[k]) / ranges[k] if ranges[k] > 0.0 else 1.0
        total += 1.0 if np.isnan(apart) else min(apart, 1.0)
    return total
