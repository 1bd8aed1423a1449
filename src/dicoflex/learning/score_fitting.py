"""From a frame and its scores to a model."""

from __future__ import annotations

__all__ = ["learn_scores"]

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.aiming import narrowest
from dicoflex.certificate import BLACK_BOX, LABELS, Certificate
from dicoflex.errors import BlackBoxError, SettingError
from dicoflex.generators.base import Table
from dicoflex.learning.certifying_scores import Judge, certified_scores
from dicoflex.learning.config import ENDS
from dicoflex.learning.plan import Plan, check_room, mask_set, schema_for
from dicoflex.learning.reporting import Learned, coherence_for, facts_of, history_of, marginals_for, told, warn_of_weak
from dicoflex.learning.score_box import Predict, ScoreBox, read_scores
from dicoflex.learning.score_surrogate import learn_score
from dicoflex.learning.scored import bands_of, fit_scored
from dicoflex.learning.steps import Fitted, Task
from dicoflex.model import BANDS, Model, classes_of
from dicoflex.models.calls import BudgetError, Caller, caller_of
from dicoflex.score import Score
from dicoflex.table.survey import Rows, take_rows

LEAST_HELD = 500


def learn_scores(X: pd.DataFrame, y: Any, plan: Plan, *, predict: Predict | Caller | None = None) -> Learned:
    """The model of rows and the scores that the black box gave them; everything is checked before any work starts."""
    started = time.monotonic()
    if not plan.settings.generator.is_judged:
        raise SettingError(
            f"generator {plan.settings.generator.name!r} learns classes alone; scores are explained by 'mixed'"
        )
    min_count = plan.settings.fit.min_count
    schema = schema_for(X, plan.schema, min_count)
    check_room(schema, [])
    masks = mask_set(schema, plan.masks)
    if predict is not None and not callable(predict):
        raise BlackBoxError(f"predict must be a callable, got {type(predict).__name__}; pass model.predict")
    caller = None if predict is None else caller_of(predict, "predict")
    scores = read_scores(X, y, caller)
    score = Score.of(scores, min_count)
    rows = take_rows(
        X, schema, bands_of(score.rank(scores)),
        most=plan.settings.fit.most_rows, seed=plan.seed, row_key=plan.row_key, min_count=min_count,
        whole=plan.whole,
    )  # fmt: skip
    box = None if caller is None else ScoreBox(caller, rows.encoding, score)
    ranks = score.rank(scores[rows.place])
    if box is not None and len(rows.clipped):
        # The other rows were asked as they came.
        ranks[rows.clipped] = box.answers(rows.values[rows.clipped])
    table = Table(rows.encoding, rows.values, bands_of(ranks), BANDS, None, min_count)
    task = Task(
        table, plan.settings, masks, seed=plan.seed, device=plan.device, progress=plan.progress, black_box=box,
        deadline=plan.deadline,
        probabilities=ranks, coherence=coherence_for(table, plan),
    )  # fmt: skip
    fitted, score = fit_scored(task, score)
    model = _refinable(task, fitted, _model(task, fitted, rows, score), ranks)
    warn_of_weak(model, fitted.facts["surrogate_agreement"])
    counted: dict[str, Any] = {"rows": rows.n, "rows_left_out": rows.left_out, "min_count": min_count}
    counted["score"] = _spread_facts(model)
    facts = {**fitted.facts, **counted, **facts_of(task, fitted, time.monotonic() - started)}
    return Learned(model.with_facts(**told(facts, min_count)), history_of(fitted))


def _model(task: Task, fitted: Fitted, rows: Rows, score: Score) -> Model:
    return Model(
        encoding=rows.encoding,
        classes=classes_of([]),
        generator=fitted.generator,
        surrogate=fitted.surrogate,
        confidence=fitted.confidence,
        exponents=task.config.exponents,
        has_confidence=task.black_box is not None,
        remembered=rows.remembered,
        marginals=marginals_for(task),
        report={"confidence": _confidences(task, fitted)},
        score=score,
    )


def _confidences(task: Task, fitted: Fitted) -> dict[str, dict[str, Any]]:
    if task.black_box is None:
        return {}
    sure = fitted.confidence
    just, safe = ({"confidence": float(one[0])} for one in (sure.lowest, sure.default))
    return {"scores": {"just": just, "safe": safe, "highest": float(sure.highest[0])}}


def _spread_facts(model: Model) -> dict[str, float]:
    """Which scores can be asked for, and how narrow an interval may be, as a share of the rows."""
    assert model.score is not None
    ends = (float(f"{knot:.4g}") for knot in model.score.knots[[0, -1]])
    return dict(zip(("least", "greatest"), ends, strict=True)) | {"narrowest": round(narrowest(model), 3)}


def _refinable(task: Task, fitted: Fitted, model: Model, ranks: NDArray[np.float64]) -> Model:
    """The model with what goes together and what held-out rows teach; without a black box, another surrogate judges."""
    if task.coherence is None:
        return model
    model = replace(model, coherence=task.coherence, certificate=Certificate.none(1))
    try:
        return _certified(task, fitted, model, ranks)
    except (BudgetError, KeyboardInterrupt):
        # What was learned is kept; only how well it holds is not known.
        task.deadline.cut("certificate")
        return model


def _certified(task: Task, fitted: Fitted, model: Model, ranks: NDArray[np.float64]) -> Model:
    """The model with its margins and its certificate, by the black box or by a surrogate of the held-out rows."""
    held = np.flatnonzero(fitted.held)
    table = task.table
    judge: Judge
    if task.black_box is not None:
        judge, name = task.black_box.answers, BLACK_BOX
    elif len(held) < LEAST_HELD:
        return model
    else:
        other = learn_score(
            table.encoding, table.values[held], ranks[held], seed=task.seed + 1, min_count=table.min_count
        ).surrogate
        judge, name = other.scores, LABELS
    return certified_scores(
        model, table.values[held], ranks[held], judge,
        name=name, seed=task.seed, min_count=table.min_count, deadline=task.deadline.part(ENDS.certificate),
    )  # fmt: skip
