"""Names and kinds that a rule may compare, checked before any row is seen."""

from __future__ import annotations

__all__ = ["check_kinds", "check_names", "check_result", "resolve"]

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dicoflex.constraints.rules.parser import short
from dicoflex.constraints.rules.tree import (
    SUM,
    Arithmetic,
    Choice,
    Comparison,
    Expression,
    Literal,
    Member,
    Name,
    Number,
    Rule,
    Text,
    Truth,
    Value,
    Was,
    is_bare,
    names,
    walk,
    written,
)
from dicoflex.errors import RuleError, named
from dicoflex.values import equal


def resolve(name: str, known: Iterable[Any]) -> Any:
    """The one of `known` that a rule's name means, or None; columns that are numbers are written as text.

    >>> resolve("7", [7, "age"])
    7
    """
    columns = list(known)
    return name if name in columns else {str(column): column for column in columns}.get(name)


def check_names(rule: Rule | Expression, known: Iterable[Any]) -> None:
    """Refuse a rule that names a feature which is not among `known`."""
    columns = list(known)
    for name in names(rule):
        if resolve(name, columns) is None:
            # Where `marital-status` lacks its backticks, it reads as a difference.
            meant = [str(c) for c in columns if name in str(c) and not is_bare(str(c)) and str(c) in rule.text]
            hint = f"a name such as {meant[0]} goes in backticks: `{meant[0]}`" if meant else None
            raise RuleError(f"rule {short(rule.text)}: {hint or named('feature', name, columns)}")


Levels = Mapping[str, Sequence[Any]]


def check_kinds(rule: Rule | Expression, kinds: Mapping[str, str], levels: Levels | None = None) -> None:
    """Refuse a rule that compares what can't be compared.

    kinds: a rule's name to 'number', 'level', 'ordinal' or 'boolean'.
    levels: the levels of names of kind 'level' and 'ordinal', the latter in their order; literals must be among them.

    >>> from dicoflex.constraints.rules.parser import parse
    >>> check_kinds(parse("age >= 'old'"), {"age": "number"})
    Traceback (most recent call last):
    dicoflex.errors.RuleError: rule "age >= 'old'": compares age, a number, with the text 'old'; write a number
    """
    checker = _Kinds(rule, kinds, levels or {})
    for node in walk(rule.tree):
        match node:
            case Arithmetic(_, left, right):
                checker.number(left)
                checker.number(right)
            case Comparison(op, left, right) if op in ("==", "!="):
                checker.equality(left, right)
            case Comparison(_, left, right):
                checker.order(left, right)
            case Member(item, values):
                for value in values:
                    checker.equality(item, value)
            case _:
                pass


def check_result(made: Expression, name: str, kinds: Mapping[str, str], levels: Levels | None = None) -> None:
    """Refuse an expression whose value the feature `name` can't have; `kinds` and `levels` as for `check_kinds`.

    >>> from dicoflex.constraints.rules.parser import parse_value
    >>> check_result(parse_value("'old'"), "age", {"age": "number"})
    Traceback (most recent call last):
    dicoflex.errors.RuleError: rule "'old'": gives age, a number, the text 'old'; write a number
    """
    check_kinds(made, kinds, levels)
    _Kinds(made, kinds, levels or {}).result(made.tree, Name(name))


class _Kinds:
    """What `check_kinds` knows: the kind of every name, and its levels."""

    def __init__(self, rule: Rule | Expression, kinds: Mapping[str, str], levels: Levels) -> None:
        self.rule, self.kinds, self.levels = rule, kinds, levels

    def kind(self, node: Value) -> str:
        match node:
            case Name(name) | Was(name):
                return self.kinds.get(name, "number")
            case Text():
                return "text"
            case Truth():
                return "truth"
            case Choice(_, then, other):
                return self.chosen(then, other)
            case _:
                return "number"

    def chosen(self, then: Value, other: Value) -> str:
        """The kind of one of two values, which in a condition are numbers."""
        for node in (then, other):
            if self.kind(node) != "number":
                raise self.error(f"chooses {self.called(node).rstrip(',')}; inside a condition, choose between numbers")
        return "number"

    def error(self, problem: str) -> RuleError:
        return RuleError(f"rule {short(self.rule.text)}: {problem}")

    def called(self, node: Value) -> str:
        """The operand as a message names it."""
        text = written(node, SUM)
        words = {"level": "a category", "ordinal": "an ordinal", "boolean": "a boolean", "number": "a number"}
        if isinstance(node, Name | Was):
            return f"{text}, {words[self.kind(node)]},"
        return f"the text {text}" if isinstance(node, Text) else text

    def number(self, node: Value) -> None:
        if self.kind(node) not in ("number", "ordinal"):
            raise self.error(f"calculates with {self.called(node).rstrip(',')}; only numbers can be calculated with")

    def equality(self, left: Value, right: Value) -> None:
        if self.kind(left) in ("number", "text", "truth") and isinstance(right, Name | Was):
            left, right = right, left
        one, other = self.kind(left), self.kind(right)
        if one == "ordinal" and self.counts_ranks(right):
            return
        if one in ("level", "ordinal"):
            fine = isinstance(right, Literal) or other in ("level", "ordinal")
        elif one == "boolean":
            fine = other in ("boolean", "truth") or (isinstance(right, Number) and right.value in (0.0, 1.0))
        else:
            fine = one == other
        if not fine:
            raise self.mismatch(left, right)
        if one in ("level", "ordinal") and isinstance(left, Name | Was) and isinstance(right, Literal):
            self.known(left, right)

    def order(self, left: Value, right: Value) -> None:
        for one, other in ((left, right), (right, left)):
            kind = self.kind(one)
            if kind in ("level", "boolean"):
                sort = "a category" if kind == "level" else "a boolean"
                raise self.error(f"{written(one, SUM)} is {sort} and has no order; use ==, != or in")
            if kind == "ordinal" and isinstance(one, Name | Was):
                if self.counts_ranks(other) or (isinstance(other, Name | Was) and other.name == one.name):
                    return None
                if not isinstance(other, Literal):
                    raise self.error(
                        f"{one.name} is an ordinal; compare it by order with one of its levels, not with "
                        f"{self.called(other).rstrip(',')}"
                    )
                return self.known(one, other)
        if (self.kind(left), self.kind(right)) != ("number", "number"):
            raise self.mismatch(left, right)
        return None

    def counts_ranks(self, node: Value) -> bool:
        """Whether a value was calculated from ranks of ordinals."""
        return isinstance(node, Arithmetic) and any(
            self.kind(part) == "ordinal" for part in walk(node) if isinstance(part, Name | Was)
        )

    def result(self, node: Value, name: Name) -> None:
        """Refuse what is no value of the feature."""
        if isinstance(node, Choice):
            self.result(node.then, name)
            return self.result(node.other, name)
        wanted, found, was = self.kind(name), self.kind(node), written(Was(name.name), SUM)
        if wanted in ("level", "ordinal") and isinstance(node, Literal):
            return self.known(name, node)
        fine = found == wanted or {wanted, found} == {"level", "ordinal"} or (wanted, found) == ("boolean", "truth")
        if not fine:
            remedy = self.remedy(name) if wanted in ("number", "boolean") else f"write one of its levels, or {was}"
            raise self.error(f"gives {self.called(name)} {self.called(node).rstrip(',')}; {remedy}")
        return None

    def known(self, name: Name | Was, literal: Literal) -> None:
        """Refuse a literal that is none of the feature's levels."""
        levels = self.levels.get(name.name)
        if levels is not None and not any(equal(level, literal.value) for level in levels):
            value = literal.value
            value = int(value) if isinstance(value, float) and value.is_integer() else value
            raise self.error(named(f"level of {name.name}:", value, levels))

    def mismatch(self, left: Value, right: Value) -> RuleError:
        called = self.called(right).rstrip(",")
        return self.error(f"compares {self.called(left)} with {called}; {self.remedy(left)}")

    def remedy(self, node: Value) -> str:
        return {"number": "write a number", "boolean": "write true or false"}.get(self.kind(node), "use one kind")
