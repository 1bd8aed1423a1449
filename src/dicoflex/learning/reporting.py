"""What a fit leaves, and what it tells of itself."""

from __future__ import annotations

__all__ = ["Learned", "coherence_for", "facts_of", "history_of", "marginals_for", "told"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from dicoflex.coherence import Coherence
from dicoflex.generators.base import Table
from dicoflex.learning.coherence import learn_coherence
from dicoflex.learning.plan import Plan
from dicoflex.learning.steps import Fitted, Task
from dicoflex.model import Model
from dicoflex.table.marginals import Marginals
from dicoflex.table.rarity import round_count

COUNTS = ("rows", "rows_left_out", "rows_used", "pairs", "black_box_rows")
SHARES = ("stand_in_agreement", "held_out_loss")


@dataclass(frozen=True)
class Learned:
    """A model, and the losses of every epoch by stage."""

    model: Model
    history: list[dict[str, float]]


def coherence_for(table: Table, plan: Plan) -> Coherence | None:
    """What goes together in the table, where answers are to be refined."""
    if not plan.settings.fit.coherence:
        return None
    with plan.progress.stage("what goes together", 1) as advance:
        found = learn_coherence(table, seed=plan.seed)
        advance(1)
    return found


def marginals_for(task: Task) -> Marginals | None:
    """How many rows have what, where that may be told; of a sampled table, how many of the sample."""
    table = task.table
    return Marginals.of(table.encoding, table.values, table.min_count) if task.config.marginals else None


def told(facts: dict[str, Any], min_count: int) -> dict[str, Any]:
    """The facts with counts of rows merged and shares of them rounded, so that one row more or less is not told."""
    if min_count == 1:
        return facts
    counts = {name: round_count(facts[name], min_count) for name in COUNTS}
    return facts | counts | {name: facts[name] and round(facts[name], 4) for name in SHARES}


def facts_of(task: Task, fitted: Fitted, seconds: float) -> dict[str, Any]:
    """What a fit found out, besides what its way found out."""
    black_box, last = task.black_box, fitted.histories[-1].best
    return {
        "rows_used": len(task.table.values),
        "seconds": round(seconds, 2),
        "black_box_calls": 0 if black_box is None else black_box.calls,
        "black_box_rows": 0 if black_box is None else black_box.rows,
        "training_ended": fitted.histories[0].stopped,
        # There is none where training was stopped before its first epoch ended.
        "held_out_loss": last if np.isfinite(last) else None,
    }


def history_of(fitted: Fitted) -> list[dict[str, float]]:
    return [{"stage": i, **epoch} for i, history in enumerate(fitted.histories) for epoch in history.epochs]
