"""Kinds of constraints: a row each, which every room reads.

To add one: a row here and a field of `Constraints`; what it means for rows in `limits/compile.py`; whether an answer
obeyed in `answers/verification.py`; and, where its values must be ones of the column, a check in `table/schema.py`.
How it joins, reads as a sentence, is lifted by an override, and is said on the command line follows from the row.

Nothing here needs more than Python itself: the command line takes its options from the rows, and starts quickly.
"""

from __future__ import annotations

__all__ = ["KINDS", "Flag", "Kind", "OneConstraint"]

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dicoflex.constraints.rules.parser import parse, parse_value
from dicoflex.constraints.words import Value, cost_text, either, moves_text, plain, range_text, shown
from dicoflex.errors import ConstraintError

Items = list[tuple[Any, tuple[Any, ...]]]
"""Single constraints of a field: the feature, or None, and the arguments."""


class OneConstraint(NamedTuple):
    """One constraint of a set.

    kind: the field it stands in. feature: None where it has none. args: what is demanded, for sentences in other
    languages. label: a short name. text: a sentence. entry: what names it in `override`.
    """

    kind: str
    feature: Any
    args: tuple[Any, ...]
    label: str
    text: str
    entry: str


# -- the columns of the table --------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """How a field holds its single constraints: its value taken apart, and put together again."""

    apart: Callable[[Any], Items]
    whole: Callable[[Items], Any]
    named_by: Callable[[Any, tuple[Any, ...]], Any] = lambda feature, _: feature  # after the colon of an entry


class Flag(NamedTuple):
    """An option of the command line; `form` says how its words are read, `example` is shown where they can't be."""

    name: str
    form: Literal[
        "features", "ranges", "values", "value", "moves", "amounts", "costs", "texts", "texts_by_feature", "entries",
        "count", "number", "switch",
    ]  # fmt: skip
    help: str
    metavar: str | None = None
    example: str = ""


@dataclass(frozen=True)
class Kind:
    """One kind of constraint.

    join: what two of it make together: the items of one feature where the field is a mapping, else two values.
    words: from the feature, if there is one, and the arguments to a short name and a sentence; None where it has none.
    role: a *limit* can be broken by an answer; a *weight* or *manner* says how limits are meant.
    suits: the features that can have it. if_empty: the remedy for an empty list of values.
    """

    field: str
    shape: Shape
    join: Callable[[Any, Any], Any]
    words: Callable[..., tuple[str, str]] | None
    flag: Flag
    role: Literal["limit", "weight", "manner"] = "limit"
    suits: Literal["any", "ordered", "numbers", "levels"] = "any"
    if_empty: str = ""

    @property
    def names_features(self) -> bool:
        """Whether each of its constraints is about one feature."""
        return self.shape in (FEATURES, BY_FEATURE, SEVERAL)

    def one_by_one(self, value: Any) -> list[OneConstraint]:
        """The single constraints that the field's value holds."""
        return [] if self.words is None else [self._one(*item) for item in self.shape.apart(value)]

    def whole(self, ones: list[OneConstraint]) -> Any:
        """The field's value that holds some single constraints and no others."""
        return self.shape.whole([(one.feature, one.args) for one in ones])

    def _one(self, feature: Any, args: tuple[Any, ...]) -> OneConstraint:
        assert self.words is not None
        label, text = self.words(*((feature,) if self.names_features else ()), *args)
        name = self.shape.named_by(feature, args)
        return OneConstraint(
            self.field, feature, args, label, text, self.field if name is None else f"{self.field}:{name}"
        )


def _several(items: Items) -> dict[Any, tuple[Any, ...]]:
    found: dict[Any, tuple[Any, ...]] = {}
    for name, args in items:
        found[name] = found.get(name, ()) + args
    return found


FEATURES = Shape(lambda value: [(name, ()) for name in value], lambda items: tuple(name for name, _ in items))
BY_FEATURE = Shape(
    lambda value: [(name, (item,)) for name, item in value.items()],
    lambda items: {name: args[0] for name, args in items},
)
SEVERAL = Shape(lambda value: [(name, (one,)) for name, found in value.items() for one in found], _several)
TEXTS = Shape(
    lambda value: [(None, (text,)) for text in value],
    lambda items: tuple(args[0] for _, args in items),
    lambda _, args: args[0],
)
NUMBER = Shape(
    lambda value: [] if value is None else [(None, (value,))], lambda items: items[0][1][0] if items else None
)
SWITCH = Shape(lambda value: [(None, ())] if value else [], bool)


# -- two of one kind -----------------------------------------------------------------------------------------------


def _union(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    known = set(one)
    return one + tuple(value for value in two if value not in known)


def _rules(one: tuple[str, ...], two: tuple[str, ...]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for text in one + two:
        seen.setdefault(str(parse(text)), text)
    return tuple(seen.values())


def _common(one: tuple[Value, ...], two: tuple[Value, ...]) -> tuple[Value, ...]:
    known = set(two)
    common = tuple(value for value in one if value in known)
    if not common:
        raise ConstraintError(
            f"{list(one)} and {list(two)} have no value in common; to keep the feature as it is, put it in frozen"
        )
    return common


Moves = dict[Value, tuple[Value, ...]]


def _common_moves(one: Moves, two: Moves) -> Moves:
    """Moves that both permit; a value with none left may only stay."""
    known = {key: set(two[key]) for key in one if key in two}
    return one | two | {key: tuple(value for value in one[key] if value in ends) for key, ends in known.items()}


def _same_value(one: Value, two: Value) -> Value:
    if one != two or isinstance(one, str) != isinstance(two, str):
        raise ConstraintError(f"it can't be both {shown(one)} and {shown(two)}; pin it to one of them")
    return one


def _same_step(one: float, two: float) -> float:
    if one != two:
        raise ConstraintError(f"the steps {plain(one)} and {plain(two)} differ; give one of them")
    return one


def _same_consequence(one: str, two: str) -> str:
    if str(parse_value(one)) != str(parse_value(two)):
        raise ConstraintError(f"it follows from {one!r} and from {two!r}, which differ; give one of them")
    return one


def _greater_cost(one: Any, two: Any) -> Any:
    if type(one) is not type(two):
        raise ConstraintError(
            f"the costs {cost_text(one)} and {cost_text(two)} can't be compared; give both as a number or both per unit"
        )
    return max(one, two, key=lambda cost: cost if isinstance(cost, float) else cost.weight)


def _smaller(one: Any, two: Any) -> Any:
    return min((value for value in (one, two) if value is not None), default=None)


def _most(count: int) -> tuple[str, str]:
    many = "1 feature" if count == 1 else f"{count} features"
    return f"max_changes {count}", f"at most {many} may change"


# -- the table -----------------------------------------------------------------------------------------------------

_ROWS = (
    Kind(
        "frozen", FEATURES, _union,
        words=lambda name: (f"frozen {name}", f"{name} may not change"),
        flag=Flag("--freeze", "features", "Features that may not change: age,sex.", "NAMES"),
    ),
    Kind(
        "increase", FEATURES, _union,
        words=lambda name: (f"increase {name}", f"{name} may only increase"),
        flag=Flag("--increase", "features", "Features that may only go up.", "NAMES"),
        suits="ordered",
    ),
    Kind(
        "decrease", FEATURES, _union,
        words=lambda name: (f"decrease {name}", f"{name} may only decrease"),
        flag=Flag("--decrease", "features", "Features that may only go down.", "NAMES"),
        suits="ordered",
    ),
    Kind(
        "ranges", SEVERAL, lambda one, two: one + two,  # reading intersects those of one kind
        words=lambda name, limits: (f"range {name} {limits.text}", f"{name} {range_text(limits)}"),
        flag=Flag(
            "--range", "ranges",
            "Limits of a value, hours=20:50, or of its change, income=-10%:+25% or age=+0:+5. An end may be left open.",
            "FEATURE=LOW:HIGH", "hours=20:50, income=-10%:+25% or age=+0:+5",
        ),
        suits="numbers",
    ),
    Kind(
        "allowed", BY_FEATURE, _common,
        words=lambda name, values: (f"allowed {name}", f"{name} may only become {either(values)}"),
        flag=Flag(
            "--allow", "values", "Values that a feature may change to: housing=own,rent.",
            "FEATURE=VALUES", "housing=own,rent",
        ),
        if_empty="to keep a feature as it is, put it in frozen",
    ),
    Kind(
        "forbidden", BY_FEATURE, _union,
        words=lambda name, values: (f"forbidden {name}", f"{name} may not become {either(values)}"),
        flag=Flag(
            "--forbid", "values", "Values that a feature may not change to.", "FEATURE=VALUES", "housing=own,rent"
        ),
        if_empty="leave the feature out",
    ),
    Kind(
        "pinned", BY_FEATURE, _same_value,
        words=lambda name, value: (f"pinned {name}", f"{name} must be {shown(value)}"),
        flag=Flag(
            "--pin", "value", "The value that a feature has in every answer: hours=45.", "FEATURE=VALUE", "hours=45"
        ),
    ),
    Kind(
        "transitions", BY_FEATURE, _common_moves,
        words=lambda name, moves: (f"transitions {name}", f"{name} may go {moves_text(moves)}"),
        flag=Flag(
            "--transition", "moves", "Where a value may go: degree=Master>PhD.", "FEATURE=FROM>TO", "degree=Master>PhD"
        ),
        suits="levels",
    ),
    Kind(
        "max_changes", NUMBER, _smaller,
        words=_most,
        flag=Flag("--max-changes", "count", "How many features may change."),
    ),
    Kind(
        "rules", TEXTS, _rules,
        words=lambda text: (f"rule {text}", f"{text} must hold"),
        flag=Flag("--rule", "texts", "Condition that every answer meets: 'rent <= income'.", "RULE"),
    ),
    Kind(
        "consequences", BY_FEATURE, _same_consequence,
        words=lambda name, text: (f"consequence {name}", f"{name} follows from other values: {text}"),
        flag=Flag(
            "--then", "texts_by_feature", "What a feature follows from: 'age=was.age + (residence - was.residence)'.",
            "FEATURE=VALUE", "'tenure=if job != was.job then 0 else was.tenure'",
        ),
    ),
    Kind(
        "steps", BY_FEATURE, _same_step,
        words=lambda name, by: (f"step {name} {plain(by)}", f"{name} may only change to multiples of {plain(by)}"),
        flag=Flag("--step", "amounts", "A changed number is a multiple of this: loan=500.", "FEATURE=STEP", "loan=500"),
        suits="numbers",
    ),
    Kind(
        "cost", BY_FEATURE, _greater_cost,
        words=lambda name, cost: (f"cost {name}", f"changing {name} costs {cost_text(cost)}"),
        flag=Flag(
            "--cost", "costs", "What a change costs: move=5, or hours=0.5/unit.",
            "FEATURE=COST", "move=5 or hours=0.5/unit",
        ),
        role="weight",
    ),
    Kind(
        "max_cost", NUMBER, _smaller,
        words=lambda most: (f"max_cost {plain(most)}", f"all changes together may cost at most {plain(most)}"),
        flag=Flag("--max-cost", "number", "How much all changes together may cost."),
    ),
    Kind(
        "strict", SWITCH, lambda one, two: one or two,
        words=lambda: ("strict", "ranges and lists of values also bind what does not change"),
        flag=Flag("--strict", "switch", "Ranges and lists of values also bind what does not change."),
        role="manner",
    ),
    Kind(
        "override", TEXTS, _union,
        words=None,
        flag=Flag(
            "--override", "entries", "The model's own constraints to lift: age, increase:age or max_changes.", "NAMES"
        ),
        role="manner",
    ),
)  # fmt: skip
KINDS: dict[str, Kind] = {kind.field: kind for kind in _ROWS}
"""The rows by field, in the order in which the command line offers them."""
