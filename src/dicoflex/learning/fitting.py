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
from dicoflex.learning.black_box import agreed, column_order, wrapped
from dicoflex.learning.certifying import certified
from dicoflex.learning.config import ENDS
from dicoflex.learning.exact import agreement_of, copied
from dicoflex.learning.few_labels import Judge
from dicoflex.learning.judged import fit_judged
from dicoflex.learning.labels import read_labels
from dicoflex.learning.leakage import leakage_of
from dicoflex.learning.plain import fit_plain
from dicoflex.learning.plan import Plan, check_room, mask_set, schema_for
from dicoflex.learning.private_rows import draw_private
from dicoflex.learning.reporting import Learned, coherence_for, facts_of, history_of, marginals_for, told, warn_of_weak
from dicoflex.learning.steps import Fitted, Task
from dicoflex.learning.surrogate import learn
from dicoflex.learning.surviving import retrained, with_survival
from dicoflex.model import EXACT, Model, classes_of
from dicoflex.models.calls import BudgetError, Caller
from dicoflex.surrogate import Surrogate
from dicoflex.table.encoding import Encoding
from dicoflex.table.survey import Rows, take_rows

LEAST_HELD = 10


def learn_model(
    X: pd.DataFrame,
    y: Any,
    plan: Plan,
    *,
    predict_proba: Callable[[pd.DataFrame], Any] | Caller | None = None,
    classes: Sequence[Any] | None = None,
    exact: Any = None,
    threshold: float | None = None,
) -> Learned:
    """The model of rows and the labels that the black box gave them; everything is checked before any work starts.

    exact: the classifier behind `predict_proba`, where it is to be copied. threshold: the probability from which on the
    second of two labels is given, where it is not a half.
    """
    started = time.monotonic()
    min_count = plan.settings.fit.min_count
    schema = schema_for(X, plan.schema, min_count)
    labels, names = read_labels(y, len(X))
    check_room(schema, names)
    masks = mask_set(schema, plan.masks)
    if plan.epsilon is not None:
        asked = wrapped(predict_proba, classes, names, Encoding.unit(schema), threshold)
        X, labels = draw_private(X, labels, names, schema, asked, epsilon=plan.epsilon, seed=plan.seed)
    rows = take_rows(
        X, schema, labels,
        most=plan.settings.fit.most_rows, seed=plan.seed, row_key=plan.row_key, min_count=min_count,
        whole=plan.whole,
    )  # fmt: skip
    _check_classes(rows, names)
    black_box = wrapped(predict_proba, classes, names, rows.encoding, threshold)
    probabilities = None if black_box is None else agreed(black_box, rows.values, rows.labels, names)
    sure = None if probabilities is None else probabilities[np.arange(len(rows.labels)), rows.labels]
    table = Table(rows.encoding, rows.values, rows.labels, len(names), sure, min_count)
    copy: tuple[Surrogate, float] | None = None
    if exact is not None:
        assert black_box is not None
        assert probabilities is not None
        surrogate = copied(exact, rows.encoding, rows.values, column_order(classes, names))
        copy = surrogate, agreement_of(surrogate, black_box, rows.values, probabilities, plan.seed)
    task = Task(
        table, plan.settings, masks, seed=plan.seed, device=plan.device, progress=plan.progress, black_box=black_box,
        deadline=plan.deadline,
        probabilities=probabilities, exact=copy, coherence=coherence_for(table, plan),
    )  # fmt: skip
    fitted = fit_judged(task) if plan.settings.generator.is_judged else fit_plain(task)
    model = _model(task, fitted, rows, names)
    if task.coherence is not None:
        model = _refinable(task, fitted, model)
    model = model.with_facts(confidence=_confidences(model))
    leakage = None if plan.epsilon is not None else leakage_of(task, fitted, model, plan.deadline.part(ENDS.leakage))
    counted: dict[str, Any] = {"rows": rows.n, "rows_left_out": rows.left_out, "min_count": min_count}
    counted |= {} if threshold is None else {"threshold": float(threshold)}
    counted |= {} if copy is None else {"surrogate": EXACT}
    warn_of_weak(model, fitted.facts["surrogate_agreement"])
    # The geometric mechanism needs no delta.
    counted |= {} if plan.epsilon is None else {"privacy": {"epsilon": plan.epsilon, "delta": 0.0}}
    facts = {**fitted.facts, **counted, "leakage": leakage, **facts_of(task, fitted, time.monotonic() - started)}
    return Learned(model.with_facts(**told(facts, min_count)), history_of(fitted))


def _refinable(task: Task, fitted: Fitted, model: Model) -> Model:
    """The model with what goes together and what held-out rows teach.

    The judge of their answers is the black box, or surrogates that saw other labels than the model's own.
    """
    model = replace(model, coherence=task.coherence, certificate=Certificate.none(task.table.n_classes))
    try:
        return _certified(task, fitted, model)
    except (BudgetError, KeyboardInterrupt):
        # What was learned is kept; only how well it holds is not known.
        task.deadline.cut("certificate")
        return model


def _certified(task: Task, fitted: Fitted, model: Model) -> Model:
    """The model with its margins, its certificate and what becomes of its answers when the judge is learned anew."""
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
        judge, name = other.probabilities, LABELS
    settled: Callable[[Model], Model] | None = None
    if model.has_confidence and len(held) >= LEAST_HELD:
        assert task.probabilities is not None
        judges = retrained(
            model, table, task.probabilities, seed=task.seed, deadline=task.deadline.part(ENDS.retrained)
        )
        settled = partial(
            with_survival, values=table.values[held], labels=table.labels[held], judges=judges,
            seed=task.seed, min_count=table.min_count, deadline=task.deadline.part(ENDS.certificate),
        )  # fmt: skip
    return certified(
        model, table.values[held], table.labels[held], judge,
        name=name, seed=task.seed, min_count=table.min_count, exact=task.exact is not None, settled=settled,
        deadline=task.deadline.part(ENDS.certificate),
    )  # fmt: skip


def _model(task: Task, fitted: Fitted, rows: Rows, names: list[Any]) -> Model:
    has_confidence = task.black_box is not None and task.settings.generator.is_judged
    return Model(
        encoding=rows.encoding,
        classes=classes_of(names),
        generator=fitted.generator,
        surrogate=fitted.surrogate,
        confidence=fitted.confidence,
        exponents=task.config.exponents,
        has_confidence=has_confidence,
        remembered=rows.remembered,
        marginals=marginals_for(task),
        report={},
    )


def _check_classes(rows: Rows, names: list[Any]) -> None:
    """Refuse a table that has a class of which no row is left."""
    lost = np.setdiff1d(np.arange(len(names)), rows.labels)
    if len(lost):
        raise DataError(
            f"label {names[lost[0]]!r} has no row left to learn from: its rows all have a value that fewer than "
            f"{rows.encoding.schema.min_count} rows have; group those values, or say min_count=1"
        )


def _confidences(model: Model) -> dict[str, Any]:
    """By label what each level stands for, and the highest confidence that can be asked for."""
    if not model.has_confidence:
        return {}
    highest = model.confidence.highest
    return {
        str(label): {**model.levels(i), "highest": round(float(highest[i]), 4)} for i, label in enumerate(model.labels)
    }
