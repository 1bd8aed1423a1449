"""Rows with values that training never had: asked apart, so that no other row of a batch is answered differently.

Nothing that was learned can vouch for a row with such a value, so an answer leaves it for one that was seen. Where it
may not change, the row gets no answer, and the reason is told.
"""

from __future__ import annotations

__all__ = ["parts_of_known"]

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.check import Check
from dicoflex.answers.goals import Part, Parts, Refused, asks_for_a_change, labels_wanted, parts_of
from dicoflex.answers.query import Query
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.unseen import Known, said_of_unseen
from dicoflex.targets import OneOf

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def parts_of_known(model: Model, known: Known, request: Request, *, check: Check | None = None) -> Parts:
    """The questions that a request is for rows, some with unseen values; those stand in parts of their own.

    check: is asked what rows are now, as they came; without it, the surrogate says so of all values that were seen.
    """
    asked = request if check is not None or model.score is not None else _settled(model, known, request)
    frame = None if known.frame is None or check is None else known.given
    parts = parts_of(model, known.values, asked, frame=frame, check=check)  # type: ignore[arg-type]
    refused = parts.refused | (_unmeasured(known, model, asked) if check is None else {})
    split = [half for part in parts.asked for half in _halves(part, known, refused)]
    for part in split:
        if part.known is not None:
            refused |= _hopeless(part)
    return Parts([half for part in split if len((half := _without(part, refused)).places)], refused)


def _settled(model: Model, known: Known, request: Request) -> Request:
    """The request with a label for each row whose own is not known, and that asks for another one."""
    wanted = request.targets(len(known.unseen))
    for i in np.flatnonzero(known.rows):
        labels = labels_wanted(model, wanted[i], (model.labels[_now(model, known, int(i))],))
        wanted[i] = labels[0] if len(labels) == 1 else OneOf(one_of=labels)
    return request.model_copy(update={"target": tuple(wanted)})


def _now(model: Model, known: Known, i: int) -> int:
    """The class that the surrogate gives row i on average over what its unseen values may stand for."""
    features, own = model.schema.features, known.values[i]
    rows, weights = [own], [1.0]
    for j in np.flatnonzero(known.unseen[i]):
        count = np.ones(len(features[j].levels)) if model.marginals is None else model.marginals.counts(int(j))
        for code in range(len(features[j].levels)):
            rows.append(np.where(np.arange(len(own)) == j, code, own))
            weights.append(float(count[code]))
    said = model.surrogate.probabilities(np.array(rows))
    return int(np.average(said, axis=0, weights=weights).argmax())


def _unmeasured(known: Known, model: Model, request: Request) -> dict[int, Refused]:
    """The rows that ask for a change of their own score, which nobody knows."""
    goals = request.targets(len(known.unseen))
    unsure = [i for i in np.flatnonzero(known.rows).tolist() if asks_for_a_change(model, goals[i])]
    return {i: Refused(str(goals[i]), _why_unmeasured(model, known, i)) for i in unsure}


def _why_unmeasured(model: Model, known: Known, i: int) -> str:
    j = int(np.flatnonzero(known.unseen[i])[0])
    told = said_of_unseen(model.schema, j, known.value(i, j))
    return f"{told}, so that the score of the row is not known; ask for an interval, or give check="


def _halves(part: Part, known: Known, refused: dict[int, Refused]) -> list[Part]:
    """A part without the rows that hold unseen values, and one of these."""
    kept = _without(part, refused)
    apart = known.rows[kept.places]
    seen, left = _taken(kept, np.flatnonzero(~apart)), _taken(kept, np.flatnonzero(apart))
    # That there is no way is no proof: one level stands for what was never seen, and is not looked at.
    request = left.request.model_copy(update={"exhaustive": False})
    return [seen, replace(left, request=request, known=known.take(left.places))]


def _without(part: Part, refused: dict[int, Refused]) -> Part:
    return _taken(part, np.array([k for k, i in enumerate(part.places.tolist()) if i not in refused], dtype=np.int64))


def _taken(part: Part, at: Ints) -> Part:
    known = None if part.known is None else part.known.take(at)
    return replace(part, places=part.places[at], wanted=[part.wanted[k] for k in at], known=known)


def _hopeless(part: Part) -> dict[int, Refused]:
    """The rows of a part that can't be answered, and why."""
    assert part.known is not None
    if len(part.places) == 0:
        return {}
    query = Query.of_cells(part.model, part.known.given, part.request, part.known)  # type: ignore[arg-type]
    assert query.limits is not None
    return {
        int(part.places[k]): Refused(part.wanted[k], str(query.limits.reasons[k]), is_impossible=True)
        for k in np.flatnonzero(~query.feasible).tolist()
    }
