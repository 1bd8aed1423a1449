"""What became of a query's draws: what stood in the way of those that are no answers."""

from __future__ import annotations

__all__ = ["Fate", "fates"]

from dataclasses import replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.candidates import judges_of, wanted_of
from dicoflex.answers.draws import Terms
from dicoflex.answers.query import Query
from dicoflex.model import Model
from dicoflex.refinement import Asked, refine
from dicoflex.table.encoding import Values

Ints = NDArray[np.int64]
LOOKED_AT = 64
"""How many draws of a query are looked at."""


class Fate(IntEnum):
    """What became of a draw."""

    USABLE = 0
    SAME = 1
    COPY = 2
    DOUBTED = 3
    RARE = 4
    BROKEN = 5


def fates(model: Model, query: Query, which: Ints, terms: Terms) -> NDArray[np.float64]:
    """For each query in `which`, the share of its draws that had each fate (queries, fates).

    A draw that is the query itself is SAME, one that breaks a constraint BROKEN; one that nothing speaks against is
    USABLE, if it is no repeat.
    """
    context, limits = query.context.take(which), None if terms.limits is None else terms.limits.take(which)
    values, _ = model.generator.sample(context, LOOKED_AT, query.keys[which], 0, limits)
    rows, moved = model.encoding.finish(values, context.query, context.frozen)
    entry = np.repeat(which, LOOKED_AT)
    is_refined = query.request.refine and model.coherence is not None
    found = _refined(model, query, rows, entry, terms) if is_refined else _as_drawn(rows, query, entry, terms)
    found[~moved & (found != Fate.COPY)] = Fate.SAME
    if query.limits is not None:
        found[query.limits.broken(rows, query.context.query[entry], entry)] = Fate.BROKEN
    return np.stack([(found == fate).reshape(len(which), -1).mean(axis=1) for fate in Fate], axis=1)


def _as_drawn(rows: Values, query: Query, entry: Ints, terms: Terms) -> Ints:
    found = np.full(len(rows), Fate.USABLE, dtype=np.int64)
    if terms.surrogate is not None:
        said = terms.surrogate.probabilities(rows)[np.arange(len(rows)), query.context.target[entry]]
        found[said < terms.least_probability[entry]] = Fate.DOUBTED
    if terms.remembered is not None:
        found[terms.remembered.hold(rows)] = Fate.COPY
    return found


def _refined(model: Model, query: Query, rows: Values, entry: Ints, terms: Terms) -> Ints:
    """The fates of draws that are refined: doubted is what does not stand even if nothing is too rare."""
    found = np.full(len(rows), Fate.DOUBTED, dtype=np.int64)
    wanted = wanted_of(model, query)
    unbound = np.full(len(query), -np.inf)
    asked = Asked(query.context.query, wanted, query.context.frozen, query.limits)
    loosely = replace(asked, wanted=replace(wanted, log_density=unbound, weakest=unbound, lower=unbound))
    judges = judges_of(model, query)
    found[refine(model.encoding, judges, rows, entry, loosely).source] = Fate.RARE
    stands = refine(model.encoding, judges, rows, entry, asked)
    found[stands.source] = Fate.USABLE
    if terms.remembered is not None:
        found[stands.source[terms.remembered.hold(model.encoding.snap(stands.values))]] = Fate.COPY
    return found
