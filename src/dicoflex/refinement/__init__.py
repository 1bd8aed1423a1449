"""Refinement: each candidate is made minimal, and brought as near to its query as the judges allow.

A candidate that does not stand is first mended. Then changes are undone, one by one, while the row stands without
them; then each changed number, and each level of those that have an order, moves towards the query. It is
deterministic: the same draws give the same rows. The work is the core's: `core/refine.cpp`.
"""

from __future__ import annotations

__all__ = ["Refined", "RefinementTask", "Wanted", "judge", "refine"]

from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from dicoflex import _core
from dicoflex._types import Bools, Floats, Ints
from dicoflex.limits.limits import Limits
from dicoflex.limits.programs import Consequences, write
from dicoflex.refinement.judges import Judges
from dicoflex.runtime.columns import Columns
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Encoding, Values

PER_QUERY = ("low", "high", "states", "may_keep")


def bounds_of(encoding: Encoding, frozen: Bools, limits: Limits | None) -> _core.Bounds:
    """The limits of some queries, or what the schema allows where there are none.

    frozen: what else no answer changes (n, d).
    """
    if limits is None:
        return _of_schema(encoding, frozen)
    d = len(encoding.schema)
    point, point_at, has_points = limits.plan.listed
    banned, banned_at = limits.plan.ruled_out
    return _core.Bounds(
        frozen=(limits.frozen | frozen) & ~limits.follows,
        low=limits.low,
        high=limits.high,
        states=limits.states,
        may_keep=limits.may_keep,
        offset=limits.offset,
        has_points=has_points,
        point_at=point_at,
        point=point,
        banned_at=banned_at,
        banned=banned,
        fixed=limits.fixed,
        unit=limits.unit,
        most_changes=int(limits.most_changes),
        most_cost=float(limits.most_cost),
        uncounted=limits.uncounted,
        follows=limits.follows,
        rules=limits.rules.checked(d),
        consequences=limits.consequences.checked(d),
    )


def _of_schema(encoding: Encoding, frozen: Bools) -> _core.Bounds:
    """What the schema allows."""
    one, n = _free(encoding), len(frozen)
    if n > 1:
        one = one | {name: np.repeat(one[name], n, axis=0) for name in PER_QUERY}
    return _core.Bounds(frozen=frozen, **one)


_known: dict[int, tuple[ref[Encoding], dict[str, Any]]] = {}


def _free(encoding: Encoding) -> dict[str, Any]:
    """What the schema allows one query, worked out once for an encoding, as long as that lives."""
    key = id(encoding)
    known = _known.get(key)
    if known is None or known[0]() is not encoding:
        known = _known[key] = ref(encoding, lambda _: _known.pop(key, None)), _made(encoding)
    return known[1]


def _made(encoding: Encoding) -> dict[str, Any]:
    features, d = encoding.schema.features, len(encoding.schema)
    sizes = [int(f.missing) if f.is_number else f.n_states for f in features]
    least = [f.minimum if f.is_number and f.minimum is not None else -np.inf for f in features]
    most = [f.maximum if f.is_number and f.maximum is not None else np.inf for f in features]
    return {
        "low": np.array([least]),
        "high": np.array([most]),
        "states": np.ones((1, sum(sizes)), dtype=bool),
        "may_keep": np.ones((1, d), dtype=bool),
        "offset": np.cumsum([0, *sizes]),
        "has_points": np.zeros(d, dtype=bool),
        "point_at": np.zeros(d + 1, dtype=np.int64),
        "point": np.zeros(0),
        "banned_at": np.zeros(d + 1, dtype=np.int64),
        "banned": np.zeros(0),
        "fixed": np.zeros(d),
        "unit": np.zeros(d),
        "most_changes": d,
        "most_cost": np.inf,
        "uncounted": np.zeros(d, dtype=bool),
        "follows": np.zeros(d, dtype=bool),
        "rules": write([], encoding.schema).checked(d),
        "consequences": Consequences.of({}, encoding.schema).checked(d),
    }


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
class RefinementTask:
    """Queries and what their answers must be: values (n, d), wishes, what is frozen (n, d), and other limits.

    turned: whether the strongest changes are undone first, so that others come to light.
    """

    query: Values
    wanted: Wanted
    frozen: Bools
    limits: Limits | None
    turned: bool = False


def refine(
    encoding: Encoding, judges: Judges, draws: Values, which: Ints, asked: RefinementTask, *, most: int | None = None
) -> Refined:
    """The draws of the queries `which`, refined; of a query at most `most` rows, of different ways first."""
    bounds = bounds_of(encoding, asked.frozen, asked.limits)
    return _pass(judges, draws, which, asked, bounds, most)


def judge(
    encoding: Encoding, judges: Judges, rows: Values, which: Ints, asked: RefinementTask, feature: Ints, origin: Floats
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
    judges: Judges, draws: Values, which: Ints, asked: RefinementTask, bounds: _core.Bounds, most: int | None
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
