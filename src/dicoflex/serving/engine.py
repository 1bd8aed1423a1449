"""The one way to the answers: plain rows and a request in, plain answers out."""

from __future__ import annotations

__all__ = ["Answered", "Cells", "answer", "verdicts"]

from collections.abc import Sequence
from typing import Any

from dicoflex.answers.plain import Answered
from dicoflex.answers.plain import answer_plain as answer
from dicoflex.answers.query import bind
from dicoflex.answers.verification import holding
from dicoflex.model import Model
from dicoflex.request import Request

Cells = list[Any]


def verdicts(
    model: Model, rows: Sequence[Cells], answers: Sequence[Cells], places: Sequence[int], request: Request
) -> list[dict[str, Any]]:
    """Whether each answer to the row at its place obeys each constraint: answer, constraint, holds."""
    bound = bind(model, request).constraints
    queries, given = _stored(model, rows), _stored(model, answers)
    names, table = holding([queries[i] for i in places], given, bound, model.schema, typed=True)
    return [
        {"answer": i, "constraint": name, "holds": holds}
        for i, row in enumerate(table.tolist())
        for name, holds in zip(names, row, strict=True)
    ]


def _stored(model: Model, rows: Sequence[Cells]) -> list[dict[Any, Any]]:
    """Rows as columns of the training dtypes hold them, by name."""
    own = model.plain_rows
    return [dict(zip(model.schema.names, row, strict=True)) for row in own.decode(own.encode(rows))]
