"""Answers from plain rows to plain rows: what `explain` finds, without a frame on the way."""

from __future__ import annotations

__all__ = ["Answered", "PlainAnswer", "explain_plain"]

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.binding import uncounted
from dicoflex.answers.explain import Found, check_affordable, find, origin_of, told_of
from dicoflex.answers.query import Query
from dicoflex.answers.recorded import Claims, keys_of
from dicoflex.answers.status import CONTRADICTORY, HAS_TARGET, has_target
from dicoflex.answers.verification import holding
from dicoflex.errors import QueryError
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.plain_rows import Row
from dicoflex.table.unseen import Known
from dicoflex.values import differ
from dicoflex.views.cards import ALREADY

Bools = NDArray[np.bool_]
PlainAnswer = dict[str, Any]


@dataclass(frozen=True)
class Answered:
    """Answers to some rows, one dict per row, and the request as it bound them, ready for JSON."""

    rows: list[PlainAnswer]
    bound: dict[str, Any]


def explain_plain(
    model: Model, rows: Sequence[Row], request: Request, *, verify: bool = False, known: Known | None = None
) -> Answered:
    """Answers to rows of cells in the order of the model's features; a row without an answer says why.

    request: a target among its labels that is None is the other of two. verify: check every answer again, from its
    values. known: the rows, where some values were never seen in training and others stand in their place. The answers
    are those of `explain`, to the last bit.
    """
    query = Query.of_cells(model, rows, request, known)
    check_affordable(query)
    asked = query.request.model_dump(mode="json")
    if not query.feasible.any():
        return Answered(_hopeless(model, query), asked)
    answers = _Answers(model, query, find(model, query))
    return Answered(answers.by_row(answers.verified() if verify else None), asked)


def _hopeless(model: Model, query: Query) -> list[PlainAnswer]:
    """The answers where the constraints leave no row a chance: each with its reason."""
    assert query.limits is not None
    n, targets = query.request.n, [model.labels[i] for i in query.context.target]
    whys = [
        (ALREADY, HAS_TARGET) if already else (CONTRADICTORY, str(why))
        for already, why in zip(has_target(model, query, None), query.limits.reasons, strict=True)
    ]
    return [
        {"status": word, "target": target, **needed, "counterfactuals": [], "wanted": n, "got": 0, "reason": why}
        for target, (word, why), needed in zip(targets, whys, _needed(model, query), strict=True)
    ]


def _needed(model: Model, query: Query) -> list[dict[str, float]]:
    """Per row the confidence that its answers must have, and how many retrained models would accept them."""
    found = origin_of(model, query, checked=False).needed()
    names = ("needed", "survival")
    return [{name: one for name, one in zip(names, row, strict=True) if math.isfinite(one)} for row in found]


class _Answers:
    """What was found for a query, as plain values."""

    def __init__(self, model: Model, query: Query, found: Found) -> None:
        self.model, self.query, self.found = model, query, found
        own, values = query.context.query[found.draws.query], found.draws.values
        self.places: list[int] = found.draws.query.tolist()
        self.changed: Bools = differ(values, own)
        # A zero that was left alone keeps its sign.
        self.cells = model.plain_rows.decode(np.where(self.changed, values, own))
        self.own = _as_they_came(query, model.plain_rows.decode(query.context.query))
        self.told = told_of(model, query, found)

    def by_row(self, verified: list[bool] | None) -> list[PlainAnswer]:
        """An answer per row; verified: whether each counterfactual was found to hold."""
        labels = self.model.labels
        rows: list[PlainAnswer] = [
            {"status": word, "target": labels[i], **needed, "counterfactuals": []}
            for word, i, needed in zip(
                self.found.status, self.query.context.target, _needed(self.model, self.query), strict=True
            )
        ]
        names = self.model.plain_rows.names
        whole = range(len(names))
        scores, moves = _scores(self.told), [[j for j in whole if row[j]] for row in self.changed.tolist()]
        for i, place in enumerate(self.places):
            new, old = self.cells[i], self.own[place]
            one: PlainAnswer = {
                "values": dict(zip(names, new, strict=True)),
                "changes": [{"feature": names[j], "before": old[j], "after": new[j]} for j in moves[i]],
                "scores": scores[i],
            }
            if verified is not None:
                one["verified"] = verified[i]
            rows[place]["counterfactuals"].append(one)
        for place, (wanted, got, why) in self.found.short.items():
            rows[place] |= {"wanted": wanted, "got": got, "reason": why}
        for place, search in self.found.searches.items():
            rows[place]["search"] = dataclasses.asdict(search)
        return rows

    def verified(self) -> list[bool]:
        """Whether each answer obeys everything that was asked for, from its cells; see `Counterfactuals.verify`."""
        schema, request = self.model.schema, self.query.request
        own = [self.own[place] for place in self.places]
        pairs = [dict(zip(schema.names, row, strict=True)) for row in own]
        answers = [dict(zip(schema.names, row, strict=True)) for row in self.cells]
        dependent = [schema.names[j] for j in np.flatnonzero(uncounted(self.model, request))]
        _, table = holding(pairs, answers, request.constraints, schema, typed=True, dependent=dependent)
        lines = [table.all(axis=1), *self._lines(own).values()]
        return [bool(holds) for holds in np.all(lines, axis=0)]

    def _lines(self, own: list[list[Any]]) -> dict[str, Bools]:
        """Whether what is told of the answers is so."""
        origin = origin_of(self.model, self.query, checked=False)
        claims = Claims(
            own=[keys_of(row) for row in own],
            answers=[keys_of(row) for row in self.cells],
            places=self.found.draws.query,
            held=np.ones(len(own), dtype=bool),
            info={name: column.tolist() for name, column in self.told.items()} | {"valid": [None] * len(own)},
            targets=[self.model.labels[self.query.context.target[place]] for place in self.places],
        )
        pair = self._encoded(own)
        lines = claims.lines(origin, pair)
        if self.query.request.refine and self.query.request.coherent and self.model.coherence is not None:
            lines["coherence"] = np.zeros(len(own), dtype=bool) if pair is None else origin.coherent(*pair)
        return lines

    def _encoded(self, own: list[list[Any]]) -> tuple[Any, Any] | None:
        """Each answer's row and each answer as the model has them; None where it does not know a value."""
        rows = self.model.plain_rows
        try:
            before = rows.encode(own) if self.query.known is None else self.query.context.query[self.places]
            return (before, rows.encode(self.cells)) if own else None
        except QueryError:
            return None


def _as_they_came(query: Query, rows: list[list[Any]]) -> list[list[Any]]:
    """The decoded rows of a query, with the values of their own that training never had."""
    known = query.known
    for i, j in [] if known is None else zip(*known.unseen.nonzero(), strict=True):
        rows[i][j] = known.value(int(i), int(j))  # type: ignore[union-attr]
    return rows


def _scores(told: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """What is told of each answer but its target."""
    names = [name for name in told if name != "target"]
    rows = zip(*(_plain(told[name]) for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _plain(column: NDArray[Any]) -> list[Any]:
    """A column as plain values, None for numbers that are none or have no end."""
    cells: list[Any] = column.tolist()
    if column.dtype.kind != "f":
        return cells
    return [cell if math.isfinite(cell) else None for cell in cells]
