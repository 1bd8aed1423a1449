"""The three questions to a model: explain, sample, log_density."""

from __future__ import annotations

__all__ = [
    "CANDIDATES", "Found", "check_affordable", "chosen_draws", "explain", "find", "log_density", "origin_of", "sample",
    "some_draws", "terms_of", "told_of",
]  # fmt: skip

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.binding import uncounted
from dicoflex.answers.ceilings import MOST_ANSWERS, check_cost
from dicoflex.answers.check import Check
from dicoflex.answers.confirming import confirm
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.draws import Draws, Terms, Verdict, draw
from dicoflex.answers.frames import frame_of
from dicoflex.answers.origin import Origin, info_of
from dicoflex.answers.query import Query
from dicoflex.answers.refined import Answers, refined
from dicoflex.answers.search import Search, looked_for, to_look_for
from dicoflex.answers.shortfall import SHORTFALL, shortfall, why_none
from dicoflex.answers.status import HAS_TARGET, has_target, statuses
from dicoflex.answers.ways import ranges_of, select
from dicoflex.errors import QueryError
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.runtime.randomness import row_keys
from dicoflex.runtime.threads import one_blas_thread
from dicoflex.table.unseen import Known
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CANDIDATES = 100
UNLIKELY = 0.05


def explain(
    model: Model, rows: pd.DataFrame, request: Request, *, check: Check | None = None, known: Known | None = None
) -> Counterfactuals:
    """Up to `n` counterfactuals for every row, which asks for one label: different from each other, close, and likely.

    check: the model at hand, as a callable that gives labels or the probabilities of the classes; only rows that it
    confirms are returned, brought nearer against it. It is also asked which of the rows have the target already; in all
    it is called at most twelve times, unless rows have to be searched one query after the other. known: the rows,
    where some values were never seen in training and others stand in their place.
    """
    query = Query.make(model, rows, request, check, known)
    check_affordable(query)
    return _result(model, query, find(model, query, check))


@dataclass(frozen=True)
class Found:
    """Answers to a query as arrays, query by query: what frames, or plain rows, are made of.

    draws: the rows. known: what else is known of each. short: for the position of each query that got fewer than asked
    for: wanted, got, and why. checked: whether a callable confirmed them. searches: what came of looking for answers to
    queries for which none was drawn. already: which queries have the target, and so no answers. status: one word per
    query.
    """

    draws: Draws
    known: dict[str, Any]
    short: dict[int, tuple[int, int, str]]
    checked: bool
    searches: dict[int, Search]
    already: NDArray[np.bool_]
    status: list[str]


def check_affordable(query: Query) -> None:
    """Refuse a query that asks for more than one call may cost."""
    n = query.request.n
    check_cost(len(query), n, max(CANDIDATES, 4 * n), most=MOST_ANSWERS)


def find(model: Model, query: Query, check: Check | None = None) -> Found:
    """Up to `n` answers to every row of a query that does not have the target already."""
    already = has_target(model, query, check)
    query = query.skipping(already) if already.any() else query
    with one_blas_thread():
        terms = terms_of(model, query, filtered=True)
        answers = _answers(model, query, terms, check)
        got = np.bincount(answers.draws.query, minlength=len(query))
        short = shortfall(model, query, terms, got, answers)
    words = statuses(query, already, got, answers.searches)
    found = Found(answers.draws, answers.known, short, check is not None, answers.searches, already, words)
    return _without_already(found, query.request.n) if already.any() else found


def _without_already(found: Found, n: int) -> Found:
    """What was found for queries that lack the target; the others are told why they have no answers."""
    kept = np.flatnonzero(~found.already[found.draws.query])
    reasons = dict.fromkeys(np.flatnonzero(found.already).tolist(), (n, 0, HAS_TARGET))
    return replace(
        found,
        draws=found.draws.take(kept),
        known={name: column[kept] for name, column in found.known.items()},
        short=dict(sorted((found.short | reasons).items())),
        searches={i: one for i, one in found.searches.items() if not found.already[i]},
    )


def _answers(model: Model, query: Query, terms: Terms, check: Check | None) -> Answers:
    if query.request.refine and model.coherence is not None:
        return refined(model, query, terms, check)
    if check is None:
        draws, refused = some_draws(model, query, query.answerable(), terms), np.zeros(len(query), dtype=np.int64)
    else:
        draws, refused, _ = confirm(
            model, query, check, lambda which, again: some_draws(model, query, which, terms, again)
        )
    draws, searches = _looked_for(model, query, draws, terms, check)
    return Answers(draws.take(chosen_draws(model, query, draws)), refused, searches=searches)


def _looked_for(
    model: Model, query: Query, draws: Draws, terms: Terms, check: Check | None
) -> tuple[Draws, dict[int, Search]]:  # fmt: skip
    """The draws, with rows for queries that had none, or too few, and for which a search found some."""
    have = np.bincount(draws.query, minlength=len(query))
    without = to_look_for(model, query, have, checked=check is not None)
    if len(without) == 0:
        return draws, {}
    rows, owners, searches = looked_for(model, query, without, terms, check)
    if len(rows) == 0:
        return draws, searches
    said = model.surrogate.probabilities(rows)[np.arange(len(rows)), query.context.target[owners]]
    density = model.generator.log_prob(query.told.take(owners), rows)
    good = np.full(len(rows), Verdict.GOOD, dtype=np.int8)
    found = Draws(rows, owners, row_keys(rows, 0), density, said, good)
    return Draws.join([draws, found]).without_repeats(), searches


def sample(model: Model, rows: pd.DataFrame, request: Request, *, filtered: bool = True) -> pd.DataFrame:
    """Exactly `n` draws for every row, as they come: the layout of `Counterfactuals.frame`, nothing selected.

    filtered: leave out draws that the surrogate doubts, and the least likely 5 % of a row's draws.
    """
    query = Query.make(model, rows, request)
    check_cost(len(query), request.n, request.n)
    query.refuse_unanswerable()
    terms = terms_of(model, query, filtered=filtered)
    draws = draw(model.generator, model.encoding, query.context, query.keys, request.n, terms)
    without = np.flatnonzero(np.bincount(draws.query, minlength=len(query)) == 0)
    if len(without):
        raise QueryError(why_none(model, query, int(without[0])))
    return frame_of(model, query, draws.values, draws.query)


def log_density(model: Model, rows: pd.DataFrame, answers: pd.DataFrame, request: Request) -> Floats:
    """The log density of each row of `answers` given the row of `rows` at the same place, or the only one."""
    context = Query.make(model, rows, request).context
    values = model.encoding.encode(answers)
    if len(context) == 1:
        context = context.repeat(len(values))
    if len(context) != len(values):
        raise QueryError(f"rows has {len(context)} entries and counterfactuals {len(values)}; give as many, or one row")
    return model.generator.log_prob(context, values)


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


def some_draws(model: Model, query: Query, which: Ints, terms: Terms, again: int = 0) -> Draws:
    """Distinct, undoubted draws to choose from, for the queries `which`; `again` counts the calls for them."""
    wanted = 4 * query.request.n
    keys = query.keys[which] + np.uint64(again)
    found = draw(
        model.generator, model.encoding, query.context.take(which), keys, max(CANDIDATES, wanted), terms.take(which),
        enough=max(CANDIDATES // 2, wanted),
    )  # fmt: skip
    return found.of(which)


def chosen_draws(model: Model, query: Query, draws: Draws) -> Ints:
    """The positions of the draws to answer with, query by query, best first."""
    ranges, follows = ranges_of(model.schema), uncounted(model, query.request)
    order = np.argsort(draws.query, kind="stable")
    edges = np.searchsorted(draws.query[order], np.arange(len(query) + 1))
    chosen = []
    for i in range(len(query)):
        mine = order[edges[i] : edges[i + 1]]
        own, candidates = query.context.query[i], draws.values[mine]
        effort = query.cost(candidates, own)
        # What follows from other changes is no effort of its own.
        candidates = np.where(follows, own, candidates)
        best = select(ranges, own, candidates, draws.log_density[mine], query.request.n, effort=effort)
        chosen.append(mine[best])
    return np.concatenate(chosen)


def told_of(model: Model, query: Query, found: Found) -> dict[str, Any]:
    """What is told of each answer, column by column; not whether it is valid, which only a check can say."""
    draws = found.draws
    own = query.context.query[draws.query]
    columns = info_of(
        model, own, draws.values, query.context.target[draws.query],
        log_density=draws.log_density, probability=draws.probability, uncounted=uncounted(model, query.request),
    )  # fmt: skip
    cost = query.cost(draws.values, own)
    return {**columns, **({} if cost is None else {"cost": cost}), **found.known}


def _result(model: Model, query: Query, found: Found) -> Counterfactuals:
    draws = found.draws
    frame = frame_of(model, query, draws.values, draws.query)
    labels = query.frame.index.to_flat_index()
    return Counterfactuals(
        queries=query.frame,
        frame=frame,
        info=_info(model, query, found, frame.index),
        positions=draws.query,
        shortfall=pd.DataFrame([(labels[i], *why) for i, why in found.short.items()], columns=SHORTFALL),
        short=np.array(list(found.short), dtype=np.int64),
        schema=model.schema,
        request=query.request,
        targets=[model.labels[i] for i in query.context.target],
        model=model.fingerprint,
        changed=differ(draws.values, query.context.query[draws.query]),
        origin=origin_of(model, query, checked=found.checked),
        status=found.status,
        searches=found.searches,
    )


def origin_of(model: Model, query: Query, *, checked: bool) -> Origin:
    """Where the answers to a query come from."""
    return Origin(
        model, query.told, checked=checked, free=query.limits is None, uncounted=uncounted(model, query.request),
        unseen=None if query.known is None else query.known.rows,
    )  # fmt: skip


def _info(model: Model, query: Query, found: Found, index: pd.Index) -> pd.DataFrame:
    """What is known of each answer."""
    told, n = told_of(model, query, found), len(found.draws)
    valid = pd.arrays.BooleanArray(np.full(n, found.checked), np.full(n, not found.checked))
    columns: dict[str, Any] = {}
    for name, column in told.items():
        columns[name] = column
        if name == "probability":
            columns["valid"] = valid
    return pd.DataFrame(columns, index=index)
