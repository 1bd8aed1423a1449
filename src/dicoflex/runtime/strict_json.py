"""JSON as the standard has it: no name twice, no NaN, no number without end, nothing nested without end."""

from __future__ import annotations

__all__ = ["NotFiniteError", "RepeatedNameError", "loads"]

import json
import math
from typing import Any

MOST_DEEP = 32


class RepeatedNameError(ValueError):
    """An object has one name twice."""

    def __init__(self, name: str) -> None:
        super().__init__(f"it names {name[:60]!r} twice")
        self.name = name


class NotFiniteError(ValueError):
    """A number is infinite or none."""

    def __init__(self, written: str) -> None:
        super().__init__(f"it holds {written[:60]}")
        self.written = written


def loads(text: str | bytes) -> Any:
    """The value of JSON text; anything else is a `ValueError`.

    >>> loads('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> loads('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    dicoflex.runtime.strict_json.RepeatedNameError: it names 'a' twice
    """
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    _check_depth(value)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise RepeatedNameError(name)
        found[name] = value
    return found


def _refuse(constant: str) -> Any:
    raise NotFiniteError(constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise NotFiniteError(digits)
    return number


def _check_depth(value: Any) -> None:
    """Refuse what is nested deeper than anything that we write; whoever walks it later may recur."""
    level = [value]
    for _ in range(MOST_DEEP):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return
    raise ValueError("it is nested too deep")


def _inside(item: Any) -> list[Any]:
    if isinstance(item, dict):
        return list(item.values())
    return item if isinstance(item, list) else []
