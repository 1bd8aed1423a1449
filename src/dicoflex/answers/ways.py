"""Answers that are different to a person: other features first, other amounts of the same only after that.

A *way* is a set of features that change. Each next answer has the greatest

    merit - diversity * (times its way was taken) + diversity / 5 * (distance to the nearest one taken of its way)
    merit = 1 - r(distance) - handicap

with ranks r from 0 to 1 among the candidates of a query; of those equally far the likelier is the nearer. The handicap
keeps away from the edge of what is plausible: it is 0 for candidates that are clear, and at least 1 for others, so that
the first answer is the nearest clear one. Unless diversity is 0, a way is taken again only after all clear candidates
of other ways.

A way that holds all of another and some more is the same advice with an addition ("a professional at 35", "a
professional at 34 with 41 hours"): among the first answers, such a candidate counts as if its way had been taken twice.
"""

from __future__ import annotations

__all__ = [
    "Merits",
    "by_query",
    "choose",
    "choose_each",
    "count_ways",
    "distances",
    "gower",
    "ranges_of",
    "select",
    "ways_of",
]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.runtime.columns import Columns
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Wish = tuple[int, float]
Chosen = tuple[Ints, Ints]


@dataclass(frozen=True)
class Merits(Columns):
    """What speaks for candidates: how far they are; of equals how likely; and what is taken from their merit."""

    distance: Floats
    likely: Floats
    handicap: Floats

    def parts(self) -> dict[str, Floats]:
        """The three by name, as the core takes them."""
        return {"distance": self.distance, "likely": self.likely, "handicap": self.handicap}


def ways_of(changed: NDArray[np.bool_]) -> Ints:
    """The number of each row's way, in the order in which they first appear.

    >>> ways_of(np.array([[True, False], [False, True], [True, False]]))
    array([0, 1, 0])
    """
    ways = np.empty(len(changed), dtype=np.int64)
    _core.number_ways(changed, ways)
    return ways


def choose(
    values: Values, changed: NDArray[np.bool_], merits: Merits, ranges: Floats, n: int, *, diversity: float
) -> Ints:
    """The positions of at most `n` of different candidates, best first; `ranges` as `selection.ranges_of` has them."""
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    chosen = np.empty(min(n, len(values)), dtype=np.int64)
    found = _core.choose(
        values=values, changed=changed, **merits.parts(), ranges=ranges, diversity=diversity, chosen=chosen
    )  # fmt: skip
    return chosen[:found]


def choose_each(values: Values, query: Values, edges: Ints, merits: Merits, ranges: Floats, wanted: Wish) -> Chosen:
    """The same for several queries, of which number i has the candidates from edges[i] to edges[i + 1]: the positions
    of those chosen, query by query, and the number of each one's way among them. wanted: how many, and diversity."""
    n, diversity = wanted
    chosen, ways = np.empty((2, min(n * (len(edges) - 1), len(values))), dtype=np.int64)
    found = _core.choose_each(
        values=values, query=query, edges=edges, **merits.parts(), ranges=ranges, n=n, diversity=diversity,
        chosen=chosen, ways=ways,
    )  # fmt: skip
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
    _core.count_ways(values=values, query=query, edges=edges, counts=counts)
    return counts


def distances(
    values: Values, own: Values, spread: Floats, gaps: Floats, counted: NDArray[np.bool_], p: float
) -> Floats:
    """The sum of |difference|^p over changed features.

    Numbers differ by standard deviations; another level by one, or, of levels that have an order, by a half and up to
    another half the more steps lie between; what appears or vanishes by one.

    spread: the standard deviations of numbers, infinite for levels. gaps: steps between the first and the last of
    levels that have an order, else 0.
    """
    out = np.zeros(len(values))
    _core.add_distances(values=values, own=own, spread=spread, gaps=gaps, counted=counted, p=p, out=out)
    return out


MOST_COMPARED = 4096


def select(
    ranges: Floats,
    query: Values,
    candidates: Values,
    log_density: Floats,
    n: int,
    *,
    effort: Floats | None = None,
    diversity: float = 0.5,
) -> NDArray[np.int64]:
    """The positions of at most `n` candidates, best first; `ranges` as `ranges_of` tells them.

    The first is the best by itself: near the query and likely; where the `effort` of each is given, that counts in
    place of nearness. Each next one has the greatest
    `(1 - diversity) * merit + diversity * distance to the nearest one already taken`. Equals are never taken twice, so
    there may be fewer than `n`. Distances are shares of the widest one between candidates, of the first thousands of
    them; none is kept, so that memory grows with the candidates and not with their square.
    """
    if len(candidates) == 0:
        return np.zeros(0, dtype=np.int64)
    distance = gower(candidates, query[None, :], ranges)[:, 0] if effort is None else effort
    merit = 1.0 - 0.5 * _rank(distance) - 0.5 * _rank(-log_density)
    chosen = np.empty(min(n, len(candidates)), dtype=np.int64)
    found = _core.select(
        values=candidates, merit=merit, ranges=ranges, diversity=diversity, most_compared=MOST_COMPARED, chosen=chosen
    )
    return chosen[:found]


def gower(a: Values, b: Values, ranges: Floats) -> Floats:
    """Mean difference per feature (len(a), len(b)): levels differ by 0 or 1, numbers by a share of their range.

    `ranges` is 0 for levels. A missing number differs from any other by 1.

    >>> gower(np.array([[1.0, 5.0]]), np.array([[2.0, 5.0], [1.0, 10.0]]), np.array([0.0, 20.0]))
    array([[0.5  , 0.125]])
    """
    out = np.empty((len(a), len(b)))
    _core.gower(a=a, b=b, ranges=ranges, out=out)
    return out


def ranges_of(schema: Schema) -> Floats:
    """How far each number reaches from its least to its greatest; 0 for levels."""
    return schema.spans


def _rank(values: Floats) -> Floats:
    """Ranks from 0 (least) to 1 (greatest)."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable") / max(len(values) - 1, 1)
