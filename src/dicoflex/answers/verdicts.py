"""One word per query: what came of asking for it."""

from __future__ import annotations

__all__ = ["ALREADY", "FOUND", "IMPOSSIBLE", "NONE", "NOT_FOUND", "has_target", "verdicts"]

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.check import Check, check_labels
from dicoflex.answers.query import Query
from dicoflex.answers.search import Search
from dicoflex.model import Model
from dicoflex.views.cards import ALREADY

FOUND, IMPOSSIBLE, NONE, NOT_FOUND = "found", "impossible", "none", "not found"


def has_target(model: Model, query: Query, check: Check | None) -> NDArray[np.bool_]:
    """Which queries have the class that is asked for already: `check` says so, or the stand-in where there is none.

    Of rows with values that training never had, nobody is asked.
    """
    if query.request.target is None or query.known is not None:
        return np.zeros(len(query), dtype=bool)
    target = query.context.target
    if check is None:
        likeliest = model.stand_in.probabilities(query.context.query).argmax(axis=1)
        return np.asarray(likeliest == target)
    said = check_labels(check, query.frame.copy(), model.labels)
    return np.array([label == model.labels[i] for label, i in zip(said, target, strict=True)], dtype=bool)


def verdicts(
    query: Query, already: NDArray[np.bool_], got: NDArray[np.int64], searches: Mapping[int, Search]
) -> list[str]:  # fmt: skip
    """`already` where the query has the target, `impossible` where the constraints leave no answer, `found`, or not.

    `none` where every row that is allowed was looked at, and none is an answer.

    What is found for a query that has the target already are other rows of that class, and no counterfactuals.
    """
    words = np.where(got > 0, FOUND, np.where(query.feasible, NOT_FOUND, IMPOSSIBLE))
    words[[i for i, one in searches.items() if one.is_proof]] = NONE
    return [str(word) for word in np.where(already, ALREADY, words)]
