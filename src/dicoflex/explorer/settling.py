"""What is worked out once a limit rests: verdicts on plans, each limit left out, and few against many changes."""

from __future__ import annotations

__all__ = ["Settler"]

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.answers.frames import frame_of
from dicoflex.answers.query import Query
from dicoflex.answers.verification import verify
from dicoflex.errors import ConstraintError
from dicoflex.explorer.asking import Asker, Found
from dicoflex.explorer.messages import Asking, Settling
from dicoflex.explorer.plans import key_text
from dicoflex.explorer.question import Question
from dicoflex.explorer.sentences import sentence
from dicoflex.explorer.texts import Names
from dicoflex.explorer.user_limits import without
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.views.words import percent

MOST_LIMITS = 16
MOST_CHANGES = 5


class Settler:
    """Settles questions. question: what an asking means."""

    def __init__(self, model: Model, names: Names, asker: Asker, question: Callable[[Asking], Question]) -> None:
        self.model, self.names, self.asker, self.question = model, names, asker, question

    def settle(self, asked: Settling) -> dict[str, Any]:
        """The answer to `settle`, but for its number."""
        question = self.question(asked)
        if question.is_already:
            return {"verdicts": {}, "without": [], "curve": []}
        found = self.asker.find(question, thorough=True)
        limits = question.limits[:MOST_LIMITS]
        return {
            "verdicts": self.verdicts(question, found, asked.keys),
            "without": [{"id": one.id, "found": self._count(without(asked, one, self.names))} for one in limits],
            "curve": self._curve(asked, question),
        }

    def verdicts(self, question: Question, found: Found, keys: list[str]) -> dict[str, dict[str, Any]]:
        """Whether each plan with one of these keys obeys each constraint, from the values that are shown."""
        if found.pool is None:
            return {}
        plans = found.pool.plans
        shown = [key_text(int(key)) for key in plans.key]
        which = [i for i, key in enumerate(shown) if key in keys]
        if not which:
            return {}
        checks = self._checked(question, found.query, plans.values[which])
        each = len(checks) // len(which)
        told = {}
        for k, i in enumerate(which):
            own = checks[k * each : (k + 1) * each]
            told[shown[i]] = {"holds": all(one["holds"] for one in own), "checks": own}
        return told

    def _checked(self, question: Question, query: Query, values: Values) -> list[dict[str, Any]]:
        rows, _ = self.model.encoding.conform(
            pd.DataFrame({name: [cell] for name, cell in zip(self.names.schema.names, question.cells, strict=True)})
        )
        places = np.zeros(len(values), dtype=np.int64)
        asked = replace(query, given=rows)
        bound = query.request.constraints
        found = verify(rows, frame_of(self.model, asked, values, places), places, bound, self.model.schema)
        words = {one.label: sentence(one, self.names) for one in bound.one_by_one()}
        stated = {limit.one.label for limit in question.limits}
        return [
            {
                "constraint": words.get(label, "every value is one that the table has"),
                "whose": "caller" if label in stated else "owner" if label in words else "table",
                "holds": holds,
            }
            for label, holds in zip(found["constraint"].tolist(), found["holds"].tolist(), strict=True)
        ]

    def _count(self, asked: Asking) -> int:
        try:
            return self.asker.find(self.question(asked)).count
        except ConstraintError:
            return 0

    def _curve(self, asked: Asking, question: Question) -> list[dict[str, Any]]:
        """How sure the model can be made with so many changes, whatever the limit on their number is now."""
        found: list[dict[str, Any]] = []
        for changes in range(1, min(MOST_CHANGES, len(self.names.keys)) + 1):
            limited = asked.model_copy(update={"constraints": {**asked.constraints, "max_changes": changes}})
            try:
                pool = self.asker.find(self.question(limited)).pool
            except ConstraintError:
                pool = None
            if pool is None or len(pool) == 0:
                found.append({"changes": changes, "probability": None, "percent": "–", "found": 0})
                continue
            best = float(self.model.surrogate.probabilities(pool.reached)[:, question.target].max())
            found.append(
                {"changes": changes, "probability": round(best, 6), "percent": percent(best), "found": len(pool)}
            )
        return found
