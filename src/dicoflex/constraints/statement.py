"""What an answer may look like: `Constraints`, stated at the moment of asking, in Python or as JSON.

Constraints know no table: what contradicts itself is refused here, what does not fit a table by
`Schema.check_constraints`.

Meaning. A feature is *changed* where its value differs from the query's; missing equals missing. `frozen` features
don't change. `ranges`, `allowed` and `forbidden` bind changed values, and with `strict` all values. `increase` and
`decrease` let a feature change only to a greater (smaller) value. A feature with a range, a direction or a step
does not become missing; where the query is missing, a relative range, a difference or a direction keeps it so.
`pinned` features have their value in every answer, changed or not. `transitions` say where a listed value may go;
other values are free. `steps` put changed numbers on multiples. `rules` hold on every answer, and may speak of the
query. `consequences` are features that follow from others instead of being chosen: their value is worked out, and
counts neither as a change nor as cost. A listed value stands for every level that equals it: 1 for 1, 1.0 and True.
"""

from __future__ import annotations

__all__ = ["Constraints", "combine", "has_multiple"]

import html
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeGuard

from pydantic import BaseModel, BeforeValidator, ValidationInfo, model_serializer, model_validator

from dicoflex.constraints import parts, reading
from dicoflex.constraints.kinds import KINDS, Kind, OneConstraint
from dicoflex.constraints.parts import PerUnit, Range, Stated
from dicoflex.constraints.reading import Name, Value, within
from dicoflex.constraints.rules.parser import parse, parse_value
from dicoflex.constraints.rules.tree import Changed, Expression, Rule, walk
from dicoflex.constraints.rules.tree import Name as Named
from dicoflex.constraints.words import plain
from dicoflex.errors import ConstraintError, named

STEP_SLACK = 1e-9


def _by(read: Callable[[Any, str], Any]) -> BeforeValidator:
    """A field that `read` reads from what is given and the field's name."""

    def validate(given: Any, info: ValidationInfo) -> Any:
        return read(given, str(info.field_name))

    return BeforeValidator(validate)


class Constraints(Stated):
    """What an answer may look like.

    frozen: features that may not change.
    ranges: feature to limits: (20, 50), `relative(-0.1, 0.25)`, `delta(0, 5)`, or a list of such.
    increase, decrease: features that may change only upwards (downwards); ordinals by their order.
    allowed, forbidden: feature to the values that it may (not) change to; None stands for missing.
    pinned: feature to the value that it has in every answer; None stands for missing.
    transitions: feature to, for some of its values, the values it may go to from there.
    max_changes: how many features may differ from the query.
    rules: conditions that every answer meets; see `dicoflex.constraints.rules`.
    consequences: feature to what its value follows from: {"age": "was.age + (residence - was.residence)"}.
    steps: feature to the step whose multiples a changed number may take.
    cost: feature to what its change costs, a number or `per_unit(0.5)`; other features cost nothing.
    max_cost: how much all changes together may cost.
    strict: ranges, allowed and forbidden also bind values that don't change.
    override: constraints of the schema that this set relaxes: "age", "increase:age", "max_changes", "rules".

    >>> wish = Constraints(frozen=["age"], ranges={"hours": (20, 50)}, rules=["rent <= income"])
    >>> for line in wish.describe():
    ...     print(line)
    ('frozen', 'age', 'age may not change')
    ('ranges', 'hours', 'hours must be 20 to 50')
    ('rules', None, 'rent <= income must hold')
    >>> Constraints.from_json(wish.to_json()) == wish
    True
    >>> wish
    Constraints(frozen=['age'], ranges={'hours': (20, 50)}, rules=['rent <= income'])
    >>> print(wish)
    age may not change
    hours must be 20 to 50
    rent <= income must hold
    """

    FIELD = "constraint"

    frozen: Annotated[tuple[Name, ...], _by(reading.features)] = ()
    ranges: Annotated[dict[Name, tuple[Range, ...]], _by(parts.ranges)] = {}
    increase: Annotated[tuple[Name, ...], _by(reading.features)] = ()
    decrease: Annotated[tuple[Name, ...], _by(reading.features)] = ()
    allowed: Annotated[dict[Name, tuple[Value, ...]], _by(reading.lists)] = {}
    forbidden: Annotated[dict[Name, tuple[Value, ...]], _by(reading.lists)] = {}
    pinned: Annotated[dict[Name, Value], _by(reading.pins)] = {}
    transitions: Annotated[dict[Name, dict[Value, tuple[Value, ...]]], _by(reading.transitions)] = {}
    max_changes: Annotated[int | None, _by(reading.whole_number)] = None
    rules: Annotated[tuple[str, ...], _by(reading.rules)] = ()
    consequences: Annotated[dict[Name, str], _by(reading.consequences)] = {}
    steps: Annotated[dict[Name, float], _by(reading.steps)] = {}
    cost: Annotated[dict[Name, float | PerUnit], _by(parts.costs)] = {}
    max_cost: Annotated[float | None, _by(reading.amount)] = None
    strict: bool = False
    override: Annotated[tuple[str, ...], _by(reading.entries)] = ()

    def __init__(self, /, **fields: Any) -> None:  # said here, so that type checkers take lists for tuples
        super().__init__(**fields)

    # -- what contradicts itself ---------------------------------------------------------------------------------

    @model_validator(mode="after")
    def _consistent(self) -> Constraints:
        falling = set(self.decrease)
        both = [name for name in self.increase if name in falling]
        if both:
            raise ConstraintError(
                f"increase and decrease both name {both[0]!r}, so that it could not change; put it in frozen instead"
            )
        for name, values in self.allowed.items():
            _check_lists(name, values, self.forbidden.get(name, ()), self.steps.get(name))
        for name, ranges in self.ranges.items():
            for limits in ranges:
                self._check_range(name, limits)
        self._check_consequences()
        if self.max_cost is not None and not self.cost:
            raise ConstraintError(
                f"max_cost is {plain(self.max_cost)} and cost is empty; say what changes cost, cost={{'hours': 1}}"
            )
        return self

    def _check_consequences(self) -> None:
        for name in self.consequences:
            if name in self.frozen or name in self.pinned:
                held = "frozen" if name in self.frozen else "pinned"
                raise ConstraintError(f"consequences {name!r}: it is {held} too; leave it out of one of them")
            if name in self.cost:
                raise ConstraintError(
                    f"cost {name!r}: it follows from others and costs nothing of its own; leave it out"
                )
        if self.consequences:
            _ = self.parsed_consequences

    def _check_range(self, name: Name, limits: Range) -> None:
        """Refuse a range that leaves a feature's direction, step or allowed values nothing to change to."""
        where = f"ranges {name!r}: {limits.text}"
        if limits.kind != "absolute":
            if name in self.increase and limits.high is not None and limits.high <= 0:
                raise ConstraintError(f"{where} is never up, and increase names {name!r}; raise the high limit above 0")
            if name in self.decrease and limits.low is not None and limits.low >= 0:
                raise ConstraintError(f"{where} is never down, and decrease names {name!r}; put the low limit below 0")
            return
        step = self.steps.get(name)
        if step is not None and not has_multiple(limits.low, limits.high, step):
            raise ConstraintError(
                f"{where} holds no multiple of the step {plain(step)}; widen the range or choose a smaller step"
            )
        values = self.allowed.get(name, ())
        if values and not any(_is_number(value) and limits.holds(value) for value in values):
            raise ConstraintError(
                f"{where} holds none of the allowed values {list(values)}; widen the range or allow others"
            )

    # -- pinning -------------------------------------------------------------------------------------------------

    @classmethod
    def pin(cls, values: Mapping[Name, Value]) -> Constraints:
        """Constraints by which every answer has these values: numbers, levels, and None for missing.

        >>> wish = Constraints(max_changes=2).merge(Constraints.pin({"hours": 45, "job": None}))
        >>> [text for _, _, text in wish.describe()]
        ['hours must be 45', 'job must be missing', 'at most 2 features may change']
        """
        return cls(pinned=values)

    # -- reading and writing -------------------------------------------------------------------------------------

    @classmethod
    def from_json(cls, text: str | bytes) -> Constraints:
        """Read constraints from JSON text; a `ConstraintError` names the field that is wrong."""
        return cls(**reading.json_object(text))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Constraints:
        """Read constraints from a JSON file; a `ConstraintError` names the file and the field."""
        try:
            return cls.from_json(Path(path).read_bytes())
        except OSError as error:
            raise ConstraintError(f"{path} can't be read: {error.strerror or error}; give a JSON file") from None
        except ConstraintError as error:
            raise ConstraintError(f"{path}: {error}") from None

    def to_json(self) -> str:
        """The constraints as JSON text, without what is not set; `from_json` reads it back unchanged."""
        return json.dumps(self.model_dump(), indent=2, ensure_ascii=False, allow_nan=False)

    @model_serializer
    def _dump(self) -> dict[str, Any]:
        """Plain JSON values of what is set; JSON has text keys only, so other keys make a mapping a list of pairs."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        given["ranges"] = {name: found[0] if len(found) == 1 else found for name, found in self.ranges.items()}
        return {name: _jsonable(value) for name, value in given.items() if value not in (None, False, (), {})}

    def __hash__(self) -> int:
        return hash(self.to_json())

    # -- views ---------------------------------------------------------------------------------------------------

    @cached_property
    def parsed_rules(self) -> tuple[Rule, ...]:
        """The rules as trees, in the order of `rules`."""
        return tuple(parse(text) for text in self.rules)

    @cached_property
    def parsed_consequences(self) -> dict[Name, Expression]:
        """What features follow from, as trees, in an order in which they can be worked out."""
        made = {name: parse_value(text) for name, text in self.consequences.items()}
        return {name: made[name] for name in _in_turn({name: _now(one, made) for name, one in made.items()})}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is constrained; `strict` and `override` alone constrain nothing."""
        return not any(kind.shape.apart(getattr(self, kind.field)) for kind in KINDS.values() if kind.role != "manner")

    def features(self) -> list[tuple[str, Name]]:
        """Every feature that a field names, as (field, feature), in the order of the fields; rules are not read."""
        kinds = [KINDS[field] for field in type(self).model_fields if KINDS[field].names_features]
        return [(kind.field, name) for kind in kinds for name, _ in kind.shape.apart(getattr(self, kind.field))]

    def one_by_one(self) -> list[OneConstraint]:
        """The set taken apart, in the order of the fields.

        >>> one, = Constraints(ranges={"hours": (20, 50)}).one_by_one()
        >>> one.feature, one.args, one.label
        ('hours', (Range(low=20.0, high=50.0, kind='absolute'),), 'range hours 20 to 50')
        """
        return [one for field in type(self).model_fields for one in KINDS[field].one_by_one(getattr(self, field))]

    def describe(self) -> list[tuple[str, Any, str]]:
        """Every single constraint in plain words: (field, feature or None, sentence)."""
        return [(one.kind, one.feature, one.text) for one in self.one_by_one()]

    def __repr__(self) -> str:
        stated = [(name, getattr(self, name), field.default) for name, field in type(self).model_fields.items()]
        listed = ", ".join(f"{name}={_code(value)}" for name, value, default in stated if value != default)
        return f"{type(self).__name__}({listed})"

    def __str__(self) -> str:
        return "\n".join(text for _, _, text in self.describe()) or "no constraints"

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(text)}</li>" for _, _, text in self.describe())
        return f"<ul>{items}</ul>" if items else "<p>no constraints</p>"

    # -- joining -------------------------------------------------------------------------------------------------

    def merge(self, other: Constraints) -> Constraints:
        """The set that demands what either demands; a `ConstraintError` where the two contradict each other.

        Ranges of one kind are intersected and others kept side by side; allowed values and transitions are
        intersected, budgets take the smaller number, costs the greater.

        >>> one = Constraints(ranges={"age": (20, 60)}, max_changes=4)
        >>> one.merge(Constraints(ranges={"age": (30, None)}, max_changes=2)).model_dump()
        {'ranges': {'age': [30.0, 60.0]}, 'max_changes': 2}
        """
        return merge(self, other)

    def without(self, entries: Iterable[str]) -> Constraints:
        """The set less the single constraints that `entries` name; an entry that names none is a `ConstraintError`.

        An entry is a field ("max_changes", "rules"), a field and a feature ("increase:age", "rules:a <= b"), or a
        feature, which stands for all constraints on it.

        >>> Constraints(increase=["age"], frozen=["sex"]).without(["age"]).describe()
        [('frozen', 'sex', 'sex may not change')]
        """
        return without(self, entries)

    def only(self, one: OneConstraint) -> Constraints:
        """One of the set's constraints alone, with the weights and the manner in which it is meant here."""
        return only(self, one)


def _code(value: Any) -> str:
    """A field's value as a caller would write it."""
    if isinstance(value, Range):
        words = {"absolute": "", "relative": "relative", "difference": "delta"}
        return f"{words[value.kind]}({_code(value.low)}, {_code(value.high)})"
    if isinstance(value, PerUnit):
        return f"per_unit({_code(value.weight)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {_code(own)}' for name, own in value.items())}}}"
    if isinstance(value, tuple):
        if len(value) == 1 and isinstance(value[0], Range):
            return _code(value[0])
        return f"[{', '.join(map(_code, value))}]"
    return repr(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


def _now(made: Expression, known: Iterable[Name]) -> list[Name]:
    """Those of the known features whose value in the answer an expression asks for."""
    asked = {node.name for node in walk(made.tree) if isinstance(node, Named | Changed)}
    return [name for name in known if str(name) in asked]


def _in_turn(needs: dict[Name, list[Name]]) -> list[Name]:
    """The features, each after those that it needs; a circle is refused, and named."""
    turn: list[Name] = []
    while len(turn) < len(needs):
        ready = [name for name in needs if name not in turn and all(one in turn for one in needs[name])]
        if not ready:
            raise ConstraintError(f"consequences go round in a circle: {_circle(needs, turn)}; break it with was.")
        turn += ready
    return turn


def _circle(needs: dict[Name, list[Name]], done: list[Name]) -> str:
    path = [next(name for name in needs if name not in done)]
    while path.count(path[-1]) == 1:
        path.append(next(one for one in needs[path[-1]] if one not in done))
    return " follows from ".join(map(str, path[path.index(path[-1]) :]))


def has_multiple(low: float | None, high: float | None, step: float) -> bool:
    """Whether a multiple of `step` lies from `low` to `high`, up to rounding; an open end always has one.

    >>> has_multiple(1, 4, 5), has_multiple(0.25, 0.3, 0.1)
    (False, True)
    """
    if low is None or high is None or not math.isfinite(low / step) or not math.isfinite(high / step):
        return True
    return math.ceil(low / step - STEP_SLACK) <= high / step + STEP_SLACK


def _check_lists(name: Name, allowed: tuple[Value, ...], forbidden: tuple[Value, ...], step: float | None) -> None:
    known = set(forbidden)
    both = [value for value in allowed if value in known]
    if both:
        raise ConstraintError(f"{name!r}: the value {both[0]!r} is both allowed and forbidden; drop it from one list")
    if step is not None and not any(_is_number(value) and has_multiple(value, value, step) for value in allowed):
        raise ConstraintError(
            f"allowed {name!r}: {list(allowed)} holds no multiple of the step {plain(step)}; drop the step"
        )


def _is_number(value: Value) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        items = [(key, _jsonable(item)) for key, item in value.items()]
        return dict(items) if all(isinstance(key, str) for key in value) else [list(item) for item in items]
    if isinstance(value, tuple):
        return [_jsonable(item) for item in value]
    return value.model_dump() if isinstance(value, BaseModel) else value


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
