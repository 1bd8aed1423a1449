"""Why a query got fewer answers than were asked for: what its draws failed at, and which constraint rules out most."""

from __future__ import annotations

__all__ = ["SHORTFALL", "TRIED", "broken_shares", "reasons_of", "shortfall", "why_none"]

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.candidates import judges_of, wanted_of
from dicoflex.answers.confirming import CHECK_ROUNDS
from dicoflex.answers.draws import Terms
from dicoflex.answers.query import Query
from dicoflex.answers.search import Search
from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS, OneConstraint
from dicoflex.limits.limits import Limits
from dicoflex.limits.plan import Plan
from dicoflex.model import Model
from dicoflex.refinement import RefinementTask, refine
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.schema import Schema
from dicoflex.values import differ

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
    asked = RefinementTask(query.context.query, wanted, query.context.frozen, query.limits)
    loosely = replace(asked, wanted=replace(wanted, log_density=unbound, weakest=unbound, lower=unbound))
    judges = judges_of(model, query)
    found[refine(model.encoding, judges, rows, entry, loosely).source] = Fate.RARE
    stands = refine(model.encoding, judges, rows, entry, asked)
    found[stands.source] = Fate.USABLE
    if terms.remembered is not None:
        found[stands.source[terms.remembered.hold(model.encoding.snap(stands.values))]] = Fate.COPY
    return found


SHORTFALL = ["row", "wanted", "got", "reason"]
UNBROKEN = ("frozen", "consequences")
"""Kinds that draws can't break: what is frozen is not drawn, and what follows is set afterwards."""


def shortfall(
    model: Model, query: Query, terms: Terms, got: Ints, refused: Ints, searches: Mapping[int, Search]
) -> dict[int, tuple[int, int, str]]:  # fmt: skip
    """Who got fewer than asked for: by position what was wanted, what was got, and why.

    refused: how many rows a check refused. searches: what came of looking for answers.
    """
    n = query.request.n
    short = np.flatnonzero(got < n if query.skipped is None else (got < n) & ~query.skipped)
    if len(short) == 0:
        return {}
    reasons = reasons_of(model, query, terms, short, got, refused)
    for i, one in searches.items():
        if got[i] == 0:
            parts = (one.text, reasons[i]) if one.is_proof else (reasons[i], one.text)
            reasons[i] = "; ".join(parts)
        elif one.all and i in reasons:
            reasons[i] = one.no_more(int(got[i]))
    return {i: (n, int(got[i]), reasons[i]) for i in short.tolist()}


def why_none(model: Model, query: Query, i: int) -> str:
    """Why row `i` got no draw at all."""
    row = f"row {query.label(i)}"
    if query.limits is not None:
        blamed = hardest(model, query, np.array([i])).get(i, "none")
        return f"{row}: no draw obeys the constraints; the hardest: {blamed}"
    novel = query.request.novel
    return (
        f"{row}: every draw equals the row itself{' or a training row' if novel else ''}; "
        f"free a feature{' or leave novel out' if novel else ''}"
    )


def reasons_of(model: Model, query: Query, terms: Terms, short: Ints, got: Ints, refused: Ints) -> dict[int, str]:
    """Why each of the queries `short` got too few: what the constraints, a check, or else its own draws say."""
    reasons = {int(i): str(query.limits.reasons[i]) for i in short if query.limits is not None}
    able = short[query.feasible[short]]
    enough = got + refused >= query.request.n
    for i in able:
        reasons[int(i)] = f"check refused {refused[i]} candidates in {CHECK_ROUNDS} rounds"
    asked = able[(refused[able] == 0) | ~enough[able]]
    if len(asked) == 0:
        return reasons
    shares = fates(model, query, asked, terms)
    blamed = hardest(model, query, asked) if query.limits is not None else {}
    for k, i in enumerate(asked.tolist()):
        found, tried = got[i] + refused[i], refused[i]
        before = f"check refused {tried} of the {found} different rows that were found; " if tried else ""
        reasons[i] = before + _stood_in_the_way(model, query, i, shares[k], got=int(got[i]), blamed=blamed.get(i))
    return reasons


def _stood_in_the_way(
    model: Model, query: Query, i: int, shares: NDArray[np.float64], *, got: int, blamed: str | None
) -> str:
    """What most draws of query `i` failed at, and what would help."""
    # A draw that nothing speaks against is no answer only where it is a repeat.
    worst = Fate(1 + int(np.argmax(shares[1:]))) if shares[1:].max() > shares[Fate.USABLE] else Fate.USABLE
    share = f"{shares[worst]:.0%}"
    if worst == Fate.COPY:
        return f"{share} of the draws are training rows; leave novel out"
    if blamed is not None:
        also = {
            Fate.DOUBTED: f"; of the draws with it, the surrogate doubts {share}",
            Fate.RARE: f"; of the draws with it, {share} are too rare",
        }
        return f"too few different rows obey the constraints and pass; the hardest: {blamed}{also.get(worst, '')}"
    if worst == Fate.RARE:
        return (
            f"{share} of the draws can't be made usual enough: rarer than "
            f"min_plausibility={query.request.min_plausibility:g}; lower it, "
            "or leave it out with coherent=False"
        )
    whys = ["no more different rows were found"] if got or worst != Fate.DOUBTED else []
    whys += [f"the surrogate doubts {share} of the draws"] if worst == Fate.DOUBTED else []
    return f"{', and '.join(whys)}; {_remedies(model, query, i)}"


def _remedies(model: Model, query: Query, i: int) -> str:
    """What the caller could relax; nothing is named that is loose already."""
    target, sure = query.context.target[i], query.context.confidence[i]
    relaxed = {
        "free a feature": bool(query.frozen.any()),
        "raise p": (query.request.p or 0.0) < max(model.exponents),
        "lower confidence": model.has_confidence and sure > model.confidence.lowest[target],
    }
    words = [word for word, helps in relaxed.items() if helps]
    return " or ".join(words) if words else "there may be no more, as nothing is left to relax"


def hardest(model: Model, query: Query, which: Ints) -> dict[int, str]:
    """For each query in `which`, in words, the constraint that most of the draws break which only frozen binds."""
    bound = query.request.constraints
    # What is frozen binds the draws without limits too.
    ones = [one for one in bound.one_by_one() if KINDS[one.kind].role == "limit" and one.kind not in UNBROKEN]
    if not ones:
        return {}
    shares = broken_shares(model, query, which, ones)
    worst = np.argmax(shares, axis=0)
    return {
        int(i): f"{ones[worst[k]].text} ({shares[worst[k]][k]:.0%} of the draws without it break it)"
        for k, i in enumerate(which)
    }
