"""Answers from plain rows to plain rows, whatever their target."""

from __future__ import annotations

__all__ = ["answer_plain"]

from collections.abc import Sequence
from typing import Any

import numpy as np

from dicoflex.answers.aiming import score_of
from dicoflex.answers.binding import bind
from dicoflex.answers.goals import Part, Parts, Refused, is_plain, parts_of
from dicoflex.answers.joined import best_of
from dicoflex.answers.plain_answers import Answered, PlainAnswer, explain_plain
from dicoflex.answers.status import CONTRADICTORY, HAS_TARGET, NOT_FOUND, status_of_parts
from dicoflex.answers.unseen import parts_of_known
from dicoflex.errors import UnseenError
from dicoflex.model import Model
from dicoflex.request import ERROR, Request
from dicoflex.table.plain_rows import Row
from dicoflex.table.unseen import known_cells
from dicoflex.targets import as_sent
from dicoflex.views.cards import ALREADY, SCORE

Stand = tuple[Any, PlainAnswer]
"""The label that was asked for in one part, and what came of it."""


def answer_plain(model: Model, rows: Sequence[Row], request: Request, *, verify: bool = False) -> Answered:
    """Answers to rows of cells in the order of the model's features; a row without an answer says why.

    verify: check every answer again, from its values. Where a row may have any of some labels, each answer says its
    own; of a model of scores, each has its score.
    """
    try:
        if is_plain(model, request):
            return explain_plain(model, rows, request, verify=verify)
        parts = parts_of(model, model.plain_rows.encode(rows), request)
    except UnseenError:
        if request.handle_unknown == ERROR:
            raise
        parts = parts_of_known(model, known_cells(model.plain_rows, rows, model.places_for_unseen), request)
    return _together(model, rows, request, parts, verify=verify)


def _together(model: Model, rows: Sequence[Row], request: Request, parts: Parts, *, verify: bool) -> Answered:
    """The answers to all parts of a question."""
    stands: list[list[Stand]] = [[] for _ in rows]
    wanted: list[Any] = [None] * len(rows)
    bound = bind(model, request).asked(request).model_dump(mode="json")
    for part in parts.asked:
        own = [rows[i] for i in part.places]
        found = explain_plain(part.model, own, part.request, verify=verify, known=part.known)
        _place(model, part, found, stands, wanted)
    refused = {i: _none(one, request.n) for i, one in parts.refused.items()}
    joined = [refused.get(i) or _joined(model, request, mine, wanted[i]) for i, mine in enumerate(stands)]
    return Answered(joined, bound)


def _place(model: Model, part: Part, found: Answered, stands: list[list[Stand]], wanted: list[Any]) -> None:
    """Put the answers of a part to where its rows stand."""
    for place, answer, goal in zip(part.places.tolist(), found.rows, part.wanted, strict=True):
        stands[place].append((answer["target"], answer))
        wanted[place] = goal
        if model.score is not None and answer["counterfactuals"]:
            for one, score in zip(answer["counterfactuals"], _scores(model, answer), strict=True):
                one["scores"][SCORE] = score


def _scores(model: Model, answer: PlainAnswer) -> list[float]:
    cells = [list(one["values"].values()) for one in answer["counterfactuals"]]
    return score_of(model, model.plain_rows.encode(cells)).tolist()  # type: ignore[no-any-return]


def _joined(model: Model, request: Request, stands: list[Stand], wanted: Any) -> PlainAnswer:
    """One row's answer from those of its parts."""
    if len(stands) == 1:
        return stands[0][1]
    words = [answer["status"] for _, answer in stands]
    already = ALREADY in words
    pool = [{"target": target, **one} for target, answer in stands for one in answer["counterfactuals"]]
    best = [] if already else [pool[i] for i in _best(model, request, pool)]
    status = status_of_parts(words, len(best), request.n)
    made: PlainAnswer = {"status": status, "target": wanted.model_dump(mode="json"), "counterfactuals": best}
    if len(best) < request.n:
        whys = [f"{target}: {answer['reason']}" for target, answer in stands if "reason" in answer]
        made |= {"wanted": request.n, "got": len(best), "reason": HAS_TARGET if already else "; ".join(whys)}
    return made


def _none(refused: Refused, n: int) -> PlainAnswer:
    """The answer to a row that nothing is asked for."""
    word = CONTRADICTORY if refused.is_impossible else NOT_FOUND
    target = as_sent(refused.goal)
    return {"status": word, "target": target, "counterfactuals": [], "wanted": n, "got": 0, "reason": refused.why}


def _best(model: Model, request: Request, pool: list[PlainAnswer]) -> list[int]:
    if not pool:
        return []
    values = model.plain_rows.encode([list(one["values"].values()) for one in pool])
    names = model.plain_rows.names
    moved = [{change["feature"] for change in one["changes"]} for one in pool]
    changed = np.array([[name in mine for name in names] for mine in moved])
    told = {name: [_number(one["scores"][name]) for one in pool] for name in pool[0]["scores"]}
    chosen: list[int] = best_of(model, request, values, changed, told).tolist()
    return chosen


def _number(value: Any) -> Any:
    return -np.inf if value is None else value
