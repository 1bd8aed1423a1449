"""From tasks to answers: what is drawn, refined, confirmed, looked for and chosen, the same way for every question.

A query's candidates are its draws as they come, or draws that were refined (`candidates`). Whichever they are, one way
leads from them to answers: a callable confirms them where one is at hand, a search fills in where there are too few,
and the best of them, unlike each other, are chosen.
"""

from __future__ import annotations

__all__ = [
    "CANDIDATES", "MOST_ANSWERS", "Plans", "Pool", "answer", "answers_to", "check_cost", "conditioned", "find",
    "most_rows", "pool", "terms_of",
]  # fmt: skip

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Floats, Ints
from dicoflex.answers.candidates import (
    Candidates,
    brought_near,
    candidates,
    coherence_of,
    judged,
    merits_of,
    outstepped,
)
from dicoflex.answers.check import Check
from dicoflex.answers.confirming import brought_nearer, confirm, surer_in
from dicoflex.answers.draws import Draws, Terms, Verdict, draw
from dicoflex.answers.frames import confirmed
from dicoflex.answers.outcome import HAS_TARGET, Found, Outcome, has_target, joined, statuses
from dicoflex.answers.query import Query, bind, check_askable, uncounted
from dicoflex.answers.search import MOST_IN_A_CALL, Search, looked_for, to_look_for
from dicoflex.answers.shortfall import shortfall
from dicoflex.answers.tasks import Tasks, tasks_of
from dicoflex.answers.ways import by_query, choose_each, ranges_of, select, ways_of
from dicoflex.errors import QueryError
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.runtime.columns import Columns
from dicoflex.runtime.randomness import row_keys
from dicoflex.runtime.threads import one_blas_thread
from dicoflex.table.encoding import Values
from dicoflex.table.unseen import EncodedRows
from dicoflex.values import differ

CANDIDATES = 100
UNLIKELY = 0.05
MOST_ANSWERS = 10_000
"""Answers per row that can be chosen: each is compared with all candidates."""
MOST_DRAWS = 10_000_000
"""Draws that a call holds at once: a gigabyte of a dozen features."""
NEARED = 12
"""How many candidates of a query are at least brought nearer against the model at hand."""
LOOKED_AT = 4_000
"""Of how many rows that are allowed some are looked at for a `pool` without draws: a page asks while one drags."""


def answer(model: Model, rows: EncodedRows, request: Request, check: Check | None = None) -> Outcome:
    """Find up to `n` answers to every row, whatever its target.

    Parameters
    ----------
    model : Model
        What is asked.
    rows : EncodedRows
        The rows to explain.
    request : Request
        What is asked of it.
    check : callable, optional
        The model at hand: only rows that it confirms are answers, brought nearer against it.

    Returns
    -------
    Outcome
        Also where no row can be answered: why not is told row by row.

    Raises
    ------
    QueryError, ConstraintError
        If the request does not fit the model.
    """
    asked, tasks, queries = conditioned(model, rows, request, check)
    check_cost(len(rows), request.n, max(CANDIDATES, 4 * request.n), most=MOST_ANSWERS)
    found = [find(group.model, query, group.check) for group, query in zip(tasks.groups, queries, strict=True)]
    return joined(model, rows, asked, tasks, queries, found, checked=check is not None)


def conditioned(
    model: Model, rows: EncodedRows, request: Request, check: Check | None = None
) -> tuple[Request, Tasks, list[Query]]:
    """The request as it binds, the tasks that it is for rows, and the query of each group of them."""
    bound = bind(model, request)
    check_askable(model, request, bound)
    tasks = tasks_of(model, rows, request, check)
    asked = bound.asked(request)
    return asked, tasks, [Query.of_tasks(group, rows, asked, bound) for group in tasks.groups]


# -- what a call may cost ----------------------------------------------------------------------------------------


def check_cost(rows: int, n: int, each: int, *, most: int = MOST_DRAWS) -> None:
    """Refuse `n` answers to `rows` rows, with `each` draws per row, where that is more than one call may cost.

    >>> check_cost(rows=1000, n=10, each=100)
    >>> check_cost(rows=50_000, n=100, each=400)
    Traceback (most recent call last):
    dicoflex.errors.QueryError: n=100 for 50,000 rows takes 20,000,000 draws, ... give at most 25,000 rows at once, ...
    """
    if n > most:
        raise QueryError(f"n is {n:,}, and at most {most:,} can be asked for a row in one call; lower n")
    if rows * each > MOST_DRAWS:
        raise QueryError(
            f"n={n:,} for {rows:,} rows takes {rows * each:,} draws, and one call may take {MOST_DRAWS:,}; "
            f"give at most {most_rows(each):,} rows at once, or lower n"
        )


def most_rows(each: int) -> int:
    """How many rows one call may have, with `each` draws per row.

    >>> most_rows(400)
    25000
    """
    return max(1, MOST_DRAWS // each)


# -- one query ---------------------------------------------------------------------------------------------------


def find(model: Model, query: Query, check: Check | None = None) -> Found:
    """Up to `n` answers to every row of a query that does not have the target already."""
    already = has_target(model, query, check)
    query = query.skipping(already) if already.any() else query
    if not query.feasible.any():
        return _nothing(model, query, already)
    with one_blas_thread():
        terms = terms_of(model, query, filtered=True)
        draws, known, refused, searches = _answers(_method(model, query, terms), check)
        got = np.bincount(draws.query, minlength=len(query))
        short = shortfall(model, query, terms, got, refused, searches)
    words = statuses(query, already, got, searches)
    found = Found(draws, known, short, searches, already, words)
    return _without_already(found, query.request.n) if already.any() else found


def _nothing(model: Model, query: Query, already: NDArray[np.bool_]) -> Found:
    """What is found where the constraints leave no row a chance."""
    assert query.limits is not None
    n, nothing = query.request.n, np.zeros(0)
    whys = [HAS_TARGET if has else str(why) for has, why in zip(already, query.limits.reasons, strict=True)]
    draws = Draws(
        np.zeros((0, len(model.schema))), nothing.astype(np.int64), nothing.astype(np.uint64), nothing, nothing,
        nothing.astype(np.int8),
    )  # fmt: skip
    words = statuses(query, already, np.zeros(len(query), dtype=np.int64), {})
    return Found(draws, {}, {i: (n, 0, why) for i, why in enumerate(whys)}, {}, already, words)


def _without_already(found: Found, n: int) -> Found:
    """What was found for rows that lack the target; the others are told why they have no answers."""
    kept = np.flatnonzero(~found.already[found.draws.query])
    reasons = dict.fromkeys(np.flatnonzero(found.already).tolist(), (n, 0, HAS_TARGET))
    return replace(
        found,
        draws=found.draws.take(kept),
        known={name: column[kept] for name, column in found.known.items()},
        short=dict(sorted((found.short | reasons).items())),
        searches={i: one for i, one in found.searches.items() if not found.already[i]},
    )


def terms_of(model: Model, query: Query, *, filtered: bool) -> Terms:
    """What draws must be: with `filtered`, likely, and as sure as asked for or surer than not."""
    sure = query.context.confidence
    return Terms(
        surrogate=model.surrogate if filtered else None,
        least_probability=sure if model.has_confidence else np.maximum(sure, 0.5),
        unlikely=UNLIKELY if filtered else 0.0,
        remembered=model.remembered if query.request.novel else None,
        limits=query.limits,
        scored=filtered,
    )


def _answers(
    method: Any, check: Check | None
) -> tuple[Draws, dict[str, Any], Ints, dict[int, Search]]:  # fmt: skip
    """Rows to answer a query with, what is known of each, how many a check refused per task, and what was searched."""
    query = method.query
    if check is None:
        found, refused = method.candidates(query.answerable()), np.zeros(len(query), dtype=np.int64)
        found, searches = _with_searched(method, found, None)
    else:
        found, refused, graded = confirm(method.model, query, check, method.candidates_for_check)
        found, searches = _with_searched(method, found, check)
        found = method.nearer(found, check, graded=graded)
    chosen, ways = method.chosen(found)
    return *method.finished(chosen, ways), refused, searches


def _with_searched(
    method: Any, found: Any, check: Check | None, *, most: int = MOST_IN_A_CALL
) -> tuple[Any, dict[int, Search]]:
    """The candidates, with those of tasks that had none, or too few, and for which a search found some."""
    model, query = method.model, method.query
    have = np.bincount(found.query, minlength=len(query))
    without = to_look_for(model, query, have, checked=check is not None)
    if len(without) == 0:
        return found, {}
    rows, owners, searches = looked_for(model, query, without, method.terms, check, most=most)
    return method.joined_with(found, rows, owners, checked=check is not None) if len(rows) else found, searches


# -- draws as they come, and refined -----------------------------------------------------------------------------


def _method(model: Model, query: Query, terms: Terms) -> Drawing | Refining:
    refines = query.request.refine and model.coherence is not None
    return Refining(model, query, terms) if refines else Drawing(model, query, terms)


@dataclass(frozen=True)
class Drawing:
    """Candidates are draws as they come."""

    model: Model
    query: Query
    terms: Terms

    def candidates(self, which: Ints, again: int = 0) -> Draws:
        """Distinct, undoubted draws to choose from, for the tasks `which`; `again` counts the calls for them."""
        query, wanted = self.query, 4 * self.query.request.n
        keys = query.keys[which] + np.uint64(again)
        return draw(
            self.model.generator, self.model.encoding, query.context.take(which), keys, max(CANDIDATES, wanted),
            self.terms.take(which), enough=max(CANDIDATES // 2, wanted),
        ).of(which)  # fmt: skip

    def candidates_for_check(self, which: Ints, round_number: int) -> Draws:
        """The draws for a round of `confirm`."""
        return self.candidates(which, round_number)

    def joined_with(self, found: Draws, rows: Values, owners: Ints, *, checked: bool) -> Draws:  # noqa: ARG002
        """The draws, and rows that a search found."""
        said = self.model.surrogate.probabilities(rows)[np.arange(len(rows)), self.query.context.target[owners]]
        density = self.model.generator.log_prob(self.query.told.take(owners), rows)
        good = np.full(len(rows), Verdict.GOOD, dtype=np.int8)
        return Draws.join([found, Draws(rows, owners, row_keys(rows, 0), density, said, good)]).without_repeats()

    def nearer(self, found: Draws, check: Check, *, graded: bool) -> Draws:  # noqa: ARG002
        """The same: draws are answers as they are."""
        return found

    def chosen(self, draws: Draws) -> tuple[Draws, None]:
        """The draws to answer with, task by task, best first."""
        query, follows, ranges = self.query, uncounted(self.model, self.query.request), ranges_of(self.model.schema)
        order, edges = by_query(draws.query, len(query))
        places, chosen = np.arange(len(draws))[order], [np.zeros(0, dtype=np.int64)]
        for i in range(len(query)):
            mine, own = places[edges[i] : edges[i + 1]], query.context.query[i]
            effort = query.cost(draws.values[mine], own)
            # What follows from other changes is no effort of its own.
            rows = np.where(follows, own, draws.values[mine])
            chosen.append(mine[select(ranges, own, rows, draws.log_density[mine], query.request.n, effort=effort)])
        return draws.take(np.concatenate(chosen)), None

    def finished(self, chosen: Draws, ways: None) -> tuple[Draws, dict[str, Any]]:  # noqa: ARG002
        """The rows with the density's word on them, and nothing else that is known of them."""
        return chosen, {}

    def plans(self, chosen: Draws, ways: None) -> Plans:  # noqa: ARG002
        """The chosen draws of one task."""
        moved = differ(chosen.values, self.query.context.query[0])
        way = ways_of(moved) if len(chosen) else np.zeros(0, dtype=np.int64)
        return Plans(chosen.values, chosen.key, chosen.probability, np.full(len(chosen), np.nan), way)


@dataclass(frozen=True)
class Refining:
    """Candidates are draws in which nothing is needless or implausible, near, and different to a person."""

    model: Model
    query: Query
    terms: Terms

    def candidates(self, which: Ints) -> Candidates:
        """Refined draws of which the surrogate is sure, for the tasks `which`."""
        return candidates(self.model, self.query, which, self.terms)

    def candidates_for_check(self, which: Ints, round_number: int) -> Candidates:
        """Refined draws for a round of `confirm`."""
        return candidates(self.model, self.query, which, self.terms, round_number, surer=surer_in(round_number))

    def joined_with(self, found: Candidates, rows: Values, owners: Ints, *, checked: bool) -> Candidates:
        """The candidates, and rows that a search found; without a check these are refined too."""
        accepted = judged(self.model, self.query, rows, owners)
        if checked:
            return Candidates.join([found, accepted]).without_repeats()
        near = brought_near(self.model, self.query, accepted)
        accepted = accepted.take(~np.isin(accepted.query, np.concatenate([found.query, near.query])))
        return Candidates.join([found, near, accepted]).without_repeats()

    def nearer(self, found: Candidates, check: Check, *, graded: bool) -> Candidates:
        """The foremost candidates, each as near to its row as `check` confirms it still."""
        n = self.query.request.n
        foremost = self.chosen(found, max(NEARED, n + n // 2))[0]
        near = brought_nearer(self.model, self.query, foremost, check, self.terms, graded=graded)
        # Several may have come to one row: then others are made do with as they are.
        short = np.bincount(near.query, minlength=len(self.query)) < n
        return Candidates.join([near, found.take(short[found.query])]).without_repeats()

    def chosen(self, found: Candidates, n: int | None = None) -> tuple[Candidates, Ints]:
        """The candidates to answer with, task by task, best first, and the number of each one's way.

        Where one step of an ordered level is enough, nobody is sent two. n: how many per task, where it is not as many
        as asked for.
        """
        query = self.query
        found = found.take(~outstepped(self.model, query, found))
        order, edges = by_query(found.query, len(query))
        found, wanted = found.take(order), (n or query.request.n, query.request.diversity)
        merits = merits_of(self.model, query, found)
        ranges = ranges_of(self.model.schema)
        best, ways = choose_each(found.values, query.context.query, edges, merits, ranges, wanted)
        return found.take(best), ways

    def finished(self, chosen: Candidates, ways: Ints) -> tuple[Draws, dict[str, Any]]:
        """The rows with the density's word on them, and what else is known: plausibility, way, certified share."""
        query, target = self.query, self.query.context.target[chosen.query]
        log_density = self.model.generator.log_prob(query.told, chosen.values, of=chosen.query)
        good = np.full(len(chosen), Verdict.GOOD, dtype=np.int8)
        draws = Draws(chosen.values, chosen.query, chosen.key, log_density, chosen.probability, good)
        assert self.model.certificate is not None
        classes = target.tolist()
        rate = {c: self.model.certificate.valid_at_least(c, query.sort) for c in set(classes)}
        known = {
            "plausibility": self._plausibility(chosen),
            "way": ways,
            "valid_at_least": np.array([rate[c] for c in classes]),
        }
        return draws, known

    def plans(self, chosen: Candidates, ways: Ints) -> Plans:
        """The chosen candidates of one task."""
        return Plans(chosen.values, chosen.key, chosen.probability, self._plausibility(chosen), ways)

    def _plausibility(self, chosen: Candidates) -> Floats:
        density, target = coherence_of(self.model).density, self.query.context.target[chosen.query]
        return density.plausibility(chosen.row_density, target)


def answers_to(model: Model, query: Query, terms: Terms) -> Candidates:
    """What `find` answers with refined candidates, without densities and checks."""
    method = Refining(model, query, terms)
    return method.chosen(method.candidates(query.answerable()))[0]


# -- all that was found for one row ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plans(Columns):
    """Answers, best first: values, a key each, what the surrogate says, how usual each is (NaN: unknown), its way."""

    values: Values
    key: NDArray[np.uint64]
    probability: Floats
    plausibility: Floats
    way: Ints


@dataclass(frozen=True)
class Pool:
    """Distinct rows that would do for one query, and the plans chosen from them: those that `explain` answers with.

    reached: where values have landed: the rows, and those that they were before they were brought near.
    """

    values: Values
    probability: Floats
    reached: Values
    plans: Plans

    def __len__(self) -> int:
        return len(self.values)


def pool(model: Model, query: Query, check: Check | None = None) -> Pool:
    """The pool of a query of one row, which must be answerable; with a check, of rows that it confirms."""
    method = _method(model, query, terms_of(model, query, filtered=True))
    found: Any = method.candidates(np.zeros(1, dtype=np.int64))
    if check is not None:
        found = found.take(np.flatnonzero(confirmed(model, query, found.values, found.query, check)))
    if isinstance(method, Drawing):
        return Pool(found.values, found.probability, found.values, method.plans(*method.chosen(found)))
    found, _ = _with_searched(method, found, check, most=LOOKED_AT)
    reached = np.concatenate([found.values, found.drawn])
    return Pool(found.values, found.probability, reached, method.plans(*method.chosen(found)))
