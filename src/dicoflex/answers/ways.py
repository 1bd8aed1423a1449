"""Answers that are different to a person: other features first, other amounts of the same only after that.

A *way* is a set of features that change. Each next answer has the greatest

    merit - variety * (times its way was taken) + variety / 5 * (distance to the nearest one taken of its way)
    merit = nearness * (1 - r(distance)) + (1 - nearness) * r(likely) - handicap

with ranks r from 0 to 1 among the candidates of a query. The handicap keeps away from the edge of what is plausible.

A way that holds all of another and some more is the same advice with an addition ("a professional at 35", "a
professional at 34 with 41 hours"): among the first answers, such a candidate counts as if its way had been taken twice.
"""

from __future__ import annotations

__all__ = ["Merits", "by_query", "choose", "choose_each", "count_ways", "distances", "ways_of"]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex.runtime.columns import Columns
from dicoflex.runtime.compiled import compiled
from dicoflex.table.encoding import Values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Wish = tuple[int, float]
Chosen = tuple[Ints, Ints]
NEARNESS = 0.85
SAME = 0.02
"""Rows of one way that are no further apart, in shares of ranges, are the same advice: taken when all else is."""
LAST = 10.0
NESTED = 2.0
FIRST = 5
LEAST_MOVE = 1e-9


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


def choose(
    values: Values, changed: NDArray[np.bool_], merits: Merits, ranges: Floats, n: int, *, variety: float
) -> Ints:
    """The positions of at most `n` of different candidates, best first; `ranges` as `selection.ranges_of` has them."""
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    rows, chosen = np.ascontiguousarray(values), np.empty(min(n, len(values)), dtype=np.int64)
    merit = _merit(merits.distance, merits.likely, merits.handicap)
    found = _choose(rows, changed, ways_of(changed), merit, ranges, variety, chosen)
    return chosen[:found]


def choose_each(values: Values, query: Values, edges: Ints, merits: Merits, ranges: Floats, wanted: Wish) -> Chosen:
    """The same for several queries, of which number i has the candidates from edges[i] to edges[i + 1]: the positions
    of those chosen, query by query, and the number of each one's way among them. wanted: how many, and variety."""
    n, variety = wanted
    chosen, ways = np.empty((2, min(n * (len(edges) - 1), len(values))), dtype=np.int64)
    measures = merits.distance, merits.likely, merits.handicap
    found = _choose_each(values, query, edges, *measures, ranges, n, variety, chosen, ways)
    return chosen[:found], ways[:found]


def by_query(which: Ints, n_queries: int) -> tuple[Ints | slice, Ints]:
    """An order in which rows of one query stand together, and where each query's begin."""
    if n_queries == 1:
        return slice(None), np.array([0, len(which)])
    order = np.argsort(which, kind="stable")
    return order, np.searchsorted(which[order], np.arange(n_queries + 1))


def count_ways(values: Values, query: Values, edges: Ints) -> Ints:
    """How many ways the rows of each query are, of which number i has those from edges[i] to edges[i + 1]."""
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    _count_ways(values, query, edges, counts)
    return counts


def distances(values: Values, own: Values, spread: Floats, counted: NDArray[np.bool_], p: float) -> Floats:
    """The sum of |difference|^p over changed features: numbers in standard deviations, another level counts one."""
    out = np.zeros(len(values))
    _add_distances(values, own, spread, counted, p, out)
    return out


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
def _ranked(values, weight, out):  # type: ignore[no-untyped-def]
    """Add each value's rank, from 0 (least) to 1 (greatest), times a weight; of equal ones the first is the least."""
    for i in range(len(values)):
        below = 0
        for k in range(len(values)):
            below += values[k] < values[i] or (values[k] == values[i] and k < i)
        out[i] += weight * (below / max(len(values) - 1, 1))


@compiled()
def _merit(distance, likely, handicap):  # type: ignore[no-untyped-def]
    """What speaks for each candidate, less what speaks against it."""
    merit = NEARNESS - handicap
    _ranked(distance, -NEARNESS, merit)
    _ranked(likely, 1.0 - NEARNESS, merit)
    return merit


@compiled()
def _changes(values, query):  # type: ignore[no-untyped-def]
    changed = np.empty(values.shape, dtype=np.bool_)
    for i in range(len(values)):
        for j in range(len(query)):
            a, b = values[i, j], query[j]
            changed[i, j] = not (a == b or (np.isnan(a) and np.isnan(b)))
    return changed


@compiled()
def _count_ways(values, query, edges, counts):  # type: ignore[no-untyped-def]
    for i in range(len(counts)):
        mine = values[edges[i] : edges[i + 1]]
        if len(mine) > 0:
            ways = np.empty(len(mine), dtype=np.int64)
            _number_ways(_changes(mine, query[i]), ways)
            counts[i] = ways.max() + 1


@compiled()
def _add_distances(values, own, spread, counted, p, out):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        for j in range(values.shape[1]):
            a, b = values[i, j], own[i, j]
            if counted[j] and not (a == b or (np.isnan(a) and np.isnan(b))):
                move = abs(a - b) / spread[j] if np.isfinite(spread[j]) else 1.0
                out[i] += max(1.0 if np.isnan(move) else move, LEAST_MOVE) ** p


@compiled()
def _choose_each(  # type: ignore[no-untyped-def]
    values, query, edges, distance, likely, handicap, ranges, n, variety, chosen, ways
):
    """Choose for one query after the other; how many were chosen in all."""
    found = 0
    for i in range(len(edges) - 1):
        first, last = edges[i], edges[i + 1]
        if first == last:
            continue
        mine, way = values[first:last], np.empty(last - first, dtype=np.int64)
        changed = _changes(mine, query[i])
        _number_ways(changed, way)
        merit = _merit(distance[first:last], likely[first:last], handicap[first:last])
        own = chosen[found : found + min(n, last - first)]
        got = _choose(mine, changed, way, merit, ranges, variety, own)
        _number_ways(changed[own[:got]], ways[found : found + got])
        for k in range(got):
            own[k] += first
        found += got
    return found


@compiled()
def _choose(values, changed, way, merit, ranges, variety, chosen):  # type: ignore[no-untyped-def]
    """Fill in the positions of those chosen, best first; how many there are."""
    n = len(chosen)
    used = np.zeros(way.max() + 1, dtype=np.int64)
    nearest, nested = np.full(len(merit), np.inf), np.zeros(len(merit), dtype=np.bool_)
    for step in range(n):
        best, best_score = -1, -np.inf
        for i in range(len(merit)):
            if nearest[i] <= 0.0:
                continue
            score = merit[i] - variety * (used[way[i]] + (NESTED if nested[i] and step < FIRST else 0.0))
            if used[way[i]] > 0:
                score += 0.2 * variety * min(nearest[i], 1.0)
                if nearest[i] < SAME:
                    score -= LAST
            if score > best_score:
                best, best_score = i, score
        if best < 0:
            return step
        chosen[step] = best
        used[way[best]] += 1
        for i in range(len(merit)):
            if way[i] == way[best]:
                nearest[i] = min(nearest[i], _apart(values[i], values[best], ranges))
            elif not nested[i]:
                nested[i] = _holds(changed[i], changed[best]) or _holds(changed[best], changed[i])
    return n


@compiled()
def _holds(one, other):  # type: ignore[no-untyped-def]
    """Whether one way changes all that another does."""
    k = 0
    while k < len(one) and (one[k] or not other[k]):
        k += 1
    return k == len(one)


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
