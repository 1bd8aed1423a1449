"""From a frame and its labels to a model."""

from __future__ import annotations

__all__ = ["learn_model"]

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.certificate import BLACK_BOX, CROSS_FITTED, LABELS, Certificate
from dicoflex.errors import DataError
from dicoflex.generators.base import Table
from dicoflex.learning.black_box import agreed, wrapped
from dicoflex.learning.certifying import certified
from dicoflex.learning.few_labels import Judge
from dicoflex.learning.judged import fit_judged
from dicoflex.learning.labels import read_labels
from dicoflex.learning.plain import fit_plain
from dicoflex.learning.plan import Plan, check_room, mask_set, schema_for
from dicoflex.learning.reporting import Learned, coherence_for, facts_of, history_of, marginals_for, told
from dicoflex.learning.stand_in import learn
from dicoflex.learning.steps import Fitted, Task
from dicoflex.model import Confidence, Model, classes_of
from dicoflex.stand_in import BLOCK
from dicoflex.table.survey import Rows, take_rows

LEAST_HELD = 10


def learn_model(
    X: pd.DataFrame,
    y: Any,
    plan: Plan,
    *,
    predict_proba: Callable[[pd.DataFrame], Any] | None = None,
    classes: Sequence[Any] | None = None,
) -> Learned:
    """The model of rows and the labels that the black box gave them; everything is checked before any work starts."""
    started = time.monotonic()
    min_count = plan.settings.fit.min_count
    schema = schema_for(X, plan.schema, min_count)
    labels, names = read_labels(y, len(X))
    check_room(schema, names)
    masks = mask_set(schema, plan.masks)
    rows = take_rows(
        X, schema, labels,
        most=plan.settings.fit.most_rows, seed=plan.seed, row_key=plan.row_key, min_count=min_count,
    )  # fmt: skip
    _check_classes(rows, names)
    black_box = wrapped(predict_proba, classes, names, rows.encoding)
    probabilities = None if black_box is None else agreed(black_box, rows.values, rows.labels, names)
    sure = None if probabilities is None else probabilities[np.arange(len(rows.labels)), rows.labels]
    table = Table(rows.encoding, rows.values, rows.labels, len(names), sure, min_count)
    task = Task(
        table, plan.settings, masks, seed=plan.seed, device=plan.device, progress=plan.progress, black_box=black_box,
        probabilities=probabilities, coherence=coherence_for(table, plan),
    )  # fmt: skip
    fitted = fit_judged(task) if plan.settings.generator.is_judged else fit_plain(task)
    model = _model(task, fitted, rows, names)
    if task.coherence is not None:
        model = _refinable(task, fitted, model)
    counted = {"rows": len(X), "rows_left_out": rows.left_out, "min_count": min_count}
    facts = {**fitted.facts, **counted, **facts_of(task, fitted, time.monotonic() - started)}
    return Learned(model.with_facts(**told(facts, min_count)), history_of(fitted))


def _refinable(task: Task, fitted: Fitted, model: Model) -> Model:
    """The model with what goes together and what held-out rows teach.

    The judge of their answers is the black box, or stand-ins that saw other labels than the model's own.
    """
    model = replace(model, coherence=task.coherence, certificate=Certificate.none(task.table.n_classes))
    held = np.flatnonzero(fitted.held)
    table, black_box = task.table, task.black_box
    judge: Judge
    if black_box is not None:
        judge, name = black_box.answers, BLACK_BOX
    elif fitted.judge is not None:
        judge, name = fitted.judge, CROSS_FITTED
    elif len(held) < LEAST_HELD:
        return model
    else:
        hard = np.eye(table.n_classes)[table.labels[held]]
        other, _ = learn(table.encoding, table.values[held], hard, seed=task.seed + 1, min_count=table.min_count)
        judge, name = partial(other.probabilities, each=BLOCK), LABELS
    return certified(
        model, table.values[held], table.labels[held], judge,
        name=name, seed=task.seed, min_count=table.min_count,
    )  # fmt: skip


def _model(task: Task, fitted: Fitted, rows: Rows, names: list[Any]) -> Model:
    has_confidence = task.black_box is not None and task.settings.generator.is_judged
    confidences = _confidences(names, fitted.confidence) if has_confidence else {}
    return Model(
        encoding=rows.encoding,
        classes=classes_of(names),
        generator=fitted.generator,
        stand_in=fitted.stand_in,
        confidence=fitted.confidence,
        exponents=task.config.exponents,
        has_confidence=has_confidence,
        remembered=rows.remembered,
        marginals=marginals_for(task),
        report={"confidence": confidences},
    )


def _check_classes(rows: Rows, names: list[Any]) -> None:
    """Refuse a table that has a class of which no row is left."""
    lost = np.setdiff1d(np.arange(len(names)), rows.labels)
    if len(lost):
        raise DataError(
            f"label {names[lost[0]]!r} has no row left to learn from: its rows all have a value that fewer than "
            f"{rows.encoding.schema.min_count} rows have; group those values, or say min_count=1"
        )


def _confidences(names: list[Any], sure: Confidence) -> dict[str, dict[str, float]]:
    rows = zip(names, sure.default, sure.highest, strict=True)
    return {str(label): {"default": round(float(d), 4), "highest": round(float(h), 4)} for label, d, h in rows}
