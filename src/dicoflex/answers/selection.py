"""n different ones out of many: close to the query, likely, and unlike each other."""

from __future__ import annotations

__all__ = ["gower", "ranges_of", "select"]

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
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
