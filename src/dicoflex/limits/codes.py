"""Levels that compare so with a value, as codes."""

from __future__ import annotations

__all__ = ["codes"]

from typing import Any

from dicoflex.table.feature import Feature
from dicoflex.values import equal


def codes(feature: Feature, op: str, value: Any) -> list[int]:
    """The codes of the levels that compare so with a value: equality by value, order by the feature's own."""
    same = [code for code, level in enumerate(feature.levels) if equal(level, value)]
    if op == "==":
        return same
    if op == "!=":
        return [code for code in range(len(feature.levels)) if code not in same]
    at = same[0] if same else -1
    tests = {"<": lambda c: c < at, "<=": lambda c: c <= at, ">": lambda c: c > at, ">=": lambda c: c >= at}
    return [code for code in range(len(feature.levels)) if same and tests[op](code)]
