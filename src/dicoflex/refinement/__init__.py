"""Refinement: each candidate is made minimal, and brought as near to its query as the judges allow.

A candidate that does not stand is first mended. Then changes are undone, one by one, while the row stands without
them; then each changed number moves towards the query. It is deterministic: the same draws give the same rows.
"""

from __future__ import annotations

__all__ = ["Asked", "Refined", "Wanted", "refine"]

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.limits.limits import Limits
from dicoflex.refinement.bounds import Bounds
from dicoflex.refinement.judges import Judges
from dicoflex.refinement.moves import approach_rows, undo_rows
from dicoflex.runtime.columns import Columns
from dicoflex.runtime.randomness import row_keys
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Encoding, Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
SLICE, THREADED = 16, 256
MOST_APART = 10.0


@dataclass(frozen=True)
class Wanted(Columns):
    """What a refined row must be, per query: its class, the stand-in's probability of it, and the two floors.

    lower: the log density down to which changes are undone, as far as the row ends above its floor.
    """

    target: Ints
    probability: Floats
    log_density: Floats
    weakest: Floats
    lower: Floats

    def matrix(self) -> Floats:
        """The five as columns."""
        return np.column_stack([self.target, self.probability, self.log_density, self.weakest, self.lower])


@dataclass(frozen=True)
class Refined(Columns):
    """Rows that stand: which draw each comes from, what the stand-in says of it, and how it compares with real rows.

    room: whether undoing a change would leave a row far below the floor, not only just.
    """

    values: Values
    source: Ints
    probability: Floats
    row_density: Floats
    weakest: Floats
    room: Bools


@dataclass(frozen=True)
class Asked:
    """Queries and what their answers must be: values (n, d), wishes, what is frozen (n, d), and other limits.

    turned: whether the strongest changes are undone first, so that others come to light.
    """

    query: Values
    wanted: Wanted
    frozen: Bools
    limits: Limits | None
    turned: bool = False


def refine(
    encoding: Encoding, judges: Judges, draws: Values, which: Ints, asked: Asked, *, most: int | None = None
) -> Refined:
    """The draws of the queries `which`, refined; of a query at most `most` rows, of different ways first."""
    bounds = Bounds.of(encoding, asked.frozen, asked.limits)
    return _pass(judges, draws, which, asked, bounds, most)


def _pass(judges: Judges, draws: Values, which: Ints, asked: Asked, bounds: Bounds, most: int | None) -> Refined:
    """The rows that stand: first less what they don't need, then, the foremost of each query, as near as possible."""
    rows, wanted = draws.copy(), asked.wanted.matrix()
    stands, scores = np.zeros(len(rows), dtype=bool), np.zeros((len(rows), 4))

    def undo(low: int, high: int) -> None:
        undo_rows(low, high, rows, asked.query, which, wanted, judges, bounds, asked.turned, stands, scores)

    in_threads(undo, len(rows), least=THREADED, most=SLICE)
    source = np.flatnonzero(stands)
    source = source[_foremost(rows[source], which[source], asked.query, judges.scale, most)]
    rows, scores, entry = rows[source], scores[source], which[source]

    def approach(low: int, high: int) -> None:
        approach_rows(low, high, rows, asked.query, entry, wanted, judges, bounds, scores)

    in_threads(approach, len(rows), least=THREADED, most=SLICE)
    return Refined(rows, source, scores[:, 0], scores[:, 1], scores[:, 2], scores[:, 3] > 0)


def _foremost(rows: Values, which: Ints, query: Values, scale: Floats, most: int | None) -> Ints:
    """The positions of at most `most` rows per query: the nearest of each way, then each way's next, no row twice."""
    if len(rows) == 0:
        return np.zeros(0, dtype=np.int64)
    own = query[which]
    changed = differ(rows, own)
    # What appears or vanishes is a unit away.
    apart = np.abs(rows - own)
    moved = np.minimum(np.where(np.isnan(apart), 1.0, apart) / scale, MOST_APART)
    distance = np.where(changed, moved, 0.0).sum(axis=1)
    way = row_keys(changed.astype(np.float64), 0)
    key = row_keys(rows, 0)
    kept = np.lexsort((key, distance, way, which))
    kept = kept[_rank_within(key[kept], which[kept]) == 0]
    rank = _rank_within(way[kept], which[kept])
    order = np.lexsort((distance[kept], rank, which[kept]))
    kept = kept[order]
    if most is not None:
        kept = kept[_rank_within(which[kept]) < most]
    return np.sort(kept)


def _rank_within(*columns: NDArray[Any]) -> Ints:
    """Of rows that stand together where their columns are equal, each one's place among its like."""
    n = len(columns[0])
    new = np.zeros(n, dtype=bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    first = np.maximum.accumulate(np.where(new, np.arange(n), 0))
    return np.arange(n) - first
