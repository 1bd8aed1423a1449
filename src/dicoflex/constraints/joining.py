"""Sets of constraints joined, and single constraints taken from them."""

from __future__ import annotations

__all__ = ["combine", "merge", "only", "without"]

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dicoflex.constraints.kinds import KINDS, Kind, OneConstraint
from dicoflex.constraints.reading import within
from dicoflex.errors import ConstraintError, named

if TYPE_CHECKING:
    from dicoflex.constraints.statement import Constraints


def merge(one: Constraints, two: Constraints) -> Constraints:
    """The set that demands what either demands; see `Constraints.merge`."""
    return type(one)(
        **{field: _joined(kind, getattr(one, field), getattr(two, field)) for field, kind in KINDS.items()}
    )


def _joined(kind: Kind, one: Any, two: Any) -> Any:
    if not isinstance(one, dict):
        return kind.join(one, two)
    both = [name for name in one if name in two]
    return one | two | {n: within(n, kind.field, lambda pair: kind.join(*pair), (one[n], two[n])) for n in both}


def combine(preset: Constraints, call: Constraints) -> Constraints:
    """What binds a call: the schema's `preset`, less what `call.override` names, and the call's own constraints.

    >>> from dicoflex.constraints import Constraints
    >>> preset = Constraints(increase=["age"], frozen=["sex"])
    >>> combine(preset, Constraints(max_changes=2, override=["increase:age"])).describe()
    [('frozen', 'sex', 'sex may not change'), ('max_changes', None, 'at most 2 features may change')]
    """
    kept = preset.without(call.override)
    try:
        return kept.merge(call).model_copy(update={"override": ()})
    except ConstraintError as error:
        raise ConstraintError(f"{error} (the schema's constraints bind too; relax one with override=[...])") from None


def only(given: Constraints, one: OneConstraint) -> Constraints:
    """One of a set's constraints alone, with the weights and the manner in which it is meant there.

    >>> from dicoflex.constraints import Constraints
    >>> wish = Constraints(increase=["age", "hours"], max_changes=2)
    >>> [only(wish, one).model_dump() for one in wish.one_by_one()]
    [{'increase': ['age']}, {'increase': ['hours']}, {'max_changes': 2}]
    """
    meant = {field: getattr(given, field) for field, kind in KINDS.items() if kind.role != "limit"}
    return type(given)(**meant | {one.kind: KINDS[one.kind].whole([one])})


def without(given: Constraints, entries: Iterable[str]) -> Constraints:
    """The set less the single constraints that `entries` name; see `Constraints.without`."""
    gone = {one.entry for entry in entries for one in _named_by(given, entry)}
    left = {field: getattr(given, field) for field in KINDS}
    for field, kind in KINDS.items():
        ones = kind.one_by_one(left[field])
        if any(one.entry in gone for one in ones):
            left[field] = kind.whole([one for one in ones if one.entry not in gone])
    # A budget without costs can't be exceeded.
    return type(given)(**left | ({} if left["cost"] else {"max_cost": None}))


def _named_by(given: Constraints, entry: str) -> list[OneConstraint]:
    ones = given.one_by_one()
    tests: list[Callable[[OneConstraint], bool]] = [
        lambda one: one.kind == entry,
        lambda one: one.entry == entry,
        lambda one: one.feature is not None and str(one.feature) == entry,
    ]
    for test in tests:
        if found := [one for one in ones if test(one)]:
            return found
    longest = [one.entry for one in ones if one.entry != one.kind]
    known = dict.fromkeys([*longest, *(one.kind for one in ones), *(str(f) for _, f in given.features())])
    none = f"override {entry!r} names no constraint of the schema; it has none"
    raise ConstraintError(f"override: {named('constraint of the schema', entry, known)}" if known else none)
