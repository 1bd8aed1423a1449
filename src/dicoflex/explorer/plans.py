"""Plans as a page shows them: values, changes, how sure and how usual, and the sentence."""

from __future__ import annotations

__all__ = ["PlanWriter", "key_text"]

import math
from typing import Any

import numpy as np

from dicoflex.answers.engine import Plans
from dicoflex.explorer.texts import Names
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.plain_rows import Cells
from dicoflex.values import differ
from dicoflex.views.cards import step_of
from dicoflex.views.words import percent

VERBS = {"raise": "raise {0} from {1} to {2}", "lower": "lower {0} from {1} to {2}",
         "change": "change {0} from {1} to {2}", "known": "{0} becomes known: {2}", "missing": "{0} is left out",
         "then": "{0} then is {2}"}  # fmt: skip


class PlanWriter:
    """Writes plans for a model's rows."""

    def __init__(self, model: Model, names: Names, cells: Cells) -> None:
        self.names, self.cells = names, cells
        found = model.coherence
        self.followers = np.zeros(len(model.schema), dtype=bool) if found is None else found.dependencies.followers

    def write(self, plans: Plans, own: Values, before: list[Any], cost: Values | None) -> list[dict[str, Any]]:
        """One dict per plan; `before` are the plain values of the row `own`."""
        changed = differ(plans.values, own)
        return [
            self._plan(plans, i, np.flatnonzero(changed[i]).tolist(), before, None if cost is None else float(cost[i]))
            for i in range(len(plans))
        ]

    def _plan(
        self, plans: Plans, i: int, changed: list[int], before: list[Any], cost: float | None
    ) -> dict[str, Any]:  # fmt: skip
        # What stays is the row's own, bit for bit.
        cells = list(before)
        for j in changed:
            cells[j] = self.cells.shown(j, float(plans.values[i, j]))
        changes = [self._change(j, before[j], cells[j], of=len(changed)) for j in changed]
        words = [self._word(one) for one in changes]
        sure, plausibility = float(plans.probability[i]), float(plans.plausibility[i])
        return {
            "key": key_text(int(plans.key[i])),
            "values": dict(zip(self.names.keys, cells, strict=True)),
            "changes": changes,
            "probability": round(sure, 6),
            "percent": percent(sure),
            "plausibility": None if math.isnan(plausibility) else round(plausibility, 4),
            "plausibility_words": _usual(plausibility),
            "way": int(plans.way[i]),
            "cost": cost,
            "sentence": words,
            "text": _text(words),
        }

    def _change(self, j: int, before: Any, after: Any, *, of: int) -> dict[str, Any]:
        old, new = self.names.pair(j, before, after)
        direction, size = step_of(before, after, self.names.schema.features[j])
        return {
            "feature": self.names.keys[j],
            "before": before,
            "after": after,
            "before_text": old,
            "after_text": new,
            "direction": direction,
            # What follows has something to follow from.
            "then": bool(self.followers[j]) and of > 1,
            "small": round(size, 4),
        }

    def _word(self, change: dict[str, Any]) -> dict[str, Any]:
        j = self.names.places[change["feature"]]
        verb = "change"
        if change["then"]:
            verb = "then"
        elif change["before"] is None or change["after"] is None:
            verb = "known" if change["before"] is None else "missing"
        elif self.names.schema.features[j].is_number:
            verb = "raise" if change["direction"] == "up" else "lower"
        return {
            "verb": verb,
            "feature": change["feature"],
            "text": self.names.labels[j],
            "before": change["before_text"],
            "after": change["after_text"],
        }


def key_text(key: int) -> str:
    """A plan's key, which its values alone decide."""
    return f"{key:016x}"


def _usual(plausibility: float) -> str:
    """How usual a plan is among real rows of its result."""
    if math.isnan(plausibility):
        return ""
    tenths = math.floor(10 * plausibility)
    return f"more usual than {tenths} in 10" if tenths else "less usual than 9 in 10"


def _text(words: list[dict[str, Any]]) -> str:
    """The plan as one English sentence."""
    parts = [VERBS[one["verb"]].format(one["text"], one["before"], one["after"]) for one in words]
    whole = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
    return f"{whole[:1].upper()}{whole[1:]}." if whole else ""
