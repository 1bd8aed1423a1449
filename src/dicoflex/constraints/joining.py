"""Sets of constraints joined, and taken from one another."""

from __future__ import annotations

__all__ = ["combine", "merge", "without"]

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dicoflex.constraints.parts import PerUnit
from dicoflex.constraints.reading import Name, Value, within
from dicoflex.constraints.sentences import Single
from dicoflex.constraints.words import cost_text, plain
from dicoflex.errors import ConstraintError, named

if TYPE_CHECKING:
    from dicoflex.constraints.statement import Constraints

UNIONS = ("frozen", "increase", "decrease", "override")


def merge(one: Constraints, two: Constraints) -> Constraints:
    """The set that demands what either demands; see `Constraints.merge`."""
    return type(one)(
        **{kind: _union(getattr(one, kind), getattr(two, kind)) for kind in UNIONS},
        ranges=_joined(one.ranges, two.ranges, "ranges", lambda a, b: a + b),  # reading intersects them
        allowed=_joined(one.allowed, two.allowed, "allowed", _common),
        forbidden=_joined(one.forbidden, two.forbidden, "forbidden", _union),
        transitions=_joined(one.transitions, two.transitions, "transitions", _common_moves),
        steps=_joined(one.steps, two.steps, "steps", _same_step),
        cost=_joined(one.cost, two.cost, "cost", _greater_cost),
        rules=_all_rules(one, two),
        max_changes=_smaller(one.max_changes, two.max_changes),
        max_cost=_smaller(one.max_cost, two.max_cost),
        strict=one.strict or two.strict,
    )


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
        raise ConstraintError(f"{error} (the schema's constraints bind too; loosen one with override=[...])") from None


# -- taking away ---------------------------------------------------------------------------------------------------


def without(given: Constraints, entries: Iterable[str]) -> Constraints:
    """The set less the single constraints that `entries` name; see `Constraints.without`."""
    dropped = [single for entry in entries for single in _named_by(given, entry)]
    kept: dict[str, Any] = {}
    for name in type(given).model_fields:
        value = getattr(given, name)
        gone = {s.feature if name != "rules" else s.label.removeprefix("rule ") for s in dropped if s.kind == name}
        if isinstance(value, dict):
            value = {key: item for key, item in value.items() if key not in gone}
        elif isinstance(value, tuple):
            value = tuple(item for item in value if item not in gone)
        elif gone:
            value = type(given).model_fields[name].default
        kept[name] = value
    # A budget without costs can't be exceeded.
    return type(given)(**kept | ({} if kept["cost"] else {"max_cost": None}))


def _named_by(given: Constraints, entry: str) -> list[Single]:
    singles = given.singles()
    kind, _, rest = entry.partition(":")
    tests: list[Callable[[Single], bool]] = [
        lambda s: s.kind == entry,
        lambda s: s.kind == kind and rest in (str(s.feature), s.label.removeprefix("rule ")),
        lambda s: s.feature is not None and str(s.feature) == entry,
    ]
    for test in tests:
        if found := [single for single in singles if test(single)]:
            return found
    named_ones = [f"{s.kind}:{s.feature}" for s in singles if s.feature is not None]
    named_ones += [f"rules:{text}" for text in given.rules]
    known = dict.fromkeys([*named_ones, *(s.kind for s in singles), *(str(f) for _, f in given.features())])
    none = f"override {entry!r} names no constraint of the schema; it has none"
    raise ConstraintError(f"override: {named('constraint of the schema', entry, known)}" if known else none)


# -- two of one kind -----------------------------------------------------------------------------------------------


def _joined(one: dict[Name, Any], two: dict[Name, Any], field: str, join: Callable[[Any, Any], Any]) -> dict[Name, Any]:
    """Both mappings; where both name a feature, what `join` makes of the two items."""
    both = [name for name in one if name in two]
    return one | two | {n: within(n, field, lambda pair: join(*pair), (one[n], two[n])) for n in both}


def _union(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    return one + tuple(value for value in two if value not in one)


def _all_rules(one: Constraints, two: Constraints) -> list[str]:
    seen: dict[str, str] = {}
    for rule in one.parsed_rules + two.parsed_rules:
        seen.setdefault(str(rule), rule.text)
    return list(seen.values())


def _common(one: tuple[Value, ...], two: tuple[Value, ...]) -> tuple[Value, ...]:
    common = tuple(value for value in one if value in two)
    if not common:
        raise ConstraintError(
            f"{list(one)} and {list(two)} have no value in common; to keep the feature as it is, put it in frozen"
        )
    return common


def _common_moves(
    one: dict[Value, tuple[Value, ...]], two: dict[Value, tuple[Value, ...]]
) -> dict[Value, tuple[Value, ...]]:
    """Moves that both permit; a value with none left may only stay."""
    both = {key: tuple(value for value in one[key] if value in two[key]) for key in one if key in two}
    return one | two | both


def _same_step(one: float, two: float) -> float:
    if one != two:
        raise ConstraintError(f"the steps {plain(one)} and {plain(two)} differ; give one of them")
    return one


def _greater_cost(one: float | PerUnit, two: float | PerUnit) -> float | PerUnit:
    if isinstance(one, PerUnit) and isinstance(two, PerUnit):
        return one if one.weight >= two.weight else two
    if isinstance(one, PerUnit) or isinstance(two, PerUnit):
        raise ConstraintError(
            f"the costs {cost_text(one)} and {cost_text(two)} can't be compared; give both as a number or both per unit"
        )
    return max(one, two)


def _smaller(one: Any, two: Any) -> Any:
    return min((value for value in (one, two) if value is not None), default=None)
