"""Whether constraints fit the features that they name."""

from __future__ import annotations

__all__ = ["check_directions", "check_numbers", "check_values"]

import math
from typing import Any

from dicoflex.constraints import Constraints
from dicoflex.constraints.parts import PerUnit, Range
from dicoflex.constraints.statement import has_multiple
from dicoflex.errors import ConstraintError, named
from dicoflex.table.feature import Feature, Kind


def check_directions(feature: Feature, constraints: Constraints) -> None:
    ordered = feature.is_number or feature.kind is Kind.ORDINAL
    for kind in ("increase", "decrease"):
        if feature.name in getattr(constraints, kind) and not ordered:
            raise ConstraintError(
                f"{kind} {feature.name!r}: it is {feature.kind} and has no order; use allowed or transitions"
            )


def check_numbers(feature: Feature, constraints: Constraints) -> None:
    """Refuse ranges, steps and costs per unit that the feature can't have or that leave it no value."""
    name = feature.name
    weight = constraints.cost.get(name)
    kinds = [kind for kind in ("ranges", "steps") if name in getattr(constraints, kind)]
    if not feature.is_number:
        kinds += ["cost"] if isinstance(weight, PerUnit) else []
        if kinds:
            remedy = "a plain number, the cost of any change" if kinds[0] == "cost" else _levels_remedy(feature)
            what = "a cost per unit is" if kinds[0] == "cost" else f"{kinds[0]} are"
            raise ConstraintError(f"{kinds[0]} {name!r}: it is {feature.kind}, and {what} for numbers; use {remedy}")
        return
    step = constraints.steps.get(name)
    if step is not None:
        _check_step(feature, step)
    for limits in constraints.ranges.get(name, ()):
        if limits.kind == "absolute":
            _check_range(feature, limits, step)


def _levels_remedy(feature: Feature) -> str:
    return "allowed" if feature.kind is Kind.ORDINAL else "allowed or transitions"


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
    """Refuse allowed, forbidden and transitions with values that the feature does not have."""
    allowed, forbidden = (constraints.allowed.get(feature.name, ()), constraints.forbidden.get(feature.name, ()))
    for value in allowed:
        _check_value(feature, value, "allowed")
    for value in forbidden:
        _check_value(feature, value, "forbidden")
    states = [*feature.levels, *([None] if feature.missing else [])]
    if forbidden and not feature.is_number and all(state in forbidden for state in states):
        raise ConstraintError(
            f"forbidden {feature.name!r}: every value is forbidden; to keep it as it is, put it in frozen"
        )
    moves = constraints.transitions.get(feature.name, {})
    if moves and feature.is_number:
        raise ConstraintError(
            f"transitions {feature.name!r}: it is {feature.kind}, and transitions are for levels; "
            "use ranges, increase or decrease"
        )
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
