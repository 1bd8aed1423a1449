"""Answers from refined candidates: confirmed where a callable is at hand, chosen by ways."""

from __future__ import annotations

__all__ = ["Answers", "answers_to", "chosen_of", "refined", "with_searched"]

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from dicoflex.answers.draws import Draws, Terms, Verdict
from dicoflex.answers.query import Query
from dicoflex.answers.search import MOST_IN_A_CALL, Search, looked_for, to_look_for
from dicoflex.answers.ways import by_query, choose_each, ranges_of
from dicoflex.model import Model

Ints = NDArray[np.int64]
NEARED = 12
"""How many candidates of a query are at least brought nearer against the model at hand."""


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
    if check is None:
        refused = np.zeros(len(query), dtype=np.int64)
        found, searches = with_searched(model, query, candidates(model, query, query.answerable(), terms), terms)
    else:
        found, refused, searches = _at_hand(model, query, terms, check)
    chosen, ways = chosen_of(model, query, found)
    return Answers(_as_draws(model, query, chosen), refused, _known(model, query, chosen, ways), searches)


def _at_hand(
    model: Model, query: Query, terms: Terms, check: Check
) -> tuple[Candidates, Ints, dict[int, Search]]:  # fmt: skip
    """Candidates that the model at hand confirms, brought nearer against it; how many it refused; what was searched."""

    def find(which: Ints, round_number: int) -> Candidates:
        return candidates(model, query, which, terms, round_number, surer=surer_in(round_number))

    sure, refused, graded = confirm(model, query, check, find)
    found, searches = with_searched(model, query, sure, terms, check)
    n = query.request.n
    foremost = chosen_of(model, query, found, max(NEARED, n + n // 2))[0]
    near = brought_nearer(model, query, foremost, check, terms, graded=graded)
    # Several may have come to one row: then others are made do with as they are.
    short = np.bincount(near.query, minlength=len(query)) < n
    return Candidates.join([near, found.take(short[found.query])]).without_repeats(), refused, searches


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
    if check is not None:
        return Candidates.join([found, accepted]).without_repeats(), searches
    near = brought_near(model, query, accepted)
    accepted = accepted.take(~np.isin(accepted.query, np.concatenate([found.query, near.query])))
    return Candidates.join([found, near, accepted]).without_repeats(), searches


def answers_to(model: Model, query: Query, terms: Terms) -> Candidates:
    """What `refined` answers, without densities and checks."""
    return chosen_of(model, query, candidates(model, query, query.answerable(), terms))[0]


def chosen_of(model: Model, query: Query, found: Candidates, n: int | None = None) -> tuple[Candidates, Ints]:
    """The candidates to answer with, query by query, best first, and the number of each one's way.

    Where one step of an ordered level is enough, nobody is sent two. n: how many per query, where it is not as many as
    asked for.
    """
    found = found.take(~outstepped(model, query, found))
    order, edges = by_query(found.query, len(query))
    found, wanted = found.take(order), (n or query.request.n, query.request.diversity)
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
        "plausibility": coherence.density.plausibility(chosen.row_density, target),
        "way": ways,
        "valid_at_least": np.array([rate[c] for c in classes]),
    }
