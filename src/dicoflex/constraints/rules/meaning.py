"""What a rule says of one row: the reference that quicker forms are compared with."""

from __future__ import annotations

__all__ = ["evaluate", "worked_out"]

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dicoflex.constraints.rules.kinds import resolve
from dicoflex.constraints.rules.parser import short
from dicoflex.constraints.rules.tree import (
    CALLED,
    COMPARISONS,
    And,
    Arithmetic,
    Changed,
    Choice,
    Comparison,
    Condition,
    Expression,
    Member,
    Missing,
    Name,
    Not,
    Or,
    Rule,
    Value,
    Was,
)
from dicoflex.errors import RuleError, named
from dicoflex.values import equal, is_missing, typed

ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    **CALLED,
}
Row = Mapping[Any, Any]
Orders = Mapping[str, Sequence[Any]]


def evaluate(rule: Rule, row: Row, *, was: Row | None = None, orders: Orders | None = None) -> bool:
    """Whether the rule holds on `row`, by name; `was` is the query, `orders` the levels of ordinals, lowest first.

    >>> from dicoflex.constraints.rules.parser import parse
    >>> evaluate(parse("loan / income <= 4"), {"loan": 100, "income": 30})
    True
    >>> evaluate(parse("grade >= 'b'"), {"grade": "a"}, orders={"grade": ["c", "b", "a"]})
    True
    >>> evaluate(parse("age >= was.age + 2"), {"age": 41}, was={"age": 40})
    False
    """
    return _Row(rule, row, was, orders or {}).holds(rule.tree)


def worked_out(made: Expression, row: Row, *, was: Row | None = None, orders: Orders | None = None) -> Any:
    """The value that an expression has on `row`, None where it is missing or has none; see `evaluate`.

    >>> from dicoflex.constraints.rules.parser import parse_value
    >>> worked_out(parse_value("if job != was.job then 0 else was.tenure"), {"job": "cook"}, was={"job": "clerk"})
    0.0
    """
    return _Row(made, row, was, orders or {}).value(made.tree)


class _Row:
    """One row under one rule."""

    def __init__(self, rule: Rule | Expression, row: Row, was: Row | None, orders: Orders) -> None:
        self.rule, self.row, self.was, self.orders = rule, row, was, orders

    def holds(self, node: Condition) -> bool:
        match node:
            case Comparison(op, left, right):
                return self.compared(op, left, right)
            case Member(item, values):
                found = self.value(item)
                return not is_missing(found) and any(equal(found, value.value) for value in values)
            case Missing(name):
                return is_missing(self.value(name))
            case Changed(name):
                now, before = self.value(Name(name)), self.value(Was(name))
                return typed(now) != typed(before)
            case And(parts):
                return all(self.holds(part) for part in parts)
            case Or(parts):
                return any(self.holds(part) for part in parts)
            case Not(part):
                return not self.holds(part)

    def value(self, node: Value) -> Any:
        """A plain value, or None where it is missing or has no result."""
        match node:
            case Name(name):
                return self.looked_up(name, self.row)
            case Was(name):
                if self.was is None:
                    raise RuleError(f"rule {short(self.rule.text)}: speaks of what {name} was; give the query as well")
                return self.looked_up(name, self.was)
            case Arithmetic(op, left, right):
                return self.calculated(op, self.amount(left), self.amount(right))
            case Choice(given, then, other):
                return self.value(then if self.holds(given) else other)
            case _:
                return node.value

    def looked_up(self, name: str, row: Row) -> Any:
        column = name if name in row else resolve(name, row)
        if column is None:
            raise RuleError(f"rule {short(self.rule.text)}: {named('feature', name, row)}")
        found = row[column]
        return None if is_missing(found) else found

    def amount(self, node: Value) -> Any:
        """A value to calculate with: of an ordinal its rank."""
        found = self.value(node)
        if isinstance(node, Name | Was) and node.name in self.orders and found is not None:
            return self.place(found, self.orders[node.name])
        return found

    def calculated(self, op: str, left: Any, right: Any) -> float | None:
        if left is None or right is None or (op == "/" and right == 0):
            return None
        if isinstance(left, str) or isinstance(right, str):
            raise RuleError(f"rule {short(self.rule.text)}: calculates with text; only numbers can be calculated with")
        return ARITHMETIC[op](float(left), float(right))

    def compared(self, op: str, left: Value, right: Value) -> bool:
        if isinstance(left, Arithmetic) or isinstance(right, Arithmetic):
            one, other = self.amount(left), self.amount(right)
        else:
            one, other = self.value(left), self.value(right)
        if is_missing(one) or is_missing(other):
            return False
        if op in ("==", "!="):
            return equal(one, other) == (op == "==")
        order = self.order(left, right)
        if order is not None:
            one, other = self.place(one, order), self.place(other, order)
        if isinstance(one, str) or isinstance(other, str):
            raise RuleError(f"rule {short(self.rule.text)}: text has no order; use ==, != or in")
        return bool(COMPARISONS[op](one, other))

    def order(self, left: Value, right: Value) -> Sequence[Any] | None:
        """The levels by which two values compare, None where they are numbers."""
        if isinstance(left, Arithmetic) or isinstance(right, Arithmetic):
            return None
        known = (n.name for n in (left, right) if isinstance(n, Name | Was) and n.name in self.orders)
        return next((self.orders[name] for name in known), None)

    def place(self, level: Any, order: Sequence[Any]) -> int:
        for i, known in enumerate(order):
            if equal(known, level):
                return i
        raise RuleError(f"rule {short(self.rule.text)}: {named('level', level, order)}")
