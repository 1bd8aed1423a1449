"""Constraints compiled for one call: what each feature of each query's draws may be, in encoded values.

A feature of a draw is *kept* (equal to the query's) or *changed*. Ranges, directions, levels and steps say which
changed values are allowed; `stay` says whether keeping is; budgets count and price changes; rules relate features.
The default generator draws inside these limits. What others draw is first moved inside (`project`), and whatever
still breaks one (`broken`) is dropped.
"""

from __future__ import annotations

__all__ = ["SLACK", "Limits", "domain"]

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.constraints import Constraints
from dicoflex.errors import ConstraintError
from dicoflex.limits.clauses import BELOW, EQUAL, LEVELS, LINEAR, MISSING, UNEQUAL, Clauses, holds
from dicoflex.runtime.columns import Columns
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.feature import Feature, dtype_of
from dicoflex.values import equal

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

MOST_POINTS = 1_000_000
SLACK = 1e-9
ROUNDING = 8 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Limits(Columns):
    """What the draws of some queries may be; the first six are arrays with one entry per query.

    low, high: between which a changed number lies (n, d); an empty stretch (low > high) where it can't change.
    states: which codes a changed level may have, all features' end to end (n, states); a number that may be missing has
    one code, for that. stay: where keeping is allowed (n, d). frozen: what can't change, by wish or for want of other
    values (n, d). reasons: why a query has no answer, None where it may have one.
    offset: feature j owns states offset[j] to offset[j + 1]. points: per feature the only values that a changed number
    may take, or None. fixed, unit: cost of a change and per unit of it. budget, purse: the most changes and cost.
    """

    WHOLE = ("offset", "points", "fixed", "unit", "budget", "purse", "constraints", "encoding", "clauses")

    low: Floats
    high: Floats
    states: Bools
    stay: Bools
    frozen: Bools
    reasons: NDArray[np.object_]
    offset: Ints
    points: tuple[Floats | None, ...]
    fixed: Floats
    unit: Floats
    budget: int
    purse: float
    constraints: Constraints
    encoding: Encoding
    clauses: Clauses

    @classmethod
    def build(cls, constraints: Constraints, encoding: Encoding, query: Values, frozen: Bools) -> Limits:
        """The limits that constraints, checked against the schema, set for each row of `query`."""
        return _Builder(constraints, encoding, query, frozen).build()

    @property
    def can_change(self) -> Bools:
        """Where a feature may take another value (n, d)."""
        return ~self.frozen

    # -- judging finished rows ----------------------------------------------------------------------------------

    def broken(self, values: Values, query: Values, which: Ints) -> Bools:
        """Which rows break a limit: `which` says to which entry a row belongs, `query` is its query's values."""
        changed = self.encoding.differs(values, query)
        wrong = np.where(changed, ~self._inside(values, which), ~self.stay[which])
        bad: Bools = np.asarray(wrong.any(axis=1))
        bad |= changed.sum(axis=1) > self.budget
        if np.isfinite(self.purse):
            bad |= self.cost(values, query) > self.purse + SLACK
        for rule in self.constraints.parsed_rules:
            bad |= ~holds(rule, values, self.encoding.schema)
        return bad

    def cost(self, values: Values, query: Values) -> Floats:
        """What the changes of each row cost."""
        changed = self.encoding.differs(values, query)
        apart = np.abs(np.nan_to_num(values - query, nan=1.0))
        total: Floats = (changed * (self.fixed + self.unit * apart)).sum(axis=1)
        return total

    def least_cost(self, query: Values) -> Floats:
        """The least that a change of each feature costs (n, d)."""
        return _least_cost(self, query, self.fixed, self.unit)

    def owed(self, query: Values, rank: Ints) -> Bools:
        """Where a change must be left for later features: only they can mend a rule that the query breaks (n, d).

        rank: the place of each feature in the order in which they are drawn.
        """
        owed = np.zeros(query.shape, dtype=bool)
        if len(self.clauses) == 0:
            return owed
        wrong = [~holds(rule, query, self.encoding.schema) for rule in self.constraints.parsed_rules]
        still = self.clauses.may_hold(query)
        for c in range(len(self.clauses)):
            able = self.clauses.touches[c] & self.can_change
            # Where one of them has to change anyway, that change is kept back already.
            here = wrong[self.clauses.rule[c]] & ~still[:, c] & able.any(axis=1) & ~(able & ~self.stay).any(axis=1)
            first = np.where(able, rank, query.shape[1]).min(axis=1)
            owed |= here[:, None] & (rank < first[:, None])
        return owed

    def _apart(self, values: Values, query: Values) -> Floats:
        """How far each feature was moved (n, d): in standard deviations, or 1 for another level or a missing value."""
        scaled = np.abs(np.nan_to_num((values - query) / self.encoding.scale, nan=1.0))
        level = np.array([not f.is_number for f in self.encoding.schema.features])
        return np.where(level, np.minimum(scaled, 1.0), scaled)

    def _inside(self, values: Values, which: Ints) -> Bools:
        """Where a value, taken as a changed one, is allowed (n, d)."""
        fine = np.empty(values.shape, dtype=bool)
        for j, feature in enumerate(self.encoding.schema.features):
            column, at = values[:, j], self.offset[j]
            if not feature.is_number:
                fine[:, j] = self.states[which, at + column.astype(np.int64)]
                continue
            inside = (column >= self.low[which, j]) & (column <= self.high[which, j]) & self._on_points(j, column)
            absent = np.isnan(column)
            fine[:, j] = np.where(absent, self.states[which, at] if feature.missing else False, inside)
        return fine

    def _on_points(self, j: int, column: Floats) -> Bools:
        points = self.points[j]
        banned = self.banned.get(j)
        fine = np.ones(len(column), dtype=bool) if banned is None else ~np.isin(column, banned)
        if points is None or len(points) == 0:
            return fine if points is None else np.zeros(len(column), dtype=bool)
        at = np.clip(np.searchsorted(points, column), 0, len(points) - 1)
        before = np.maximum(at - 1, 0)
        near = np.minimum(np.abs(points[at] - column), np.abs(points[before] - column))
        return fine & (near <= SLACK * np.maximum(1.0, np.abs(column)))

    @cached_property
    def banned(self) -> dict[int, Floats]:
        """The values that each number may not take, sorted, for those that have some."""
        schema = self.encoding.schema
        return {
            schema.names.index(name): _as_stored(schema[name], _numbers(values))
            for name, values in self.constraints.forbidden.items()
            if schema[name].is_number
        }

    # -- moving rows inside -------------------------------------------------------------------------------------

    def project(self, values: Values, query: Values, which: Ints) -> Values:
        """Rows moved inside as far as one feature at a time allows; what rules and budgets then refuse is dropped.

        A number goes to the nearest allowed value on its side of the query, a level that is not allowed back to the
        query's or, where that may not stay, to an allowed one. Over the budget, the smallest changes are undone first.
        """
        moved = values.copy()
        for j, feature in enumerate(self.encoding.schema.features):
            if feature.is_number:
                moved[:, j] = self._project_number(j, moved[:, j], query[:, j], which)
            else:
                moved[:, j] = self._project_level(j, moved[:, j], query[:, j], which)
        moved = np.where(self.frozen[which], query, moved)
        return self._within_budget(moved, query, which)

    def _project_number(self, j: int, column: Floats, query: Floats, which: Ints) -> Floats:
        low, high = self.low[which, j], self.high[which, j]
        open_ = low <= high
        inside = np.clip(column, np.where(open_, low, query), np.where(open_, high, query))
        points = self.points[j]
        if points is not None and len(points):
            inside = _nearest_point(points, inside, low, high, query)
        same = (column == query) | (np.isnan(column) & np.isnan(query))
        back = (same & self.stay[which, j]) | ~open_
        if self.encoding.schema.features[j].missing:
            back |= np.isnan(column) & ~self.states[which, self.offset[j]]
            inside = np.where(np.isnan(column) & self.states[which, self.offset[j]], np.nan, inside)
        inside = np.where(np.isnan(inside) & ~back & ~np.isnan(column), query, inside)
        return np.where(back, query, inside)

    def _project_level(self, j: int, column: Floats, query: Floats, which: Ints) -> Floats:
        states = self.states[which, self.offset[j] : self.offset[j + 1]]
        rows = np.arange(len(column))
        fine = states[rows, column.astype(np.int64)] | ((column == query) & self.stay[which, j])
        instead = np.where(self.stay[which, j], query, states.argmax(axis=1))
        return np.where(fine, column, instead)

    def _within_budget(self, values: Values, query: Values, which: Ints) -> Values:
        """The rows with their smallest changes undone while they change or cost too much."""
        values = values.copy()
        apart = self._apart(values, query)
        optional = self.encoding.differs(values, query) & self.stay[which]
        order = np.argsort(np.where(optional, apart, np.inf), axis=1)
        rows = np.arange(len(values))
        for step in range(values.shape[1]):
            over = self.encoding.differs(values, query).sum(axis=1) > self.budget
            over |= self.cost(values, query) > self.purse + SLACK
            at = order[:, step]
            over &= optional[rows, at]
            if not over.any():
                break
            values[rows[over], at[over]] = query[rows[over], at[over]]
        return values


def _nearest_point(points: Floats, wanted: Floats, low: Floats, high: Floats, query: Floats) -> Floats:
    """The allowed point nearest to each wanted value; the query's own value where none lies within the limits."""
    first, last = np.searchsorted(points, low), np.searchsorted(points, high, side="right") - 1
    at = np.clip(np.searchsorted(points, wanted), 0, len(points) - 1)
    before = np.maximum(at - 1, 0)
    at = np.where(np.abs(points[before] - wanted) < np.abs(points[at] - wanted), before, at)
    at = np.clip(at, np.minimum(first, len(points) - 1), np.maximum(last, 0))
    return np.where(first <= last, points[at], query)


# -- compiling ---------------------------------------------------------------------------------------------------


class _Builder:
    """The steps from constraints to limits, in the order in which `build` names them."""

    def __init__(self, constraints: Constraints, encoding: Encoding, query: Values, frozen: Bools) -> None:
        self.constraints, self.encoding, self.query, self.frozen = constraints, encoding, query, frozen.copy()
        self.schema = encoding.schema
        n, d = query.shape
        sizes = [int(f.missing) if f.is_number else f.n_states for f in self.schema.features]
        self.offset = np.cumsum([0, *sizes])
        self.low, self.high = np.full((n, d), np.inf), np.full((n, d), -np.inf)
        self.states = np.zeros((n, self.offset[-1]), dtype=bool)
        self.stay = np.ones((n, d), dtype=bool)
        self.points: list[Floats | None] = [None] * d
        self.reasons = np.full(n, None, dtype=object)

    def build(self) -> Limits:
        for j, feature in enumerate(self.schema.features):
            if feature.is_number:
                self._number(j, feature)
            else:
                self._levels(j, feature)
        fixed, unit = self._costs()
        budget = self.constraints.max_changes or len(self.schema)
        purse = np.inf if self.constraints.max_cost is None else float(self.constraints.max_cost)
        price = _least_cost(self, self.query, fixed, unit)
        # A feature without an allowed other value counts as frozen, so that the density is told so.
        self.frozen |= ~self._has_other() | (price > purse + SLACK)
        self._refuse(price, budget, purse)
        limits = Limits(
            self.low, self.high, self.states, self.stay, self.frozen, self.reasons, self.offset, tuple(self.points),
            fixed, unit, budget, purse, self.constraints, self.encoding,
            Clauses.build(self.constraints.parsed_rules, self.schema),
        )  # fmt: skip
        _refuse_rules(limits, self.query)
        return limits

    # -- one feature --------------------------------------------------------------------------------------------

    def _number(self, j: int, feature: Feature) -> None:
        own = self.query[:, j]
        low = np.full(len(own), float(feature.minimum or 0.0))
        high = np.full(len(own), float(feature.maximum or 0.0))
        tied = np.zeros(len(own), dtype=bool)
        outside = np.zeros(len(own), dtype=bool)
        for one in self.constraints.ranges.get(feature.name, ()):
            least, most = _ends(one, own)
            low, high = np.maximum(low, least), np.minimum(high, most)
            # What is measured from a missing value is not outside: it keeps the value missing.
            unmeasured = np.isnan(own) & (one.kind != "absolute")
            outside |= ~((own >= least) & (own <= most)) & ~unmeasured
            tied |= unmeasured
        low, high, directed = self._directed(feature, own, low, high)
        low, high = _inward(feature, low, high)
        if feature.is_whole:
            low, high = _past(_numbers(self.constraints.forbidden.get(feature.name, ())), low, high)
        closed = np.isnan(own) & (tied | directed)
        self.points[j] = self._number_points(feature)
        outside |= self._not_among(feature, own)
        self.low[:, j], self.high[:, j] = np.where(closed, np.inf, low), np.where(closed, -np.inf, high)
        if feature.missing:
            self.states[:, self.offset[j]] = self._may_be_missing(feature) & ~np.isnan(own)
        if self.constraints.strict:
            self.stay[:, j] = ~outside

    def _directed(self, feature: Feature, own: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, bool]:
        up, down = (feature.name in names for names in (self.constraints.increase, self.constraints.decrease))
        if up:
            low = np.fmax(low, own + 1 if feature.is_whole else np.nextafter(own, np.inf))
        if down:
            high = np.fmin(high, own - 1 if feature.is_whole else np.nextafter(own, -np.inf))
        return low, high, up or down

    def _may_be_missing(self, feature: Feature) -> bool:
        given, name = self.constraints, feature.name
        held = name in given.ranges or name in given.steps or name in (*given.increase, *given.decrease)
        listed = name not in given.allowed or None in given.allowed[name]
        return not held and listed and None not in given.forbidden.get(name, ())

    def _number_points(self, feature: Feature) -> Floats | None:
        """The only values that a changed number may take, sorted; None where there is no such list."""
        given, name = self.constraints, feature.name
        points = None
        low, high = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
        if name in given.allowed:
            points = _numbers(given.allowed[name])
        if name in given.steps:
            step = float(given.steps[name])
            points = _multiples(feature, low, high, step) if points is None else points[_is_multiple(points, step)]
        if points is None:
            return None
        points = _as_stored(feature, points)
        points = points[~np.isin(points, _as_stored(feature, _numbers(given.forbidden.get(name, ()))))]
        return np.asarray(points[(points >= low) & (points <= high)])

    def _not_among(self, feature: Feature, own: Floats) -> Bools:
        """Where the query's own value is one that `allowed` and `forbidden` rule out."""
        given, name = self.constraints, feature.name
        out = np.zeros(len(own), dtype=bool)
        for values, wanted in ((given.allowed.get(name), True), (given.forbidden.get(name), False)):
            if values is not None:
                listed = np.isin(own, _as_stored(feature, _numbers(values))) | (np.isnan(own) & (None in values))
                out |= listed != wanted
        return out

    def _levels(self, j: int, feature: Feature) -> None:
        given, name = self.constraints, feature.name
        own = self.query[:, j].astype(np.int64)
        fine = np.ones((len(own), feature.n_states), dtype=bool)
        listed = np.ones(feature.n_states, dtype=bool)
        if name in given.allowed:
            listed &= _among(feature, given.allowed[name])
        if name in given.forbidden:
            listed &= ~_among(feature, given.forbidden[name])
        fine &= listed
        order = np.arange(feature.n_states)
        known = order < len(feature.levels)
        for names, ahead in ((given.increase, order > own[:, None]), (given.decrease, order < own[:, None])):
            if name in names:
                fine &= ahead & known & (own < len(feature.levels))[:, None]
        for origin, ends in given.transitions.get(name, {}).items():
            fine &= ~_among(feature, (origin,))[own][:, None] | _among(feature, ends)
        if given.strict:
            self.stay[:, j] = listed[own]
        fine[np.arange(len(own)), own] = False
        self.states[:, self.offset[j] : self.offset[j + 1]] = fine

    # -- all features -------------------------------------------------------------------------------------------

    def _costs(self) -> tuple[Floats, Floats]:
        fixed, unit = np.zeros(len(self.schema)), np.zeros(len(self.schema))
        for name, weight in self.constraints.cost.items():
            j = self.schema.names.index(name)
            if isinstance(weight, int | float):
                fixed[j] = weight
            else:
                unit[j] = weight.weight
        return fixed, unit

    def _has_other(self) -> Bools:
        """Where a feature has an allowed value besides the query's."""
        other = np.zeros(self.query.shape, dtype=bool)
        for j, feature in enumerate(self.schema.features):
            states = self.states[:, self.offset[j] : self.offset[j + 1]].any(axis=1)
            other[:, j] = states | (self._number_has_other(j) if feature.is_number else False)
        return other

    def _number_has_other(self, j: int) -> Bools:
        low, high, own = self.low[:, j], self.high[:, j], self.query[:, j]
        points = self.points[j]
        if points is None:
            return np.asarray((low < high) | ((low == high) & (low != own)))
        inside = np.searchsorted(points, high, side="right") - np.searchsorted(points, low)
        mine = np.isin(own, points) & (own >= low) & (own <= high)
        return np.asarray(inside - mine > 0)

    def _refuse(self, prices: Floats, budget: int, purse: float) -> None:
        """Write down why a query can't be answered, the most telling reason first."""
        stuck = self.frozen & ~self.stay
        for j in np.flatnonzero(stuck.any(axis=0)):
            self._say(stuck[:, j], partial(self._why_stuck, j=int(j)))
        needed = (~self.stay).sum(axis=1)
        self._say(
            needed > budget,
            lambda i: (
                f"strict requires {needed[i]} features to change "
                f"({self._names(~self.stay[i])}), and max_changes is {budget}; raise it, or leave strict out"
            ),
        )
        price = np.where(self.stay, 0.0, prices).sum(axis=1)
        self._say(
            price > purse + SLACK,
            lambda i: (
                f"what strict requires to change ({self._names(~self.stay[i])}) costs at least {price[i]:g}, "
                f"and max_cost is {purse:g}; raise it, or leave strict out"
            ),
        )
        self._say(
            np.asarray(self.frozen.all(axis=1)),
            lambda i: f"nothing may change: {self._why_frozen(int(i))}; loosen one of these",
        )

    def _say(self, where: Bools, reason: Callable[[int], str]) -> None:
        for i in np.flatnonzero(where):
            if self.reasons[i] is None:
                self.reasons[i] = reason(int(i))

    def _names(self, mask: Bools) -> str:
        return ", ".join(str(self.schema.names[j]) for j in np.flatnonzero(mask))

    def _why_stuck(self, i: int, j: int) -> str:
        name = self.schema.names[j]
        return (
            f"{name} is required to change, because strict is set and its value {self._shown(i, j)} is not one that "
            f"the constraints allow, and {self._why_fixed(i, j)}; leave strict out, or loosen the constraints on {name}"
        )

    def _why_frozen(self, i: int, most: int = 4) -> str:
        words = [self._why_fixed(i, j) for j in range(len(self.schema))]
        words.sort(key=lambda text: text.endswith("is frozen"))
        more = [f"and {len(words) - most} more"] if len(words) > most else []
        return ", ".join(words[:most] + more)

    def _why_fixed(self, i: int, j: int) -> str:
        """Why feature j of query i can't take another value, in words."""
        given, feature = self.constraints, self.schema.features[j]
        name, shown = feature.name, self._shown(i, j)
        if name in given.frozen:
            return f"{name} is frozen"
        for names, word, end in ((given.increase, "increase", "highest"), (given.decrease, "decrease", "lowest")):
            if name in names and self._at_end(i, j, word):
                return f"{name} may only {word} and already is at its {end} value"
        held = dict.fromkeys(kind for kind, about in given.features() if about == name)
        if held:
            return f"{name} has no value besides {shown} that {' and '.join(held)} allow"
        return f"{name} is frozen or has no other value"

    def _at_end(self, i: int, j: int, word: str) -> bool:
        feature, own = self.schema.features[j], self.query[i, j]
        if feature.is_number:
            return bool(own >= (feature.maximum or 0.0) if word == "increase" else own <= (feature.minimum or 0.0))
        return bool(own == (len(feature.levels) - 1 if word == "increase" else 0))

    def _shown(self, i: int, j: int) -> str:
        feature, own = self.schema.features[j], self.query[i, j]
        if feature.is_number:
            return "missing" if np.isnan(own) else f"{own:g}"
        return repr(feature.levels[int(own)]) if own < len(feature.levels) else "missing"


def _least_cost(given: Limits | _Builder, query: Values, fixed: Floats, unit: Floats) -> Floats:
    """The least that a change of each feature costs (n, d)."""
    cost = np.tile(fixed, (len(query), 1))
    for j in np.flatnonzero(unit):
        cost[:, j] += unit[j] * _least_units(given, int(j), query[:, j])
    return cost


def _least_units(given: Limits | _Builder, j: int, own: Floats) -> Floats:
    """How far the nearest allowed number is; one that appears or vanishes counts as one unit."""
    feature, low, high, points = given.encoding.schema.features[j], given.low[:, j], given.high[:, j], given.points[j]
    away = np.maximum(np.maximum(low - own, own - high), float(feature.is_whole))
    if points is not None:
        away = _nearest_other(points, own, low, high)
    away = np.where(np.isnan(own), 1.0, away)
    may_vanish = given.states[:, given.offset[j]] if feature.missing else np.zeros(len(own), dtype=bool)
    return np.where(may_vanish, np.minimum(away, 1.0), away)


def _nearest_other(points: Floats, own: Floats, low: Floats, high: Floats) -> Floats:
    """How far from its own value each query's nearest other allowed point is; infinitely where there is none."""
    padded = np.concatenate([[-np.inf], points, [np.inf]])
    above = padded[np.searchsorted(points, np.maximum(np.nextafter(own, np.inf), low)) + 1]
    below = padded[np.searchsorted(points, np.minimum(np.nextafter(own, -np.inf), high), side="right")]
    return np.minimum(np.where(above <= high, above - own, np.inf), np.where(below >= low, own - below, np.inf))


def _ends(one: Any, own: Floats) -> tuple[Floats, Floats]:
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


def _stored_as(feature: Feature) -> Any:
    """The float type that the column's dtype stores its numbers in."""
    name = str(dtype_of(feature.dtype)).lower()
    if "float16" in name or "half" in name:
        return np.float16
    return np.float32 if "float32" in name or name == "float[pyarrow]" else np.float64


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
    # Through decimal text: 3 * 0.1 is meant to be 0.3.
    return np.array([float(f"{k * step:.15g}") for k in np.arange(first, last + 1)])


def _is_multiple(points: Floats, step: float) -> Bools:
    ratio = points / step
    multiple: Bools = np.abs(ratio - np.rint(ratio)) < 1e-6
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


def _among(feature: Feature, values: Any) -> Bools:
    """Which states of a picked feature are listed in `values`; None stands for missing."""
    listed = [any(v is not None and equal(level, v) for v in values) for level in feature.levels]
    return np.array([*listed, *([None in values] * feature.missing)], dtype=bool)


def _refuse_rules(limits: Limits, query: Values) -> None:
    """Write down which rule a query can't obey, whatever is drawn."""
    least, most, may_miss = domain(limits, query)
    clauses = limits.clauses
    for c in range(len(clauses)):
        possible = np.zeros(len(limits), dtype=bool)
        for literal in range(clauses.start[c], clauses.start[c + 1]):
            possible |= _possible(limits, query, literal, least, most, may_miss)
        for i in np.flatnonzero(~possible):
            if limits.reasons[i] is None:
                text = limits.constraints.rules[clauses.rule[c]]
                limits.reasons[i] = (
                    f"the rule {text!r} can't hold with what is frozen or limited; "
                    "free one of its features, or leave the rule out"
                )


def domain(limits: Limits, query: Values) -> tuple[Floats, Floats, Bools]:
    """Between which values each number of a draw lies, kept or changed, and where it may be missing."""
    free = limits.can_change
    stays = limits.stay | ~free
    least = np.where(stays, query, np.inf)
    most = np.where(stays, query, -np.inf)
    low, high = _on_points(limits)
    least = np.where(free, np.fmin(least, low), least)
    most = np.where(free, np.fmax(most, high), most)
    may_miss = np.isnan(query)
    for j, feature in enumerate(limits.encoding.schema.features):
        if feature.is_number and feature.missing:
            may_miss[:, j] |= free[:, j] & limits.states[:, limits.offset[j]]
    return least, most, may_miss


def _on_points(limits: Limits) -> tuple[Floats, Floats]:
    """The ends of changed numbers, moved inwards to the first and last of the points that they may take."""
    low, high = limits.low.copy(), limits.high.copy()
    for j, points in enumerate(limits.points):
        if points is not None:
            padded = np.concatenate([[-np.inf], points, [np.inf]])
            low[:, j] = padded[np.searchsorted(points, low[:, j]) + 1]
            high[:, j] = padded[np.searchsorted(points, high[:, j], side="right")]
    return low, high


def _possible(limits: Limits, query: Values, literal: int, least: Floats, most: Floats, may_miss: Bools) -> Bools:
    """For which queries a literal may come true."""
    clauses = limits.clauses
    sort, j = clauses.sort[literal], clauses.feature[literal]
    if sort == LEVELS:
        at = slice(limits.offset[j], limits.offset[j + 1])
        reach = limits.states[:, at] & limits.can_change[:, [j]]
        own = query[:, j].astype(np.int64)
        reach[np.arange(len(own)), own] |= limits.stay[:, j] | limits.frozen[:, j]
        return np.asarray((reach & clauses.levels[literal, : reach.shape[1]]).any(axis=1))
    if sort == MISSING:
        return may_miss[:, j] if clauses.if_missing[literal] else ~np.isnan(query[:, j]) | limits.can_change[:, j]
    if sort != LINEAR:
        return np.ones(len(limits), dtype=bool)
    used = clauses.coefficients[literal] != 0
    weight, least, most = clauses.coefficients[literal, used], least[:, used], most[:, used]
    low = np.where(weight > 0, weight * least, weight * most).sum(axis=1) + clauses.constant[literal]
    high = np.where(weight > 0, weight * most, weight * least).sum(axis=1) + clauses.constant[literal]
    slack = SLACK * np.maximum(1.0, np.abs(low))
    op = clauses.op[literal]
    fine = (low < slack) & ~((low == 0) & (high == 0)) if op == BELOW else low <= slack
    if op == EQUAL:
        fine = (low <= slack) & (high >= -slack)
    if op == UNEQUAL:
        fine = ~((low == 0) & (high == 0))
    # A number that is missing whatever is drawn makes the comparison false.
    fine = np.where(np.isnan(least).any(axis=1), False, fine | ~(np.isfinite(low) & np.isfinite(high)))
    if clauses.if_missing[literal]:
        fine |= may_miss[:, used].any(axis=1)
    return np.asarray(fine)
