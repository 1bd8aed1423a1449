"""Limits in the words of people, and what they are made of, for sentences in another language."""

from __future__ import annotations

__all__ = ["WORDS", "arguments", "sentence"]

from collections.abc import Callable
from typing import Any

from dicoflex.constraints.kinds import OneConstraint
from dicoflex.constraints.parts import PerUnit, Range
from dicoflex.constraints.words import percent, signed
from dicoflex.explorer.texts import Names
from dicoflex.runtime.printable import counted
from dicoflex.values import jsonable

WORDS = {
    "ranges": "range",
    "rules": "rule",
    "max_cost": "cost",
    "steps": "step",
    "transitions": "transition",
    "cost": "effort",
}
"""What pages call the kinds that have another name here."""


def sentence(one: OneConstraint, names: Names) -> str:
    """One limit in words, with the labels that the page shows."""
    if one.feature is None:
        return names.labelled(_of_all(one))
    j = names.schema.position(one.feature)
    label = names.labels[j]
    match one.kind, one.args:
        case "frozen", _:
            return f"{label} stays as it is"
        case "ranges", (limits,):
            return f"{label} {_range(limits, names, j)}"
        case "increase" | "decrease", _:
            return f"{label} {_direction(one.kind, names, j)}"
        case "allowed", (values,):
            return f"{label} may become {_either(values, names, j)}"
        case "forbidden", (values,):
            return f"{label} may not become {_either(values, names, j)}"
        case "pinned", (value,):
            return f"{label} is {names.shown(j, value)}"
        case "transitions", (moves,):
            return f"{label}: " + "; ".join(_move(origin, ends, names, j) for origin, ends in moves.items())
        case "consequences", (text,):
            return f"{label} follows from other values: {names.labelled(text)}"
        case "steps", (step,):
            return f"{label} in steps of {names.shown(j, step)}"
        case "cost", (cost,):
            each = isinstance(cost, PerUnit)
            return f"changing {label} costs {cost.weight if each else cost:g}{' per unit' if each else ''}"
    return one.text


def _of_all(one: OneConstraint) -> str:
    if one.kind == "max_changes":
        return f"at most {counted(one.args[0], 'change')}"
    return f"total effort at most {one.args[0]:g}" if one.kind == "max_cost" else one.text


def _range(limits: Range, names: Names, j: int) -> str:
    if limits.kind == "absolute":
        low, high = (None if end is None else names.shown(j, end) for end in (limits.low, limits.high))
    else:
        show = percent if limits.kind == "relative" else signed
        low, high = (None if end is None else show(end) for end in (limits.low, limits.high))
    moved = "" if limits.kind == "absolute" else "changes by "
    if low is None or high is None:
        return f"{moved}at most {high}" if low is None else f"{moved}at least {low}"
    return f"{moved}between {low} and {high}"


def _direction(kind: str, names: Names, j: int) -> str:
    feature = names.schema.features[j]
    if feature.is_number:
        return "only up" if kind == "increase" else "only down"
    return f"only towards “{names.shown(j, feature.levels[-1 if kind == 'increase' else 0])}”"


def _move(origin: Any, ends: tuple[Any, ...], names: Names, j: int) -> str:
    """From one level, where to."""
    start = names.shown(j, origin)
    return f"from {start} only to {_either(tuple(ends), names, j)}" if ends else f"{start} stays"


def _either(values: tuple[Any, ...], names: Names, j: int) -> str:
    *first, last = (names.shown(j, value) for value in values)
    return f"{', '.join(first)} or {last}" if first else last


def arguments(one: OneConstraint, names: Names) -> dict[str, Any]:
    """What a limit demands, as plain data: numbers and values, and their texts."""
    match one.kind, one.args:
        case "ranges", (limits,):
            return _range_arguments(limits, names, one)
        case "allowed" | "forbidden", (values,):
            j = names.schema.position(one.feature)
            return {"values": list(values), "texts": [names.shown(j, value) for value in values]}
        case "pinned" | "steps", (value,):
            return {"value": value, "text": names.shown(names.schema.position(one.feature), value)}
        case "transitions", (moves,):
            j = names.schema.position(one.feature)
            texts = [[names.shown(j, origin), [names.shown(j, end) for end in ends]] for origin, ends in moves.items()]
            return {"moves": [[origin, list(ends)] for origin, ends in moves.items()], "texts": texts}
        case "max_changes" | "max_cost", (most,):
            return {"most": most}
        case "rules", (text,):
            return {"rule": names.labelled(text)}
        case "consequences", (text,):
            return {"value": names.labelled(text)}
        case "cost", (cost,):
            return {"cost": cost.weight if isinstance(cost, PerUnit) else cost, "per_unit": isinstance(cost, PerUnit)}
    found: dict[str, Any] = jsonable({"arguments": one.args} if one.args else {})
    return found


def _range_arguments(limits: Range, names: Names, one: OneConstraint) -> dict[str, Any]:
    j = names.schema.position(one.feature)
    show: Callable[[float], str] = {
        "absolute": lambda value: names.shown(j, value), "relative": percent, "difference": signed
    }[limits.kind]  # fmt: skip
    texts = {
        f"{end}_text": show(value) for end, value in (("low", limits.low), ("high", limits.high)) if value is not None
    }
    return {"low": limits.low, "high": limits.high, "of": limits.kind, **texts}
