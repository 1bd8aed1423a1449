"""What limits allow a row that is refined to be, as kernels read it."""

from __future__ import annotations

__all__ = ["Bounds", "allowed", "differ", "place_of"]

from typing import NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from dicoflex.limits.consequences import Consequences
from dicoflex.limits.limits import Limits
from dicoflex.limits.programs import Programs, run, write
from dicoflex.runtime.compiled import compiled, lean
from dicoflex.table.encoding import Encoding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
SLACK = 1e-9


class Bounds(NamedTuple):
    """What constraints allow; the first five have an entry per query."""

    frozen: Bools  # (n, d)
    low: Floats  # (n, d): between which a changed number lies
    high: Floats
    states: Bools  # (n, states): codes that a changed level may have; of a number, whether it may become missing
    may_keep: Bools  # (n, d)
    offset: Ints
    has_points: Bools  # (d,): whether a changed number may take listed values alone
    point_at: Ints
    point: Floats
    banned_at: Ints
    banned: Floats
    fixed: Floats
    unit: Floats
    most_changes: int
    most_cost: float
    uncounted: Bools  # (d,): what counts neither as a change nor as cost
    follows: Bools  # (d,): what refinement does not choose, as it follows from others
    rules: Programs
    consequences: Consequences

    @classmethod
    def of(cls, encoding: Encoding, frozen: Bools, limits: Limits | None) -> Bounds:
        """The limits of some queries, or what the schema allows where there are none."""
        if limits is None:
            return cls._of_schema(encoding, frozen)
        point, point_at, has_points = limits.plan.listed
        banned, banned_at = limits.plan.ruled_out
        return cls(
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
            rules=limits.rules,
            consequences=limits.consequences,
        )

    @classmethod
    def _of_schema(cls, encoding: Encoding, frozen: Bools) -> Bounds:
        """What the schema allows."""
        one, n = _free(encoding), len(frozen)
        if n == 1:
            return one._replace(frozen=frozen)
        return one._replace(
            frozen=frozen,
            low=np.repeat(one.low, n, axis=0),
            high=np.repeat(one.high, n, axis=0),
            states=np.repeat(one.states, n, axis=0),
            may_keep=np.repeat(one.may_keep, n, axis=0),
        )


_known: dict[int, tuple[ref[Encoding], Bounds]] = {}


def _free(encoding: Encoding) -> Bounds:
    """What the schema allows one query, worked out once for an encoding, as long as that lives."""
    key = id(encoding)
    known = _known.get(key)
    if known is None or known[0]() is not encoding:
        known = _known[key] = ref(encoding, lambda _: _known.pop(key, None)), _made(encoding)
    return known[1]


def _made(encoding: Encoding) -> Bounds:
    features, d = encoding.schema.features, len(encoding.schema)
    sizes = [int(f.missing) if f.is_number else f.n_states for f in features]
    least = [f.minimum if f.is_number and f.minimum is not None else -np.inf for f in features]
    most = [f.maximum if f.is_number and f.maximum is not None else np.inf for f in features]
    return Bounds(
        frozen=np.zeros((1, d), dtype=bool),
        low=np.array([least]),
        high=np.array([most]),
        states=np.ones((1, sum(sizes)), dtype=bool),
        may_keep=np.ones((1, d), dtype=bool),
        offset=np.cumsum([0, *sizes]),
        has_points=np.zeros(d, dtype=bool),
        point_at=np.zeros(d + 1, dtype=np.int64),
        point=np.zeros(0),
        banned_at=np.zeros(d + 1, dtype=np.int64),
        banned=np.zeros(0),
        fixed=np.zeros(d),
        unit=np.zeros(d),
        most_changes=d,
        most_cost=np.inf,
        uncounted=np.zeros(d, dtype=bool),
        follows=np.zeros(d, dtype=bool),
        rules=write([], encoding.schema),
        consequences=Consequences.of({}, encoding.schema),
    )


@compiled(inline="always")
def differ(a, b):  # type: ignore[no-untyped-def]
    """Whether two values differ; missing equals missing."""
    return not (a == b or (np.isnan(a) and np.isnan(b)))


@lean()
def place_of(value, values, first, last):  # type: ignore[no-untyped-def]
    """The first place of a sorted stretch whose value is not below this one; `last` where there is none."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@lean()
def _listed(value, values, first, last):  # type: ignore[no-untyped-def]
    """Whether a sorted stretch of values holds one, up to rounding."""
    if first == last:
        return False
    at = place_of(value, values, first, last)
    slack = SLACK * max(1.0, abs(value))
    near = at < last and abs(values[at] - value) <= slack
    return near or (at > first and abs(values[at - 1] - value) <= slack)


@lean()
def allowed(row, query, at, number, bounds, stack):  # type: ignore[no-untyped-def]
    """Whether query `at` may have `row` as an answer; features that follow are taken to do so."""
    changes, cost = 0, 0.0
    for j in range(len(row)):
        x, q = row[j], query[j]
        if not differ(x, q):
            if not bounds.may_keep[at, j]:
                return False
            continue
        if bounds.frozen[at, j]:
            return False
        if not bounds.uncounted[j]:
            changes += 1
            cost += bounds.fixed[j] + bounds.unit[j] * (1.0 if np.isnan(x - q) else abs(x - q))
        first, last = bounds.offset[j], bounds.offset[j + 1]
        if not number[j]:
            if not bounds.states[at, first + np.int64(x)]:
                return False
        elif np.isnan(x):
            if last == first or not bounds.states[at, first]:
                return False
        else:
            if not bounds.low[at, j] <= x <= bounds.high[at, j]:
                return False
            if bounds.has_points[j] and not _listed(x, bounds.point, bounds.point_at[j], bounds.point_at[j + 1]):
                return False
            if _listed(x, bounds.banned, bounds.banned_at[j], bounds.banned_at[j + 1]):
                return False
    if changes == 0 or changes > bounds.most_changes or cost > bounds.most_cost + SLACK:
        return False
    for k in range(len(bounds.rules.at) - 1):  # noqa: SIM110 - numba has no generators that end early
        if run(k, row, query, bounds.rules, stack) == 0.0:
            return False
    return True
