"""Whether constraints fit the features that they name."""

from __future__ import annotations

__all__ = ["check_numbers", "check_suits", "check_values"]

import math
from collections.abc import Callable
from typing import Any

from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS
from dicoflex.constraints.parts import PerUnit, Range
from dicoflex.constraints.statement import has_multiple
from dicoflex.errors import ConstraintError, named
from dicoflex.table.feature import Feature, Kind

SUITS: dict[str, Callable[[Feature], bool]] = {
    "any": lambda feature: True,  # noqa: ARG005
    "ordered": lambda feature: feature.is_number or feature.kind is Kind.ORDINAL,
    "numbers": lambda feature: feature.is_number,
    "levels": lambda feature: not feature.is_number,
}


def check_suits(feature: Feature, field: str) -> None:
    """Refuse a kind of constraint that the feature can't have."""
    suits = KINDS[field].suits
    if not SUITS[suits](feature):
        raise ConstraintError(f"{field} {feature.name!r}: it is {feature.kind}{_why(feature, field, suits)}")


def _why(feature: Feature, field: str, suits: str) -> str:
    if suits == "ordered":
        return " and has no order; use allowed or transitions"
    remedy = "ranges, increase or decrease"
    if suits == "numbers":
        remedy = "allowed" if feature.kind is Kind.ORDINAL else "allowed or transitions"
    return f", and {field} are for {suits}; use {remedy}"


def check_numbers(feature: Feature, constraints: Constraints) -> None:
    """Refuse ranges and steps that leave a number no value, and costs per unit of anything else."""
    if not feature.is_number and isinstance(constraints.cost.get(feature.name), PerUnit):
        raise ConstraintError(
            f"cost {feature.name!r}: it is {feature.kind}, and a cost per unit is for numbers; "
            "use a plain number, the cost of any change"
        )
    step = constraints.steps.get(feature.name)
    if step is not None:
        _check_step(feature, step)
    for limits in constraints.ranges.get(feature.name, ()):
        if limits.kind == "absolute":
            _check_range(feature, limits, step)


def _check_step(feature: Feature, step: float) -> None:
    where = f"steps {feature.name!r}: the step {step:g}"
    if feature.is_whole and not step.is_integer():
        raise ConstraintError(f"{where} has a fraction, and the column holds whole numbers; use a whole step")
    if not has_multiple(feature.minimum, feature.maximum, step):
        raise ConstraintError(
            f"{where} has no multiple within the column's limits, {feature.values_text()}; choose a smaller one"
        )


def _check_range(feature: Feature, limits: Range, step: float | None) -> None:
    where = f"ranges {feature.name!r}: {limits.text}"
    least, most = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
    low = least if limits.low is None else max(least, limits.low)
    high = most if limits.high is None else min(most, limits.high)
    if low > high:
        raise ConstraintError(f"{where} lies outside the column's limits, {least:g} to {most:g}; choose limits inside")
    if feature.is_whole and math.ceil(low) > high:
        raise ConstraintError(f"{where} holds no whole number, and the column holds no others; widen it")
    if step is not None and not has_multiple(low, high, step):
        raise ConstraintError(
            f"{where} holds no multiple of the step {step:g} within the limits {least:g} to {most:g}; widen it"
        )


def check_values(feature: Feature, constraints: Constraints) -> None:
    """Refuse allowed, forbidden, pinned and transitions with values that the feature does not have."""
    allowed, forbidden = (constraints.allowed.get(feature.name, ()), constraints.forbidden.get(feature.name, ()))
    for value in allowed:
        _check_value(feature, value, "allowed")
    for value in forbidden:
        _check_value(feature, value, "forbidden")
    if feature.name in constraints.pinned:
        _check_value(feature, constraints.pinned[feature.name], "pinned")
    states = [*feature.levels, *([None] if feature.missing else [])]
    if forbidden and not feature.is_number and set(states) <= set(forbidden):
        raise ConstraintError(
            f"forbidden {feature.name!r}: every value is forbidden; to keep it as it is, put it in frozen"
        )
    moves = constraints.transitions.get(feature.name, {})
    for value in [*moves, *(end for ends in moves.values() for end in ends)]:
        _check_value(feature, value, "transitions")


def _check_value(feature: Feature, value: Any, kind: str) -> None:
    where = f"{kind} {feature.name!r}"
    if value is None:
        if not feature.missing and kind != "forbidden":
            raise ConstraintError(f"{where}: missing values were never seen in this column; leave None out")
    elif feature.is_number:
        _check_number(feature, value, kind)
    elif not feature.is_level(value):
        raise ConstraintError(f"{where}: {named('value', value, feature.levels)}")


def _check_number(feature: Feature, value: Any, kind: str) -> None:
    where = f"{kind} {feature.name!r}: {value!r}"
    if isinstance(value, bool | str):
        raise ConstraintError(f"{where} is no number, and the column holds numbers; list numbers")
    if kind == "forbidden":
        return
    if feature.is_whole and value != math.floor(value):
        raise ConstraintError(f"{where} has a fraction, and the column holds whole numbers; list whole numbers")
    least, most = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
    if not least <= value <= most:
        raise ConstraintError(f"{where} lies outside the column's limits, {least:g} to {most:g}; list values inside")
