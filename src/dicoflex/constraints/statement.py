"""What an answer may look like: `Constraints`, stated at the moment of asking, in Python or as JSON.

Constraints know no table: what contradicts itself is refused here, what does not fit a table by
`Schema.check_constraints`.

Meaning. A feature is *changed* where its value differs from the query's; missing equals missing. `frozen` features
don't change. `ranges`, `allowed` and `forbidden` bind changed values, and with `strict` all values. `increase` and
`decrease` let a feature change only to a greater (smaller) value. A feature with a range, a direction or a step does
not become missing; where the query is missing, a relative range, a difference or a direction keeps it so.
`transitions` say where a listed value may go; other values are free. `steps` put changed numbers on multiples.
`rules` hold on every answer. A listed value stands for every level that equals it: 1 for 1, 1.0 and True.
"""

from __future__ import annotations

__all__ = ["Constraints", "PerUnit", "Range", "Single", "combine", "delta", "has_multiple", "per_unit", "relative"]

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeGuard

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_serializer, model_validator

from dicoflex.constraints.rules.parser import parse
from dicoflex.constraints.rules.tree import Rule
from dicoflex.errors import ConstraintError, named
from dicoflex.values import is_missing

Name = int | str
Value = bool | int | float | str | None
RangeKind = Literal["absolute", "relative", "difference"]

MAX_NUMBER = 1e300  # sums and products with it stay finite where it matters
STEP_SLACK = 1e-9
JSON_KEYS: dict[str, RangeKind] = {"relative": "relative", "delta": "difference"}


class _Model(BaseModel):
    """A frozen model whose errors are `ConstraintError`s, however it is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            refusal = _refusal(error.errors()[0], type(self))
        else:
            return
        raise refusal


def _refusal(first: Any, kind: type[BaseModel]) -> ConstraintError:
    """The first thing that pydantic refused, as an error of ours."""
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        thing = "constraint" if kind is Constraints else f"field of {kind.__name__}"
        return ConstraintError(named(thing, where, kind.model_fields))
    if first["type"] == "value_error" and isinstance(error := first["ctx"]["error"], ConstraintError):
        return error
    return ConstraintError(f"{where or kind.__name__}: {first['msg']}, got {first['input']!r}")


# -- the parts ---------------------------------------------------------------------------------------------------


class Range(_Model):
    """Limits of a value: absolute, relative to the query's value, or of the difference from it.

    >>> Range(low=20, high=50).text
    '20 to 50'
    """

    low: float | None = None
    high: float | None = None
    kind: RangeKind = "absolute"

    @field_validator("low", "high", mode="before")
    @classmethod
    def _bound(cls, value: Any) -> float | None:
        if value is None or (isinstance(value, float) and math.isinf(value)):
            return None
        return _number(value, "a limit of a range must be a number or None")

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.low is None and self.high is None:
            raise ConstraintError("a range needs a low or a high limit, got neither; leave the range out")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ConstraintError(
                f"the low limit {_plain(self.low)} is above the high limit {_plain(self.high)}; swap them"
            )
        return self

    @model_serializer
    def _dump(self) -> Any:
        limits = [self.low, self.high]
        key = next((key for key, kind in JSON_KEYS.items() if kind == self.kind), None)
        return limits if key is None else {key: limits}

    @property
    def text(self) -> str:
        """The limits in words."""
        show: Callable[[float], str] = {"absolute": _plain, "relative": _percent, "difference": _signed}[self.kind]
        if self.low is None or self.high is None:
            return f"at least {show(self.low)}" if self.low is not None else f"at most {show(self.high or 0.0)}"
        return f"{show(self.low)} to {show(self.high)}"


class PerUnit(_Model):
    """A cost for every unit by which a number changes."""

    weight: float

    @field_validator("weight", mode="before")
    @classmethod
    def _positive(cls, value: Any) -> float:
        return _positive(value, "the cost per unit")

    @model_serializer
    def _dump(self) -> dict[str, float]:
        return {"per_unit": self.weight}


def relative(low: float | None, high: float | None) -> Range:
    """A range in shares of the query's size: `relative(-0.1, 0.25)` is from 10% less to 25% more.

    >>> relative(-0.1, 0.25).text
    '-10% to +25%'
    """
    return Range(low=low, high=high, kind="relative")


def delta(low: float | None, high: float | None) -> Range:
    """A range of the difference from the query: `delta(0, 5)` is up to 5 more.

    >>> delta(0, 5).text
    '0 to +5'
    """
    return Range(low=low, high=high, kind="difference")


def per_unit(weight: float) -> PerUnit:
    """A cost of `weight` for every unit by which a number changes.

    >>> per_unit(0.5).weight
    0.5
    """
    return PerUnit(weight=weight)


class Single(NamedTuple):
    """One constraint of a set: the field it stands in, its feature if it has one, a short name and a sentence."""

    kind: str
    feature: Any
    label: str
    text: str


# -- the set -----------------------------------------------------------------------------------------------------


class Constraints(_Model):
    """What an answer may look like.

    frozen: features that may not change.
    ranges: feature to limits: (20, 50), `relative(-0.1, 0.25)`, `delta(0, 5)`, or a list of such.
    increase, decrease: features that may change only upwards (downwards); ordinals by their order.
    allowed, forbidden: feature to the values that it may (not) change to; None stands for missing.
    transitions: feature to, for some of its values, the values it may go to from there.
    max_changes: how many features may differ from the query.
    rules: conditions that every answer meets; see `dicoflex.constraints.rules`.
    steps: feature to the step whose multiples a changed number may take.
    cost: feature to what its change costs, a number or `per_unit(0.5)`; other features cost nothing.
    max_cost: how much all changes together may cost.
    strict: ranges, allowed and forbidden also bind values that don't change.
    override: constraints of the schema that this set loosens: "age", "increase:age", "max_changes", "rules".

    >>> wish = Constraints(frozen=["age"], ranges={"hours": (20, 50)}, rules=["rent <= income"])
    >>> for line in wish.describe():
    ...     print(line)
    ('frozen', 'age', 'age may not change')
    ('ranges', 'hours', 'hours must be 20 to 50')
    ('rules', None, 'rent <= income must hold')
    >>> Constraints.from_json(wish.to_json()) == wish
    True
    """

    frozen: tuple[Name, ...] = ()
    ranges: dict[Name, tuple[Range, ...]] = {}
    increase: tuple[Name, ...] = ()
    decrease: tuple[Name, ...] = ()
    allowed: dict[Name, tuple[Value, ...]] = {}
    forbidden: dict[Name, tuple[Value, ...]] = {}
    transitions: dict[Name, dict[Value, tuple[Value, ...]]] = {}
    max_changes: int | None = None
    rules: tuple[str, ...] = ()
    steps: dict[Name, float] = {}
    cost: dict[Name, float | PerUnit] = {}
    max_cost: float | None = None
    strict: bool = False
    override: tuple[str, ...] = ()

    def __init__(self, /, **fields: Any) -> None:  # said here, so that type checkers take lists for tuples
        super().__init__(**fields)

    # -- what each field takes -----------------------------------------------------------------------------------

    @field_validator("frozen", "increase", "decrease", mode="before")
    @classmethod
    def _read_features(cls, given: Any, info: Any) -> tuple[Name, ...]:
        return _unique([_name(v, info.field_name) for v in _items(given, info.field_name)], info.field_name)

    @field_validator("ranges", mode="before")
    @classmethod
    def _read_ranges(cls, given: Any) -> dict[Name, tuple[Range, ...]]:
        return {name: _within(name, "ranges", _ranges, value) for name, value in _by_feature(given, "ranges")}

    @field_validator("allowed", "forbidden", mode="before")
    @classmethod
    def _read_values(cls, given: Any, info: Any) -> dict[Name, tuple[Value, ...]]:
        kind = info.field_name
        read = {name: _values(value, f"{kind} {name!r}") for name, value in _by_feature(given, kind)}
        for name, values in read.items():
            if not values:
                raise ConstraintError(f"{kind} {name!r}: the list is empty; {EMPTY_REMEDY[kind]}")
        return read

    @field_validator("transitions", mode="before")
    @classmethod
    def _read_transitions(cls, given: Any) -> dict[Name, dict[Value, tuple[Value, ...]]]:
        return {name: _moves(value, f"transitions {name!r}") for name, value in _by_feature(given, "transitions")}

    @field_validator("rules", mode="before")
    @classmethod
    def _read_rules(cls, given: Any) -> tuple[str, ...]:
        parsed = [parse(text) for text in _items(given, "rules")]
        _unique([str(rule) for rule in parsed], "rules")
        return tuple(rule.text for rule in parsed)

    @field_validator("steps", mode="before")
    @classmethod
    def _read_steps(cls, given: Any) -> dict[Name, float]:
        return {name: _positive(value, f"steps {name!r}: the step") for name, value in _by_feature(given, "steps")}

    @field_validator("cost", mode="before")
    @classmethod
    def _read_cost(cls, given: Any) -> dict[Name, float | PerUnit]:
        return {name: _weight(value, f"cost {name!r}") for name, value in _by_feature(given, "cost")}

    @field_validator("max_changes", mode="before")
    @classmethod
    def _read_max_changes(cls, value: Any) -> Any:
        value = _native(value)
        if value is not None and (type(value) is not int or value < 1):
            raise ConstraintError(f"max_changes must be a whole number of at least 1, got {value!r}")
        return value

    @field_validator("max_cost", mode="before")
    @classmethod
    def _read_max_cost(cls, value: Any) -> float | None:
        return None if value is None else _positive(value, "max_cost")

    @field_validator("override", mode="before")
    @classmethod
    def _read_override(cls, given: Any) -> tuple[str, ...]:
        entries = _items(given, "override")
        odd = [entry for entry in entries if not isinstance(entry, str)]
        if odd:
            raise ConstraintError(f"override takes text such as 'age' or 'increase:age', got {odd[0]!r}")
        return _unique(entries, "override")

    # -- what contradicts itself ---------------------------------------------------------------------------------

    @model_validator(mode="after")
    def _consistent(self) -> Constraints:
        both = [name for name in self.increase if name in self.decrease]
        if both:
            raise ConstraintError(
                f"increase and decrease both name {both[0]!r}, so that it could not change; put it in frozen instead"
            )
        for name, values in self.allowed.items():
            _check_lists(name, values, self.forbidden.get(name, ()), self.steps.get(name))
        for name, ranges in self.ranges.items():
            for limits in ranges:
                self._check_range(name, limits)
        if self.max_cost is not None and not self.cost:
            raise ConstraintError(
                f"max_cost is {_plain(self.max_cost)} and cost is empty; say what changes cost, cost={{'hours': 1}}"
            )
        return self

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
                f"{where} holds no multiple of the step {_plain(step)}; widen the range or choose a smaller step"
            )
        values = self.allowed.get(name, ())
        if values and not any(_inside(value, limits) for value in values):
            raise ConstraintError(
                f"{where} holds none of the allowed values {list(values)}; widen the range or allow others"
            )

    # -- reading and writing -------------------------------------------------------------------------------------

    @classmethod
    def from_json(cls, text: str | bytes) -> Constraints:
        """Read constraints from JSON text; a `ConstraintError` names the field that is wrong."""
        return cls(**_read_json(text))

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

    @property
    def is_empty(self) -> bool:
        """Whether nothing is constrained; `strict` and `override` alone constrain nothing."""
        return not any(single.kind != "strict" for single in self.singles())

    def features(self) -> list[tuple[str, Name]]:
        """Every feature that a field names, as (field, feature), in the order of the fields; rules are not read."""
        return [(single.kind, single.feature) for single in self.singles() if single.feature is not None]

    def singles(self) -> list[Single]:
        """The set taken apart, one item per single constraint, in the order of the fields."""
        found = [Single("frozen", n, f"frozen {n}", f"{n} may not change") for n in self.frozen]
        for n, ranges in self.ranges.items():
            found += [Single("ranges", n, f"range {n} {r.text}", f"{n} {_range_sentence(r)}") for r in ranges]
        for kind in ("increase", "decrease"):
            found += [Single(kind, n, f"{kind} {n}", f"{n} may only {kind}") for n in getattr(self, kind)]
        for n, values in self.allowed.items():
            found.append(Single("allowed", n, f"allowed {n}", f"{n} may only become {_either(values)}"))
        for n, values in self.forbidden.items():
            found.append(Single("forbidden", n, f"forbidden {n}", f"{n} may not become {_either(values)}"))
        for n, moves in self.transitions.items():
            found.append(Single("transitions", n, f"transitions {n}", f"{n} may go {_moves_text(moves)}"))
        if self.max_changes is not None:
            many = "1 feature" if self.max_changes == 1 else f"{self.max_changes} features"
            found.append(Single("max_changes", None, f"max_changes {self.max_changes}", f"at most {many} may change"))
        found += [Single("rules", None, f"rule {text}", f"{text} must hold") for text in self.rules]
        for n, step in self.steps.items():
            text = f"{n} may only change to multiples of {_plain(step)}"
            found.append(Single("steps", n, f"step {n} {_plain(step)}", text))
        for n, weight in self.cost.items():
            found.append(Single("cost", n, f"cost {n}", f"changing {n} costs {_weight_text(weight)}"))
        if self.max_cost is not None:
            most = _plain(self.max_cost)
            found.append(Single("max_cost", None, f"max_cost {most}", f"all changes together may cost at most {most}"))
        if self.strict:
            found.append(Single("strict", None, "strict", "ranges and lists of values also bind what does not change"))
        return found

    def describe(self) -> list[tuple[str, Any, str]]:
        """Every single constraint in plain words: (field, feature or None, sentence)."""
        return [(single.kind, single.feature, single.text) for single in self.singles()]

    # -- joining -------------------------------------------------------------------------------------------------

    def merge(self, other: Constraints) -> Constraints:
        """The set that demands what either demands; a `ConstraintError` where the two contradict each other.

        Ranges of one kind are intersected and others kept side by side; allowed values and transitions are
        intersected, budgets take the smaller number, costs the greater.

        >>> one = Constraints(ranges={"age": (20, 60)}, max_changes=4)
        >>> one.merge(Constraints(ranges={"age": (30, None)}, max_changes=2)).model_dump()
        {'ranges': {'age': [30.0, 60.0]}, 'max_changes': 2}
        """
        return Constraints(
            **{kind: _union(getattr(self, kind), getattr(other, kind)) for kind in UNIONS},
            ranges=_joined(self.ranges, other.ranges, "ranges", lambda one, two: _ranges([*one, *two])),
            allowed=_joined(self.allowed, other.allowed, "allowed", _common),
            forbidden=_joined(self.forbidden, other.forbidden, "forbidden", _union),
            transitions=_joined(self.transitions, other.transitions, "transitions", _common_moves),
            steps=_joined(self.steps, other.steps, "steps", _same_step),
            cost=_joined(self.cost, other.cost, "cost", _greater_cost),
            rules=_all_rules(self, other),
            max_changes=_smaller(self.max_changes, other.max_changes),
            max_cost=_smaller(self.max_cost, other.max_cost),
            strict=self.strict or other.strict,
        )

    def without(self, entries: Iterable[str]) -> Constraints:
        """The set less the single constraints that `entries` name; an entry that names none is a `ConstraintError`.

        An entry is a field ("max_changes", "rules"), a field and a feature ("increase:age", "rules:a <= b"), or a
        feature, which stands for all constraints on it.

        >>> Constraints(increase=["age"], frozen=["sex"]).without(["age"]).describe()
        [('frozen', 'sex', 'sex may not change')]
        """
        dropped = [single for entry in entries for single in self._named_by(entry)]
        kept: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            gone = {s.feature if name != "rules" else s.label.removeprefix("rule ") for s in dropped if s.kind == name}
            if isinstance(value, dict):
                value = {key: item for key, item in value.items() if key not in gone}
            elif isinstance(value, tuple):
                value = tuple(item for item in value if item not in gone)
            elif gone:
                value = type(self).model_fields[name].default
            kept[name] = value
        # A budget without costs can't be exceeded.
        return Constraints(**kept | ({} if kept["cost"] else {"max_cost": None}))

    def _named_by(self, entry: str) -> list[Single]:
        singles = self.singles()
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
        named_ones += [f"rules:{text}" for text in self.rules]
        known = dict.fromkeys([*named_ones, *(s.kind for s in singles), *(str(f) for _, f in self.features())])
        none = f"override {entry!r} names no constraint of the schema; it has none"
        raise ConstraintError(f"override: {named('constraint of the schema', entry, known)}" if known else none)


UNIONS = ("frozen", "increase", "decrease", "override")
EMPTY_REMEDY = {"allowed": "to keep a feature as it is, put it in frozen", "forbidden": "leave the feature out"}


def combine(preset: Constraints, call: Constraints) -> Constraints:
    """What binds a call: the schema's `preset`, less what `call.override` names, and the call's own constraints.

    >>> preset = Constraints(increase=["age"], frozen=["sex"])
    >>> combine(preset, Constraints(max_changes=2, override=["increase:age"])).describe()
    [('frozen', 'sex', 'sex may not change'), ('max_changes', None, 'at most 2 features may change')]
    """
    kept = preset.without(call.override)
    try:
        return kept.merge(call).model_copy(update={"override": ()})
    except ConstraintError as error:
        raise ConstraintError(f"{error} (the schema's constraints bind too; loosen one with override=[...])") from None


# -- reading values ----------------------------------------------------------------------------------------------


def _items(given: Any, field: str) -> list[Any]:
    """The items of a list; a lone text is refused, as its letters are hardly meant."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ConstraintError(f"{field} must be a list, got {given!r}; write [{given!r}]")
    return sorted(given, key=str) if isinstance(given, set | frozenset) else list(given)


def _by_feature(given: Any, field: str) -> list[tuple[Name, Any]]:
    """The items of a mapping by feature, or of a list of [feature, item] pairs."""
    return _pairs(given, field, "feature", _name)


def _pairs(given: Any, where: str, key: str, read: Callable[[Any, str], Any]) -> list[tuple[Any, Any]]:
    """The items of a mapping or of a list of pairs, their keys read and different."""
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    fine = isinstance(pairs, list | tuple) and all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs)
    if not fine:
        raise ConstraintError(f"{where} must be a mapping by {key}, or a list of [{key}, ...] pairs, got {given!r}")
    keys = [read(pair[0], where) for pair in pairs]
    twice = [k for i, k in enumerate(keys) if k in keys[:i]]
    if twice:
        raise ConstraintError(f"{where} names {twice[0]!r} twice; say it once")
    return [(k, pair[1]) for k, pair in zip(keys, pairs, strict=True)]


def _unique(items: list[Any], field: str) -> tuple[Any, ...]:
    for i, item in enumerate(items):
        if item in items[:i]:
            raise ConstraintError(f"{field} names {item!r} twice; say it once")
    return tuple(items)


def _name(value: Any, field: str) -> Name:
    value = _native(value)
    if not isinstance(value, str) and type(value) is not int:
        raise ConstraintError(f"{field}: a feature's name is text or a whole number, got {value!r}")
    return value


def _native(value: Any) -> Any:
    """A numpy scalar as its Python value; others as they are."""
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def _value(value: Any, where: str) -> Value:
    """A value as a column holds it; None for missing."""
    value = _native(value)
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, list | tuple | Mapping) or (isinstance(value, float) and math.isinf(value)):
        raise ConstraintError(f"{where}: a value is text, a finite number, true, false or None, got {value!r}")
    if is_missing(value):
        return None
    if not isinstance(value, float):
        raise ConstraintError(f"{where}: a value is text, a finite number, true, false or None, got {value!r}")
    return value


def _values(given: Any, where: str) -> tuple[Value, ...]:
    values = [_value(value, where) for value in _items(given, where)]
    for i, value in enumerate(values):
        if value in values[:i]:
            raise ConstraintError(f"{where} lists {value!r} twice; list it once")
    return tuple(values)


def _moves(given: Any, where: str) -> dict[Value, tuple[Value, ...]]:
    moves = dict(_pairs(given, where, "value", _value))
    if not moves:
        raise ConstraintError(f"{where}: the mapping is empty; leave the feature out")
    return {key: _values(value, f"{where} from {key!r}") for key, value in moves.items()}


def _ranges(given: Any) -> tuple[Range, ...]:
    """The ranges of one feature, those of one kind intersected."""
    forms = list(given) if isinstance(given, list | tuple) and _are_ranges(given) else [given]
    if not forms:
        raise ConstraintError("the list of ranges is empty; leave the feature out")
    joined: dict[RangeKind, Range] = {}
    for found in map(_range, forms):
        joined[found.kind] = _intersected(joined[found.kind], found) if found.kind in joined else found
    return tuple(joined.values())


def _are_ranges(given: Any) -> bool:
    """Whether a list holds ranges rather than two limits."""
    return all(isinstance(form, Range | Mapping | list | tuple) for form in given)


def _range(given: Any) -> Range:
    if isinstance(given, Range):
        return given
    kind: RangeKind = "absolute"
    if isinstance(given, Mapping) and len(given) == 1 and (key := next(iter(given))) in JSON_KEYS:
        kind, given = JSON_KEYS[key], given[key]
    if not isinstance(given, list | tuple) or len(given) != 2:
        forms = '[20, 50], {"relative": [-0.1, 0.25]} or {"delta": [0, 5]}'
        raise ConstraintError(f"a range is written {forms}, got {given!r}")
    return Range(low=given[0], high=given[1], kind=kind)


def _intersected(one: Range, two: Range) -> Range:
    low = max((r.low for r in (one, two) if r.low is not None), default=None)
    high = min((r.high for r in (one, two) if r.high is not None), default=None)
    if low is not None and high is not None and low > high:
        raise ConstraintError(f"the ranges {one.text} and {two.text} have nothing in common; widen one of them")
    return Range(low=low, high=high, kind=one.kind)


def _number(value: Any, rule: str) -> float:
    value = _native(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
        raise ConstraintError(f"{rule}, got {value!r}")
    return float(value)


def _positive(value: Any, what: str) -> float:
    number = _number(value, f"{what} must be a finite number above 0")
    if number <= 0:
        raise ConstraintError(f"{what} must be a finite number above 0, got {value!r}")
    return number


def _weight(given: Any, where: str) -> float | PerUnit:
    if isinstance(given, PerUnit):
        return given
    if isinstance(given, Mapping):
        if list(given) != ["per_unit"]:
            raise ConstraintError(f'{where}: a cost is a number above 0 or {{"per_unit": 0.5}}, got {dict(given)!r}')
        return PerUnit(weight=_positive(given["per_unit"], f"{where}: the cost per unit"))
    return _positive(given, f"{where}: the cost")


def _within(name: Name, field: str, read: Callable[[Any], Any], value: Any) -> Any:
    """What `read` makes of `value`; its error is told with the field and the feature."""
    try:
        return read(value)
    except ConstraintError as error:
        raise ConstraintError(f"{field} {name!r}: {error}") from None


def _read_json(text: str | bytes) -> dict[str, Any]:
    """The object in JSON text, keys that repeat and numbers that are none refused."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _unique([key for key, _ in pairs], "the JSON")
        return dict(pairs)

    def refuse(constant: str) -> Any:
        raise ConstraintError(f"the JSON holds {constant}; write null for a missing value or an open limit")

    try:
        read = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except ConstraintError:
        raise
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"this is not JSON: {error}") from None
    if not isinstance(read, dict):
        raise ConstraintError(
            f'constraints are a JSON object such as {{"frozen": ["age"]}}, got a {type(read).__name__}'
        )
    return read


# -- checking and joining ----------------------------------------------------------------------------------------


def has_multiple(low: float | None, high: float | None, step: float) -> bool:
    """Whether a multiple of `step` lies from `low` to `high`, up to rounding; an open end always has one.

    >>> has_multiple(1, 4, 5), has_multiple(0.25, 0.3, 0.1)
    (False, True)
    """
    if low is None or high is None or not math.isfinite(low / step) or not math.isfinite(high / step):
        return True
    return math.ceil(low / step - STEP_SLACK) <= high / step + STEP_SLACK


def _check_lists(name: Name, allowed: tuple[Value, ...], forbidden: tuple[Value, ...], step: float | None) -> None:
    both = [value for value in allowed if value in forbidden]
    if both:
        raise ConstraintError(f"{name!r}: the value {both[0]!r} is both allowed and forbidden; drop it from one list")
    if step is not None and not any(_is_number(value) and has_multiple(value, value, step) for value in allowed):
        raise ConstraintError(
            f"allowed {name!r}: {list(allowed)} holds no multiple of the step {_plain(step)}; drop the step"
        )


def _is_number(value: Value) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _inside(value: Value, limits: Range) -> bool:
    if not _is_number(value):
        return False
    return (limits.low is None or limits.low <= value) and (limits.high is None or value <= limits.high)


def _joined(one: dict[Name, Any], two: dict[Name, Any], field: str, join: Callable[[Any, Any], Any]) -> dict[Name, Any]:
    """Both mappings; where both name a feature, what `join` makes of the two items."""
    both = [name for name in one if name in two]
    return one | two | {n: _within(n, field, lambda pair: join(*pair), (one[n], two[n])) for n in both}


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
        raise ConstraintError(f"the steps {_plain(one)} and {_plain(two)} differ; give one of them")
    return one


def _greater_cost(one: float | PerUnit, two: float | PerUnit) -> float | PerUnit:
    if isinstance(one, PerUnit) and isinstance(two, PerUnit):
        return one if one.weight >= two.weight else two
    if isinstance(one, PerUnit) or isinstance(two, PerUnit):
        raise ConstraintError(
            f"the costs {_weight_text(one)} and {_weight_text(two)} can't be compared; "
            "give both as a number or both per unit"
        )
    return max(one, two)


def _smaller(one: Any, two: Any) -> Any:
    return min((value for value in (one, two) if value is not None), default=None)


# -- words -------------------------------------------------------------------------------------------------------


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        items = [(key, _jsonable(item)) for key, item in value.items()]
        return dict(items) if all(isinstance(key, str) for key in value) else [list(item) for item in items]
    if isinstance(value, tuple):
        return [_jsonable(item) for item in value]
    return value.model_dump() if isinstance(value, BaseModel) else value


def _plain(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def _signed(value: float) -> str:
    return f"+{_plain(value)}" if value > 0 else _plain(value)


def _percent(value: float) -> str:
    return f"{value * 100:+.6g}%" if value else "0%"


def _shown(value: Value) -> str:
    return "missing" if value is None else repr(value)


def _either(values: tuple[Value, ...]) -> str:
    *first, last = map(_shown, values)
    return f"{', '.join(first)} or {last}" if first else last


def _range_sentence(limits: Range) -> str:
    if limits.kind == "absolute":
        return f"must be {limits.text}"
    return f"may change by {limits.text}" + (" of its size" if limits.kind == "relative" else "")


def _moves_text(moves: dict[Value, tuple[Value, ...]]) -> str:
    lines = [f"from {_shown(key)} {'only to ' + _either(v) if v else 'nowhere'}" for key, v in moves.items()]
    return ", ".join(lines)


def _weight_text(weight: float | PerUnit) -> str:
    return f"{_plain(weight.weight)} per unit" if isinstance(weight, PerUnit) else _plain(weight)
