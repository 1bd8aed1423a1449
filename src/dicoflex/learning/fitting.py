"""From a frame and its labels to a model."""

from __future__ import annotations

__all__ = ["Learned", "Plan", "learn_model"]

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from dicoflex.certificate import BLACK_BOX, CROSS_FITTED, LABELS, Certificate
from dicoflex.coherence import Coherence
from dicoflex.errors import DataError, SchemaError, SettingError, named
from dicoflex.generators.base import Table
from dicoflex.learning.black_box import agreed, wrapped
from dicoflex.learning.certifying import certified
from dicoflex.learning.coherence import learn_coherence
from dicoflex.learning.config import FitSettings
from dicoflex.learning.few_labels import Judge
from dicoflex.learning.judged import fit_judged
from dicoflex.learning.labels import read_labels
from dicoflex.learning.plain import fit_plain
from dicoflex.learning.stand_in import learn
from dicoflex.learning.steps import Fitted, Task
from dicoflex.learning.training import pick_device
from dicoflex.model import Confidence, Model, classes_of
from dicoflex.model_file.layout import LONGEST_HEADER
from dicoflex.runtime.progress import Progress
from dicoflex.runtime.randomness import seed_of
from dicoflex.stand_in import BLOCK
from dicoflex.table.inference import check_frame
from dicoflex.table.marginals import Marginals
from dicoflex.table.rarity import round_count
from dicoflex.table.remembered import new_key, read_key
from dicoflex.table.schema import Schema
from dicoflex.table.survey import Rows, take_rows

# The rest of a header is short, but for a line per array.
ROOM = LONGEST_HEADER * 3 // 4
LEAST_HELD = 10


@dataclass(frozen=True)
class Plan:
    """How to fit, besides the rows: schema (None: inferred), masks to train for, settings, seed, device, progress.

    row_key: the key to remember the rows under; None remembers none.
    """

    settings: FitSettings
    schema: Schema | None
    masks: Sequence[Sequence[Any]] | None
    seed: int
    device: torch.device
    progress: Progress
    row_key: bytes | None = None

    @classmethod
    def of(
        cls,
        settings: FitSettings,
        *,
        schema: Schema | None = None,
        masks: Sequence[Sequence[Any]] | None = None,
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool | None = None,
        remember_rows: Any = False,
    ) -> Plan:
        """A plan from the explainer's own words."""
        seed, key = seed_of(random_state), _row_key(remember_rows, settings)
        chosen = pick_device(device)
        return cls(settings, schema, masks, seed=seed, device=chosen, progress=Progress(verbose), row_key=key)


@dataclass(frozen=True)
class Learned:
    """A model, and the losses of every epoch by stage."""

    model: Model
    history: list[dict[str, float]]


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
    schema = _schema(X, plan.schema, min_count)
    labels, names = read_labels(y, len(X))
    _check_room(schema, names)
    masks = _mask_set(schema, plan.masks)
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
        probabilities=probabilities, coherence=_coherence(table, plan),
    )  # fmt: skip
    fitted = fit_judged(task) if plan.settings.generator.is_judged else fit_plain(task)
    model = _model(task, fitted, rows, names)
    if task.coherence is not None:
        model = _refinable(task, fitted, model)
    counted = {"rows": len(X), "rows_left_out": rows.left_out, "min_count": min_count}
    facts = {**fitted.facts, **counted, **_facts(task, fitted, time.monotonic() - started)}
    return Learned(model.with_facts(**_told(facts, min_count)), _history(fitted))


def _coherence(table: Table, plan: Plan) -> Coherence | None:
    """What goes together in the table, where answers are to be refined."""
    if not plan.settings.fit.coherence:
        return None
    with plan.progress.stage("what goes together", 1) as advance:
        found = learn_coherence(table, seed=plan.seed)
        advance(1)
    return found


def _refinable(task: Task, fitted: Fitted, model: Model) -> Model:
    """The model with what goes together and what held-out rows teach.

    The judge of their answers is the black box, or stand-ins that saw other labels than the model's own.
    """
    model = replace(model, coherence=task.coherence, certificate=Certificate.none(task.table.n_classes))
    held = np.flatnonzero(fitted.held)
    table, black_box = task.table, task.black_box
    judge: Judge
    if black_box is not None:
        judge, name = black_box.probabilities, BLACK_BOX
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
        marginals=_marginals(task),
        report={"confidence": confidences},
    )


def _marginals(task: Task) -> Marginals | None:
    """How many rows have what, where that may be told; of a sampled table, how many of the sample."""
    table = task.table
    return Marginals.of(table.encoding, table.values, table.min_count) if task.config.marginals else None


COUNTS = ("rows", "rows_left_out", "rows_used", "pairs", "black_box_rows")
SHARES = ("stand_in_agreement", "held_out_loss")


def _told(facts: dict[str, Any], min_count: int) -> dict[str, Any]:
    """The facts with counts of rows merged and shares of them rounded, so that one row more or less is not told."""
    if min_count == 1:
        return facts
    counts = {name: round_count(facts[name], min_count) for name in COUNTS}
    return facts | counts | {name: facts[name] and round(facts[name], 4) for name in SHARES}


def _check_classes(rows: Rows, names: list[Any]) -> None:
    """Refuse a table that has a class of which no row is left."""
    lost = np.setdiff1d(np.arange(len(names)), rows.labels)
    if len(lost):
        raise DataError(
            f"label {names[lost[0]]!r} has no row left to learn from: its rows all have a value that fewer than "
            f"{rows.encoding.schema.min_count} rows have; group those values, or say min_count=1"
        )


def _facts(task: Task, fitted: Fitted, seconds: float) -> dict[str, Any]:
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


def _confidences(names: list[Any], sure: Confidence) -> dict[str, dict[str, float]]:
    rows = zip(names, sure.default, sure.highest, strict=True)
    return {str(label): {"default": round(float(d), 4), "highest": round(float(h), 4)} for label, d, h in rows}


def _history(fitted: Fitted) -> list[dict[str, float]]:
    return [{"stage": i, **epoch} for i, history in enumerate(fitted.histories) for epoch in history.epochs]


def _row_key(remember_rows: Any, settings: FitSettings) -> bytes | None:
    """The key to remember rows under: a fresh one for True, or the one given."""
    if remember_rows is False:
        if settings.generator.keeps_rows:
            raise SettingError(
                f"generator {settings.generator.name!r} needs its training rows to answer, so its model file holds "
                "them for all to read; say that this is meant with fit(X, y, remember_rows=True), or choose another"
            )
        return None
    return new_key() if remember_rows is True else read_key(remember_rows, "remember_rows")


def _schema(X: pd.DataFrame, given: Schema | None, min_count: int) -> Schema:
    """The schema to fit by: the given one, which must have the columns of `X`, or what `X` shows."""
    if given is None:
        return Schema.infer(X, min_count=min_count)
    if not isinstance(given, Schema):
        raise SettingError(f"schema must be a Schema, got {type(given).__name__}; make one with Schema.infer")
    check_frame(X)
    lacking = [name for name in given.names if name not in X.columns]
    extra = [name for name in X.columns if name not in given.names]
    if lacking or extra:
        what = f"X lacks the column {lacking[0]!r}" if lacking else f"X has the column {extra[0]!r} besides those"
        raise SchemaError(f"{what} of the schema; give the schema of these rows, Schema.infer(X), or leave it out")
    return given


def _check_room(schema: Schema, names: list[Any]) -> None:
    """Refuse, before the work starts, a table whose description does not fit into a model file."""
    described = json.dumps([schema.model_dump(mode="json"), names, names], ensure_ascii=False)
    size = len(json.dumps(described, ensure_ascii=False).encode())
    if size > ROOM:
        raise DataError(
            f"the columns' names and levels take {size:,} bytes, and a model file has room for {ROOM:,}; "
            "drop columns, or group rare levels"
        )


def _mask_set(schema: Schema, masks: Sequence[Sequence[Any]] | None) -> NDArray[np.bool_] | None:
    """The masks to train for, one row each over the features."""
    if masks is None:
        return None
    if len(masks) == 0:
        raise SettingError("masks is empty; give lists of features, or None for any subset")
    return np.stack([_mask(schema, mask) for mask in masks])


def _mask(schema: Schema, names: Any) -> NDArray[np.bool_]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise SettingError(f"masks must be lists of features, got {names!r} among them; write masks=[[{names!r}]]")
    known = list(names)
    for name in known:
        if name not in schema.names:
            raise SettingError(f"masks: {named('feature', name, schema.names)}")
    mask = schema.mask(known)
    if mask.all():
        raise SettingError(f"the mask {known} freezes every feature, so nothing could change; leave one out")
    return mask
