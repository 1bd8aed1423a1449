"""Constraints for some queries as arrays, feature by feature: what each kind means for a number and for levels."""

from __future__ import annotations

__all__ = ["MOST_POINTS", "Part", "banned_of", "costs_of", "part_of", "part_of_unseen", "points_of"]

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from dicoflex._types import Bools, Floats, Ints
from dicoflex.constraints import Constraints
from dicoflex.constraints.parts import PerUnit, Range
from dicoflex.errors import ConstraintError
from dicoflex.table.feature import Feature, dtype_of
from dicoflex.table.schema import Schema

MOST_POINTS = 1_000_000
ROUNDING = 8 * np.finfo(np.float64).eps


class Part(NamedTuple):
    """Limits with an entry per query; see `Limits`."""

    low: Floats
    high: Floats
    states: Bools
    may_keep: Bools

    def repeated(self, n: int) -> Part:
        """The limits of one query as those of `n`."""
        low, high = np.repeat(self.low[None], n, axis=0), np.repeat(self.high[None], n, axis=0)
        return Part(low, high, np.repeat(self.states[None], n, axis=0), np.repeat(self.may_keep[None], n, axis=0))


def part_of(feature: Feature, given: Constraints, own: Floats) -> Part:
    """What constraints, checked against the schema, let a feature be for each query's own value."""
    return (_number if feature.is_number else _levels)(feature, given, own)


def part_of_unseen(feature: Feature, given: Constraints, own: Floats) -> Part:
    """The same for queries whose own value training never had: it is left, and nothing can be measured from it.

    own: what stands in its place.
    """
    if feature.is_number:
        part = _number(feature, given, np.full(len(own), np.nan))
    else:
        others = {name: ways for name, ways in given.transitions.items() if name != feature.name}
        part = _levels(feature, given.model_copy(update={"transitions": others}), own)
        is_ahead = feature.name in (*given.increase, *given.decrease)
        part = part._replace(states=part.states & (not is_ahead))
    return part._replace(may_keep=np.zeros(len(own), dtype=bool))


# -- numbers -----------------------------------------------------------------------------------------------------


def _number(feature: Feature, given: Constraints, own: Floats) -> Part:
    low = np.full(len(own), float(feature.minimum or 0.0))
    high = np.full(len(own), float(feature.maximum or 0.0))
    tied = np.full(len(own), feature.name in given.increase or feature.name in given.decrease)
    outside = _not_among(feature, given, own)
    for one in given.ranges.get(feature.name, ()):
        least, most = _ends(one, own)
        low, high = np.maximum(low, least), np.minimum(high, most)
        # What is measured from a missing value is not outside: it keeps the value missing.
        unmeasured = np.isnan(own) & (one.kind != "absolute")
        outside |= ~((own >= least) & (own <= most)) & ~unmeasured
        tied |= unmeasured
    low, high = _inward(feature, *_directed(feature, given, own, low, high))
    if feature.is_whole:
        low, high = _past(_numbers(given.forbidden.get(feature.name, ())), low, high)
    closed = (np.isnan(own) & tied) | (given.pinned.get(feature.name, 0.0) is None)
    may_keep = ~outside if given.strict else np.ones(len(own), dtype=bool)
    return Part(
        low=np.where(closed, np.inf, low),
        high=np.where(closed, -np.inf, high),
        states=(_may_vanish(feature, given) & ~np.isnan(own))[:, None][:, : int(feature.missing)],
        may_keep=may_keep & _is_pinned(feature, given, own),
    )


def _is_pinned(feature: Feature, given: Constraints, own: Floats) -> Bools:
    """Where the query's own value is the one that the feature is pinned to; everywhere if it is to none."""
    if feature.name not in given.pinned:
        return np.ones(len(own), dtype=bool)
    value = given.pinned[feature.name]
    same: Bools = np.isnan(own) if value is None else np.isin(own, _as_stored(feature, _numbers([value])))
    return same


def _directed(feature: Feature, given: Constraints, own: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Increase and decrease: the ends moved past the query's own value."""
    if feature.name in given.increase:
        low = np.fmax(low, own + 1 if feature.is_whole else np.nextafter(own, np.inf))
    if feature.name in given.decrease:
        high = np.fmin(high, own - 1 if feature.is_whole else np.nextafter(own, -np.inf))
    return low, high


def _may_vanish(feature: Feature, given: Constraints) -> bool:
    """Whether a changed number may be missing."""
    name = feature.name
    held = name in given.ranges or name in given.steps or name in (*given.increase, *given.decrease)
    listed = name not in given.allowed or None in given.allowed[name]
    pinned = given.pinned.get(name) is not None
    return not held and listed and not pinned and None not in given.forbidden.get(name, ())


def points_of(feature: Feature, given: Constraints) -> Floats | None:
    """Allowed, pinned, steps: the only values that a changed number may take, sorted; None where there is no list."""
    name = feature.name
    if not feature.is_number:
        return None
    points = None
    low, high = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
    if name in given.allowed:
        points = _numbers(given.allowed[name])
    if given.pinned.get(name) is not None:
        pin = _numbers([given.pinned[name]])
        points = pin if points is None else points[np.isin(points, pin)]
    if name in given.steps:
        step = float(given.steps[name])
        points = _multiples(feature, low, high, step) if points is None else points[_is_multiple(points, step)]
    if points is None:
        return None
    points = _as_stored(feature, points)
    points = points[~np.isin(points, _as_stored(feature, _numbers(given.forbidden.get(name, ()))))]
    return np.asarray(points[(points >= low) & (points <= high)])


def _not_among(feature: Feature, given: Constraints, own: Floats) -> Bools:
    """Where the query's own value is one that `allowed` and `forbidden` rule out."""
    name = feature.name
    out = np.zeros(len(own), dtype=bool)
    for values, wanted in ((given.allowed.get(name), True), (given.forbidden.get(name), False)):
        if values is not None:
            listed = np.isin(own, _as_stored(feature, _numbers(values))) | (np.isnan(own) & (None in values))
            out |= listed != wanted
    return out


def _ends(one: Range, own: Floats) -> tuple[Floats, Floats]:
    """The ends of a range for each query's own value; open ones where it is missing and the range depends on it."""
    low = -np.inf if one.low is None else one.low
    high = np.inf if one.high is None else one.high
    if one.kind == "absolute":
        return np.full(len(own), low), np.full(len(own), high)
    size = np.abs(own) if one.kind == "relative" else np.ones(len(own))
    return _end(low, own, size, -1.0), _end(high, own, size, 1.0)


def _end(end: float, own: Floats, size: Floats, outwards: float) -> Floats:
    """One end of a range around each own value, a few bits further: 110 % of 0.3 is meant to be 0.33."""
    if np.isinf(end):
        return np.full(len(own), end)
    room = ROUNDING * np.maximum(np.abs(own), np.abs(end * size))
    return np.nan_to_num(own + end * size + outwards * room, nan=outwards * np.inf)


def _inward(feature: Feature, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends moved inwards to values that the column's dtype can hold."""
    if feature.is_whole:
        return np.ceil(low), np.floor(high)
    kind = _stored_as(feature)
    with np.errstate(over="ignore"):
        near_low, near_high = low.astype(kind), high.astype(kind)
    up = np.where(near_low < low, np.nextafter(near_low, kind(np.inf)), near_low)
    down = np.where(near_high > high, np.nextafter(near_high, kind(-np.inf)), near_high)
    return up.astype(np.float64), down.astype(np.float64)


def _past(banned: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends of whole numbers moved inwards, past forbidden ones."""
    for value in banned:
        low = np.where(low == value, low + 1, low)
    for value in banned[::-1]:
        high = np.where(high == value, high - 1, high)
    return low, high


def _multiples(feature: Feature, low: float, high: float, step: float) -> Floats:
    """The multiples of a step from `low` to `high`, and perhaps the next ones beyond."""
    first, last = np.floor(low / step), np.ceil(high / step)
    if last - first + 1 > MOST_POINTS:
        raise ConstraintError(
            f"steps: {step:g} cuts {feature.name!r} ({low:g} to {high:g}) into more than {MOST_POINTS:,} values; "
            "take a larger step, or leave it out"
        )
    number = np.arange(first, last + 1)
    digits, places = _decimal(step)
    if abs(number).max() * digits < 10**15 and places <= 22:
        # A quotient of two whole numbers that floats hold is the float nearest to it: 3 * 0.1 is meant to be 0.3.
        return number * digits / 10.0**places
    return np.array([float(f"{k * step:.15g}") for k in number])


def _decimal(step: float) -> tuple[int, int]:
    """A step as a whole number over a power of ten: 0.25 is 25 over 10 to the power of 2."""
    _, digits, exponent = Decimal(repr(step)).as_tuple()
    whole = int("".join(map(str, digits)))
    return whole * 10 ** max(int(exponent), 0), max(-int(exponent), 0)


def _is_multiple(points: Floats, step: float) -> Bools:
    ratio = points / step
    multiple: Bools = np.abs(ratio - np.rint(ratio)) <= 1e-12 * np.maximum(1.0, np.abs(ratio))
    return multiple


def _numbers(values: Any) -> Floats:
    """The listed values that are not missing, sorted."""
    return np.unique(np.array([v for v in values if v is not None], dtype=float))


def _as_stored(feature: Feature, points: Floats) -> Floats:
    """The points as the column's dtype holds them."""
    if feature.is_whole:
        return np.asarray(points[np.mod(points, 1.0) == 0.0])
    stored: Floats = np.unique(points.astype(_stored_as(feature)).astype(np.float64))
    return stored


def _stored_as(feature: Feature) -> Any:
    """The float type that the column's dtype stores its numbers in."""
    name = str(dtype_of(feature.dtype)).lower()
    if "float16" in name or "half" in name:
        return np.float16
    return np.float32 if "float32" in name or name == "float[pyarrow]" else np.float64


# -- levels ------------------------------------------------------------------------------------------------------


def _levels(feature: Feature, given: Constraints, values: Floats) -> Part:
    own = values.astype(np.int64)
    listed = _listed(feature, given)
    fine = listed & _ahead(feature, given, own) & _reached(feature, given, own)
    fine[np.arange(len(own)), own] = False
    return Part(
        low=np.full(len(own), np.inf),
        high=np.full(len(own), -np.inf),
        states=fine,
        may_keep=(listed if given.strict else _pin(feature, given))[own],
    )


def _listed(feature: Feature, given: Constraints) -> Bools:
    """Allowed, forbidden and pinned: which states a changed level may have."""
    listed = np.ones(feature.n_states, dtype=bool)
    if feature.name in given.allowed:
        listed &= _among(feature, given.allowed[feature.name])
    if feature.name in given.forbidden:
        listed &= ~_among(feature, given.forbidden[feature.name])
    return listed & _pin(feature, given)


def _pin(feature: Feature, given: Constraints) -> Bools:
    """Which states a level may have in an answer, changed or not: all, or the one that it is pinned to."""
    if feature.name not in given.pinned:
        return np.ones(feature.n_states, dtype=bool)
    return _among(feature, (given.pinned[feature.name],))


def _ahead(feature: Feature, given: Constraints, own: Ints) -> Bools:
    """Increase and decrease: which states lie on the right side of each query's own; none of a missing one's."""
    fine = np.ones((len(own), feature.n_states), dtype=bool)
    order = np.arange(feature.n_states)
    known = (order < len(feature.levels)) & (own < len(feature.levels))[:, None]
    if feature.name in given.increase:
        fine &= (order > own[:, None]) & known
    if feature.name in given.decrease:
        fine &= (order < own[:, None]) & known
    return fine


def _reached(feature: Feature, given: Constraints, own: Ints) -> Bools:
    """Transitions: which states each query's own may go to."""
    fine = np.ones((len(own), feature.n_states), dtype=bool)
    for origin, ends in given.transitions.get(feature.name, {}).items():
        here = _among(feature, (origin,))[own]
        if here.any():
            fine[here] &= _among(feature, ends)
    return fine


def _among(feature: Feature, values: Any) -> Bools:
    """Which states of a picked feature are listed in `values`; None stands for missing."""
    # As `equal` has it: text never equals a number, 1 equals 1.0 and True.
    known = {(isinstance(v, str), v) for v in values}
    listed = [(isinstance(level, str), level) in known for level in feature.levels]
    return np.array([*listed, *([None in values] * feature.missing)], dtype=bool)


# -- all features ------------------------------------------------------------------------------------------------


def banned_of(given: Constraints, schema: Schema) -> dict[int, Floats]:
    """By feature the values that a number may not take, sorted, for those that have some."""
    return {
        j: _as_stored(feature, _numbers(given.forbidden[feature.name]))
        for j, feature in enumerate(schema.features)
        if feature.is_number and feature.name in given.forbidden
    }


def costs_of(given: Constraints, schema: Schema) -> tuple[Floats, Floats]:
    """What a change of each feature costs, and each unit of it."""
    fixed, unit = np.zeros(len(schema)), np.zeros(len(schema))
    for name, weight in given.cost.items():
        if isinstance(weight, PerUnit):
            unit[schema.position(name)] = weight.weight
        else:
            fixed[schema.position(name)] = weight
    return fixed, unit
