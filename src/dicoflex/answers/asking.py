"""The questions to a model with frames: explain, sample, log_density, probability."""

from __future__ import annotations

__all__ = ["explain", "log_density", "probability", "sample"]

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dicoflex._types import Floats
from dicoflex.answers.aiming import score_of
from dicoflex.answers.check import Check
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.draws import draw
from dicoflex.answers.engine import answer, check_cost, conditioned, terms_of
from dicoflex.answers.frames import decoded
from dicoflex.answers.outcome import Outcome
from dicoflex.answers.query import Query
from dicoflex.answers.shortfall import SHORTFALL, why_none
from dicoflex.answers.tasks import TaskGroup
from dicoflex.errors import BlackBoxError, ConstraintError, QueryError
from dicoflex.model import Model
from dicoflex.request import ERROR, Request
from dicoflex.table.unseen import EncodedRows, encode_frame
from dicoflex.values import differ


def explain(model: Model, rows: pd.DataFrame, request: Request, *, check: Check | None = None) -> Counterfactuals:
    """Up to `n` counterfactuals for every row; see `Explainer.explain`."""
    if check is not None and not callable(check):
        raise BlackBoxError(f"check must be a callable, got {type(check).__name__}; pass clf.predict")
    outcome = answer(model, _read(model, rows, may_be_unseen=request.handle_unknown != ERROR), request, check)
    if outcome.hopeless is not None:
        raise ConstraintError(outcome.hopeless)
    return counterfactuals_of(outcome)


def counterfactuals_of(outcome: Outcome) -> Counterfactuals:
    """An outcome for the rows of a frame, as frames."""
    model, rows, row = outcome.model, outcome.rows, outcome.row
    assert rows.frame is not None
    kept = model.schema.mask(list(outcome.request.constraints.frozen)) | ~model.encoding.is_exact(rows.values)
    frame = decoded(model.encoding, rows.frame, rows.values, kept, outcome.values, row)
    labels = rows.frame.index.to_flat_index()
    return Counterfactuals(
        queries=rows.shown,
        frame=frame,
        info=_info(outcome, frame.index),
        positions=row,
        shortfall=pd.DataFrame([(labels[i], *why) for i, why in outcome.short.items()], columns=SHORTFALL),
        short=np.array(list(outcome.short), dtype=np.int64),
        schema=model.schema,
        request=outcome.request,
        targets=outcome.wanted,
        model=model.fingerprint,
        changed=differ(outcome.values, rows.values[row]),
        origin=outcome.origin,
        status=outcome.status,
        searches=outcome.searches,
    )


def _info(outcome: Outcome, index: pd.Index) -> pd.DataFrame:
    """What is known of each answer."""
    n, checked = len(outcome.row), outcome.origin.checked
    valid = pd.arrays.BooleanArray(np.full(n, checked), np.full(n, not checked))
    columns: dict[str, Any] = {}
    for name, column in outcome.columns.items():
        columns[name] = column
        if name == "probability":
            columns["valid"] = valid
    return pd.DataFrame(columns, index=index)


def sample(model: Model, rows: pd.DataFrame, request: Request, *, filtered: bool = True) -> pd.DataFrame:
    """Exactly `n` draws for every row, as they come: the layout of `Counterfactuals.frame`, nothing selected.

    A row that may have any of some labels is refused. filtered: leave out draws that the surrogate doubts, and the
    least likely 5 % of a row's draws.
    """
    known = _read(model, rows)
    assert known.frame is not None
    values, owner = [], []
    for group, query in _one_each(model, known, request, "sample"):
        check_cost(len(query), request.n, request.n)
        query.refuse_unanswerable()
        terms = terms_of(group.model, query, filtered=filtered)
        draws = draw(group.model.generator, model.encoding, query.context, query.keys, request.n, terms)
        without = np.flatnonzero(np.bincount(draws.query, minlength=len(query)) == 0)
        if len(without):
            raise QueryError(why_none(group.model, query, int(without[0])))
        values.append(draws.values)
        owner.append(group.places[draws.query])
    order = np.argsort(np.concatenate(owner), kind="stable")
    row = np.concatenate(owner)[order]
    kept = query.frozen | ~model.encoding.is_exact(known.values)
    return decoded(model.encoding, known.frame, known.values, kept, np.concatenate(values)[order], row)


def log_density(model: Model, rows: pd.DataFrame, answers: pd.DataFrame, request: Request) -> Floats:
    """The log density of each row of `answers` given the row of `rows` at the same place, or the only one."""
    known = _read(model, rows)
    values = model.encoding.encode(answers)
    if len(known) not in (1, len(values)):
        raise QueryError(f"rows has {len(known)} entries and counterfactuals {len(values)}; give as many, or one row")
    out = np.empty(len(values))
    for group, query in _one_each(model, known, request, "log_density"):
        if len(known) == 1:
            return group.model.generator.log_prob(query.context.repeat(len(values)), values)
        out[group.places] = group.model.generator.log_prob(query.context, values[group.places])
    return out


def probability(model: Model, rows: pd.DataFrame) -> pd.DataFrame:
    """What the surrogate says of rows: the probability of each class, one column each, or their score."""
    values = encode_frame(model.encoding, rows).values
    if model.score is not None:
        return pd.DataFrame({"score": score_of(model, values)}, index=rows.index)
    columns = pd.Index(model.labels, tupleize_cols=False)
    return pd.DataFrame(model.surrogate.probabilities(values), index=rows.index, columns=columns)


def _read(model: Model, rows: pd.DataFrame, *, may_be_unseen: bool = False) -> EncodedRows:
    """The rows of a caller's frame."""
    model.encoding.check_columns(rows)
    if len(rows) == 0:
        raise QueryError("rows is empty; give at least one row to explain")
    return encode_frame(model.encoding, rows, (lambda: model.places_for_unseen) if may_be_unseen else None)


def _one_each(
    model: Model, rows: EncodedRows, request: Request, what: str
) -> Iterator[tuple[TaskGroup, Query]]:  # fmt: skip
    """What is asked of each model, where every row has one task."""
    _, tasks, queries = conditioned(model, rows, request)
    return zip(tasks.one_each(what), queries, strict=True)
