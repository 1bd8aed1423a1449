"""How much each single constraint rules out: the share of a query's unbound draws that break it."""

from __future__ import annotations

__all__ = ["TRIED", "broken_shares"]

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.query import Query
from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS, OneConstraint
from dicoflex.limits.limits import Limits
from dicoflex.limits.plan import Plan
from dicoflex.model import Model
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.schema import Schema
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
TRIED = 64
"""How many unbound draws of a query the constraints are tried on."""
MOST_KEPT = 64
Kept = dict[tuple[int, str], tuple[Constraints, OneConstraint, Plan]]
_kept: WeakKeyDictionary[Model, Kept] = WeakKeyDictionary()


def broken_shares(
    model: Model,
    query: Query,
    which: Ints,
    ones: Sequence[OneConstraint],
    *,
    held: Bools | None = None,
    rows: Values | None = None,
) -> list[Floats]:
    """For each constraint, the share of the unbound draws of each query in `which` that break it.

    held: the features that the draws leave alone; None are all that are frozen, of which nothing can be told then.
    rows: the unbound draws, where they are at hand.
    """
    bound = query.frozen if held is None else held
    drawn = _unbound(model, query, which, bound) if rows is None else rows
    own, entry = query.context.query[which], np.repeat(np.arange(len(which)), TRIED)
    frozen = np.tile(bound, (len(own), 1))
    shares = []
    for one in ones:
        if one.kind == "frozen":
            j = model.schema.position(one.feature)
            broken = differ(drawn[:, j], own[entry, j])
        elif one.feature is not None:
            j = model.schema.position(one.feature)
            plan, mine = _plan_of(model, query.request.constraints, one), own[:, [j]]
            broken = Limits.of(plan, mine, np.zeros(mine.shape, dtype=bool)).broken(drawn[:, [j]], mine[entry], entry)
        else:
            limits = Limits.of(_plan_of(model, query.request.constraints, one), own, frozen)
            broken = limits.broken(drawn, own[entry], entry)
        shares.append(broken.reshape(len(which), TRIED).mean(axis=1))
    return shares


def _plan_of(model: Model, bound: Constraints, one: OneConstraint) -> Plan:
    """What one constraint of a set means by itself; the last ones are kept, as the same sets are asked for again."""
    kept = _kept.setdefault(model, {})
    key = id(bound), one.entry + one.text
    found = kept.get(key)
    if found is None or found[0] is not bound or found[1] != one:
        found = kept[key] = bound, one, _planned(model, bound, one)
        for oldest in list(kept)[:-MOST_KEPT]:
            kept.pop(oldest, None)
    return found[2]


def _planned(model: Model, bound: Constraints, one: OneConstraint) -> Plan:
    """The plan of one constraint; of its feature alone where it has one: with no other to look at, this is quick."""
    if one.feature is None:
        return Plan.of(bound.only(one), model.encoding)
    given = Constraints(**{one.kind: KINDS[one.kind].whole([one]), "strict": bound.strict})
    return Plan.of(given, Encoding.unit(Schema.model_construct(features=(model.schema[one.feature],))))


def _unbound(model: Model, query: Query, which: Ints, held: Bools) -> Values:
    """Equally many draws for each query in `which`, that nothing binds but the features in `held`."""
    context = replace(query.context.take(which), frozen=np.tile(held, (len(which), 1)))
    values, _ = model.generator.sample(context, TRIED, query.keys[which], 0)
    return model.encoding.snap(values.reshape(len(which) * TRIED, -1))
