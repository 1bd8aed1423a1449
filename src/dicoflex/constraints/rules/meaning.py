"""What a rule says of one row: the reference that quicker forms are compared with."""

from __future__ import annotations

__all__ = ["evaluate"]

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dicoflex.constraints.rules.kinds import resolve
from dicoflex.constraints.rules.parser import short
from dicoflex.constraints.rules.tree import (
    COMPARISONS,
    And,
    Arithmetic,
    Comparison,
    Condition,
    Member,
    Missing,
    Name,
    Not,
    Or,
    Rule,
    Value,
)
from dicoflex.errors import RuleError, named
from dicoflex.values import equal, is_missing

ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def evaluate(rule: Rule, row: Mapping[Any, Any], *, orders: Mapping[str, Sequence[Any]] | None = None) -> bool:
    """Whether the rule holds on `row`, by name; `orders` gives the levels of ordinals, lowest first.

    >>> from dicoflex.constraints.rules.parser import parse
    >>> evaluate(parse("loan / income <= 4"), {"loan": 100, "income": 30})
    True
    >>> evaluate(parse("grade >= 'b'"), {"grade": "a"}, orders={"grade": ["c", "b", "a"]})
    True
    """
    return _Row(rule, row, orders or {}).holds(rule.tree)


class _Row:
    """One row under one rule."""

    def __init__(self, rule: Rule, row: Mapping[Any, Any], orders: Mapping[str, Sequence[Any]]) -> None:
        self.rule, self.row, self.orders = rule, row, orders

    def holds(self, node: Condition) -> bool:
        match node:
            case Comparison(op, left, right):
                return self.compared(op, left, right)
            case Member(item, values):
                found = self.value(item)
                return not is_missing(found) and any(equal(found, value.value) for value in values)
            case Missing(name):
                return is_missing(self.value(name))
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
                column = name if name in self.row else resolve(name, self.row)
                if column is None:
                    raise RuleError(f"rule {short(self.rule.text)}: {named('feature', name, self.row)}")
                found = self.row[column]
                return None if is_missing(found) else found
            case Arithmetic(op, left, right):
                return self.calculated(op, self.value(left), self.value(right))
            case _:
                return node.value

    def calculated(self, op: str, left: Any, right: Any) -> float | None:
        if left is None or right is None or (op == "/" and right == 0):
            return None
        if isinstance(left, str) or isinstance(right, str):
            raise RuleError(f"rule {short(self.rule.text)}: calculates with text; only numbers can be calculated with")
        return ARITHMETIC[op](float(left), float(right))

    def compared(self, op: str, left: Value, right: Value) -> bool:
        one, other = self.value(left), self.value(right)
        if is_missing(one) or is_missing(other):
            return False
        if op in ("==", "!="):
            return equal(one, other) == (op == "==")
        order = next(
            (self.orders[n.name] for n in (left, right) if isinstance(n, Name) and n.name in self.orders), None
        )
        if order is not None:
            one, other = self.place(one, order), self.place(other, order)
        if isinstance(one, str) or isinstance(other, str):
            raise RuleError(f"rule {short(self.rule.text)}: text has no order; use ==, != or in")
        return bool(COMPARISONS[op](one, other))

    def place(self, level: Any, order: Sequence[Any]) -> int:
        for i, known in enumerate(order):
            if equal(known, level):
                return i
        raise RuleError(f"rule {short(self.rule.text)}: {named('level', level, order)}")
