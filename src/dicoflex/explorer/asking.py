"""Plans while a limit is dragged: one pool, what is shown of it, what each limit costs, where values land."""

from __future__ import annotations

__all__ = ["Asker", "Found"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from dicoflex.answers.explain import terms_of
from dicoflex.answers.pool import Pool, pool
from dicoflex.answers.query import Query
from dicoflex.answers.shortfall import reasons_of
from dicoflex.explorer.plans import PlanWriter
from dicoflex.explorer.pressure import pressures_of
from dicoflex.explorer.question import Question
from dicoflex.explorer.reach import reach_of
from dicoflex.explorer.texts import Names
from dicoflex.limits.reasons import closed_features
from dicoflex.model import Model
from dicoflex.table.cells import Cells
from dicoflex.views.words import percent

NOTHING_LEFT = "nothing may change: every feature stays as it is or has one value; free at least one"


@dataclass(frozen=True)
class Found:
    """What came of a question: the query, its pool where it can be answered, and why it can't be where it can't."""

    query: Query
    pool: Pool | None
    impossible: str | None

    @property
    def count(self) -> int:
        """How many different rows would do."""
        return 0 if self.pool is None else len(self.pool)


class Asker:
    """Answers questions to one model."""

    def __init__(self, model: Model, names: Names, cells: Cells) -> None:
        self.model, self.names, self.cells = model, names, cells
        self.writer = PlanWriter(model, names, cells)

    def find(self, question: Question) -> Found:
        """The pool of a question, or why it has none before anything is drawn."""
        query = question.query()
        reason = None if query.limits is None else query.limits.reasons[0]
        if reason is None and (query.frozen | _constant(self.model)).all():
            reason = NOTHING_LEFT
        if reason is not None:
            return Found(query, None, str(reason))
        return Found(query, pool(self.model, query), None)

    def answer(self, question: Question) -> dict[str, Any]:
        """The answer to `ask`, but for its number."""
        head = self._head(question)
        if question.is_already:
            return {**head, "status": "already", "found": 0, "plans": [], "pressure": [], "reach": {}, **NOTHING}
        found = self.find(question)
        plans = self.plans(question, found)
        values = question.own[:0] if found.pool is None else found.pool.reached
        pressure = pressures_of(self.model, found.query, question.limits)
        return {
            **head,
            "needed": round(self._needed(found.query), 6),
            "needed_percent": percent(self._needed(found.query)),
            "status": _status(found, len(plans), question.request.n),
            "found": found.count,
            "plans": plans,
            "pressure": pressure,
            "reach": reach_of(values, question.own, self.names, self.cells),
            "closed": self._closed(found.query),
            "shortfall": self._shortfall(question, found, len(plans), pressure),
            "certified": self._certified(found.query),
        }

    def plans(self, question: Question, found: Found) -> list[dict[str, Any]]:
        """The plans that answer a question."""
        if found.pool is None:
            return []
        chosen = found.pool.plans
        cost = found.query.cost(chosen.values, np.repeat(question.own, len(chosen), axis=0))
        return self.writer.write(chosen, question.own, question.cells, cost)

    def _head(self, question: Question) -> dict[str, Any]:
        chance = float(question.now[question.target])
        needed = self._usual(question.target)
        result = int(question.now.argmax())
        return {
            "now": {
                "result": self.model.labels[result],
                "result_text": self.names.classes[result],
                "probability": round(chance, 6),
                "percent": percent(chance),
            },
            "target": self.model.labels[question.target],
            "needed": round(needed, 6),
            "needed_percent": percent(needed),
            "asked": question.request.n,
        }

    def _usual(self, target: int) -> float:
        sure = float(self.model.confidence.default[target])
        return sure if self.model.has_confidence else max(sure, 0.5)

    def _needed(self, query: Query) -> float:
        sure = float(query.context.confidence[0])
        return sure if self.model.has_confidence else max(sure, 0.5)

    def _shortfall(
        self, question: Question, found: Found, got: int, pressure: list[dict[str, Any]]
    ) -> dict[str, Any] | None:
        """Why there are fewer plans than asked for: the tightest limit, or what the draws themselves say."""
        wanted = question.request.n
        if got >= wanted:
            return None
        reason = found.impossible
        if reason is None and pressure and pressure[0]["share"] > 0:
            tightest = pressure[0]
            reason = f"the tightest limit, {tightest['sentence']}, rules out {tightest['share']:.0%} of what is likely"
            return {"wanted": wanted, "got": got, "reason": reason, "feature": tightest["feature"]}
        if reason is None:
            terms, none = terms_of(self.model, found.query, filtered=True), np.zeros(1, dtype=np.int64)
            reason = reasons_of(self.model, found.query, terms, none, np.array([got]), none)[0]
        return {"wanted": wanted, "got": got, "reason": self.names.said(reason), "feature": self._blamed(reason)}

    def _blamed(self, reason: str) -> str | None:
        """The feature whose limit a reason names: the first one in it."""
        found = [(reason.find(f"{name}"), key) for name, key in self._by_name()]
        return min(((at, key) for at, key in found if at >= 0), default=(0, None))[1]

    def _by_name(self) -> list[tuple[Any, str]]:
        pairs = list(zip(self.names.schema.names, self.names.keys, strict=True))
        # Where one name begins another, the longer one is meant.
        return sorted(pairs, key=lambda pair: -len(str(pair[0])))

    def _closed(self, query: Query) -> list[dict[str, str]]:
        """The features that can't change though nobody froze them, with the reason."""
        if query.limits is None:
            return []
        found = closed_features(query.limits, query.context.query, query.frozen)
        return [{"feature": self.names.keys[j], "sentence": self.names.said(why)} for j, why in found]

    def _certified(self, query: Query) -> dict[str, Any] | None:
        if self.model.certificate is None:
            return None
        rate = self.model.certificate.valid_at_least(int(query.context.target[0]), query.sort)
        if rate <= 0:
            return None
        shown = f"{np.floor(1000 * rate) / 10:g} %"
        sentence = f"Of plans like these, at least {shown} were right on rows that the model had not seen."
        return {"at_least": round(rate, 4), "percent": shown, "sentence": sentence}


NOTHING: dict[str, Any] = {"closed": [], "shortfall": None, "certified": None}


def _status(found: Found, got: int, wanted: int) -> str:
    if found.impossible is not None:
        return "impossible"
    return "none" if got == 0 else "short" if got < wanted else "found"


def _constant(model: Model) -> Any:
    features = model.schema.features
    return np.array([f.minimum == f.maximum and not f.missing if f.is_number else f.n_states < 2 for f in features])
