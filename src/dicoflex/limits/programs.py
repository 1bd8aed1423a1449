"""Rules and consequences as programs of a small stack machine, which the core runs on finished rows.

A program reads a row and its query as encoded values. Truth is 1 and 0; a number that is missing or has no result
is NaN, and whatever compares with it is false.

Derived features are such programs too: they are set after the rest of a row was drawn, or whenever it moves.
"""

from __future__ import annotations

__all__ = ["Consequences", "Programs", "codes", "hold", "write"]

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dicoflex import _core
from dicoflex._types import Bools, Floats, Ints
from dicoflex.constraints.rules.kinds import resolve
from dicoflex.constraints.rules.tree import (
    And,
    Arithmetic,
    Changed,
    Choice,
    Comparison,
    Condition,
    Expression,
    Literal,
    Member,
    Missing,
    Name,
    Not,
    Number,
    Or,
    Text,
    Value,
    Was,
)
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature, Kind, dtype_of
from dicoflex.table.schema import Schema
from dicoflex.values import equal, is_number


def codes(feature: Feature, op: str, value: Any) -> list[int]:
    """The codes of the levels that compare so with a value: equality by value, order by the feature's own."""
    same = [code for code, level in enumerate(feature.levels) if equal(level, value)]
    if op == "==":
        return same
    if op == "!=":
        return [code for code in range(len(feature.levels)) if code not in same]
    at = same[0] if same else -1
    tests = {"<": lambda c: c < at, "<=": lambda c: c <= at, ">": lambda c: c > at, ">=": lambda c: c >= at}
    return [code for code in range(len(feature.levels)) if same and tests[op](code)]


(
    CONSTANT, VALUE, RANK, LOOKED_UP, PAIRED, ADD, SUBTRACT, MULTIPLY, DIVIDE, LEAST, MOST, BELOW, AT_MOST, EQUAL,
    UNEQUAL, AND, OR, NOT, ABSENT, DIFFER, CHOOSE,
) = range(21)  # fmt: skip
ARITHMETIC = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "/": DIVIDE, "min": LEAST, "max": MOST}
COMPARED = {"<": BELOW, "<=": AT_MOST, "==": EQUAL, "!=": UNEQUAL}
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Programs(NamedTuple):
    """Programs end to end: number k owns steps at[k] to at[k + 1].

    A step has an operation, whether it reads the query, a feature, where its table starts, and a constant.
    """

    at: Ints
    op: Ints
    was: Bools
    feature: Ints
    start: Ints
    constant: Floats
    table: Floats

    def checked(self, n_features: int) -> _core.Programs:
        """The programs as the core runs them, on rows of so many features."""
        return _core.Programs(*self, n_features=n_features)


class Writer:
    """Writes the steps of one program after the other."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.at = [0]
        self.steps: list[tuple[int, bool, int, int, float]] = []
        self.table: list[float] = []

    def programs(self) -> Programs:
        """What was written."""
        op, was, feature, start, constant = zip(*self.steps, strict=True) if self.steps else ((),) * 5
        return Programs(
            at=np.array(self.at, dtype=np.int64),
            op=np.array(op, dtype=np.int64),
            was=np.array(was, dtype=bool),
            feature=np.array(feature, dtype=np.int64),
            start=np.array(start, dtype=np.int64),
            constant=np.array(constant, dtype=np.float64),
            table=np.array(self.table, dtype=np.float64),
        )

    def end(self) -> None:
        """The program is written; the next one begins."""
        self.at.append(len(self.steps))

    def step(self, op: int, *, was: bool = False, feature: int = 0, start: int = 0, constant: float = 0.0) -> None:
        self.steps.append((op, was, feature, start, constant))

    def feature(self, node: Name | Was | Changed) -> tuple[int, Feature]:
        j = self.schema.places[resolve(node.name, self.schema.names)]
        return j, self.schema.features[j]

    def look_up(self, node: Name | Was, table: Sequence[float]) -> None:
        """The entry of a table at a level's code."""
        self.step(LOOKED_UP, was=isinstance(node, Was), feature=self.feature(node)[0], start=len(self.table))
        self.table += table

    # -- conditions ----------------------------------------------------------------------------------------------

    def condition(self, node: Condition) -> None:
        match node:
            case Comparison(op, left, right):
                self.comparison(op, left, right)
            case Member(item, values):
                self.member(item, values)
            case Missing(name):
                self.missing(name)
            case Changed():
                self.step(DIFFER, feature=self.feature(node)[0])
            case And(parts) | Or(parts):
                self.condition(parts[0])
                for part in parts[1:]:
                    self.condition(part)
                    self.step(AND if isinstance(node, And) else OR)
            case Not(part):
                self.condition(part)
                self.step(NOT)

    def truth(self, value: bool) -> None:
        self.step(CONSTANT, constant=float(value))

    def missing(self, node: Name | Was) -> None:
        j, feature = self.feature(node)
        if feature.is_number:
            self.step(VALUE, was=isinstance(node, Was), feature=j)
            self.step(ABSENT)
        else:
            self.look_up(node, [float(code == len(feature.levels)) for code in range(feature.n_states)])

    def member(self, item: Value, values: Sequence[Literal]) -> None:
        if isinstance(item, Literal):
            return self.truth(any(equal(item.value, value.value) for value in values))
        for i, value in enumerate(values):
            self.comparison("==", item, value)
            if i:
                self.step(OR)
        return None

    def comparison(self, op: str, left: Value, right: Value) -> None:
        if not isinstance(left, Arithmetic) and not isinstance(right, Arithmetic):
            for one, other, way in ((left, right, op), (right, left, MIRROR[op])):
                if self.is_level(one):
                    return self.levels(way, one, other)
            if isinstance(left, Literal) and isinstance(right, Literal) and not isinstance(left, Number):
                return self.truth(equal(left.value, right.value) == (op == "=="))
        if op in (">", ">="):
            op, left, right = MIRROR[op], right, left
        self.number(left)
        self.number(right)
        self.step(COMPARED[op])
        return None

    def is_level(self, node: Value) -> bool:
        return isinstance(node, Name | Was) and not self.feature(node)[1].is_number

    def levels(self, op: str, node: Any, other: Value) -> None:
        """A level compared with a literal, another level, or a number that equals its value."""
        feature = self.feature(node)[1]
        if isinstance(other, Literal):
            chosen = codes(feature, op, other.value)
            return self.look_up(node, [float(code in chosen) for code in range(feature.n_states)])
        if isinstance(other, Name | Was) and self.is_level(other):
            return self.pair(op, node, other)
        # A text is no number, so it differs from each that is there.
        known = [float(v) if is_number(v) or isinstance(v, bool) else np.inf for v in feature.levels]
        self.look_up(node, [*known, np.nan])
        self.number(other)
        return self.step(COMPARED[op])

    def pair(self, op: str, one: Name | Was, other: Name | Was) -> None:
        """Two levels compared: by value, or by order where they are one ordinal's."""
        (_, first), (_, second) = self.feature(one), self.feature(other)
        tests: dict[str, Callable[[int, int], bool]] = {
            "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
            "==": lambda a, b: equal(first.levels[a], second.levels[b]),
            "!=": lambda a, b: not equal(first.levels[a], second.levels[b]),
        }  # fmt: skip
        width = len(second.levels) + 1
        self.look_up(one, [float(code * width) for code in range(len(first.levels) + 1)])
        self.look_up(other, [float(code) for code in range(width)])
        self.step(PAIRED, start=len(self.table))
        for a in range(len(first.levels)):
            self.table += [*(float(tests[op](a, b)) for b in range(len(second.levels))), 0.0]
        self.table += [0.0] * width

    # -- values --------------------------------------------------------------------------------------------------

    def number(self, node: Value) -> None:
        match node:
            case Name() | Was():
                j, feature = self.feature(node)
                ranked = feature.kind is Kind.ORDINAL
                limit = float(len(feature.levels)) if ranked else 0.0
                self.step(RANK if ranked else VALUE, was=isinstance(node, Was), feature=j, constant=limit)
            case Arithmetic(op, left, right):
                self.number(left)
                self.number(right)
                self.step(ARITHMETIC[op])
            case Choice(given, then, other):
                self.choice(given, lambda: self.number(then), lambda: self.number(other))
            case _:
                self.step(CONSTANT, constant=float(node.value))

    def choice(self, given: Condition, then: Callable[[], None], other: Callable[[], None]) -> None:
        self.condition(given)
        then()
        other()
        self.step(CHOOSE)

    def result(self, node: Value, feature: Feature) -> None:
        """A value as the feature holds it: a number, or a level's code; NaN where it has none."""
        if feature.is_number:
            return self.number(node)
        if isinstance(node, Choice):
            return self.choice(
                node.given, lambda: self.result(node.then, feature), lambda: self.result(node.other, feature)
            )
        absent = float(len(feature.levels)) if feature.missing else np.nan
        if isinstance(node, Name | Was):
            known = self.feature(node)[1].levels
            return self.look_up(node, [*(_code(feature, level) for level in known), absent])
        assert isinstance(node, Number | Text) or hasattr(node, "value")
        return self.step(CONSTANT, constant=_code(feature, node.value))


def _code(feature: Feature, value: Any) -> float:
    """The code of the level that equals a value, NaN where none does."""
    return next((float(i) for i, level in enumerate(feature.levels) if equal(level, value)), np.nan)


def write(conditions: Sequence[Condition], schema: Schema) -> Programs:
    """A program for each condition, whose names and kinds were checked."""
    writer = Writer(schema)
    for tree in conditions:
        writer.condition(tree)
        writer.end()
    return writer.programs()


def hold(programs: Programs, values: Values, query: Values) -> Bools:
    """Which conditions hold on each row (rows, programs); `query` has each row's own query."""
    out = np.zeros((len(values), len(programs.at) - 1), dtype=bool)
    if out.size:
        _core.hold(programs.checked(values.shape[1]), values=values, query=query, out=out)
    return out


WHOLE, SINGLE, HALF, DOUBLE = range(4)


class Consequences(NamedTuple):
    """Programs, in an order in which they can be run, the features that they set, and how those store a number.

    A value that a feature can't have leaves the row unsettled: it is refused.
    """

    programs: Programs
    feature: Ints
    stored: Ints
    may_miss: Bools

    @classmethod
    def of(cls, expressions: Mapping[Any, Expression], schema: Schema) -> Consequences:
        """What the expressions say, by feature, in the order in which they can be worked out."""
        writer = Writer(schema)
        features = [schema[name] for name in expressions]
        for feature, made in zip(features, expressions.values(), strict=True):
            writer.result(made.tree, feature)
            writer.end()
        return cls(
            writer.programs(),
            np.array([schema.position(name) for name in expressions], dtype=np.int64),
            np.array([_stored(feature) for feature in features], dtype=np.int64),
            np.array([feature.is_number and feature.missing for feature in features], dtype=bool),
        )

    def mask(self, n_features: int) -> Bools:
        """Which features follow."""
        follows = np.zeros(n_features, dtype=bool)
        follows[self.feature] = True
        return follows

    def checked(self, n_features: int) -> _core.Consequences:
        """The consequences as the core runs them, on rows of so many features."""
        programs = self.programs.checked(n_features)
        return _core.Consequences(programs, self.feature, self.stored, self.may_miss, n_features=n_features)

    def settle(self, values: Values, query: Values) -> Bools:
        """Let features of the rows follow, in place; which rows are settled."""
        settled = np.ones(len(values), dtype=bool)
        if len(self.feature):
            _core.settle(self.checked(values.shape[1]), values=values, query=query, settled=settled)
        return settled

    def broken(self, values: Values, query: Values) -> Bools:
        """Which rows have a feature that does not follow."""
        if len(self.feature) == 0:
            return np.zeros(len(values), dtype=bool)
        moved = np.array(values, order="C")
        settled = self.settle(moved, query)
        same = (moved == values) | (np.isnan(moved) & np.isnan(values))
        broken: Bools = ~(settled & same.all(axis=1))
        return broken


def _stored(feature: Feature) -> int:
    """How a column holds a number; levels are whole codes."""
    if not feature.is_number or feature.is_whole:
        return WHOLE
    name = str(dtype_of(feature.dtype)).lower()
    if "float16" in name or "half" in name:
        return HALF
    return SINGLE if "float32" in name or name == "float[pyarrow]" else DOUBLE
