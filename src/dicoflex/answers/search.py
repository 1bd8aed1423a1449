"""Looking for an answer where draws found none: every row that is allowed, or many drawn evenly from them.

What a density never draws may still be allowed and accepted. Where all rows were looked at and none is accepted, there
is no way, and that is proved; where they are too many, how rare a way can be at most is told.
"""

from __future__ import annotations

__all__ = ["MOST_IN_A_CALL", "Search", "are_few", "looked_for", "to_look_for"]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.check import Check
from dicoflex.answers.draws import Terms, repeats
from dicoflex.answers.frames import confirmed
from dicoflex.answers.query import Query
from dicoflex.limits.enumeration import Allowed
from dicoflex.limits.limits import Limits
from dicoflex.limits.plan import Plan
from dicoflex.model import Model
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
MOST_ROWS = 1_000_000
MOST_IN_A_CALL = 4_000_000
EVENLY = 20_000
EVENLY_AT_LEAST = 1_000
KEPT = 256
FEW = 4_096
"""So many rows are sooner looked at, all of them, than drawn from again and again."""
THREE = 3.0  # of so many that none of n was seen, at 95 % at most three in n are


@dataclass(frozen=True)
class Search:
    """What came of looking for an answer to one query.

    judge: who was asked, "check" or "surrogate". sure: how sure the surrogate was asked to be; None of a check.
    looked_at: how many different rows that obey; tried: how many were made to find them; all: whether these are all
    that there are. accepted: how many of them the judge accepts. usual: how many of these go together and are no rarer
    than asked for.
    """

    judge: str
    sure: float | None
    looked_at: int
    tried: int
    all: bool
    accepted: int
    usual: int

    @property
    def is_proof(self) -> bool:
        """Whether there is no way, since every row was looked at; one that is merely unusual is a way still."""
        return self.all and self.accepted == 0

    @property
    def text(self) -> str:
        """What was found out, in words."""
        judge = self._judge
        unusual = f"{judge} accepts {self.accepted:,}, of which none goes together or is usual enough"
        if self.is_proof:
            return f"there is no way: {self._all_of_them(f'{judge} accepts none')}"
        if self.all:
            return f"{self._all_of_them(unusual)}; coherent=False lets them be answers"
        if self.looked_at == 0:
            return f"none of {self.tried:,} rows drawn evenly obeys the constraints"
        if self.accepted:
            return f"of {self.looked_at:,} rows drawn evenly from what is allowed {unusual}"
        most = THREE / max(self.looked_at, 1)
        return (
            f"{judge} accepts none of {self.looked_at:,} rows drawn evenly from what is allowed: "
            f"at 95 % at most {100 * most:.2g} % of what is allowed is a way"
        )

    def no_more(self, got: int) -> str:
        """Why there are no more than so many answers where every row was looked at."""
        if self.accepted <= got:
            return self._all_of_them(f"{self._judge} accepts no others")
        said = self._all_of_them(f"{self._judge} accepts {self.accepted:,}")
        return f"{said}; those left out change more than is needed, or what is not usual"

    @property
    def _judge(self) -> str:
        return "check" if self.sure is None else f"the surrogate, asked to be {100 * self.sure:.3g} % sure,"

    def _all_of_them(self, said: str) -> str:
        """That every row was looked at, and what was said of them."""
        if self.looked_at == 0:
            return "no row is what was asked for"
        rows = "the only row" if self.looked_at == 1 else f"all {self.looked_at:,} rows"
        return f"{rows} that the constraints allow {'was' if self.looked_at == 1 else 'were'} looked at, and {said}"


def looked_for(
    model: Model, query: Query, which: Ints, terms: Terms, check: Check | None, *, most: int = MOST_IN_A_CALL
) -> tuple[Values, Ints, dict[int, Search]]:
    """For the queries `which`: allowed rows that the judge accepts, whose they are, and what was found out.

    most: how many rows may be looked at for all of them together.
    """
    limits = _limits(model, query)
    values, owners, told = [np.zeros((0, len(model.schema)))], [np.zeros(0, dtype=np.int64)], {}
    left = most
    for i in which.tolist():
        rows, told[i] = _one(_Judge(model, query, limits, i, terms, check), left)
        left = max(0, left - told[i].looked_at)
        values.append(rows)
        owners.append(np.full(len(rows), i))
    return np.concatenate(values), np.concatenate(owners), told


def to_look_for(model: Model, query: Query, have: Ints, *, checked: bool) -> Ints:
    """The queries that a search is made for, by how many rows they have.

    Those without any; and with a check, which draws are not made for, those that are short and have few rows allowed.
    """
    without = query.feasible & (have == 0)
    if checked:
        short = np.flatnonzero(query.feasible & (have < query.request.n))
        without[short] |= are_few(model, query, short)
    return np.flatnonzero(without & query.request.exhaustive)


def are_few(model: Model, query: Query, which: Ints) -> Bools:
    """Which of the queries `which` have so few rows allowed that all are looked at instead of drawing on."""
    if not query.request.exhaustive:
        return np.zeros(len(which), dtype=bool)
    limits = _limits(model, query)
    counts = [Allowed.of(limits, query.context.query, int(i)).count for i in which]
    return np.array(counts, dtype=np.float64) <= FEW


def _limits(model: Model, query: Query) -> Limits:
    """The limits of a query; what the schema allows where nothing but frozen features is asked for."""
    if query.limits is not None:
        return query.limits
    plan = Plan.of(query.request.constraints, model.encoding)
    return Limits.of(plan, query.context.query, query.context.frozen)


def _one(judge: _Judge, left: int) -> tuple[Values, Search]:
    """What is accepted of one query's rows, the nearest first; `left` says how many may be looked at."""
    allowed = Allowed.of(judge.limits, judge.query.context.query, judge.i)
    whole = allowed.count <= min(MOST_ROWS, left)
    batches = allowed.rows() if whole else iter([_evenly(allowed, judge, left)])
    found, looked, tried, accepted, usual = [np.zeros((0, len(judge.own)))], 0, 0, 0, 0
    for rows in batches:
        fine = judge.fit(rows)
        good = fine[judge.accepts(fine)]
        best = good[judge.usual(good)]
        looked, tried = looked + len(fine), tried + len(rows)
        accepted, usual = accepted + len(good), usual + len(best)
        found.append(judge.nearest(best))
    kept = judge.nearest(np.concatenate(found))
    counts = {"looked_at": looked, "tried": tried, "accepted": accepted, "usual": usual}
    return kept, Search(judge.name, judge.sure, all=whole, **counts)


def _evenly(allowed: Allowed, judge: _Judge, left: int) -> Values:
    """Different rows drawn evenly."""
    count = max(EVENLY_AT_LEAST, min(EVENLY, left))
    rows = allowed.drawn(count, int(judge.query.keys[judge.i]))
    return rows[~repeats(row_keys(rows, 0), np.zeros(count, dtype=np.int64))]


@dataclass(frozen=True)
class _Judge:
    """Who says of a query's rows whether they are answers."""

    model: Model
    query: Query
    limits: Limits
    i: int
    terms: Terms
    check: Check | None

    @property
    def name(self) -> str:
        return "surrogate" if self.check is None else "check"

    @property
    def sure(self) -> float | None:
        return float(self.terms.least_probability[self.i]) if self.check is None else None

    @property
    def own(self) -> Floats:
        row: Floats = self.query.context.query[self.i]
        return row

    def nearest(self, rows: Values) -> Values:
        """The rows that change least: few features, and then little."""
        apart = np.abs(np.nan_to_num(rows - self.own, nan=1.0)) / self.model.encoding.scale
        moved = np.where(differ(rows, self.own), 1.0 + np.minimum(apart, 10.0) / 10.0, 0.0)
        return rows[np.argsort(moved.sum(axis=1), kind="stable")[:KEPT]]

    def fit(self, rows: Values) -> Values:
        """The rows as they are with what follows from others, less those that break a limit or change nothing."""
        own = np.tile(self.own, (len(rows), 1))
        rows = np.where(differ(rows, own), self.model.encoding.snap(rows), own)
        fine = self.limits.consequences.settle(rows, own)
        if self.coherent and self.model.coherence is not None:
            fine &= self.model.coherence.dependencies.settle(rows, own)
        fine &= (differ(rows, own) & ~self.limits.uncounted).any(axis=1)
        fine &= ~self.limits.broken(rows, own, np.full(len(rows), self.i))
        if self.terms.remembered is not None:
            fine &= ~self.terms.remembered.hold(rows)
        return rows[fine]

    @property
    def coherent(self) -> bool:
        request = self.query.request
        return request.refine and request.coherent and self.model.coherence is not None

    def accepts(self, rows: Values) -> Bools:
        """Which rows the judge gives the target, as sure as was asked for."""
        if self.check is not None:
            return confirmed(self.model, self.query, rows, np.full(len(rows), self.i), self.check)
        said = self.model.surrogate.probabilities(rows)
        mine = said[:, self.query.context.target[self.i]]
        return np.asarray((mine >= self.terms.least_probability[self.i]) & (mine >= said.max(axis=1)))

    def usual(self, rows: Values) -> Bools:
        """Which rows go together and are no rarer than asked for."""
        coherence, target = self.model.coherence, self.query.context.target[self.i]
        if not self.coherent or coherence is None or len(rows) == 0:
            return np.ones(len(rows), dtype=bool)
        own = np.tile(self.own, (len(rows), 1))
        floor = coherence.density.floors(self.query.request.min_plausibility)[0][target]
        likely = coherence.density.judge(rows)[0] >= floor if self.query.request.min_plausibility > 0 else True
        return np.asarray(~coherence.broken(rows, own) & likely)
