"""Rules as arrays: a conjunction of clauses, each a disjunction of literals, for samplers that look ahead.

A literal says of encoded values that a linear expression of numbers compares with 0, that a feature is at one of some
levels, that it is missing, or (an *opaque* one) something that only a finished row can tell. A comparison that
touches a missing value is false, so its negation is true: every literal carries what it is worth then. Ordinals count
by rank in linear expressions. Queries of which a rule says different things have different sets of clauses.
"""

from __future__ import annotations

__all__ = ["BELOW", "EQUAL", "LEVELS", "LINEAR", "MISSING", "OPAQUE", "UNEQUAL", "Clauses"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Bools, Floats
from dicoflex.constraints.rules.kinds import resolve
from dicoflex.constraints.rules.tree import (
    CALLED,
    And,
    Arithmetic,
    Changed,
    Comparison,
    Member,
    Missing,
    Name,
    Not,
    Number,
    Or,
    Rule,
    Was,
    speaks_of_the_query,
    walk,
)
from dicoflex.errors import ConstraintError
from dicoflex.limits.binding import Own, Unknown, bind
from dicoflex.limits.programs import codes
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature, Kind
from dicoflex.table.schema import Schema

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


Clause = tuple[_Literal, ...]


@dataclass(frozen=True)
class Clauses:
    """All clauses of some rules.

    sets: set s owns clauses sets[s] to sets[s + 1]. start: clause c owns literals start[c] to start[c + 1]. sort, op,
    constant, feature, if_missing: one per literal. coefficients: (literals, features). levels: (literals, most levels
    of any feature). touches: (clauses, features). rule: the number of each clause's rule. ranks: how many ranks each
    ordinal has; infinitely many for other features.
    """

    sets: NDArray[np.int64]
    start: NDArray[np.int64]
    sort: NDArray[np.int64]
    op: NDArray[np.int64]
    coefficients: Floats
    constant: Floats
    feature: NDArray[np.int64]
    levels: Bools
    if_missing: Bools
    touches: Bools
    rule: NDArray[np.int64]
    ranks: Floats

    @classmethod
    def build(
        cls, rules: Sequence[Rule], trees: Sequence[Any], schema: Schema, query: Values
    ) -> tuple[Clauses, NDArray[np.int64]]:
        """The clauses of `rules`, whose names and kinds were checked, and which set of them each query has.

        trees: what the rules say, made ready by `prepared`.
        """
        plain = {k: _counted(rules[k], tree, schema) for k, tree in enumerate(trees) if not speaks_of_the_query(tree)}
        about = {k: tree for k, tree in enumerate(trees) if k not in plain}
        owns, set_of = _owns(about, schema, query)
        sets = [plain | {k: _counted(rules[k], bind(tree, own), schema) for k, tree in about.items()} for own in owns]
        for one in sets[:1]:
            _check_literals(one)
        return cls._pack(sets, schema), set_of

    @classmethod
    def _pack(cls, sets: list[dict[int, list[Clause]]], schema: Schema) -> Clauses:
        clauses = [(k, clause) for one in sets for k in sorted(one) for clause in one[k]]
        literals = [literal for _, clause in clauses for literal in clause]
        widest = max([1, *(f.n_states for f in schema.features if not f.is_number)])
        coefficients = np.zeros((len(literals), len(schema)))
        levels = np.zeros((len(literals), widest), dtype=bool)
        for i, literal in enumerate(literals):
            for j, value in literal.coefficients:
                coefficients[i, j] = value
            levels[i, list(literal.levels)] = True
        touches = np.zeros((len(clauses), len(schema)), dtype=bool)
        for c, (_, clause) in enumerate(clauses):
            for literal in clause:
                touches[c, list(literal.touches)] = True
        return cls(
            sets=np.cumsum([0, *(sum(map(len, one.values())) for one in sets)]).astype(np.int64),
            start=np.cumsum([0, *(len(clause) for _, clause in clauses)]).astype(np.int64),
            sort=np.array([x.sort for x in literals], dtype=np.int64),
            op=np.array([x.op for x in literals], dtype=np.int64),
            coefficients=coefficients,
            constant=np.array([x.constant for x in literals], dtype=float),
            feature=np.array([x.feature for x in literals], dtype=np.int64),
            levels=levels,
            if_missing=np.array([x.if_missing for x in literals], dtype=bool),
            touches=touches,
            rule=np.array([k for k, _ in clauses], dtype=np.int64),
            ranks=np.array([len(f.levels) if f.kind is Kind.ORDINAL else np.inf for f in schema.features]),
        )

    def __len__(self) -> int:
        return len(self.start) - 1

    def of_set(self, number: int) -> range:
        """The clauses of a set."""
        return range(int(self.sets[number]), int(self.sets[number + 1]))

    def may_hold(self, values: Values, clauses: range) -> Bools:
        """Which of some clauses hold on each row of encoded values, up to rounding, or have one that can't tell."""
        found = [
            np.array([self._literal_holds(i, values) for i in range(self.start[c], self.start[c + 1])]).any(axis=0)
            for c in clauses
        ]
        return np.array(found, dtype=bool).reshape(len(clauses), len(values)).T

    def _literal_holds(self, i: int, values: Values) -> Bools:
        sort, column = self.sort[i], values[:, self.feature[i]]
        if sort == LEVELS:
            return np.asarray(self.levels[i][column.astype(np.int64)])
        if sort == MISSING:
            return np.asarray(np.isnan(column) == self.if_missing[i])
        return np.ones(len(values), dtype=bool) if sort == OPAQUE else self._linear_holds(i, values)

    def _linear_holds(self, i: int, values: Values) -> Bools:
        used = self.coefficients[i] != 0
        known = np.where(values[:, used] >= self.ranks[used], np.nan, values[:, used])
        total = known @ self.coefficients[i, used] + self.constant[i]
        compare = {AT_MOST: np.less_equal, BELOW: np.less, EQUAL: np.equal, UNEQUAL: np.not_equal}[int(self.op[i])]
        return np.asarray(np.where(np.isnan(total), self.if_missing[i], compare(total, 0.0)))


def _owns(about: Mapping[int, Any], schema: Schema, query: Values) -> tuple[list[Own], NDArray[np.int64]]:
    """What queries were, as far as rules ask, each different one once, and which of them each query is."""
    spoken = [node for tree in about.values() for node in walk(tree) if isinstance(node, Was | Changed)]
    asked = {node.name: _feature(Name(node.name), schema)[0] for node in spoken}
    known = np.where(np.isnan(query), np.inf, query)[:, list(asked.values())]
    if not asked:
        return [Own({}, {})], np.zeros(len(query), dtype=np.int64)
    rows, set_of = np.unique(known, axis=0, return_inverse=True)
    return [_own(row, asked, schema) for row in rows], set_of.reshape(-1)


def _own(row: Floats, asked: Mapping[str, int], schema: Schema) -> Own:
    plain: dict[str, Any] = {}
    ranks: dict[str, int | None] = {}
    for (name, j), value in zip(asked.items(), row.tolist(), strict=True):
        feature = schema.features[j]
        there = value < np.inf if feature.is_number else value < len(feature.levels)
        plain[name] = (value if feature.is_number else feature.levels[int(value)]) if there else None
        if feature.kind is Kind.ORDINAL:
            ranks[name] = int(value) if there else None
    return Own(plain, ranks)


def _counted(rule: Rule, tree: Any, schema: Schema) -> list[Clause]:
    """The clauses of one rule, none of which is settled beforehand."""
    found = _clauses(tree, schema, negated=False)
    if len(found) > MOST_CLAUSES:
        raise ConstraintError(
            f"rule {rule.text!r} joins too many alternatives ({len(found)} clauses, at most {MOST_CLAUSES}); "
            "write it as several rules"
        )
    open_ = [clause for clause in found if not any(_settled(literal) is True for literal in clause)]
    return [tuple(x for x in clause if _settled(x) is None) or clause[:1] for clause in open_]


def _settled(literal: _Literal) -> bool | None:
    """Whether a literal holds whatever a row is; None where that depends on it."""
    if literal.sort != LINEAR or literal.touches:
        return None
    constant = literal.constant
    tests = {AT_MOST: constant <= 0, BELOW: constant < 0, EQUAL: constant == 0, UNEQUAL: constant != 0}
    return tests[literal.op]


def _check_literals(clauses: Mapping[int, list[Clause]]) -> None:
    literals = sum(len(clause) for found in clauses.values() for clause in found)
    if literals > MOST_LITERALS:
        raise ConstraintError(
            f"the rules come to {literals:,} conditions when taken apart, and {MOST_LITERALS:,} are the most; "
            "leave some out, or join fewer alternatives"
        )


def _clauses(node: Any, schema: Schema, *, negated: bool) -> list[Clause]:
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


def _member(node: Member, schema: Schema, *, negated: bool) -> list[Clause]:
    """`in`: for levels one literal, for numbers an equation per value."""
    if isinstance(node.item, Name) and _is_level(node.item, schema):
        j, feature = _feature(node.item, schema)
        chosen = {code for value in node.values for code in codes(feature, "==", value.value)}
        return [(_on_levels(j, feature, chosen, negated=negated),)]
    equations = [_literal(Comparison("==", node.item, value), schema, negated=negated) for value in node.values]
    return [(equation,) for equation in equations] if negated else [tuple(equations)]


def _literal(node: Any, schema: Schema, *, negated: bool) -> _Literal:
    if isinstance(node, Unknown):
        return _Literal(OPAQUE, touches=tuple(_feature(Name(name), schema)[0] for name in node.about))
    if isinstance(node, Missing):
        j, feature = _feature(Name(node.name.name), schema)
        if feature.is_number:
            return _Literal(MISSING, feature=j, if_missing=not negated, touches=(j,))
        return _on_levels(j, feature, {len(feature.levels)} if feature.missing else set(), negated=negated, plain=True)
    other: Any
    for name, op, other in ((node.left, node.op, node.right), (node.right, _MIRROR[node.op], node.left)):
        if isinstance(name, Name) and _is_level(name, schema) and not isinstance(other, Name | Arithmetic):
            j, feature = _feature(name, schema)
            return _on_levels(j, feature, set(codes(feature, op, other.value)), negated=negated)
    left, right = _linear(node.left, schema), _linear(node.right, schema)
    opaque = _Literal(OPAQUE, touches=tuple(_touched(node, schema)))
    by_value = not isinstance(node.left, Arithmetic) and not isinstance(node.right, Arithmetic)
    if left is None or right is None or (by_value and (_is_level(node.left, schema) or _is_level(node.right, schema))):
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


def _linear(node: Any, schema: Schema) -> dict[int, float] | None:
    """Coefficients by feature, the constant under -1; None where the expression is not linear in numbers."""
    if isinstance(node, Number):
        return {CONSTANT: node.value}
    if isinstance(node, Name):
        j, feature = _feature(node, schema)
        return {j: 1.0} if feature.is_number or feature.kind is Kind.ORDINAL else None
    if not isinstance(node, Arithmetic):
        return None
    left, right = _linear(node.left, schema), _linear(node.right, schema)
    if left is None or right is None:
        return None
    if node.op in CALLED:
        known = set(left) == set(right) == {CONSTANT}
        return {CONSTANT: CALLED[node.op](left[CONSTANT], right[CONSTANT])} if known else None
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


def _is_level(node: Any, schema: Schema) -> bool:
    return isinstance(node, Name) and not _feature(node, schema)[1].is_number


def _touched(node: Any, schema: Schema) -> list[int]:
    if isinstance(node, Name):
        return [_feature(node, schema)[0]]
    if isinstance(node, Arithmetic | Comparison):
        return _touched(node.left, schema) + _touched(node.right, schema)
    return []
