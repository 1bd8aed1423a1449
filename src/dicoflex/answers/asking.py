"""The questions to a model, whatever their target: explain, sample, log_density, probability."""

from __future__ import annotations

__all__ = ["explain", "log_density", "probability", "sample"]

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers import explain as one
from dicoflex.answers.aiming import score_of
from dicoflex.answers.check import Check
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.frames import index_of
from dicoflex.answers.goals import Part, Parts, is_plain, parts_of
from dicoflex.answers.joined import joined
from dicoflex.answers.probabilities import probability as of_classes
from dicoflex.answers.unseen import parts_of_known
from dicoflex.errors import BlackBoxError, ConstraintError, QueryError, UnseenError
from dicoflex.model import Model
from dicoflex.request import ERROR, Request
from dicoflex.table.unseen import known_frame
from dicoflex.values import plain

Floats = NDArray[np.float64]


def explain(model: Model, rows: pd.DataFrame, request: Request, *, check: Check | None = None) -> Counterfactuals:
    """Up to `n` counterfactuals for every row; see `Explainer.explain`."""
    if check is not None and not callable(check):
        raise BlackBoxError(f"check must be a callable, got {type(check).__name__}; pass clf.predict")
    try:
        if is_plain(model, request):
            return one.explain(model, rows, request, check=check)
        parts, frame = _parts(model, rows, request, check)
        return _joined(model, frame, frame, request, parts)
    except UnseenError:
        if request.handle_unknown == ERROR:
            raise
    known = known_frame(model.encoding, rows, model.places_for_unseen)
    assert isinstance(known.given, pd.DataFrame)
    assert known.frame is not None
    return _joined(model, known.given, known.frame, request, parts_of_known(model, known, request, check=check))


def _joined(model: Model, rows: pd.DataFrame, frame: pd.DataFrame, request: Request, parts: Parts) -> Counterfactuals:
    """The answers to all parts of a question as one result; `frame` holds `rows` with seen values alone."""
    answered, results, refused = [], [], None
    for part in parts.asked:
        own = frame.iloc[part.places]
        try:
            results.append(one.explain(part.model, own, part.request, check=part.check, known=part.known))
            answered.append(part)
        except ConstraintError as error:
            # Constraints that leave no row of this part a chance may leave one to another.
            refused = error
    if refused is not None and _are_left(parts, answered, len(rows)):
        raise refused
    if not results:
        raise ConstraintError(f"row {plain(rows.index[0])!r}: {parts.refused[0].why}")
    return joined(model, rows, request, replace(parts, asked=answered), results)


def _are_left(parts: Parts, answered: list[Part], n_rows: int) -> bool:
    """Whether a row stands in no part that was answered."""
    return len({*parts.refused, *(i for part in answered for i in part.places.tolist())}) < n_rows


def sample(model: Model, rows: pd.DataFrame, request: Request, *, filtered: bool = True) -> pd.DataFrame:
    """Exactly `n` draws for every row, as they come; a row that may have any of some labels is refused."""
    if is_plain(model, request):
        return one.sample(model, rows, request, filtered=filtered)
    found, frame = _parts(model, rows, request, None)
    parts = _one_each(found, len(rows), "sample")
    drawn = [one.sample(part.model, frame.iloc[part.places], part.request, filtered=filtered) for part in parts]
    owner = np.concatenate([np.repeat(part.places, request.n) for part in parts])
    order = np.argsort(owner, kind="stable")
    return pd.concat(drawn).iloc[order].set_axis(index_of(frame.index, owner[order]))


def log_density(model: Model, rows: pd.DataFrame, answers: pd.DataFrame, request: Request) -> Floats:
    """The log density of each row of `answers` given the row of `rows` at the same place, or the only one."""
    if is_plain(model, request):
        return one.log_density(model, rows, answers, request)
    found, frame = _parts(model, rows, request, None)
    parts = _one_each(found, len(rows), "log_density")
    if len(rows) == 1:
        return one.log_density(parts[0].model, frame, answers, parts[0].request)
    if len(rows) != len(answers):
        raise QueryError(f"rows has {len(rows)} entries and counterfactuals {len(answers)}; give as many, or one row")
    out = np.empty(len(rows))
    for part in parts:
        mine = frame.iloc[part.places], answers.iloc[part.places]
        out[part.places] = one.log_density(part.model, *mine, part.request)
    return out


def probability(model: Model, rows: pd.DataFrame) -> pd.DataFrame:
    """What the surrogate says of rows: the probability of each class, or their score."""
    if model.score is None:
        return of_classes(model, rows)
    model.encoding.check_columns(rows)
    _, values = model.encoding.conform(rows)
    return pd.DataFrame({"score": score_of(model, values)}, index=rows.index)


def _parts(
    model: Model, rows: pd.DataFrame, request: Request, check: Check | None
) -> tuple[Parts, pd.DataFrame]:  # fmt: skip
    """The questions that a request is, and the rows in the training dtypes."""
    model.encoding.check_columns(rows)
    if len(rows) == 0:
        raise QueryError("rows is empty; give at least one row to explain")
    frame, values = model.encoding.conform(rows)
    return parts_of(model, values, request, frame=frame, check=check), frame


def _one_each(parts: Parts, n_rows: int, what: str) -> list[Part]:
    """The parts, where every row stands in one of them; a row with several labels, or with none, is refused."""
    if parts.refused:
        raise QueryError(next(iter(parts.refused.values())).why)
    if sum(len(part.places) for part in parts.asked) > n_rows:
        raise QueryError(f"{what} takes one label per row; ask for each label on its own, or use explain")
    return parts.asked
