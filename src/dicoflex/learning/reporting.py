"""What a fit leaves, and what it tells of itself."""

from __future__ import annotations

__all__ = ["Learned", "coherence_for", "facts_of", "history_of", "marginals_for", "told", "warn_of_weak"]

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from dicoflex.certificate import SURVIVES
from dicoflex.coherence import Coherence
from dicoflex.generators.base import Table
from dicoflex.learning.coherence import learn_coherence
from dicoflex.learning.config import ENDS
from dicoflex.learning.plan import Plan
from dicoflex.learning.steps import Fitted, Task
from dicoflex.model import Model
from dicoflex.table.marginals import Marginals
from dicoflex.table.rarity import round_count

COUNTS = ("rows", "rows_left_out", "rows_used", "pairs", "black_box_rows")
SHARES = ("surrogate_agreement", "held_out_loss")
LEAST_AGREEMENT, LEAST_EXPLAINED = 0.75, 0.5
"""Below which share of labels that the surrogate gets right, or of how scores differ, a fit warns."""
SAFE_ENOUGH = 0.75
"""Below which estimated survival of "safe" answers, where 0.85 is meant, a fit warns."""


@dataclass(frozen=True)
class Learned:
    """A model, and the losses of every epoch by stage."""

    model: Model
    history: list[dict[str, float]]


def coherence_for(table: Table, plan: Plan) -> Coherence | None:
    """What goes together in the table, where answers are to be refined."""
    deadline = plan.deadline.part(ENDS.coherence)
    if not plan.settings.fit.coherence:
        return None
    with plan.progress.stage("what goes together", 1) as advance:
        found = learn_coherence(table, seed=plan.seed, deadline=deadline)
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


def warn_of_weak(model: Model, agreement: float) -> None:
    """Warn where the surrogate does not follow the model, or where no confidence gives answers that would last."""
    least, what = (LEAST_AGREEMENT, "labels") if model.score is None else (LEAST_EXPLAINED, "differences of scores")
    if agreement < least:
        warnings.warn(
            f"the surrogate follows only {agreement:.0%} of the {what}, so that answers may be wrong about who has the "
            "target; give more time (max_seconds), more rows, or check= when asking",
            stacklevel=4,
        )
    kept = {} if model.survival is None else {label: model.levels(i)["safe"] for i, label in enumerate(model.labels)}
    for label, level in kept.items():
        if level["survival"] < SAFE_ENOUGH:
            warnings.warn(
                f"answers for {label!r} at confidence='safe' would be accepted by an estimated {level['survival']:.0%} "
                f"of retrained models, and {SURVIVES['safe']:.0%} are meant: {level['confidence']:.2f} is the highest "
                "confidence that the rows support; fit on more rows, or say that answers may not last",
                stacklevel=4,
            )


def facts_of(task: Task, fitted: Fitted, seconds: float) -> dict[str, Any]:
    """What a fit found out, besides what its way found out."""
    black_box, last = task.black_box, fitted.histories[-1].best
    return {
        "rows_used": len(task.table.values),
        "seconds": round(seconds, 2),
        "black_box_calls": 0 if black_box is None else black_box.caller.calls,
        "black_box_rows": 0 if black_box is None else black_box.caller.rows,
        "training_ended": fitted.histories[0].stopped,
        "cut": list(task.deadline.cuts),
        # There is none where training was stopped before its first epoch ended.
        "held_out_loss": last if np.isfinite(last) else None,
    }


def history_of(fitted: Fitted) -> list[dict[str, float]]:
    return [{"stage": i, **epoch} for i, history in enumerate(fitted.histories) for epoch in history.epochs]
