"""n different ones out of many: close to the query, likely, and unlike each other."""

from __future__ import annotations

__all__ = ["gower", "ranges_of", "select"]

import numpy as np
from numpy.typing import NDArray

from dicoflex.runtime.compiled import compiled
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema

Floats = NDArray[np.float64]
MOST_COMPARED = 4096


def select(
    ranges: Floats,
    query: Values,
    candidates: Values,
    log_density: Floats,
    n: int,
    *,
    effort: Floats | None = None,
    variety: float = 0.5,
) -> NDArray[np.int64]:
    """The positions of at most `n` candidates, best first; `ranges` as `ranges_of` tells them.

    The first is the best by itself: near the query and likely; where the `effort` of each is given, that counts in
    place of nearness. Each next one has the greatest
    `(1 - variety) * merit + variety * distance to the nearest one already taken`. Equals are never taken twice, so
    there may be fewer than `n`. Distances are shares of the widest one between candidates, of the first thousands of
    them; none is kept, so that memory grows with the candidates and not with their square.
    """
    if len(candidates) == 0:
        return np.zeros(0, dtype=np.int64)
    distance = gower(candidates, query[None, :], ranges)[:, 0] if effort is None else effort
    merit = 1.0 - 0.5 * _rank(distance) - 0.5 * _rank(-log_density)
    rows = np.ascontiguousarray(candidates)
    scale = float(_widest(rows[:MOST_COMPARED], ranges)) or 1.0
    chosen: NDArray[np.int64] = _greedy(rows, merit, ranges, scale, min(n, len(rows)), variety)
    return chosen


def gower(a: Values, b: Values, ranges: Floats) -> Floats:
    """Mean difference per feature (len(a), len(b)): levels differ by 0 or 1, numbers by a share of their range.

    `ranges` is 0 for levels. A missing number differs from any other by 1.

    >>> gower(np.array([[1.0, 5.0]]), np.array([[2.0, 5.0], [1.0, 10.0]]), np.array([0.0, 20.0]))
    array([[0.5  , 0.125]])
    """
    out = np.empty((len(a), len(b)))
    _gower(np.ascontiguousarray(a), np.ascontiguousarray(b), ranges, out)
    return out


def ranges_of(schema: Schema) -> Floats:
    """How far each number reaches from its least to its greatest; 0 for levels."""
    return schema.spans


def _rank(values: Floats) -> Floats:
    """Ranks from 0 (least) to 1 (greatest)."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable") / max(len(values) - 1, 1)


@compiled()
def _gower(a, b, ranges, out):  # type: ignore[no-untyped-def]
    for i in range(len(a)):
        for j in range(len(b)):
            out[i, j] = _apart(a, i, b, j, ranges)


@compiled()
def _widest(rows, ranges):  # type: ignore[no-untyped-def]
    widest = 0.0
    for i in range(len(rows)):
        for j in range(i):
            widest = max(widest, _apart(rows, i, rows, j, ranges))
    return widest


@compiled(inline="always")
def _apart(a, i, b, j, ranges):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(a.shape[1]):
        x, y = a[i, k], b[j, k]
        if x == y or (np.isnan(x) and np.isnan(y)):
            continue
        if ranges[k] > 0.0 and not np.isnan(x) and not np.isnan(y):
            total += min(abs(x - y) / ranges[k], 1.0)
        else:
            total += 1.0
    return total / a.shape[1]


@compiled()
def _greedy(rows, merit, ranges, scale, n, variety):  # type: ignore[no-untyped-def]
    chosen = np.empty(n, dtype=np.int64)
    nearest = np.ones(len(merit))
    for step in range(n):
        best, best_score = -1, -np.inf
        for i in range(len(merit)):
            if nearest[i] > 0.0:
                score = (1.0 - variety) * merit[i] + variety * (nearest[i] if step > 0 else 0.0)
                if score > best_score:
                    best, best_score = i, score
        if best < 0:
            return chosen[:step]
        chosen[step] = best
        for i in range(len(merit)):
            nearest[i] = min(nearest[i], _apart(rows, best, rows, i, ranges) / scale)
    return chosen
