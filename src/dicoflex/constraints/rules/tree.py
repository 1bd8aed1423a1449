"""The trees of rules: nodes, what they name, and the text that they are written as."""

from __future__ import annotations

__all__ = [
    "CALLED",
    "COMPARE",
    "COMPARISONS",
    "IF",
    "NOT",
    "OR",
    "POWERS",
    "SIGN",
    "SUM",
    "TRUTHS",
    "WORDS",
    "And",
    "Arithmetic",
    "Changed",
    "Choice",
    "Comparison",
    "Condition",
    "Expression",
    "Literal",
    "Member",
    "Missing",
    "Name",
    "Node",
    "Not",
    "Number",
    "Or",
    "Rule",
    "Text",
    "Truth",
    "Value",
    "Was",
    "edited",
    "is_bare",
    "names",
    "speaks_of_the_query",
    "walk",
    "written",
]

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Number:
    """A literal number."""

    value: float


@dataclass(frozen=True)
class Text:
    """A literal text."""

    value: str


@dataclass(frozen=True)
class Truth:
    """The literal true or false."""

    value: bool


@dataclass(frozen=True)
class Name:
    """The value of a feature."""

    name: str


@dataclass(frozen=True)
class Was:
    """The query's value of a feature."""

    name: str


@dataclass(frozen=True)
class Arithmetic:
    """`left op right` of numbers, op one of + - * / min max."""

    op: str
    left: Value
    right: Value


@dataclass(frozen=True)
class Choice:
    """One value where a condition holds, and else the other."""

    given: Condition
    then: Value
    other: Value


@dataclass(frozen=True)
class Comparison:
    """`left op right`, op one of < <= > >= == !=."""

    op: str
    left: Value
    right: Value


@dataclass(frozen=True)
class Member:
    """Whether the item equals one of the literals."""

    item: Value
    values: tuple[Literal, ...]


@dataclass(frozen=True)
class Missing:
    """Whether the feature, or the query's, has no value."""

    name: Name | Was


@dataclass(frozen=True)
class Changed:
    """Whether the feature differs from the query's; missing equals missing."""

    name: str


@dataclass(frozen=True)
class And:
    """All parts hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """At least one part holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """The part does not hold."""

    part: Condition


Literal = Number | Text | Truth
Value = Number | Text | Truth | Name | Was | Arithmetic | Choice
Condition = Comparison | Member | Missing | Changed | And | Or | Not
Node = Value | Condition


@dataclass(frozen=True)
class Rule:
    """A rule as it was written, and its tree; `str` gives canonical text that parses to an equal tree.

    >>> from dicoflex.constraints.rules.parser import parse
    >>> str(parse("20<=hours<=50"))
    '20 <= hours and hours <= 50'
    """

    text: str
    tree: Condition

    def __str__(self) -> str:
        return written(self.tree, IF)


@dataclass(frozen=True)
class Expression:
    """What a feature's value follows from, as it was written, and its tree; `str` gives canonical text.

    >>> from dicoflex.constraints.rules.parser import parse_value
    >>> str(parse_value("was.age+(residence-was.residence)"))
    'was.age + (residence - was.residence)'
    """

    text: str
    tree: Value

    def __str__(self) -> str:
        return written(self.tree, IF)


IF, OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGN = range(8)  # how tightly each construct binds
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
POWERS = {
    "or": OR,
    "and": AND,
    "in": COMPARE,
    "is": COMPARE,
    "+": SUM,
    "-": SUM,
    "*": PRODUCT,
    "/": PRODUCT,
} | dict.fromkeys(COMPARISONS, COMPARE)
TRUTHS = {"true": True, "false": False, "True": True, "False": False}
WORDS = {"and", "or", "not", "in", "is", "if", "then", "else", "missing", *TRUTHS}
CALLED: dict[str, Callable[[float, float], float]] = {"min": min, "max": max}
WORD = re.compile(r"[^\W\d]\w*")


def written(node: Node, power: int) -> str:
    """Canonical text of `node`, in parentheses where it binds less tightly than `power`."""
    own, text = _phrase(node)
    return text if own >= power else f"({text})"


def _phrase(node: Node) -> tuple[int, str]:
    """How tightly the canonical text of `node` binds, and the text."""
    match node:
        case Arithmetic(op, left, right) if op in CALLED:
            return SIGN, f"{op}({written(left, SUM)}, {written(right, SUM)})"
        case Choice(given, then, other):
            return IF, f"if {written(given, OR)} then {written(then, SUM)} else {written(other, IF)}"
        case Changed(name):
            return SIGN, f"changed({_atom(Name(name))})"
        case Arithmetic(op, left, right):
            own = POWERS[op]
            return own, f"{written(left, own)} {op} {written(right, own + 1)}"
        case Comparison(op, left, right):
            return COMPARE, f"{written(left, SUM)} {op} {written(right, SUM)}"
        case Member(item, values):
            return COMPARE, f"{written(item, SUM)} in {_list(values)}"
        case Missing(name):
            return COMPARE, f"{_atom(name)} is missing"
        case Not(Member(item, values)):
            return COMPARE, f"{written(item, SUM)} not in {_list(values)}"
        case Not(Missing(name)):
            return COMPARE, f"{_atom(name)} is not missing"
        case Not(part):
            return NOT, f"not {written(part, NOT)}"
        case And(parts):
            return AND, " and ".join(written(part, NOT) for part in parts)
        case Or((Not(given), then)):
            return IF, f"if {written(given, OR)} then {written(then, IF)}"
        case Or(parts):
            return OR, " or ".join(written(part, AND) for part in parts)
        case _:
            return SIGN, _atom(node)


def _list(values: tuple[Literal, ...]) -> str:
    return f"[{', '.join(_atom(value) for value in values)}]"


def _atom(node: Literal | Name | Was) -> str:
    match node:
        case Truth(value):
            return "true" if value else "false"
        case Number(value):
            return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
        case Text(value):
            return "'" + value.replace("'", "''") + "'"
        case Name(name):
            return name if is_bare(name) else "`" + name.replace("`", "``") + "`"
        case Was(name):
            return f"was.{_atom(Name(name))}"


def is_bare(name: str) -> bool:
    return WORD.fullmatch(name) is not None and name not in WORDS


def names(rule: Rule | Expression) -> tuple[str, ...]:
    """The features that the rule names, as they are or were, each once, in order of appearance.

    >>> from dicoflex.constraints.rules.parser import parse
    >>> names(parse("if a > b then was.b > c"))
    ('a', 'b', 'c')
    """
    found = (node.name for node in walk(rule.tree) if isinstance(node, Name | Was | Changed))
    return tuple(dict.fromkeys(found))


def speaks_of_the_query(node: Node) -> bool:
    """Whether what a tree says depends on the query's own values."""
    return any(isinstance(one, Was | Changed) for one in walk(node))


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, from left to right."""
    yield node
    for child in _inside(node):
        yield from walk(child)


def _inside(node: Node) -> tuple[Node, ...]:
    match node:
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return left, right
        case Choice(given, then, other):
            return given, then, other
        case Member(item):
            return (item,)
        case Missing(name):
            return (name,)
        case And(parts) | Or(parts):
            return parts
        case Not(part):
            return (part,)
        case _:
            return ()


def edited(node: Any, edit: Callable[[Any], Any]) -> Any:
    """The tree with `edit` made of every node, from the leaves up."""
    match node:
        case Arithmetic(op, left, right) | Comparison(op, left, right):
            made: Any = type(node)(op, edited(left, edit), edited(right, edit))
        case Choice(given, then, other):
            made = Choice(edited(given, edit), edited(then, edit), edited(other, edit))
        case Member(item, values):
            made = Member(edited(item, edit), values)
        case Missing(name):
            made = Missing(edited(name, edit))
        case And(parts) | Or(parts):
            made = type(node)(tuple(edited(part, edit) for part in parts))
        case Not(part):
            made = Not(edited(part, edit))
        case _:
            made = node
    return edit(made)
