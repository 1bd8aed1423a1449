"""The questions to a model with plain rows: an outcome as dicts, for servers and pages, without a frame on the way."""

from __future__ import annotations

__all__ = ["Answered", "PlainAnswer", "answer_plain"]

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Bools
from dicoflex.answers.engine import answer
from dicoflex.answers.outcome import Outcome
from dicoflex.answers.recorded import Claims, keys_of
from dicoflex.answers.verification import holding
from dicoflex.errors import QueryError
from dicoflex.model import Model
from dicoflex.request import ERROR, Request
from dicoflex.table.plain_rows import Row
from dicoflex.table.unseen import EncodedRows, encode_cells
from dicoflex.targets import as_sent
from dicoflex.values import differ

PlainAnswer = dict[str, Any]


@dataclass(frozen=True)
class Answered:
    """Answers to some rows, one dict per row, and the request as it bound them, ready for JSON."""

    rows: list[PlainAnswer]
    bound: dict[str, Any]


def answer_plain(model: Model, rows: Sequence[Row], request: Request, *, verify: bool = False) -> Answered:
    """Answers to rows of cells in the order of the model's features, those of `explain` to the last bit.

    Parameters
    ----------
    model : Model
        What is asked.
    rows : sequence of rows
        Their cells are plain values, None for what is missing.
    request : Request
        A target among its labels that is None is the other of two.
    verify : bool
        Check every answer again, from its values.

    Returns
    -------
    Answered
        A row without an answer says why. Where a row may have any of some labels, each answer says its own.

    Raises
    ------
    QueryError, ConstraintError
        If the request or a row does not fit the model.
    """
    if len(rows) == 0:
        raise QueryError("rows is empty; give at least one row to explain")
    places = None if request.handle_unknown == ERROR else lambda: model.places_for_unseen
    outcome = answer(model, encode_cells(model.plain_rows, rows, places), request)
    view = _View(outcome)
    return Answered(view.by_row(view.verified() if verify else None), outcome.request.model_dump(mode="json"))


class _View:
    """An outcome as plain values."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome, self.rows = outcome, outcome.model.plain_rows
        self.places: list[int] = outcome.row.tolist()
        own = outcome.rows.values[outcome.row]
        self.changed: Bools = differ(outcome.values, own)
        # A zero that was left alone keeps its sign.
        self.cells = self.rows.decode(np.where(self.changed, outcome.values, own))
        self.own = _as_they_came(outcome.rows, self.rows.decode(outcome.rows.values))
        self.needed = outcome.origin.needed()

    def by_row(self, verified: list[bool] | None) -> list[PlainAnswer]:
        """An answer per row; verified: whether each counterfactual was found to hold."""
        outcome, names = self.outcome, self.rows.names
        rows = [self._head(i) for i in range(len(outcome.rows))]
        whole = range(len(names))
        scores, moves = self._scores(), [[j for j in whole if row[j]] for row in self.changed.tolist()]
        targets = outcome.columns["target"].tolist() if self.places else []
        for k, i in enumerate(self.places):
            new, old = self.cells[k], self.own[i]
            one: PlainAnswer = {
                **({} if outcome.is_single[i] else {"target": targets[k]}),
                "values": dict(zip(names, new, strict=True)),
                "changes": [{"feature": names[j], "before": old[j], "after": new[j]} for j in moves[k]],
                "scores": scores[k],
            }
            if verified is not None:
                one["verified"] = verified[k]
            rows[i]["counterfactuals"].append(one)
        for i, (wanted, got, why) in outcome.short.items():
            rows[i] |= {"wanted": wanted, "got": got, "reason": why}
        for i, search in outcome.searches.items():
            rows[i]["search"] = dataclasses.asdict(search)
        return rows

    def _head(self, i: int) -> PlainAnswer:
        """What is said of a row before its answers: of one task, the confidence needed, and who would accept it."""
        outcome = self.outcome
        needed = zip(("needed", "survival"), self.needed[i], strict=True) if outcome.is_single[i] else ()
        return {
            "status": outcome.status[i],
            "target": as_sent(outcome.wanted[i]),
            **{name: one for name, one in needed if math.isfinite(one)},
            "counterfactuals": [],
        }

    def verified(self) -> list[bool]:
        """Whether each answer obeys everything that was asked for, from its cells; see `Counterfactuals.verify`."""
        outcome, schema = self.outcome, self.outcome.model.schema
        own = [self.own[i] for i in self.places]
        pairs = [dict(zip(schema.names, row, strict=True)) for row in own]
        answers = [dict(zip(schema.names, row, strict=True)) for row in self.cells]
        dependent = [name for name, free in zip(schema.names, outcome.origin.uncounted, strict=True) if free]
        bound = outcome.request.constraints
        _, table = holding(pairs, answers, bound, schema, typed=True, dependent=dependent)
        lines = [table.all(axis=1), *self._lines(own).values()]
        return [bool(holds) for holds in np.all(lines, axis=0)]

    def _lines(self, own: list[list[Any]]) -> dict[str, Bools]:
        """Whether what is told of the answers is so."""
        outcome = self.outcome
        claims = Claims(
            own=[keys_of(row) for row in own],
            answers=[keys_of(row) for row in self.cells],
            places=outcome.row,
            held=np.ones(len(own), dtype=bool),
            info={name: column.tolist() for name, column in outcome.columns.items()} | {"valid": [None] * len(own)},
            targets=[outcome.wanted[i] for i in self.places],
        )
        pair = self._encoded(own)
        lines = claims.lines(outcome.origin, pair)
        request = outcome.request
        if request.refine and request.coherent and outcome.model.coherence is not None:
            lines["coherence"] = np.zeros(len(own), dtype=bool) if pair is None else outcome.origin.coherent(*pair)
        return lines

    def _encoded(self, own: list[list[Any]]) -> tuple[Any, Any] | None:
        """Each answer's row and each answer as the model has them; None where it does not know a value."""
        if not own:
            return None
        known = self.outcome.rows
        try:
            before = known.values[self.places] if known.unseen.any() else self.rows.encode(own)
            return before, self.rows.encode(self.cells)
        except QueryError:
            return None

    def _scores(self) -> list[dict[str, Any]]:
        """What is told of each answer but its target."""
        columns = self.outcome.columns
        names = [name for name in columns if name != "target"]
        rows = zip(*(_plain(columns[name]) for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]


def _as_they_came(known: EncodedRows, rows: list[list[Any]]) -> list[list[Any]]:
    """The decoded rows of a caller, with the values of their own that training never had."""
    for i, j in zip(*known.unseen.nonzero(), strict=True):
        rows[i][j] = known.value(int(i), int(j))
    return rows


def _plain(column: NDArray[Any]) -> list[Any]:
    """A column as plain values, None for numbers that are none or have no end."""
    cells: list[Any] = column.tolist()
    if column.dtype.kind != "f":
        return cells
    return [cell if math.isfinite(cell) else None for cell in cells]
