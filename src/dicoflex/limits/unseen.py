"""Why a row has no answer that leaves the values which training never had, in words."""

from __future__ import annotations

__all__ = ["with_unseen_reasons"]

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dicoflex._types import Bools
from dicoflex.constraints import Constraints
from dicoflex.constraints.parts import PerUnit
from dicoflex.constraints.rules.tree import Was, walk
from dicoflex.limits.limits import Limits
from dicoflex.limits.reasons import HOLDING
from dicoflex.table.unseen import said_of_unseen


def with_unseen_reasons(limits: Limits, unseen: Bools, value: Callable[[int, int], Any]) -> Limits:
    """The limits with a reason for each row that can't leave an unseen value, or that is compared with one.

    value: the unseen value of a row and a feature.
    """
    reasons = limits.reasons.copy()
    for i, j in zip(*np.nonzero(unseen), strict=True):
        why = _why(limits, int(i), int(j))
        if why is not None:
            reasons[i] = f"{said_of_unseen(limits.encoding.schema, int(j), value(int(i), int(j)))}, {why}"
    return replace(limits, reasons=reasons)


def _why(limits: Limits, i: int, j: int) -> str | None:
    """What keeps row i from leaving its value of feature j; None where nothing does."""
    given, name = limits.constraints, limits.encoding.schema.names[j]
    if name in given.frozen:
        return f"and may not change; free {name}, or give a value that was seen"
    if name in given.consequences:
        return f"and follows from others; give a value that was seen, or leave the consequence of {name} out"
    told = _compared(given, name)
    if told is not None:
        return f"and {told} measures from it; give a value that was seen, or leave that out"
    if limits.frozen[i, j]:
        held = " and ".join(field for field in HOLDING if name in getattr(given, field))
        return f"and no other value {f'obeys {held}' if held else 'is there to go to'}; give a value that was seen"
    return None


def _compared(given: Constraints, name: Any) -> str | None:
    """What of the constraints speaks of a feature's value before its change."""
    if isinstance(given.cost.get(name), PerUnit):
        return f"the cost of {name} per unit"
    told: list[tuple[str, Any]] = [(f"the rule {rule.text!r}", rule.tree) for rule in given.parsed_rules]
    told += [(f"the consequence of {other}", made.tree) for other, made in given.parsed_consequences.items()]
    return next((text for text, tree in told if _speaks_of(tree, str(name))), None)


def _speaks_of(tree: Any, name: str) -> bool:
    return any(isinstance(one, Was) and one.name == name for one in walk(tree))
