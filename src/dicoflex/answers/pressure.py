"""How much each single constraint rules out: the share of a query's unbound draws that break it."""

from __future__ import annotations

__all__ = ["TRIED", "broken_shares"]

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.query import Query
from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS, OneConstraint
from dicoflex.limits.limits import Limits
from dicoflex.model import Model
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.schema import Schema
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
TRIED = 64
"""How many unbound draws of a query the constraints are tried on."""


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
            broken = _broken_alone(model, query, one, drawn[:, [j]], own[:, [j]], entry)
        else:
            limits = Limits.build(query.request.constraints.only(one), model.encoding, own, frozen)
            broken = limits.broken(drawn, own[entry], entry)
        shares.append(broken.reshape(len(which), TRIED).mean(axis=1))
    return shares


def _broken_alone(
    model: Model, query: Query, one: OneConstraint, drawn: Values, own: Values, entry: Ints
) -> Bools:  # fmt: skip
    """Which draws of one feature break a constraint on it: with no other feature to look at, this is quick."""
    alone = KINDS[one.kind].whole([one])
    given = Constraints(**{one.kind: alone, "strict": query.request.constraints.strict})
    encoding = Encoding.unit(Schema.model_construct(features=(model.schema[one.feature],)))
    limits = Limits.build(given, encoding, own, np.zeros(own.shape, dtype=bool))
    return limits.broken(drawn, own[entry], entry)


def _unbound(model: Model, query: Query, which: Ints, held: Bools) -> Values:
    """Equally many draws for each query in `which`, that nothing binds but the features in `held`."""
    context = replace(query.context.take(which), frozen=np.tile(held, (len(which), 1)))
    values, _ = model.generator.sample(context, TRIED, query.keys[which], 0)
    return model.encoding.snap(values.reshape(len(which) * TRIED, -1))
