"""All that was found for one query, and what of it is answered with: for pages that show how many there are."""

from __future__ import annotations

__all__ = ["Plans", "Pool", "pool"]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.candidates import candidates, coherence_of
from dicoflex.answers.check import Check
from dicoflex.answers.explain import chosen_draws, some_draws, terms_of
from dicoflex.answers.frames import confirmed
from dicoflex.answers.query import Query
from dicoflex.answers.refined import chosen_of, with_searched
from dicoflex.answers.ways import ways_of
from dicoflex.model import Model
from dicoflex.runtime.columns import Columns
from dicoflex.table.encoding import Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LOOKED_AT = 4_000
"""Of how many rows that are allowed some are looked for where no draw is an answer: a page asks while one drags."""


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
    terms, which = terms_of(model, query, filtered=True), np.zeros(1, dtype=np.int64)
    own = query.context.query[0]
    if not query.request.refine or model.coherence is None:
        draws = some_draws(model, query, which, terms)
        if check is not None:
            draws = draws.take(np.flatnonzero(confirmed(model, query, draws.values, draws.query, check)))
        taken = draws.take(chosen_draws(model, query, draws))
        way = ways_of(differ(taken.values, own)) if len(taken) else which[:0]
        unknown = np.full(len(taken), np.nan)
        plans = Plans(taken.values, taken.key, taken.probability, unknown, way)
        return Pool(draws.values, draws.probability, draws.values, plans)
    found = candidates(model, query, which, terms)
    if check is not None:
        found = found.take(confirmed(model, query, found.values, found.query, check))
    found, _ = with_searched(model, query, found, terms, check, most=LOOKED_AT)
    chosen, way = chosen_of(model, query, found)
    plausibility = coherence_of(model).density.plausibility(chosen.row_density, query.context.target[chosen.query])
    plans = Plans(chosen.values, chosen.key, chosen.probability, plausibility, way)
    return Pool(found.values, found.probability, np.concatenate([found.values, found.drawn]), plans)
