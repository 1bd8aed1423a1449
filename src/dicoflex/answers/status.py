"""One word per query: what came of asking for it."""

from __future__ import annotations

__all__ = ["CONTRADICTORY", "FOUND", "HAS_TARGET", "NOT_FOUND", "STATUSES", "has_target", "status_of_parts", "statuses"]

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.check import Check, check_labels
from dicoflex.answers.query import Query
from dicoflex.answers.search import Search
from dicoflex.model import Model
from dicoflex.views.cards import ALREADY

FOUND, SHORT, NOT_FOUND, INFEASIBLE, CONTRADICTORY = "found", "short", "not_found", "infeasible", "contradictory"
STATUSES = (FOUND, SHORT, NOT_FOUND, INFEASIBLE, CONTRADICTORY, ALREADY)
"""The words for what came of a query, the same in the library, over HTTP and on the page."""
HAS_TARGET = "the row has the target already"
"""The reason why a row with the status `already` has no answers."""


def has_target(model: Model, query: Query, check: Check | None) -> NDArray[np.bool_]:
    """Which queries have the class that is asked for already: `check` says so, or the surrogate where there is none.

    Where a confidence is asked for as a number, the surrogate has to be as sure; a named level goes by the decision.
    Of rows with values that training never had, nobody is asked.
    """
    request, target = query.request, query.context.target
    number = None if isinstance(request.confidence, str) else request.confidence
    if request.target is None or query.known is not None:
        return np.zeros(len(query), dtype=bool)
    if check is not None:
        said = check_labels(check, query.frame.copy(), model.labels, model.threshold)
        already = np.array([label == model.labels[i] for label, i in zip(said, target, strict=True)], dtype=bool)
        if number is None or not already.any():
            return already
    sure = model.surrogate.probabilities(query.context.query)
    if check is None:
        already = np.asarray(sure.argmax(axis=1) == target)
    if number is not None:
        already &= sure[np.arange(len(sure)), target] >= number
    return already


def statuses(
    query: Query, already: NDArray[np.bool_], got: NDArray[np.int64], searches: Mapping[int, Search]
) -> list[str]:  # fmt: skip
    """One word per query.

    `already` where the query has the target, `contradictory` where the constraints leave no answer, `infeasible` where
    every row that is allowed was looked at and none is an answer, `found`, `short` where fewer were found than asked
    for, or `not_found`.
    """
    words = [_found_or_short(int(count), query.request.n) for count in got]
    for i in map(int, np.flatnonzero(got == 0)):
        proved = i in searches and searches[i].is_proof
        words[i] = CONTRADICTORY if not query.feasible[i] else INFEASIBLE if proved else NOT_FOUND
    return [ALREADY if has else word for word, has in zip(words, already, strict=True)]


def status_of_parts(words: Sequence[str], got: int, n: int) -> str:
    """The word for a query that was asked in several parts, of which `words` has one each.

    What is found in one part is found; there is no way only if no part has one.

    >>> status_of_parts(["infeasible", "contradictory"], 0, 3), status_of_parts(["not_found", "infeasible"], 0, 3)
    ('infeasible', 'not_found')
    """
    if ALREADY in words:
        return ALREADY
    if got:
        return _found_or_short(got, n)
    alike = [word for word in (CONTRADICTORY, INFEASIBLE) if all(one in (word, CONTRADICTORY) for one in words)]
    return alike[0] if alike else NOT_FOUND


def _found_or_short(got: int, n: int) -> str:
    """The word for a query with so many answers of `n`, of which there is at least one."""
    return FOUND if got >= n else SHORT
