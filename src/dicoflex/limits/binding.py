"""Rules made ready for looking ahead: consequences put in their place, choices taken apart, what was made a constant.

For a query, what it was is known, so a rule that speaks of it is for each query a plain rule about features.
"""

from __future__ import annotations

__all__ = ["Own", "Unknown", "bind", "prepared"]

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dicoflex.constraints.rules.tree import (
    COMPARISONS,
    And,
    Arithmetic,
    Changed,
    Choice,
    Comparison,
    Literal,
    Member,
    Missing,
    Name,
    Not,
    Number,
    Or,
    Text,
    Truth,
    Was,
    edited,
    names,
    walk,
)
from dicoflex.constraints.rules.tree import Expression as Made
from dicoflex.values import equal

MOST_NODES = 2000
NEVER = Comparison("<", Number(0.0), Number(0.0))
ALWAYS = Comparison("<=", Number(0.0), Number(0.0))


@dataclass(frozen=True)
class Unknown:
    """A condition that only a finished row can tell, and the features that it depends on."""

    about: tuple[str, ...]


class Own:
    """A query's own values by name: plain ones, and of ordinals their ranks; None for missing."""

    def __init__(self, plain: Mapping[str, Any], ranks: Mapping[str, int | None]) -> None:
        self.plain, self.ranks = plain, ranks


def prepared(tree: Any, consequences: Mapping[str, Made]) -> Any:
    """The tree with every feature that follows replaced by what it follows from, and choices taken apart."""
    for name in reversed(list(consequences)):
        tree = edited(tree, partial(_replaced, name=name, made=consequences[name]))
    tree = edited(tree, _apart)
    return tree if sum(1 for _ in _all(tree)) <= MOST_NODES else Unknown(_named(tree))


def _replaced(node: Any, name: str, made: Made) -> Any:
    if isinstance(node, Name) and node.name == name:
        return made.tree
    asks = isinstance(node, Changed) and node.name == name
    asks |= isinstance(node, Missing) and not isinstance(node.name, Name | Was)
    return Unknown(names(made)) if asks else node


def _apart(node: Any) -> Any:
    """A condition on a choice as two conditions, each where its own part is chosen."""
    if not isinstance(node, Comparison | Member):
        return node
    choice = next((part for part in walk(node) if isinstance(part, Choice)), None)
    if choice is None:
        return node
    then, other = (
        _apart(_exchanged(node, choice, part)) for part in (choice.then, choice.other)
    )  # fmt: skip
    return And((Or((Not(choice.given), then)), Or((choice.given, other))))


def _exchanged(node: Any, choice: Choice, part: Any) -> Any:
    """The condition with one part of the choice in the place of it."""
    if node is choice:
        return part
    match node:
        case Arithmetic(op, left, right) | Comparison(op, left, right):
            return type(node)(op, _exchanged(left, choice, part), _exchanged(right, choice, part))
        case Member(item, values):
            return Member(_exchanged(item, choice, part), values)
        case _:
            return node


def _all(tree: Any) -> Any:
    return (node for node in walk(tree))


def _named(tree: Any) -> tuple[str, ...]:
    found: list[str] = []
    for node in walk(tree):
        found += [node.name] if isinstance(node, Name) else []
        found += node.about if isinstance(node, Unknown) else []
        found += [node.name] if isinstance(node, Changed) else []
    return tuple(dict.fromkeys(found))


def bind(tree: Any, own: Own) -> Any:
    """The tree for one query: what was is a constant, and a comparison with what was missing never holds."""
    match tree:
        case And(parts) | Or(parts):
            return type(tree)(tuple(bind(part, own) for part in parts))
        case Not(part):
            return Not(bind(part, own))
        case Changed(name):
            return _changed(name, own)
        case Missing(Was(name)):
            return ALWAYS if own.plain[name] is None else NEVER
        case Member(item, values):
            found = _value(item, own, counted=False)
            if isinstance(found, Literal):
                return ALWAYS if any(equal(found.value, value.value) for value in values) else NEVER
            return NEVER if found is None else Member(found, values)
        case Comparison(op, left, right):
            counted = isinstance(left, Arithmetic) or isinstance(right, Arithmetic)
            one, other = _value(left, own, counted=counted), _value(right, own, counted=counted)
            return NEVER if one is None or other is None else _folded(Comparison(op, one, other))
        case _:
            return tree


def _changed(name: str, own: Own) -> Any:
    known = own.plain[name]
    if known is None:
        return Not(Missing(Name(name)))
    return Or((Missing(Name(name)), Comparison("!=", Name(name), _literal(known))))


def _literal(value: Any) -> Literal:
    if isinstance(value, str):
        return Text(value)
    return Truth(value) if isinstance(value, bool) else Number(float(value))


def _folded(node: Comparison) -> Any:
    """A comparison of two literals as what it is worth; ordinals' texts compare by an order that only they know."""
    left, right = node.left, node.right
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return node
    if node.op in ("==", "!="):
        return ALWAYS if equal(left.value, right.value) == (node.op == "==") else NEVER
    if isinstance(left, Number) and isinstance(right, Number):
        return ALWAYS if COMPARISONS[node.op](left.value, right.value) else NEVER
    return Unknown(())


def _value(node: Any, own: Own, *, counted: bool) -> Any:
    """A value with what was in it made a constant; None where that is missing."""
    match node:
        case Was(name):
            ranked = counted and name in own.ranks
            found = own.ranks[name] if ranked else own.plain[name]
            return None if found is None else _literal(found)
        case Arithmetic(op, left, right):
            one, other = _value(left, own, counted=True), _value(right, own, counted=True)
            return None if one is None or other is None else Arithmetic(op, one, other)
        case _:
            return node
