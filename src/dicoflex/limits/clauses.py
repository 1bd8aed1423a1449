"""Rules as arrays: a conjunction of clauses, each a disjunction of literals, for samplers that look ahead.

A literal says of encoded values that a linear expression of numbers compares with 0, that a feature is at one of some
levels, that it is missing, or (an *opaque* one) something that only a finished row can tell. A comparison that
touches a missing value is false, so its negation is true: every literal carries what it is worth then.
"""

from __future__ import annotations

__all__ = ["BELOW", "EQUAL", "LEVELS", "LINEAR", "MISSING", "OPAQUE", "UNEQUAL", "Clauses", "holds"]

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.constraints.rules.kinds import resolve
from dicoflex.constraints.rules.tree import (
    And,
    Arithmetic,
    Comparison,
    Member,
    Missing,
    Name,
    Node,
    Not,
    Number,
    Or,
    Rule,
    Text,
    Truth,
)
from dicoflex.errors import ConstraintError
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema
from dicoflex.values import equal

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LINEAR, LEVELS, MISSING, OPAQUE = range(4)
AT_MOST, BELOW, EQUAL, UNEQUAL = range(4)
MOST_CLAUSES = 256
MOST_LITERALS = 2048


@dataclass(frozen=True)
class _Literal:
    """One condition; `coefficients` and `constant` of a linear one (compared with 0), `levels` of one on levels."""

    sort: int
    op: int = AT_MOST
    coefficients: tuple[tuple[int, float], ...] = ()
    constant: float = 0.0
    feature: int = -1
    levels: tuple[int, ...] = ()
    if_missing: bool = False
    touches: tuple[int, ...] = ()


@dataclass(frozen=True)
class Clauses:
    """All clauses of some rules.

    start: clause c owns literals start[c] to start[c + 1]. sort, op, constant, feature, if_missing: one per literal.
    coefficients: (literals, features). levels: (literals, most levels of any feature). touches: (clauses, features).
    """

    start: NDArray[np.int64]
    sort: NDArray[np.int64]
    op: NDArray[np.int64]
    coefficients: Floats
    constant: Floats
    feature: NDArray[np.int64]
    levels: Bools
    if_missing: Bools
    touches: Bools
    rule: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def build(cls, rules: Sequence[Rule], schema: Schema) -> Clauses:
        """The clauses of `rules`, whose names and kinds were checked."""
        clauses, origin = [], []
        for number, rule in enumerate(rules):
            found = _clauses(rule.tree, schema, negated=False)
            if len(found) > MOST_CLAUSES:
                raise ConstraintError(
                    f"rule {rule.text!r} joins too many alternatives ({len(found)} clauses, at most {MOST_CLAUSES}); "
                    "write it as several rules"
                )
            clauses += found
            origin += [number] * len(found)
        literals = sum(map(len, clauses))
        if literals > MOST_LITERALS:
            raise ConstraintError(
                f"the rules come to {literals:,} conditions when taken apart, and {MOST_LITERALS:,} are the most; "
                "leave some out, or join fewer alternatives"
            )
        return cls._pack(clauses, origin, schema)

    @classmethod
    def _pack(cls, clauses: list[tuple[_Literal, ...]], origin: list[int], schema: Schema) -> Clauses:
        literals = [literal for clause in clauses for literal in clause]
        widest = max([1, *(f.n_states for f in schema.features if not f.is_number)])
        coefficients = np.zeros((len(literals), len(schema)))
        levels = np.zeros((len(literals), widest), dtype=bool)
        for i, literal in enumerate(literals):
            for j, value in literal.coefficients:
                coefficients[i, j] = value
            levels[i, list(literal.levels)] = True
        touches = np.zeros((len(clauses), len(schema)), dtype=bool)
        for c, clause in enumerate(clauses):
            for literal in clause:
                touches[c, list(literal.touches)] = True
        return cls(
            start=np.cumsum([0, *map(len, clauses)]).astype(np.int64),
            sort=np.array([x.sort for x in literals], dtype=np.int64),
            op=np.array([x.op for x in literals], dtype=np.int64),
            coefficients=coefficients,
            constant=np.array([x.constant for x in literals], dtype=float),
            feature=np.array([x.feature for x in literals], dtype=np.int64),
            levels=levels,
            if_missing=np.array([x.if_missing for x in literals], dtype=bool),
            touches=touches,
            rule=np.array(origin, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.start) - 1

    def may_hold(self, values: Values) -> Bools:
        """Which clauses hold on each row of encoded values, up to rounding, or have a literal that can't tell."""
        true = np.zeros((len(values), len(self.sort)), dtype=bool)
        for i, sort in enumerate(self.sort):
            if sort == LEVELS:
                true[:, i] = self.levels[i][values[:, self.feature[i]].astype(np.int64)]
            elif sort == MISSING:
                true[:, i] = np.isnan(values[:, self.feature[i]]) == self.if_missing[i]
            else:
                true[:, i] = sort == OPAQUE or self._linear_holds(i, values)
        return np.array([true[:, a:b].any(axis=1) for a, b in pairwise(self.start)]).reshape(len(self), len(values)).T

    def _linear_holds(self, i: int, values: Values) -> Bools:
        used = self.coefficients[i] != 0
        total = values[:, used] @ self.coefficients[i, used] + self.constant[i]
        compare = {AT_MOST: np.less_equal, BELOW: np.less, EQUAL: np.equal, UNEQUAL: np.not_equal}[int(self.op[i])]
        return np.asarray(np.where(np.isnan(total), self.if_missing[i], compare(total, 0.0)))


def _clauses(node: Node, schema: Schema, *, negated: bool) -> list[tuple[_Literal, ...]]:
    """The conjunctive normal form of a tree or of its negation."""
    if isinstance(node, Not):
        return _clauses(node.part, schema, negated=not negated)
    if isinstance(node, And | Or):
        parts = [_clauses(part, schema, negated=negated) for part in node.parts]
        if isinstance(node, And) != negated:
            return [clause for part in parts for clause in part]
        if np.prod([float(len(part)) for part in parts]) > MOST_CLAUSES:
            return [()] * (MOST_CLAUSES + 1)
        return [sum(choice, ()) for choice in product(*parts)]
    if isinstance(node, Member):
        return _member(node, schema, negated=negated)
    return [(_literal(node, schema, negated=negated),)]


def _member(node: Member, schema: Schema, *, negated: bool) -> list[tuple[_Literal, ...]]:
    """`in`: for levels one literal, for numbers an equation per value."""
    if isinstance(node.item, Name) and _is_level(node.item, schema):
        j, feature = _feature(node.item, schema)
        codes = {code for value in node.values for code in _codes(feature, "==", value)}
        return [(_on_levels(j, feature, codes, negated=negated),)]
    equations = [_literal(Comparison("==", node.item, value), schema, negated=negated) for value in node.values]
    return [(equation,) for equation in equations] if negated else [tuple(equations)]


def _literal(node: Node, schema: Schema, *, negated: bool) -> _Literal:
    if isinstance(node, Missing):
        j, feature = _feature(node.name, schema)
        if feature.is_number:
            return _Literal(MISSING, feature=j, if_missing=not negated, touches=(j,))
        return _on_levels(j, feature, {len(feature.levels)} if feature.missing else set(), negated=negated, plain=True)
    assert isinstance(node, Comparison)
    for name, op, other in ((node.left, node.op, node.right), (node.right, _MIRROR[node.op], node.left)):
        if isinstance(name, Name) and _is_level(name, schema) and not isinstance(other, Name):
            j, feature = _feature(name, schema)
            return _on_levels(j, feature, set(_codes(feature, op, other)), negated=negated)
    left, right = _linear(node.left, schema), _linear(node.right, schema)
    opaque = _Literal(OPAQUE, touches=tuple(_touched(node, schema)))
    if left is None or right is None:
        return opaque
    terms = {j: left.get(j, 0.0) - right.get(j, 0.0) for j in left | right}
    # A feature whose weights add up to nothing still makes the comparison false where it is missing.
    cancelled = any(weight == 0.0 and j != CONSTANT and schema.features[j].missing for j, weight in terms.items())
    if cancelled or not np.isfinite(list(terms.values())).all():
        return opaque
    return _compare(node.op, terms, negated=negated)


_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_OPS = {"<=": AT_MOST, "<": BELOW, "==": EQUAL, "!=": UNEQUAL}
CONSTANT = -1


def _compare(op: str, terms: dict[int, float], *, negated: bool) -> _Literal:
    """`terms` (coefficients by feature, the constant under -1) compared with 0."""
    op = _OPPOSITE[op] if negated else op
    sign = 1.0
    if op in (">", ">="):
        op, sign = _MIRROR[op], -1.0
    used = tuple((j, sign * c) for j, c in sorted(terms.items()) if j != CONSTANT)
    live = tuple((j, c) for j, c in used if c != 0.0)
    constant = sign * terms.get(CONSTANT, 0.0)
    return _Literal(LINEAR, _OPS[op], live, constant, if_missing=negated, touches=tuple(j for j, _ in used))


def _on_levels(j: int, feature: Feature, codes: set[int], *, negated: bool, plain: bool = False) -> _Literal:
    """True at `codes`, or, negated, at all other states; a missing level is no level, unless that is the question."""
    states = set(range(feature.n_states if plain else len(feature.levels)))
    chosen = (states - codes) if negated else (states & codes)
    if negated and feature.missing and not plain:
        chosen.add(len(feature.levels))
    return _Literal(LEVELS, feature=j, levels=tuple(sorted(chosen)), touches=(j,))


def _codes(feature: Feature, op: str, literal: Any) -> list[int]:
    """The codes of the levels that compare so with a literal: equality by value, order by the feature's own."""
    value = literal.value if isinstance(literal, Number | Text | Truth) else literal
    same = [code for code, level in enumerate(feature.levels) if equal(level, value)]
    if op == "==":
        return same
    if op == "!=":
        return [code for code in range(len(feature.levels)) if code not in same]
    at = same[0] if same else -1
    tests = {"<": lambda c: c < at, "<=": lambda c: c <= at, ">": lambda c: c > at, ">=": lambda c: c >= at}
    return [code for code in range(len(feature.levels)) if same and tests[op](code)]


def _linear(node: Node, schema: Schema) -> dict[int, float] | None:
    """Coefficients by feature, the constant under -1; None where the expression is not linear in numbers."""
    if isinstance(node, Number):
        return {CONSTANT: node.value}
    if isinstance(node, Name):
        j, feature = _feature(node, schema)
        return {j: 1.0} if feature.is_number else None
    if not isinstance(node, Arithmetic):
        return None
    left, right = _linear(node.left, schema), _linear(node.right, schema)
    if left is None or right is None:
        return None
    if node.op in ("+", "-"):
        sign = 1.0 if node.op == "+" else -1.0
        return {j: left.get(j, 0.0) + sign * right.get(j, 0.0) for j in left | right}
    if node.op == "*" and set(left) == {CONSTANT}:
        left, right = right, left
    if set(right) != {CONSTANT} or (node.op == "/" and right[CONSTANT] == 0.0):
        return None
    by = right[CONSTANT] if node.op == "*" else 1.0 / right[CONSTANT]
    return {j: c * by for j, c in left.items()}


def _feature(node: Name, schema: Schema) -> tuple[int, Feature]:
    j = schema.names.index(resolve(node.name, schema.names))
    return j, schema.features[j]


def _is_level(node: Node, schema: Schema) -> bool:
    return isinstance(node, Name) and not _feature(node, schema)[1].is_number


def _touched(node: Any, schema: Schema) -> list[int]:
    if isinstance(node, Name):
        return [_feature(node, schema)[0]]
    if isinstance(node, Arithmetic | Comparison):
        return _touched(node.left, schema) + _touched(node.right, schema)
    return []


# -- finished rows -----------------------------------------------------------------------------------------------


def holds(rule: Rule, values: Values, schema: Schema) -> Bools:
    """Which rows of a matrix of encoded values obey a rule, from its tree, whatever it says."""
    return _holds(rule.tree, values, schema)


def _holds(node: Node, values: Values, schema: Schema) -> Bools:
    if isinstance(node, Not):
        return ~_holds(node.part, values, schema)
    if isinstance(node, And | Or):
        parts = np.array([_holds(part, values, schema) for part in node.parts], dtype=bool)
        return np.asarray(parts.all(axis=0) if isinstance(node, And) else parts.any(axis=0))
    if isinstance(node, Member):
        same = [_compared(Comparison("==", node.item, value), values, schema) for value in node.values]
        return np.asarray(np.array(same, dtype=bool).reshape(len(same), len(values)).any(axis=0))
    if isinstance(node, Missing):
        return _absent(node.name, values, schema)
    assert isinstance(node, Comparison)
    return _compared(node, values, schema)


_NUMPY = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
}  # fmt: skip


def _compared(node: Comparison, values: Values, schema: Schema) -> Bools:
    sides = ((node.left, node.op, node.right), (node.right, _MIRROR[node.op], node.left))
    for name, op, other in sides:
        if isinstance(name, Name) and _is_level(name, schema):
            return _level_compared(name, op, other, values, schema)
    if isinstance(node.left, Text | Truth) and isinstance(node.right, Text | Truth):
        return np.full(len(values), equal(node.left.value, node.right.value) == (node.op == "=="))
    left, right = _number(node.left, values, schema), _number(node.right, values, schema)
    found: Bools = _NUMPY[node.op](left, right) & ~np.isnan(left) & ~np.isnan(right)
    return found


def _level_compared(name: Name, op: str, other: Node, values: Values, schema: Schema) -> Bools:
    j, feature = _feature(name, schema)
    codes = values[:, j].astype(np.int64)
    if not isinstance(other, Name):
        return np.asarray(np.isin(codes, _codes(feature, op, other)))
    k, second = _feature(other, schema)
    present = ~_absent(name, values, schema) & ~_absent(other, values, schema)
    if op not in ("==", "!="):
        return np.asarray(present & _NUMPY[op](codes, values[:, k]))
    if second.is_number:
        table = np.array([[equal(a, b) for b in values[:, k]] for a in feature.levels]).reshape(-1, len(values))
        same = table[np.minimum(codes, len(feature.levels) - 1), np.arange(len(values))]
    else:
        pairs = np.array([[equal(a, b) for b in (*second.levels, None)] for a in (*feature.levels, None)])
        same = pairs[codes, values[:, k].astype(np.int64)]
    return np.asarray(present & (same if op == "==" else ~same))


def _absent(name: Name, values: Values, schema: Schema) -> Bools:
    j, feature = _feature(name, schema)
    absent: Bools = np.isnan(values[:, j]) if feature.is_number else values[:, j] == len(feature.levels)
    return absent


def _number(node: Node, values: Values, schema: Schema) -> Floats:
    """The value of an expression per row; NaN where it touches a missing value or divides by zero."""
    if isinstance(node, Number):
        return np.full(len(values), node.value)
    if isinstance(node, Name):
        return values[:, _feature(node, schema)[0]]
    assert isinstance(node, Arithmetic)
    left, right = _number(node.left, values, schema), _number(node.right, values, schema)
    with np.errstate(all="ignore"):
        found: Floats = _NUMPY[node.op](left, right)
    return np.where(right == 0.0, np.nan, found) if node.op == "/" else found
