"""Refinement: each candidate is made minimal, and brought as near to its query as the judges allow.

A candidate that does not stand is first mended. Then changes are undone, one by one, while the row stands without
them; then each changed number, and each level of those that have an order, moves towards the query. It is
deterministic: the same draws give the same rows. The work is the core's: `core/refine.cpp`.
"""

from __future__ import annotations

__all__ = ["Asked", "Refined", "Wanted", "judge", "refine"]

from dataclasses import dataclass
from functools import partial

import numpy as np

from dicoflex import _core
from dicoflex._types import Bools, Floats, Ints
from dicoflex.limits.limits import Limits
from dicoflex.refinement.bounds import bounds_of
from dicoflex.refinement.judges import Judges
from dicoflex.runtime.columns import Columns
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Encoding, Values

SLICE, THREADED = 16, 256
LESS, FOREMOST, NEARER = _core.LESS, _core.FOREMOST, _core.NEARER


@dataclass(frozen=True)
class Wanted(Columns):
    """What a refined row must be, per query: its class, the surrogate's probability of it, and the two floors.

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
    """Rows that stand: which draw each comes from, what the surrogate says of it, and how it compares with real rows.

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
    bounds = bounds_of(encoding, asked.frozen, asked.limits)
    return _pass(judges, draws, which, asked, bounds, most)


def judge(
    encoding: Encoding, judges: Judges, rows: Values, which: Ints, asked: Asked, feature: Ints, origin: Floats
) -> Refined:
    """Those of the rows, of the queries `which`, that stand as they are, once what depends on others has followed.

    feature: of each row the number that is set to where it may stop, counted from `origin`; -1 for none.
    """
    rows, wanted = rows.copy(order="C"), asked.wanted.matrix()
    bounds, n = bounds_of(encoding, asked.frozen, asked.limits), len(rows)
    stands, scores = np.zeros(n, dtype=bool), np.zeros((n, 4))

    def work(low: int, high: int) -> None:
        _core.judge_rows(
            judges.core, bounds, rows=rows, query=asked.query, which=which, wanted=wanted, feature=feature,
            origin=origin, low=low, high=high, stands=stands, scores=scores,
        )  # fmt: skip

    in_threads(work, n, least=THREADED, most=SLICE)
    return _those(rows, stands, scores)


def _those(rows: Values, kept: Bools, scores: Floats) -> Refined:
    """The rows that are kept, with what is known of them."""
    source = kept.nonzero()[0]
    scores = scores[source]
    return Refined(rows[source], source, scores[:, 0], scores[:, 1], scores[:, 2], scores[:, 3] > 0)


def _pass(
    judges: Judges, draws: Values, which: Ints, asked: Asked, bounds: _core.Bounds, most: int | None
) -> Refined:  # fmt: skip
    """The rows that stand: first less what they don't need, then, the foremost of each query, as near as possible."""
    rows, wanted = draws.copy(order="C"), asked.wanted.matrix()
    n, limit = len(rows), len(rows) if most is None else most
    stands, kept, scores = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), np.zeros((n, 4))

    def work(steps: int, low: int, high: int) -> None:
        _core.refine_rows(
            judges.core, bounds, rows=rows, query=asked.query, which=which, wanted=wanted, turned=asked.turned,
            most=limit, steps=steps, low=low, high=high, stands=stands, kept=kept, scores=scores,
        )  # fmt: skip

    # Few rows are done with at once; of many all have to be made less before the foremost of a query are known.
    for steps in (LESS | FOREMOST | NEARER,) if n < THREADED else (LESS, FOREMOST, NEARER):
        in_threads(partial(work, steps), n, least=n + 1 if steps == FOREMOST else THREADED, most=SLICE)
    return _those(rows, kept, scores)
