"""Answers from refined candidates: confirmed where a callable is at hand, chosen by ways."""

from __future__ import annotations

__all__ = ["CHECK_ROUNDS", "Answers", "answers_to", "chosen_of", "refined", "with_searched"]

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.candidates import (
    Candidates,
    as_drawn,
    brought_near,
    candidates,
    coherence_of,
    judged,
    merits_of,
)
from dicoflex.answers.check import Check
from dicoflex.answers.draws import Draws, Terms, Verdict
from dicoflex.answers.frames import confirmed
from dicoflex.answers.query import Query
from dicoflex.answers.search import MOST_IN_A_CALL, Search, are_few, looked_for, to_look_for
from dicoflex.answers.selection import ranges_of
from dicoflex.answers.ways import by_query, choose_each
from dicoflex.model import Model

Ints = NDArray[np.int64]
CHECK_ROUNDS = 5


@dataclass(frozen=True)
class Answers:
    """Rows to answer with, how many candidates a check refused per query, and what else is known of each row.

    searches: what came of looking for an answer to queries for which none was drawn.
    """

    draws: Draws
    refused: Ints
    known: dict[str, Any] = field(default_factory=dict)
    searches: dict[int, Search] = field(default_factory=dict)


def refined(model: Model, query: Query, terms: Terms, check: Check | None) -> Answers:
    """Answers in which nothing is needless or implausible, near, and different to a person."""
    found = candidates(model, query, query.answerable(), terms)
    refused = np.zeros(len(query), dtype=np.int64)
    if check is not None:
        found, refused = _confirm(model, query, found, terms, check)
    found, searches = with_searched(model, query, found, terms, check)
    chosen, ways = chosen_of(model, query, found)
    return Answers(_as_draws(model, query, chosen), refused, _known(model, query, chosen, ways), searches)


def with_searched(
    model: Model,
    query: Query,
    found: Candidates,
    terms: Terms,
    check: Check | None = None,
    *,
    most: int = MOST_IN_A_CALL,
) -> tuple[Candidates, dict[int, Search]]:
    """The candidates, with those of queries that had none, or too few, and for which a search found some."""
    have = np.bincount(found.query, minlength=len(query))
    without = to_look_for(model, query, have, checked=check is not None)
    if len(without) == 0:
        return found, {}
    rows, owners, searches = looked_for(model, query, without, terms, check, most=most)
    accepted = judged(model, query, rows, owners)
    near = brought_near(model, query, accepted)
    if check is not None:
        near = near.take(confirmed(model, query, near.values, near.query, check))
    accepted = accepted.take(~np.isin(accepted.query, np.concatenate([found.query, near.query])))
    return Candidates.join([found, near, accepted]).without_repeats(), searches


def answers_to(model: Model, query: Query, terms: Terms) -> Candidates:
    """What `refined` answers, without densities and checks."""
    return chosen_of(model, query, candidates(model, query, query.answerable(), terms))[0]


def _confirm(model: Model, query: Query, found: Candidates, terms: Terms, check: Check) -> tuple[Candidates, Ints]:
    """Candidates that `check` confirms, and how many others it refused; short queries get rounds with fresh keys.

    Where it refuses a refined row, the row as it was drawn is tried. Where few rows are allowed there are no rounds:
    all of them are looked at afterwards.
    """
    kept: list[Candidates] = []
    refused: list[Candidates] = []
    few = np.zeros(0, dtype=np.int64)
    for round_number in range(CHECK_ROUNDS):
        good = confirmed(model, query, found.values, found.query, check)
        drawn = as_drawn(model, query, found.take(~good))
        kept += [found.take(good), drawn.take(confirmed(model, query, drawn.values, drawn.query, check))]
        refused.append(found.take(~good))
        have = np.bincount(np.concatenate([part.query for part in kept]), minlength=len(query))
        short = np.flatnonzero((have < query.request.n) & query.feasible)
        few = short[are_few(model, query, short)] if round_number == 0 else few
        short = np.setdiff1d(short, few)
        if len(short) == 0 or round_number == CHECK_ROUNDS - 1:
            break
        found = candidates(model, query, short, terms, round_number + 1)
    tried = np.bincount(Candidates.join(refused).without_repeats().query, minlength=len(query))
    return Candidates.join(kept).without_repeats(), tried


def chosen_of(model: Model, query: Query, found: Candidates) -> tuple[Candidates, Ints]:
    """The candidates to answer with, query by query, best first, and the number of each one's way."""
    order, edges = by_query(found.query, len(query))
    found, wanted = found.take(order), (query.request.n, query.request.variety)
    merits = merits_of(model, query, found)
    ranges = ranges_of(model.schema)
    best, ways = choose_each(found.values, query.context.query, edges, merits, ranges, wanted)
    return found.take(best), ways


def _as_draws(model: Model, query: Query, chosen: Candidates) -> Draws:
    """The rows with the density's word on them."""
    log_density = model.generator.log_prob(query.told, chosen.values, of=chosen.query)
    good = np.full(len(chosen), Verdict.GOOD, dtype=np.int8)
    return Draws(chosen.values, chosen.query, chosen.key, log_density, chosen.probability, good)


def _known(model: Model, query: Query, chosen: Candidates, ways: Ints) -> dict[str, Any]:
    """How usual each answer is, which way it is, and how often answers like it were valid on held-out rows."""
    coherence, target = coherence_of(model), query.context.target[chosen.query]
    assert model.certificate is not None
    classes = target.tolist()
    rate = {c: model.certificate.valid_at_least(c, query.sort) for c in set(classes)}
    return {
        "rarity": coherence.density.rarity(chosen.row_density, target),
        "way": ways,
        "valid_at_least": np.array([rate[c] for c in classes]),
    }
