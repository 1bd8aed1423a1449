"""Numbers, values and costs of constraints as words."""

from __future__ import annotations

__all__ = ["Value", "cost_text", "either", "moves_text", "percent", "plain", "range_text", "shown", "signed"]

from typing import Any

Value = bool | int | float | str | None
"""A value as a column holds it; None for missing."""


def plain(value: float) -> str:
    """A number without a needless fraction.

    >>> plain(3.0), plain(0.5)
    ('3', '0.5')
    """
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def signed(value: float) -> str:
    """A difference: +5, 0 or -5."""
    return f"+{plain(value)}" if value > 0 else plain(value)


def percent(value: float) -> str:
    """A share as a signed percentage.

    >>> percent(0.25), percent(0.0)
    ('+25%', '0%')
    """
    return f"{value * 100:+.6g}%" if value else "0%"


def either(values: tuple[Value, ...]) -> str:
    """Values to choose from.

    >>> either(("own", "rent", None))
    "'own', 'rent' or missing"
    """
    *first, last = map(shown, values)
    return f"{', '.join(first)} or {last}" if first else last


def moves_text(moves: dict[Value, tuple[Value, ...]]) -> str:
    """Where each of some values may go; values that may go to the same ones are told together.

    >>> moves_text({"a": ("c", "d"), "b": ("c", "d"), "e": ()})
    "from 'a' or 'b' only to 'c' or 'd', from 'e' nowhere"
    """
    together: dict[tuple[Any, ...], list[Value]] = {}
    for key, values in moves.items():
        together.setdefault(tuple((type(value), value) for value in values), []).append(key)
    lines = []
    for keys in together.values():
        values = moves[keys[0]]
        lines.append(f"from {either(tuple(keys))} {'only to ' + either(values) if values else 'nowhere'}")
    return ", ".join(lines)


def range_text(limits: Any) -> str:
    """What a `Range` demands."""
    if limits.kind == "absolute":
        return f"must be {limits.text}"
    return f"may change by {limits.text}" + (" of its size" if limits.kind == "relative" else "")


def cost_text(cost: Any) -> str:
    """A cost, a number or a `PerUnit`."""
    return plain(cost) if isinstance(cost, float) else f"{plain(cost.weight)} per unit"


def shown(value: Value) -> str:
    """A value of a feature.

    >>> shown("rent"), shown(None)
    ("'rent'", 'missing')
    """
    return "missing" if value is None else repr(value)
