"""Entries of a header removed, repeated, retyped, scaled, made huge or no number, swapped or nested."""

from __future__ import annotations

__all__ = ["forge_header"]

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

Generator = np.random.Generator
DEEPER = 0.8
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, "", "x", "nan", "\ud800", "a\x00\x1b[2J", [], {}, [[]], {"": None}, "x" * 5000,
)  # fmt: skip
HUGE: tuple[Any, ...] = (
    2**31, 2**32 + 1, 2**53 + 1, 2**63 - 1, 2**64, -(2**63), 10**400, 1e9, 1e100, 1e149, 1e300, 1.7e308, 5e-324, -1e300,
    [0] * 3000, ["x"] * 3000,
)  # fmt: skip
NO_NUMBERS = (float("nan"), float("inf"), -float("inf"))


def forge_header(header: dict[str, Any], rng: Generator) -> tuple[dict[str, Any], str]:
    """A copy with one entry altered, and what was done to which."""
    forged = copy.deepcopy(header)
    parent, key, path = _entry(forged, rng)
    if parent is None:
        return {}, "header: emptied"
    way = str(rng.choice(list(WAYS)))
    WAYS[way](parent, key, forged, rng)
    return forged, f"{path}: {way}"


def _entry(header: dict[str, Any], rng: Generator) -> tuple[Any, Any, str]:
    """An entry, by the container that it is in and its key there; all levels of nesting are as likely."""
    parent, key, path = None, None, "header"
    inner: Any = header
    while isinstance(inner, dict | list) and inner and (parent is None or rng.random() < DEEPER):
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        parent, key = inner, keys[int(rng.integers(len(keys)))]
        inner, path = parent[key], f"{path}.{str(key)[:30]}"
    return parent, key, path


def _removed(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:  # noqa: ARG001
    del parent[key]


def _repeated(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:  # noqa: ARG001
    value = copy.deepcopy(parent[key])
    if isinstance(parent, list):
        parent.extend(value for _ in range(int(rng.choice([1, 2, 300]))))
    else:
        parent[f"{key} "] = value


def _retyped(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:  # noqa: ARG001
    value = parent[key]
    others = [str(value), [value], *ODD]
    if isinstance(value, int | float):
        others += [float(value), round(value), bool(value)]
    parent[key] = others[int(rng.integers(len(others)))]


def _scaled(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:  # noqa: ARG001
    by = float(rng.choice([0.0, 0.5, 2.0, 1000.0, 1e-9, 1e12, -1.0, -1e6]))
    whole = by == round(by) and bool(rng.integers(2))
    parent[key] = _each(parent[key], lambda number: number * int(by) if whole else number * by)


def _shifted(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:  # noqa: ARG001
    by = int(rng.choice([-2, -1, 1, 2, 7]))
    parent[key] = _each(parent[key], lambda number: number + by)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with all numbers in it changed; texts are cut or repeated instead."""
    if isinstance(value, dict):
        return {key: _each(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_each(inner, change) for inner in value]
    if isinstance(value, str):
        return value[1:] or "longer"
    return change(value) if type(value) in (int, float) else value


def _huge(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:  # noqa: ARG001
    parent[key] = HUGE[int(rng.integers(len(HUGE)))]


def _no_number(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:  # noqa: ARG001
    parent[key] = NO_NUMBERS[int(rng.integers(len(NO_NUMBERS)))]


def _swapped(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:
    """With an entry beside it, or with any of the header's."""
    if bool(rng.integers(2)) and len(parent) > 1:
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        other, its = parent, keys[int(rng.integers(len(keys)))]
    else:
        other, its, _ = _entry(header, rng)
    parent[key], other[its] = copy.deepcopy(other[its]), copy.deepcopy(parent[key])


def _nested(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:  # noqa: ARG001
    for _ in range(int(rng.choice([1, 2, 20, 200]))):
        parent[key] = [parent[key]] if bool(rng.integers(2)) else {"a": parent[key]}


def _shuffled(parent: Any, key: Any, header: dict[str, Any], rng: Generator) -> None:  # noqa: ARG001
    value = parent[key]
    if isinstance(value, dict):
        values = list(value.values())
        parent[key] = dict(zip(value, (values[i] for i in rng.permutation(len(values))), strict=True))
    elif isinstance(value, list):
        parent[key] = [value[i] for i in rng.permutation(len(value))]
    else:
        parent[key] = [value, value]


WAYS: dict[str, Callable[[Any, Any, dict[str, Any], Generator], None]] = {
    "removed": _removed,
    "repeated": _repeated,
    "retyped": _retyped,
    "scaled": _scaled,
    "shifted": _shifted,
    "huge": _huge,
    "no number": _no_number,
    "swapped": _swapped,
    "nested": _nested,
    "shuffled": _shuffled,
}
