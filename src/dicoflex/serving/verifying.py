"""Verifying over HTTP: somebody's answers to somebody's rows, checked by a process that did not make them."""

from __future__ import annotations

__all__ = ["Claims", "read_claims", "verdicts_of"]

import asyncio
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from dicoflex.constraints import Constraints
from dicoflex.errors import ConstraintError
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.serving.engine import verdicts
from dicoflex.serving.problems import Problem, of_error
from dicoflex.serving.questions import dump_json, load_json
from dicoflex.serving.rows import RowReader, Rows, refuse
from dicoflex.serving.settings import Settings


class Terms(BaseModel):
    """What the answers were to obey, besides the constraints that always bind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    frozen: tuple[int | str, ...] = ()
    constraints: Constraints = Constraints()


@dataclass(frozen=True)
class Claims:
    """Rows, answers to them, the place of each answer's row, and what they should obey."""

    rows: Rows
    answers: list[list[Any]]
    places: list[int]
    request: Request


def read_claims(body: bytes, reader: RowReader, bounds: Settings) -> Claims:
    """The claims of a body: `{"rows": […], "answers": [{"row": 0, "values": {…}}], "constraints": {…}}`."""
    given = load_json(body)
    if not isinstance(given, dict) or not all(isinstance(given.get(name), list) for name in ("rows", "answers")):
        raise Problem("invalid-request", "the body must be an object with lists of rows and answers")
    sent, claimed = given.pop("rows"), given.pop("answers")
    if not sent or not claimed:
        raise Problem("invalid-request", "there must be at least one row and one answer")
    if len(sent) > bounds.max_rows or len(claimed) > bounds.max_answers:
        raise Problem("too-large", f"verify takes {bounds.max_rows} rows and {bounds.max_answers} answers at a time")
    terms = _terms(given)
    errors: list[tuple[str, str]] = []
    places, cells = [], []
    for i, one in enumerate(claimed):
        place, values = _claim(one, i, len(sent), errors)
        places.append(place)
        cells.append(reader.cells(values, f"/answers/{i}/values", errors))
    refuse(errors)
    request = Request.of(frozen=terms.frozen, constraints=terms.constraints, random_state=0)
    return Claims(reader.read(sent), cells, places, request)


def _terms(given: dict[str, Any]) -> Terms:
    try:
        return Terms.model_validate_json(dump_json(given), strict=True)
    except (ValueError, ConstraintError) as error:
        raise of_error(error) from None


def _claim(one: Any, i: int, n_rows: int, errors: list[tuple[str, str]]) -> tuple[int, Any]:
    if not isinstance(one, dict) or set(one) != {"row", "values"} or not isinstance(one["values"], dict):
        errors.append((f"/answers/{i}", 'is no object with "row" and "values"'))
        return 0, {}
    if type(one["row"]) is not int or not 0 <= one["row"] < n_rows:
        errors.append((f"/answers/{i}/row", "is no place of a row"))
        return 0, one["values"]
    return one["row"], one["values"]


async def verdicts_of(claims: Claims, model: Model) -> dict[str, Any]:
    """Whether all hold, and each verdict."""
    found = await asyncio.to_thread(verdicts, model, claims.rows.cells, claims.answers, claims.places, claims.request)
    return {"holds": all(one["holds"] for one in found), "verdicts": found}
