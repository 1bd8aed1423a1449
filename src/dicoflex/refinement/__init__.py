"""Refinement: each candidate is made minimal, and brought as near to its query as the judges allow.

A candidate that does not stand is first mended. Then changes are undone, one by one, while the row stands without
them; then each changed number moves towards the query. It is deterministic: the same draws give the same rows.
"""

from __future__ import annotations

__all__ = ["Asked", "Refined", "Wanted", "refine"]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex.limits.limits import Limits
from dicoflex.refinement.bounds import Bounds
from dicoflex.refinement.foremost import mark_foremost
from dicoflex.refinement.judges import Judges
from dicoflex.refinement.moves import approach_rows, undo_rows
from dicoflex.runtime.columns import Columns
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Encoding, Values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
SLICE, THREADED = 16, 256


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
        columns = np.empty((len(self.target), 5))
        for k, column in enumerate((self.target, self.probability, self.log_density, self.weakest, self.lower)):
            columns[:, k] = column
        return columns


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
    kept = np.zeros(len(rows), dtype=bool)
    mark_foremost(rows, which, asked.query, judges.scale, stands, len(rows) if most is None else most, kept)
    source = kept.nonzero()[0]
    rows, scores, entry = rows[source], scores[source], which[source]

    def approach(low: int, high: int) -> None:
        approach_rows(low, high, rows, asked.query, entry, wanted, judges, bounds, scores)

    in_threads(approach, len(rows), least=THREADED, most=SLICE)
    return Refined(rows, source, scores[:, 0], scores[:, 1], scores[:, 2], scores[:, 3] > 0)
