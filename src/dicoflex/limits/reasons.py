"""Why a query has no answer under its limits, or none that leaves the values which training never had, in words."""

from __future__ import annotations

__all__ = ["closed_features", "reasons_of", "with_unseen_reasons"]

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Bools, Floats
from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS
from dicoflex.constraints.parts import PerUnit
from dicoflex.constraints.rules.tree import Was, walk
from dicoflex.constraints.words import shown
from dicoflex.limits import SLACK
from dicoflex.limits.clauses import BELOW, EQUAL, LEVELS, LINEAR, MISSING, UNEQUAL
from dicoflex.table.encoding import Values
from dicoflex.table.unseen import said_of_unseen

if TYPE_CHECKING:
    from dicoflex.limits.limits import Limits

MOST_NAMED = 4
HOLDING = [field for field in Constraints.model_fields if KINDS[field].names_features]


def reasons_of(limits: Limits, query: Values, price: Floats) -> NDArray[np.object_]:
    """For each query the most telling reason why no answer obeys its limits; None where one may.

    price: the least that a change of each feature costs (n, d).
    """
    reasons = np.full(len(query), None, dtype=object)
    for where, why in _cases(limits, query, price):
        for i in np.flatnonzero(where):
            if reasons[i] is None:
                reasons[i] = why(int(i))
    return reasons


def closed_features(limits: Limits, query: Values, frozen: Bools) -> list[tuple[int, str]]:
    """The features of the first query that can't change though they are not among the frozen ones, and why."""
    closed = np.flatnonzero(limits.frozen[0] & ~frozen & limits.may_keep[0])
    return [(int(j), _why_fixed(limits, query, 0, int(j))) for j in closed]


def _cases(limits: Limits, query: Values, price: Floats) -> Iterator[tuple[Bools, Callable[[int], str]]]:
    """What can be wrong: for which queries, and the words for one of them; the most telling first."""
    must = ~limits.may_keep
    stuck = limits.frozen & must
    for j in np.flatnonzero(stuck.any(axis=0)):
        yield stuck[:, j], partial(_why_stuck, limits, query, j=int(j))
    needed = must.sum(axis=1)
    yield (
        needed > limits.most_changes,
        lambda i: (
            f"{_binding(limits)} {needed[i]} features to change "
            f"({_names(limits, must[i])}), and max_changes is {limits.most_changes}; raise it, or {_remedy(limits)}"
        ),
    )
    total = np.where(must, price, 0.0).sum(axis=1)
    yield (
        total > limits.most_cost + SLACK,
        lambda i: (
            f"what {_binding(limits)} to change ({_names(limits, must[i])}) costs at least {total[i]:g}, "
            f"and max_cost is {limits.most_cost:g}; raise it, or {_remedy(limits)}"
        ),
    )
    yield np.asarray((limits.frozen | limits.follows).all(axis=1)), partial(_why_nothing, limits, query)
    for rule, impossible in zip(limits.clauses.rule, _impossible_clauses(limits, query), strict=True):
        yield impossible, partial(_why_no_rule, limits.constraints.rules[rule])


# -- words -------------------------------------------------------------------------------------------------------


def _why_no_rule(text: str, _: int) -> str:
    return (
        f"the rule {text!r} can't hold with what is frozen or limited; free one of its features, or leave the rule out"
    )


def _names(limits: Limits, mask: Bools) -> str:
    return ", ".join(str(limits.encoding.schema.names[j]) for j in np.flatnonzero(mask))


def _binding(limits: Limits) -> str:
    """What requires features to change that may not stay as they are."""
    words = ["strict"] * limits.constraints.strict + ["pinned"] * bool(limits.constraints.pinned)
    return f"{' and '.join(words)} {'require' if len(words) > 1 else 'requires'}"


def _remedy(limits: Limits) -> str:
    return "pin fewer" if limits.constraints.pinned else "leave strict out"


def _why_stuck(limits: Limits, query: Values, i: int, *, j: int) -> str:
    name = limits.encoding.schema.names[j]
    if name in limits.constraints.pinned:
        value = limits.constraints.pinned[name]
        return (
            f"{name} is pinned to {shown(value)}, its value is {_shown(limits, query, i, j)}, and "
            f"{_why_not_pinned(limits, query, i, j)}; pin it to another value, or relax the constraints on {name}"
        )
    return (
        f"{name} is required to change, because strict is set and its value {_shown(limits, query, i, j)} is not one "
        f"that the constraints allow, and {_why_fixed(limits, query, i, j)}; "
        f"leave strict out, or relax the constraints on {name}"
    )


def _why_not_pinned(limits: Limits, query: Values, i: int, j: int) -> str:
    """Why feature j of query i can't take the value that it is pinned to."""
    name = limits.encoding.schema.names[j]
    others = [field for field in HOLDING if field != "pinned" and name in getattr(limits.constraints, field)]
    return f"{' and '.join(others)} rule that out" if others else _why_fixed(limits, query, i, j)


def _why_nothing(limits: Limits, query: Values, i: int) -> str:
    words = [_why_fixed(limits, query, i, j) for j in range(query.shape[1])]
    words.sort(key=lambda text: text.endswith("is frozen"))
    more = [f"and {len(words) - MOST_NAMED} more"] if len(words) > MOST_NAMED else []
    return f"nothing may change: {', '.join(words[:MOST_NAMED] + more)}; relax one of these"


def _why_fixed(limits: Limits, query: Values, i: int, j: int) -> str:
    """Why feature j of query i can't take another value."""
    given, name = limits.constraints, limits.encoding.schema.names[j]
    if name in given.frozen:
        return f"{name} is frozen"
    if limits.follows[j]:
        return f"{name} follows from others"
    for names, word, end in ((given.increase, "increase", "highest"), (given.decrease, "decrease", "lowest")):
        if name in names and _at_end(limits, query, i, j, word):
            return f"{name} may only {word} and already is at its {end} value"
    held = [field for field in HOLDING if name in getattr(given, field)]
    if held:
        return f"{name} has no value besides {_shown(limits, query, i, j)} that {' and '.join(held)} allow"
    return f"{name} is frozen or has no other value"


def _at_end(limits: Limits, query: Values, i: int, j: int, word: str) -> bool:
    feature, own = limits.encoding.schema.features[j], query[i, j]
    if feature.is_number:
        return bool(own >= (feature.maximum or 0.0) if word == "increase" else own <= (feature.minimum or 0.0))
    return bool(own == (len(feature.levels) - 1 if word == "increase" else 0))


def _shown(limits: Limits, query: Values, i: int, j: int) -> str:
    feature, own = limits.encoding.schema.features[j], query[i, j]
    if feature.is_number:
        return "missing" if np.isnan(own) else f"{own:g}"
    return repr(feature.levels[int(own)]) if own < len(feature.levels) else "missing"


# -- rules -------------------------------------------------------------------------------------------------------


def _impossible_clauses(limits: Limits, query: Values) -> Bools:
    """Which clauses can't hold for each query that they bind, whatever is drawn (clauses, n)."""
    impossible = np.zeros((len(limits.clauses), len(query)), dtype=bool)
    if len(limits.clauses) == 0:
        return impossible
    for number in np.unique(limits.clause_set):
        mine = np.flatnonzero(limits.clause_set == number)
        some = limits.take(mine)
        for c in limits.clauses.of_set(int(number)):
            impossible[c, mine] = ~_possible_clause(some, query[mine], c)
    return impossible


def _possible_clause(limits: Limits, query: Values, c: int) -> Bools:
    """For which queries a clause may hold, whatever is drawn."""
    clauses, possible = limits.clauses, np.zeros(len(query), dtype=bool)
    least, most, may_miss = limits.domain(query)
    for literal in range(clauses.start[c], clauses.start[c + 1]):
        if clauses.sort[literal] == LINEAR:
            possible |= _linear_possible(limits, literal, least, most, may_miss)
        else:
            possible |= _other_possible(limits, query, literal, may_miss)
    return possible


def _other_possible(limits: Limits, query: Values, literal: int, may_miss: Bools) -> Bools:
    """For which queries a literal about levels or missing values may come true; an opaque one always may."""
    clauses = limits.clauses
    sort, j = clauses.sort[literal], clauses.feature[literal]
    if sort == LEVELS:
        at = slice(limits.offset[j], limits.offset[j + 1])
        reach = limits.states[:, at] & limits.can_change[:, [j]]
        own = query[:, j].astype(np.int64)
        reach[np.arange(len(own)), own] |= limits.may_keep[:, j] | limits.frozen[:, j]
        return np.asarray((reach & clauses.levels[literal, : reach.shape[1]]).any(axis=1))
    if sort == MISSING:
        return may_miss[:, j] if clauses.if_missing[literal] else ~np.isnan(query[:, j]) | limits.can_change[:, j]
    return np.ones(len(query), dtype=bool)


def _linear_possible(limits: Limits, literal: int, least: Floats, most: Floats, may_miss: Bools) -> Bools:
    """For which queries a linear literal may come true."""
    clauses = limits.clauses
    used = clauses.coefficients[literal] != 0
    weight, least, most = clauses.coefficients[literal, used], least[:, used], most[:, used]
    low = np.where(weight > 0, weight * least, weight * most).sum(axis=1) + clauses.constant[literal]
    high = np.where(weight > 0, weight * most, weight * least).sum(axis=1) + clauses.constant[literal]
    room = SLACK * np.maximum(1.0, np.abs(low))
    fine = _compares(int(clauses.op[literal]), low, high, room)
    # A number that is missing whatever is drawn makes the comparison false.
    fine = np.where(np.isnan(least).any(axis=1), False, fine | ~(np.isfinite(low) & np.isfinite(high)))
    if clauses.if_missing[literal]:
        fine |= may_miss[:, used].any(axis=1)
    return np.asarray(fine)


def _compares(op: int, low: Floats, high: Floats, room: Floats) -> Bools:
    """Where something between `low` and `high` may compare so with 0."""
    zero = (low == 0) & (high == 0)
    if op == UNEQUAL:
        return np.asarray(~zero)
    if op == EQUAL:
        return np.asarray((low <= room) & (high >= -room))
    return np.asarray((low < room) & ~zero if op == BELOW else low <= room)


def with_unseen_reasons(limits: Limits, unseen: Bools, value: Callable[[int, int], Any]) -> Limits:
    """The limits with a reason for each row that can't leave an unseen value, or that is compared with one.

    value: the unseen value of a row and a feature.
    """
    reasons = limits.reasons.copy()
    for i, j in zip(*np.nonzero(unseen), strict=True):
        why = _why(limits, int(i), int(j))
        if why is not None:
            reasons[i] = f"{said_of_unseen(limits.encoding.schema, int(j), value(int(i), int(j)))}, {why}"
    return replace(limits, reasons=reasons)


def _why(limits: Limits, i: int, j: int) -> str | None:
    """What keeps row i from leaving its value of feature j; None where nothing does."""
    given, name = limits.constraints, limits.encoding.schema.names[j]
    if name in given.frozen:
        return f"and may not change; free {name}, or give a value that was seen"
    if name in given.consequences:
        return f"and follows from others; give a value that was seen, or leave the consequence of {name} out"
    told = _compared(given, name)
    if told is not None:
        return f"and {told} measures from it; give a value that was seen, or leave that out"
    if limits.frozen[i, j]:
        held = " and ".join(field for field in HOLDING if name in getattr(given, field))
        return f"and no other value {f'obeys {held}' if held else 'is there to go to'}; give a value that was seen"
    return None


def _compared(given: Constraints, name: Any) -> str | None:
    """What of the constraints speaks of a feature's value before its change."""
    if isinstance(given.cost.get(name), PerUnit):
        return f"the cost of {name} per unit"
    told: list[tuple[str, Any]] = [(f"the rule {rule.text!r}", rule.tree) for rule in given.parsed_rules]
    told += [(f"the consequence of {other}", made.tree) for other, made in given.parsed_consequences.items()]
    return next((text for text, tree in told if _speaks_of(tree, str(name))), None)


def _speaks_of(tree: Any, name: str) -> bool:
    return any(isinstance(one, Was) and one.name == name for one in walk(tree))
