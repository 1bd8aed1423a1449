"""The relaxations of a result's constraints: asked of the model that answered, for one of its rows."""

from __future__ import annotations

__all__ = ["relaxations"]

from dataclasses import replace
from typing import Any

import pandas as pd

from dicoflex.answers.check import Check
from dicoflex.answers.goals import labelling
from dicoflex.answers.origin import Origin
from dicoflex.answers.pool import Pool, pool
from dicoflex.answers.query import Query
from dicoflex.answers.relaxation import Relaxation, confidence_relaxed, relaxed
from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS
from dicoflex.errors import QueryError
from dicoflex.request import Request


def relaxations(
    origin: Origin, request: Request, position: int, row: pd.DataFrame, *, check: Check | None = None
) -> list[Relaxation]:  # fmt: skip
    """What would give the query at `position`, which is `row`, more answers; `request` as it bound."""
    is_scored = origin.is_scored
    origin, position = origin.of_query(position)
    if origin.unseen is not None and origin.unseen[position]:
        raise QueryError("the row holds a value that training never had, and nothing is tried for it; give one it had")
    model, context = origin.model, origin.context.take(slice(position, position + 1))
    given, own = request.constraints, context.query
    if check is not None and is_scored:
        check = labelling(check, model.labels[context.target[0]])
    owner = {one.entry: one for one in model.schema.constraints.one_by_one()}

    def look(constraints: Constraints, sure: Any = request.confidence) -> Pool | None:
        asked = request.model_copy(
            update={"constraints": constraints, "frozen": constraints.frozen, "confidence": sure}
        )
        query = replace(Query.of_values(model, own, context.target, asked), given=row)
        return pool(model, query, check) if query.feasible[0] and not query.frozen.all() else None

    ones = [one for one in given.one_by_one() if KINDS[one.kind].role == "limit" and owner.get(one.entry) != one]
    present = look(given)
    count = 0 if present is None else len(present)
    found = relaxed(given, ones, own[0], model.encoding, look, more_than=count)
    if model.has_confidence:
        sure, lowest = float(context.confidence[0]), float(model.confidence.lowest[context.target[0]])
        found += confidence_relaxed(given, sure, lowest, lambda c: look(given, c), more_than=count)
    return sorted(found, key=lambda step: -step.found)
