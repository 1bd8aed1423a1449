"""The three questions to a model: explain, sample, log_density."""

from __future__ import annotations

__all__ = ["answers_to", "explain", "log_density", "sample"]

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.candidates import Candidates, as_drawn, candidates, merits_of
from dicoflex.answers.check import Check, check_labels
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.draws import Draws, Terms, draw
from dicoflex.answers.numbering import index_of
from dicoflex.answers.query import Query
from dicoflex.answers.shortfall import shortfall, why_none
from dicoflex.answers.ways import choose, ranges_of, ways_of
from dicoflex.errors import QueryError
from dicoflex.generators.base import Context
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.encoding import Kept
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHECK_ROUNDS = 5
UNLIKELY = 0.05


def explain(model: Model, rows: pd.DataFrame, request: Request, *, check: Check | None = None) -> Counterfactuals:
    """Up to `n` counterfactuals for every row: different from each other, close, and likely.

    check: a callable that labels rows; only rows that it gives the target are returned, drawing up to five rounds.
    """
    query = Query.make(model, rows, request, check)
    terms = _terms(model, query, filtered=True)
    found = candidates(model, query, query.answerable(), terms)
    refused = np.zeros(len(query), dtype=np.int64)
    if check is not None:
        found, refused = _confirm(model, query, found, terms, check)
    return _result(model, query, *_chosen(model, query, found), refused, checked=check is not None)


def answers_to(model: Model, query: Query) -> Candidates:
    """What `explain` answers to a query, as encoded rows."""
    found = candidates(model, query, query.answerable(), _terms(model, query, filtered=True))
    return _chosen(model, query, found)[0]


def sample(model: Model, rows: pd.DataFrame, request: Request, *, filtered: bool = True) -> pd.DataFrame:
    """Exactly `n` draws for every row, as they come: the layout of `Counterfactuals.frame`, nothing selected.

    filtered: leave out draws that the stand-in doubts, and the least likely 5 % of a row's draws.
    """
    query = Query.make(model, rows, request)
    query.refuse_unanswerable()
    terms = _terms(model, query, filtered=filtered)
    draws = draw(model.generator, model.encoding, query.context, query.keys, request.n, terms)
    without = np.flatnonzero(np.bincount(draws.query, minlength=len(query)) == 0)
    if len(without):
        raise QueryError(why_none(model, query, int(without[0])))
    return _frame(model, query, draws, differ(draws.values, query.context.query[draws.query]))


def log_density(model: Model, rows: pd.DataFrame, answers: pd.DataFrame, request: Request) -> Floats:
    """The log density of each row of `answers` given the row of `rows` at the same place, or the only one."""
    context = Query.make(model, rows, request).context
    values = model.encoding.encode(answers)
    if len(context) == 1:
        context = context.repeat(len(values))
    if len(context) != len(values):
        raise QueryError(f"rows has {len(context)} entries and counterfactuals {len(values)}; give as many, or one row")
    return model.generator.log_prob(context, values)


def _terms(model: Model, query: Query, *, filtered: bool) -> Terms:
    """What draws must be: with `filtered`, likely, and as sure as asked for or surer than not."""
    sure = query.context.confidence
    return Terms(
        stand_in=model.stand_in if filtered else None,
        least_probability=sure if model.has_confidence else np.maximum(sure, 0.5),
        unlikely=UNLIKELY if filtered else 0.0,
        training_keys=model.training_keys if query.request.novel else None,
        limits=query.limits,
        scored=filtered,
    )


def _confirm(model: Model, query: Query, found: Candidates, terms: Terms, check: Check) -> tuple[Candidates, Ints]:
    """Candidates that `check` confirms, and how many it refused; short queries get further rounds with fresh keys.

    Where it refuses a refined row, the row as it was drawn is tried.
    """
    kept: list[Candidates] = []
    refused = np.zeros(len(query), dtype=np.int64)
    for round_number in range(CHECK_ROUNDS):
        good = _confirmed(model, query, found, check)
        kept.append(found.take(good))
        drawn = as_drawn(model, query, found.take(~good)) if query.request.refine else found.take([])
        fine = _confirmed(model, query, drawn, check)
        kept.append(drawn.take(fine))
        np.add.at(refused, found.query[~good], 1)
        have = np.bincount(np.concatenate([part.query for part in kept]), minlength=len(query))
        short = np.flatnonzero((have < query.request.n) & query.feasible)
        if len(short) == 0 or round_number == CHECK_ROUNDS - 1:
            break
        found = candidates(model, query, short, terms, round_number + 1)
    return Candidates.join(kept).without_repeats(), refused


def _confirmed(model: Model, query: Query, found: Candidates, check: Check) -> NDArray[np.bool_]:
    """Which candidates `check` gives their target."""
    if len(found) == 0:
        return np.zeros(0, dtype=bool)
    shown = _frame(model, query, found, differ(found.values, query.context.query[found.query]))
    labels = check_labels(check, shown.reset_index(drop=True), model.labels)
    wanted = model.classes.astype(object)[query.context.target[found.query]]
    same: NDArray[np.bool_] = labels == np.asarray(wanted)
    return same


def _chosen(model: Model, query: Query, found: Candidates) -> tuple[Candidates, Ints]:
    """The candidates to answer with, query by query, best first, and the number of each one's way."""
    ranges = ranges_of(model.schema)
    merits = merits_of(model, query, found)
    changed = differ(found.values, query.context.query[found.query])
    order = np.argsort(found.query, kind="stable")
    edges = np.searchsorted(found.query[order], np.arange(len(query) + 1))
    chosen, ways = [], []
    for i in range(len(query)):
        mine = order[edges[i] : edges[i + 1]]
        way = ways_of(changed[mine]) if len(mine) else mine
        best = choose(
            found.values[mine], way, merits.take(mine), ranges, query.request.n, variety=query.request.variety
        )
        chosen.append(mine[best])
        ways.append(ways_of(changed[mine[best]]) if len(best) else best)
    return found.take(np.concatenate(chosen)), np.concatenate(ways)


def _frame(model: Model, query: Query, draws: Draws | Candidates, changed: NDArray[np.bool_]) -> pd.DataFrame:
    """The draws as a frame; frozen values and kept numbers are the rows' own, bit for bit, whatever the limits."""
    # A level's code is all that there is to it, but a frozen one is still the row's own object.
    kept = query.frozen | ~model.encoding.is_exact(query.context.query)
    index = index_of(query.frame.index, draws.query)
    own = Kept(query.frame, draws.query, ~changed & kept[draws.query])
    return model.encoding.decode(draws.values, index, kept=own)


def _result(
    model: Model, query: Query, draws: Candidates, ways: Ints, refused: Ints, *, checked: bool
) -> Counterfactuals:
    own = query.context.query[draws.query]
    changed = differ(draws.values, own)
    frame = _frame(model, query, draws, changed)
    got = np.bincount(draws.query, minlength=len(query))
    short = shortfall(model, query, got, refused, rounds=CHECK_ROUNDS)
    return Counterfactuals(
        queries=query.frame,
        frame=frame,
        info=pd.DataFrame(
            _info(model, query, draws, changed) | _trust(model, query, draws, ways, checked), frame.index
        ),
        positions=draws.query,
        shortfall=short.table,
        short=short.positions,
        schema=model.schema,
        request=query.request,
        targets=[model.labels[i] for i in query.context.target],
        model=model.fingerprint,
        changed=changed,
        density=_Densities(model, query.context) if len(model.schema) == 2 else None,
    )


def _info(model: Model, query: Query, draws: Candidates, changed: NDArray[np.bool_]) -> dict[str, Any]:
    """What is known of each answer: how it lies to its query and to real rows, and how sure it is."""
    own, target = query.context.query[draws.query], query.context.target[draws.query]
    before, after = model.encoding.standardise(own), model.encoding.standardise(draws.values)
    return {
        "target": model.classes[target],
        "log_density": model.generator.log_prob(query.context.take(draws.query), draws.values),
        "n_changed": changed.sum(axis=1),
        "proximity": np.sqrt(((before - after) ** 2).sum(axis=1)),
        "probability": draws.probability,
        "rarity": model.coherence.density.rarity(draws.row_density, target),
    }


def _trust(model: Model, query: Query, draws: Candidates, ways: Ints, checked: bool) -> dict[str, Any]:
    """How far each answer can be trusted, which way it is, and what it costs where that was priced."""
    n, target = len(draws), query.context.target
    sort = query.sort
    rate = {c: model.certificate.valid_at_least(int(c), sort) for c in np.unique(target)}
    known: dict[str, Any] = {
        "way": ways,
        "valid_at_least": np.array([rate[c] for c in target[draws.query]]),
        "valid": pd.arrays.BooleanArray(np.full(n, checked), np.full(n, not checked)),
    }
    cost = query.cost(draws.values, query.context.query[draws.query])
    return known if cost is None else {**known, "cost": cost}


@dataclass(frozen=True)
class _Densities:
    """For a query's position, the log density of rows as its counterfactuals."""

    model: Model
    context: Context

    def __call__(self, position: int) -> Callable[[pd.DataFrame], Floats]:
        return partial(self._log_density, position)

    def _log_density(self, position: int, rows: pd.DataFrame) -> Floats:
        values = self.model.encoding.encode(rows)
        context = self.context.take(slice(position, position + 1)).repeat(len(values))
        return self.model.generator.log_prob(context, values)
