"""Constraints for one call: what each feature of each query's draws may be, in encoded values.

A feature of a draw is *kept* (equal to the query's) or *changed*. Ranges, directions, levels and steps say which
changed values are allowed; `may_keep` says whether keeping is; budgets count and price changes; rules relate features.
The default generator draws inside these limits. What others draw is first moved inside (`project`), and whatever
still breaks one (`broken`) is dropped.
"""

from __future__ import annotations

__all__ = ["Limits"]

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Bools, Floats, Ints
from dicoflex.constraints import Constraints
from dicoflex.limits import SLACK
from dicoflex.limits.clauses import Clauses
from dicoflex.limits.once import Arrays, Once
from dicoflex.limits.plan import Plan
from dicoflex.limits.programs import Consequences, Programs, hold
from dicoflex.limits.reasons import reasons_of
from dicoflex.runtime.columns import Columns
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.feature import Kind


@dataclass(frozen=True)
class Limits(Columns):
    """What the draws of some queries may be; the first eight are arrays with one entry per query.

    low, high: between which a changed number lies (n, d); an empty stretch (low > high) where it can't change.
    states: which codes a changed level may have, all features' end to end (n, states); a number that may be missing has
    one code, for that. may_keep: where keeping is allowed (n, d). frozen: what can't change, by wish or for want of
    other values (n, d). reasons: why a query has no answer, None where it may have one. clause_set: which set of the
    clauses binds a query. number: each query's in its call.
    clauses: the rules, for looking ahead. most_changes, most_cost: how many may change, at what cost. plan: what is the
    same for all queries, its fields are these limits' too. call: what was computed for the queries of the call so far;
    see `once`.

    offset: feature j owns states offset[j] to offset[j + 1]. points: per feature the only values that a changed number
    may take, or None. banned: by feature the values that a number may not take, sorted, for those that have some.
    fixed, unit: cost of a change and per unit of it.
    """

    WHOLE = ("clauses", "most_changes", "most_cost", "plan", "call")

    low: Floats
    high: Floats
    states: Bools
    may_keep: Bools
    frozen: Bools
    reasons: NDArray[np.object_]
    clause_set: Ints
    number: Ints
    clauses: Clauses
    most_changes: int
    most_cost: float
    plan: Plan
    call: Once

    @classmethod
    def build(cls, constraints: Constraints, encoding: Encoding, query: Values, frozen: Bools) -> Limits:
        """The limits that constraints, checked against the schema, set for each row of `query`."""
        return cls.of(Plan.of(constraints, encoding), query, frozen)

    @classmethod
    def of(cls, plan: Plan, query: Values, frozen: Bools, unseen: Bools | None = None) -> Limits:
        """The limits that a plan sets for each row of `query`; `frozen` features (n, d) can't change.

        unseen: where something stands in the place of a value that training never had, which no answer keeps (n, d).
        """
        given, (clauses, clause_set) = plan.constraints, plan.clauses_of(query)
        loose = cls(
            **plan.of_rows(query, unseen)._asdict(),
            frozen=frozen,
            reasons=np.full(len(query), None, dtype=object),
            clause_set=clause_set,
            number=np.arange(len(query)),
            clauses=clauses,
            most_changes=given.max_changes or len(plan.points),
            most_cost=np.inf if given.max_cost is None else float(given.max_cost),
            plan=plan,
            call=Once(len(query)),
        )
        price = loose.least_cost(query)
        # A feature without an allowed other value counts as frozen, so that the density is told so.
        limits = replace(loose, frozen=frozen | ~loose._has_other(query) | (price > loose.most_cost + SLACK))
        return replace(limits, reasons=reasons_of(limits, query, price))

    @property
    def constraints(self) -> Constraints:
        return self.plan.constraints

    @property
    def encoding(self) -> Encoding:
        return self.plan.encoding

    @property
    def rules(self) -> Programs:
        return self.plan.rules

    @property
    def consequences(self) -> Consequences:
        return self.plan.consequences

    @property
    def follows(self) -> Bools:
        return self.plan.follows

    @property
    def uncounted(self) -> Bools:
        return self.plan.uncounted

    @property
    def offset(self) -> Ints:
        return self.plan.offset

    @property
    def points(self) -> tuple[Floats | None, ...]:
        return self.plan.points

    @property
    def banned(self) -> dict[int, Floats]:
        return self.plan.banned

    @property
    def fixed(self) -> Floats:
        return self.plan.fixed

    @property
    def unit(self) -> Floats:
        return self.plan.unit

    def once(self, key: object, make: Callable[[Limits, Ints], Arrays]) -> Arrays:
        """Arrays with one entry per query that `make` gives, each query's computed once in its call.

        key: what they depend on besides, or None. make: takes the limits of some queries and their places among these.
        """
        return self.call.get(key, self.number, lambda places: make(self.take(places), places))

    @property
    def can_change(self) -> Bools:
        """Where a feature may take another value (n, d)."""
        return ~self.frozen

    # -- judging finished rows ----------------------------------------------------------------------------------

    def broken(self, values: Values, query: Values, which: Ints) -> Bools:
        """Which rows break a limit: `which` says to which entry a row belongs, `query` is its query's values."""
        bad = np.zeros(len(values), dtype=bool)
        _core.mark_broken(
            values=values, query=query, which=which, low=self.low, high=self.high, states=self.states,
            may_keep=self.may_keep, offset=self.offset, is_level=self.plan.is_level, uncounted=self.uncounted,
            most_changes=self.most_changes, broken=bad,
        )  # fmt: skip
        for j in self.plan.picked:
            there = ~np.isnan(values[:, j]) & (values[:, j] != query[:, j])
            bad |= there & ~self._on_points(j, values[:, j])
        if np.isfinite(self.most_cost):
            bad |= self.cost(values, query) > self.most_cost + SLACK
        if len(self.rules.at) > 1:
            bad |= ~hold(self.rules, values, query).all(axis=1)
        return bad | self.consequences.broken(values, query)

    def cost(self, values: Values, query: Values) -> Floats:
        """What the changes of each row cost."""
        changed = self.encoding.differs(values, query) & ~self.uncounted
        apart = np.abs(np.nan_to_num(values - query, nan=1.0))
        total: Floats = (changed * (self.fixed + self.unit * apart)).sum(axis=1)
        return total

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

    # -- looking ahead ------------------------------------------------------------------------------------------

    def least_cost(self, query: Values) -> Floats:
        """The least that a change of each feature costs (n, d)."""
        cost = np.repeat(self.fixed[None], len(query), axis=0)
        for j in np.flatnonzero(self.unit):
            cost[:, j] += self.unit[j] * self._least_units(int(j), query[:, j])
        return cost

    def _least_units(self, j: int, own: Floats) -> Floats:
        """How far the nearest allowed number is; one that appears or vanishes counts as one unit."""
        feature, low, high, points = self.encoding.schema.features[j], self.low[:, j], self.high[:, j], self.points[j]
        away = np.maximum(np.maximum(low - own, own - high), float(feature.is_whole))
        if points is not None:
            away = _nearest_other(points, own, low, high)
        away = np.where(np.isnan(own), 1.0, away)
        may_vanish = self.states[:, self.offset[j]] if feature.missing else np.zeros(len(own), dtype=bool)
        return np.where(may_vanish, np.minimum(away, 1.0), away)

    def _has_other(self, query: Values) -> Bools:
        """Where a feature has an allowed value besides the query's."""
        counts = np.cumsum(self.states, axis=1)
        counts = np.concatenate([np.zeros((len(query), 1), dtype=counts.dtype), counts], axis=1)
        other: Bools = counts[:, self.offset[1:]] > counts[:, self.offset[:-1]]
        # A level has no stretch of numbers: its low end lies above its high end.
        other |= (self.low < self.high) | ((self.low == self.high) & (self.low != query))
        for j in self.plan.picked:
            points = self.points[j]
            if points is not None:
                own = self.states[:, self.offset[j] : self.offset[j + 1]].any(axis=1)
                other[:, j] = own | self._point_besides(points, j, query[:, j])
        return other

    def _point_besides(self, points: Floats, j: int, own: Floats) -> Bools:
        low, high = self.low[:, j], self.high[:, j]
        inside = np.searchsorted(points, high, side="right") - np.searchsorted(points, low)
        mine = np.isin(own, points) & (own >= low) & (own <= high)
        return np.asarray(inside - mine > 0)

    def reserved(self, query: Values, rank: Ints) -> Bools:
        """Where a change must be left for later features: only they can mend a rule that the query breaks (n, d).

        rank: the place of each feature in the order in which they are drawn.
        """
        reserved = np.zeros(query.shape, dtype=bool)
        if len(self.clauses) == 0:
            return reserved
        wrong = ~hold(self.rules, query, query)
        for number in np.unique(self.clause_set):
            mine = np.flatnonzero(self.clause_set == number)
            clauses = self.clauses.of_set(int(number))
            still = self.clauses.may_hold(query[mine], clauses)
            for at, c in enumerate(clauses):
                broken = wrong[mine, self.clauses.rule[c]] & ~still[:, at]
                reserved[mine] |= self._needed_by(c, mine, broken, rank)
        return reserved

    def _needed_by(self, c: int, mine: Ints, broken: Bools, rank: Ints) -> Bools:
        """Where queries whose own row breaks clause c must leave a change for the features that can mend it."""
        able = self.clauses.touches[c] & self.can_change[mine]
        # Where one of them has to change anyway, that change is kept back already.
        forced = (able & ~self.may_keep[mine]).any(axis=1)
        here = broken & able.any(axis=1) & ~forced
        first = np.where(able, rank, able.shape[1]).min(axis=1)
        return np.asarray(here[:, None] & (rank < first[:, None]))

    def domain(self, query: Values) -> tuple[Floats, Floats, Bools]:
        """Between which values each number of a draw lies, kept or changed, and where it may be missing."""
        least, most, may_miss = self.once(None, lambda some, at: some._domain(query[at]))
        return least, most, may_miss

    def _domain(self, query: Values) -> Arrays:
        free = self.can_change
        kept = self.may_keep | ~free
        least = np.where(kept, query, np.inf)
        most = np.where(kept, query, -np.inf)
        low, high = self._ends_on_points()
        least = np.where(free, np.fmin(least, low), least)
        most = np.where(free, np.fmax(most, high), most)
        may_miss = np.isnan(query)
        for j, feature in enumerate(self.encoding.schema.features):
            if feature.is_number and feature.missing:
                may_miss[:, j] |= free[:, j] & self.states[:, self.offset[j]]
            elif feature.kind is Kind.ORDINAL:
                least[:, j], most[:, j], may_miss[:, j] = self._ranks(j, query[:, j], free[:, j], kept[:, j])
        return least, most, may_miss

    def _ranks(self, j: int, own: Floats, free: Bools, kept: Bools) -> tuple[Floats, Floats, Bools]:
        """Between which ranks an ordinal of a draw lies, NaN where it will be missing, and where it may be."""
        count = len(self.encoding.schema.features[j].levels)
        open_ = self.states[:, self.offset[j] : self.offset[j + 1]] & free[:, None]
        open_[np.arange(len(own)), own.astype(np.int64)] |= kept
        ranked, ranks = open_[:, :count], np.arange(count, dtype=np.float64)
        some = ranked.any(axis=1)
        least = np.where(ranked, ranks, np.inf).min(axis=1, initial=np.inf)
        most = np.where(ranked, ranks, -np.inf).max(axis=1, initial=-np.inf)
        absent: Bools = np.asarray(open_[:, count:].any(axis=1))
        return np.where(some, least, np.nan), np.where(some, most, np.nan), absent

    def _ends_on_points(self) -> tuple[Floats, Floats]:
        """The ends of changed numbers, moved inwards to the first and last of the points that they may take."""
        low, high = self.low.copy(), self.high.copy()
        for j, points in enumerate(self.points):
            if points is not None:
                padded = np.concatenate([[-np.inf], points, [np.inf]])
                low[:, j] = padded[np.searchsorted(points, low[:, j]) + 1]
                high[:, j] = padded[np.searchsorted(points, high[:, j], side="right")]
        return low, high

    # -- moving rows inside -------------------------------------------------------------------------------------

    def project(self, values: Values, query: Values, which: Ints) -> Values:
        """Rows moved inside as far as one feature at a time allows; what rules and budgets then refuse is dropped.

        A number goes to the nearest allowed value on its side of the query, a level that is not allowed back to the
        query's or, where that may not be kept, to an allowed one. Beyond `most_changes` and `most_cost`, the smallest
        changes are undone first.
        """
        moved = values.copy()
        for j, feature in enumerate(self.encoding.schema.features):
            if feature.is_number:
                moved[:, j] = self._project_number(j, moved[:, j], query[:, j], which)
            else:
                moved[:, j] = self._project_level(j, moved[:, j], query[:, j], which)
        moved = np.where(self.frozen[which], query, moved)
        return self._affordable(moved, query, which)

    def _project_number(self, j: int, column: Floats, query: Floats, which: Ints) -> Floats:
        low, high = self.low[which, j], self.high[which, j]
        open_ = low <= high
        inside = np.clip(column, np.where(open_, low, query), np.where(open_, high, query))
        points = self.points[j]
        if points is not None and len(points):
            inside = _nearest_point(points, inside, low, high, query)
        same = (column == query) | (np.isnan(column) & np.isnan(query))
        back = (same & self.may_keep[which, j]) | ~open_
        if self.encoding.schema.features[j].missing:
            back |= np.isnan(column) & ~self.states[which, self.offset[j]]
            inside = np.where(np.isnan(column) & self.states[which, self.offset[j]], np.nan, inside)
        inside = np.where(np.isnan(inside) & ~back & ~np.isnan(column), query, inside)
        return np.where(back, query, inside)

    def _project_level(self, j: int, column: Floats, query: Floats, which: Ints) -> Floats:
        states = self.states[which, self.offset[j] : self.offset[j + 1]]
        rows = np.arange(len(column))
        fine = states[rows, column.astype(np.int64)] | ((column == query) & self.may_keep[which, j])
        instead = np.where(self.may_keep[which, j], query, states.argmax(axis=1))
        return np.where(fine, column, instead)

    def _affordable(self, values: Values, query: Values, which: Ints) -> Values:
        """The rows with their smallest changes undone while they change or cost too much."""
        values = values.copy()
        apart = self._apart(values, query)
        optional = self.encoding.differs(values, query) & self.may_keep[which]
        order = np.argsort(np.where(optional, apart, np.inf), axis=1)
        rows = np.arange(len(values))
        for step in range(values.shape[1]):
            over = self.encoding.differs(values, query).sum(axis=1) > self.most_changes
            over |= self.cost(values, query) > self.most_cost + SLACK
            at = order[:, step]
            over &= optional[rows, at]
            if not over.any():
                break
            values[rows[over], at[over]] = query[rows[over], at[over]]
        return values

    def _apart(self, values: Values, query: Values) -> Floats:
        """How far each feature was moved (n, d): in standard deviations, or 1 for another level or a missing value."""
        scaled = np.abs(np.nan_to_num((values - query) / self.encoding.scale, nan=1.0))
        return np.where(self.plan.is_level, np.minimum(scaled, 1.0), scaled)


def _nearest_point(points: Floats, wanted: Floats, low: Floats, high: Floats, query: Floats) -> Floats:
    """The allowed point nearest to each wanted value; the query's own value where none lies within the limits."""
    first, last = np.searchsorted(points, low), np.searchsorted(points, high, side="right") - 1
    at = np.clip(np.searchsorted(points, wanted), 0, len(points) - 1)
    before = np.maximum(at - 1, 0)
    at = np.where(np.abs(points[before] - wanted) < np.abs(points[at] - wanted), before, at)
    at = np.clip(at, np.minimum(first, len(points) - 1), np.maximum(last, 0))
    return np.where(first <= last, points[at], query)


def _nearest_other(points: Floats, own: Floats, low: Floats, high: Floats) -> Floats:
    """How far from its own value each query's nearest other allowed point is; infinitely where there is none."""
    padded = np.concatenate([[-np.inf], points, [np.inf]])
    above = padded[np.searchsorted(points, np.maximum(np.nextafter(own, np.inf), low)) + 1]
    below = padded[np.searchsorted(points, np.minimum(np.nextafter(own, -np.inf), high), side="right")]
    return np.minimum(np.where(above <= high, above - own, np.inf), np.where(below >= low, own - below, np.inf))
