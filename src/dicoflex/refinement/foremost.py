"""Which rows to go on with: the nearest of each way, compiled."""

from __future__ import annotations

__all__ = ["mark_foremost"]

import numpy as np

from dicoflex.refinement.bounds import differ
from dicoflex.runtime.compiled import compiled, lean

MOST_APART = 10.0


@compiled(nogil=True)
def mark_foremost(rows, which, query, scale, stands, most, kept):  # type: ignore[no-untyped-def]
    """Mark at most `most` rows per query that stand: the nearest of each way, then each way's next, no row twice.

    Rows of one query stand together.
    """
    n, d = rows.shape
    at, way, rank = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    apart, changed = np.empty(n), np.empty((n, d), dtype=np.bool_)
    first = 0
    while first < n:
        last, found = first, 0
        while last < n and which[last] == which[first]:
            if stands[last]:
                apart[found] = _look(rows[last], query[which[last]], scale, changed[found])
                at[found] = last
                found += 1
            last += 1
        _rank_ways(found, rows, at, apart, changed, way, rank)
        for i in range(found):
            kept[at[i]] = rank[i] >= 0 and _place(i, found, rank, apart) < most
        first = last


@lean()
def _look(row, query, scale, changed):  # type: ignore[no-untyped-def]
    """How far a row is from its query, and what it changes."""
    total = 0.0
    for j in range(len(row)):
        changed[j] = differ(row[j], query[j])
        if changed[j]:
            # What appears or vanishes is a unit away.
            apart = abs(row[j] - query[j])
            total += min((1.0 if np.isnan(apart) else apart) / scale[j], MOST_APART)
    return total


@lean()
def _rank_ways(n, rows, at, apart, changed, way, rank):  # type: ignore[no-untyped-def]
    """The place of each row among those of its way, the nearest first; -1 for one that an earlier row equals."""
    for i in range(n):
        way[i], rank[i] = i, 0
        for other in range(i):
            if way[other] == other and _same(changed[i], changed[other]):
                way[i] = other
                break
        for other in range(i):
            if way[other] != way[i] or rank[other] < 0:
                continue
            if apart[other] == apart[i] and _equal(rows[at[i]], rows[at[other]]):
                rank[i] = -1
                break
        for other in range(i if rank[i] >= 0 else 0):
            if way[other] == way[i] and rank[other] >= 0:
                if apart[other] <= apart[i]:
                    rank[i] += 1
                else:
                    rank[other] += 1


@lean()
def _place(i, n, rank, apart):  # type: ignore[no-untyped-def]
    """How many rows come before row i: those of a lower rank, then the nearer ones."""
    before = 0
    for other in range(n):
        if rank[other] < 0 or rank[other] > rank[i]:
            continue
        nearer = apart[other] < apart[i] or (apart[other] == apart[i] and other < i)
        before += rank[other] < rank[i] or nearer
    return before


@lean()
def _same(one, other):  # type: ignore[no-untyped-def]
    j = 0
    while j < len(one) and one[j] == other[j]:
        j += 1
    return j == len(one)


@lean()
def _equal(one, other):  # type: ignore[no-untyped-def]
    j = 0
    while j < len(one) and not differ(one[j], other[j]):
        j += 1
    return j == len(one)
