"""The one way to the answers: plain rows and a request in, plain answers out."""

from __future__ import annotations

__all__ = ["Answered", "Cells", "answer", "verdicts"]

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.explain import explain
from dicoflex.answers.query import Query, bound_by
from dicoflex.answers.verification import verify as check_again
from dicoflex.errors import ConstraintError
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.schema import Schema
from dicoflex.values import plain

Cells = list[Any]
Answer = dict[str, Any]


@dataclass(frozen=True)
class Answered:
    """Answers to some rows, one dict per row, and the request as it bound them, ready for JSON."""

    rows: list[Answer]
    bound: dict[str, Any]


def answer(model: Model, rows: Sequence[Cells], request: Request, *, verify: bool = False) -> Answered:
    """Answers to rows of cells in the order of the model's features; a row without an answer says why.

    request: its target is a label per row, and None among them the other of two. verify: check every answer again,
    from its values.
    """
    frame = _frame(model.schema, rows)
    aimed = request.model_copy(update={"target": _targets(model, frame, request.targets(len(rows)))})
    try:
        found = explain(model, frame, aimed)
    except ConstraintError:
        return _hopeless(model, frame, aimed)
    return Answered(_answers(found, verify=verify), found.request.model_dump(mode="json"))


def verdicts(
    model: Model, rows: Sequence[Cells], answers: Sequence[Cells], places: Sequence[int], request: Request
) -> list[dict[str, Any]]:
    """Whether each answer to the row at its place obeys each constraint: answer, constraint, holds."""
    bound = bound_by(model.schema, request)
    queries, _ = model.encoding.conform(_frame(model.schema, rows))
    frame, _ = model.encoding.conform(_frame(model.schema, answers))
    frame.index = pd.MultiIndex.from_arrays([list(places), range(len(answers))], names=["row", "cf"])
    found = check_again(queries, frame, list(places), bound, model.schema)
    lines = zip(found["cf"].tolist(), found["constraint"].tolist(), found["holds"].tolist(), strict=True)
    return [{"answer": i, "constraint": constraint, "holds": holds} for i, constraint, holds in lines]


def _targets(model: Model, frame: pd.DataFrame, asked: list[Any]) -> tuple[Any, ...]:
    """The label that each row asks for; where it is the other of two, the one that the stand-in does not give it."""
    if None not in asked:
        return tuple(asked)
    now = model.stand_in.probabilities(model.encoding.encode(frame)).argmax(axis=1)
    return tuple(model.labels[1 - i] if label is None else label for label, i in zip(asked, now, strict=True))


def _frame(schema: Schema, rows: Sequence[Cells]) -> pd.DataFrame:
    columns = zip(*rows, strict=True)
    return pd.DataFrame({name: list(cells) for name, cells in zip(schema.names, columns, strict=True)})


def _hopeless(model: Model, frame: pd.DataFrame, request: Request) -> Answered:
    """The answers where the constraints leave no row a chance: each with its reason."""
    query = Query.make(model, frame, request)
    if query.limits is None or query.feasible.any():
        query.refuse_unanswerable()
        raise AssertionError("explain refused what can be answered")
    targets = [model.labels[i] for i in query.context.target]
    rows = [
        {"status": "none", "target": target, "counterfactuals": [], "wanted": request.n, "got": 0, "reason": str(why)}
        for target, why in zip(targets, query.limits.reasons, strict=True)
    ]
    return Answered(rows, query.request.model_dump(mode="json"))


def _answers(found: Counterfactuals, *, verify: bool) -> list[Answer]:
    names = [str(name) for name in found.schema.names]
    own, new, scores = _cells(found.queries), _cells(found.frame), _cells(found.info)
    holds = _holding(found) if verify else None
    rows: list[Answer] = [{"status": "complete", "target": target, "counterfactuals": []} for target in found.targets]
    told = [str(name) for name in found.info.columns]
    for i, place in enumerate(found.positions.tolist()):
        changed = found.changed_cells[i].nonzero()[0].tolist()
        one: Answer = {
            "values": dict(zip(names, new[i], strict=True)),
            "changes": [{"feature": names[j], "before": own[place][j], "after": new[i][j]} for j in changed],
            "scores": {k: v for k, v in zip(told, scores[i], strict=True) if k not in ("target", "valid")},
        }
        if holds is not None:
            one["verified"] = holds[i]
        rows[place]["counterfactuals"].append(one)
    for place, (wanted, got, why) in found.reasons.items():
        rows[place] |= {"status": "short" if got else "none", "wanted": wanted, "got": got, "reason": why}
    return rows


def _holding(found: Counterfactuals) -> list[bool]:
    """Whether each answer obeys everything that was asked for."""
    holds = found.verify()["holds"].to_numpy(dtype=bool)
    return [] if len(found) == 0 else [bool(own.all()) for own in holds.reshape(len(found), -1)]


def _cells(frame: pd.DataFrame) -> list[Cells]:
    """The rows of a frame as plain values, None for what is missing."""
    values = frame.to_numpy(dtype=object)
    values[pd.isna(values)] = None
    return [[plain(cell) for cell in row] for row in values.tolist()]
