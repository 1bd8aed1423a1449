"""Answers confirmed by the model at hand, and brought nearer against it, in few calls for all rows of all queries.

The surrogate's margin is there for models that can't be asked. Where one can, candidates are sought without the margin
first, the model decides, and only queries that it leaves short get candidates of which the surrogate is surer.

What the model confirms is then brought nearer, in pairs of calls. The first of a pair tries every change of every row
by itself: undone, a number at several places between the query's value and its own, an ordered level at all levels
between. The second tries the accepted ones of a row together. Each trial is judged as refined rows are before the model
sees it, so that limits, coherence and the floors hold all along.
"""

from __future__ import annotations

__all__ = ["CHECK_ROUNDS", "brought_nearer", "confirm", "surer_in"]

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.candidates import Candidates, distances_of, judges_of, standing, wanted_of
from dicoflex.answers.check import Check
from dicoflex.answers.draws import Draws, Terms, repeats
from dicoflex.answers.frames import accepted, confirmed
from dicoflex.answers.query import Query
from dicoflex.answers.search import are_few
from dicoflex.model import Model
from dicoflex.refinement import Wanted
from dicoflex.table.encoding import Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Rows = TypeVar("Rows", Draws, Candidates)
SURER = (0.0, 1.0, 1.0, 1.5, 1.5)
"""Round by round how sure the surrogate must be, as `wanted_of` takes it: first the model alone decides."""
CHECK_ROUNDS = len(SURER)
NEARER_ROUNDS = 3
"""Each of two calls. With one call for the queries themselves and the rounds before, twelve in all."""
PARTS = 8
"""Into how many parts a number's way to the query is cut in a round; after three rounds a 512th of it is left."""


def surer_in(round_number: int) -> float:
    """How sure the surrogate must be of candidates for a round of `confirm`, as `wanted_of` takes it."""
    return SURER[round_number]


def confirm(
    model: Model, query: Query, check: Check, find: Callable[[Ints, int], Rows]
) -> tuple[Rows, Ints, bool]:  # fmt: skip
    """Rows that `check` confirms, how many others it refused per query, and whether it gives probabilities.

    find: rows for some queries, in a round; only queries that are short get another. Where few rows are allowed there
    are no rounds: all of them are looked at afterwards.
    """
    which, few, graded = query.answerable(), np.zeros(0, dtype=np.int64), False
    kept: list[Rows] = []
    refused: list[Rows] = []
    for round_number in range(CHECK_ROUNDS):
        found = find(which, round_number)
        good, by_probability = accepted(model, query, found.values, found.query, check)
        graded |= by_probability
        kept.append(found.take(np.flatnonzero(good)))
        refused.append(found.take(np.flatnonzero(~good)))
        have = np.bincount(np.concatenate([part.query for part in kept]), minlength=len(query))
        short = np.flatnonzero((have < query.request.n) & query.feasible)
        few = short[are_few(model, query, short)] if round_number == 0 else few
        which = np.setdiff1d(short, few)
        if len(which) == 0:
            break
    tried = np.bincount(type(found).join(refused).without_repeats().query, minlength=len(query))
    return type(found).join(kept).without_repeats(), tried, graded


def brought_nearer(
    model: Model, query: Query, rows: Candidates, check: Check, terms: Terms, *, graded: bool
) -> Candidates:
    """Rows that `check` confirmed, each as near to its query as `check` confirms it still, in at most six calls.

    graded: whether `check` gives probabilities; if not, the surrogate stands for a confidence above the decision's.
    """
    search = _Search(model, query, check, terms, _wanted(model, query, graded=graded))
    near = query.context.query[rows.query].copy()
    for _ in range(NEARER_ROUNDS):
        rows, near, moved = search.round(rows, near)
        if not moved:
            break
    return rows.without_repeats()


def _wanted(model: Model, query: Query, *, graded: bool) -> Wanted:
    """What a trial must be before the model is asked."""
    wanted = wanted_of(model, query, surer=0.0)
    lowest = model.confidence.lowest[query.context.target]
    decides = graded | ~np.asarray(model.has_confidence & (query.context.confidence > lowest))
    return replace(wanted, probability=np.where(decides, -np.inf, wanted.probability))


class _Singles(NamedTuple):
    """Trials of one change each: the row and the feature it is of, the value, and its part of the way (0: undone)."""

    row: Ints
    feature: Ints
    value: Floats
    part: Ints

    def of(self, rows: Candidates) -> Values:
        """The trials as rows."""
        values = rows.values[self.row]
        values[np.arange(len(values)), self.feature] = self.value
        return values


class _Search(NamedTuple):
    """What rows are brought nearer by."""

    model: Model
    query: Query
    check: Check
    terms: Terms
    wanted: Wanted

    def round(self, rows: Candidates, near: Values) -> tuple[Candidates, Values, bool]:
        """The rows after two calls; what is known to be too near, feature by feature; whether any row moved."""
        own = self.query.context.query[rows.query]
        singles = _singles(rows, own, near, self._choosable, self._number, judges_of(self.model, self.query).gaps)
        here = distances_of(self.model, self.query, rows.values, rows.query)
        feature = np.where(self._number[singles.feature] & (singles.part > 0), singles.feature, -1)
        origin = rows.values[singles.row, singles.feature]
        made, source = self._confirmed(rows, singles.of(rows), singles.row, here, feature, origin)
        at, j = singles.row[source], singles.feature[source]
        apart = distances_of(self.model, self.query, made.values, made.query)
        best = _least_each(apart, at * rows.values.shape[1] + j)
        made, source, at, j, apart = made.take(best), source[best], at[best], j[best], apart[best]
        near = _narrowed(rows, near, singles, source)
        sets = _together(at, here[at] - apart)
        joint = rows.values[[at[one[0]] for one in sets]] if sets else rows.values[:0]
        for k, one in enumerate(sets):
            joint[k, j[one]] = made.values[one, j[one]]
        owner = np.array([at[one[0]] for one in sets], dtype=np.int64)
        none = np.full(len(sets), -1)
        both, of = self._confirmed(rows, joint, owner, here, none, np.zeros(len(sets)))
        found, place = Candidates.join([rows, made, both]), np.concatenate([np.arange(len(rows)), at, owner[of]])
        nearest = _least_each(distances_of(self.model, self.query, found.values, found.query), place)
        return found.take(nearest), near, bool((nearest >= len(rows)).any())

    def _confirmed(
        self, rows: Candidates, values: Values, owner: Ints, here: Floats, feature: Ints, origin: Floats
    ) -> tuple[Candidates, Ints]:
        """Those of the trials that stand, are nearer than the rows they come from, and are confirmed: one call."""
        trials = rows.take(owner).but(values=values)
        made, source = standing(self.model, self.query, trials, self.wanted, feature, origin)
        fine = distances_of(self.model, self.query, made.values, made.query) < here[owner[source]]
        if self.terms.remembered is not None:
            fine &= ~self.terms.remembered.hold(made.values)
        fine &= ~repeats(made.key, owner[source])
        made, source = made.take(fine), source[fine]
        # What two rows come to is shown once.
        first = ~repeats(made.key, made.query)
        shown = np.flatnonzero(first)
        good = dict.fromkeys(zip(made.query[shown].tolist(), made.key[shown].tolist(), strict=True), False)
        said = confirmed(self.model, self.query, made.values[shown], made.query[shown], self.check)
        good |= dict(zip(good, said.tolist(), strict=True))
        kept = np.array([good[one] for one in zip(made.query.tolist(), made.key.tolist(), strict=True)], dtype=bool)
        return made.take(kept), source[kept]

    @property
    def _choosable(self) -> Bools:
        """The features that don't follow from others."""
        limits, followers = self.query.limits, judges_of(self.model, self.query).follower
        return ~followers if limits is None else ~(followers | limits.follows)

    @property
    def _number(self) -> Bools:
        return np.array([feature.is_number for feature in self.model.schema.features])


def _singles(rows: Candidates, own: Values, near: Values, free: Bools, number: Bools, gaps: Floats) -> _Singles:
    """All trials of one change each; `near` is known to be too near, or what the query has."""
    row, feature = np.nonzero(differ(rows.values, own) & free)
    here, theirs = rows.values[row, feature], own[row, feature]
    undone = _Singles(row, feature, theirs, np.zeros(len(row), dtype=np.int64))
    between = np.flatnonzero(number[feature] & ~np.isnan(here - theirs))
    part = np.tile(np.arange(1, PARTS), len(between))
    at = np.repeat(between, PARTS - 1)
    start = near[row[at], feature[at]]
    numbers = _Singles(row[at], feature[at], start + (here[at] - start) * part / PARTS, part)
    steps = np.where(~number[feature] & (np.maximum(here, theirs) <= gaps[feature]), np.abs(here - theirs), 1.0)
    steps = steps.astype(np.int64) - 1
    at, part = np.repeat(np.arange(len(row)), steps), np.concatenate([np.arange(1, n + 1) for n in [0, *steps]])
    levels = _Singles(row[at], feature[at], theirs[at] + np.sign(here[at] - theirs[at]) * part, part)
    return _Singles(*(np.concatenate(columns) for columns in zip(undone, numbers, levels, strict=True)))


def _narrowed(rows: Candidates, near: Values, singles: _Singles, best: Ints) -> Values:
    """What is known to be too near: the part of the way before the nearest one that was confirmed, or all of it."""
    part = np.full(near.shape, PARTS)
    part[singles.row[best], singles.feature[best]] = singles.part[best]
    return np.where(np.isfinite(near), near + (rows.values - near) * np.maximum(part - 1, 0) / PARTS, near)


def _together(owner: Ints, gain: Floats) -> list[Ints]:
    """Sets of confirmed changes of one row to be tried together: those that gain most, and all but one."""
    sets: list[Ints] = []
    order = np.lexsort((-gain, owner))
    for mine in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
        n = len(mine)
        sets += [mine[:k] for k in range(n, 1, -1)]
        sets += [np.delete(mine, k) for k in range(n - 1)] if n > 2 else []
    return sets


def _least_each(values: Floats, group: Ints) -> Ints:
    """The place of the least value of each group, the first of equals, groups in their order."""
    order = np.lexsort((values, group))
    return order[np.flatnonzero(np.diff(group[order], prepend=-1))] if len(order) else order
