"""What limits allow a row that is refined to be, as the core reads it."""

from __future__ import annotations

__all__ = ["bounds_of"]

from typing import Any
from weakref import ref

import numpy as np

from dicoflex import _core
from dicoflex._types import Bools
from dicoflex.limits.limits import Limits
from dicoflex.limits.programs import Consequences, write
from dicoflex.table.encoding import Encoding

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
