"""Rows and a request, conditioned for a model: everything about a call, checked before any work starts."""

from __future__ import annotations

__all__ = ["Query"]

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.binding import Binding, bind, dependent_features, limited
from dicoflex.answers.check import Check, check_labels
from dicoflex.errors import BlackBoxError, ConfidenceError, ConstraintError, QueryError, named
from dicoflex.generators.base import Context
from dicoflex.limits.limits import Limits
from dicoflex.limits.plan import Plan
from dicoflex.limits.reasons import with_unseen_reasons
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Values
from dicoflex.table.plain_rows import Row
from dicoflex.table.schema import Schema
from dicoflex.table.unseen import Known
from dicoflex.values import plain

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FEW = 0.5


@dataclass(frozen=True)
class Query:
    """Rows as a model takes them: what they are conditioned on, their keys, and what was asked.

    request: as it binds: with the schema's own constraints, and with the exponent that is taken. frozen: which
    features are frozen by wish. limits: what the constraints mean for these rows, or None where nothing but frozen
    features is asked for. given: the rows in the training dtypes, where they came as a frame. known: the same rows,
    where some of their values were never seen in training, and others stand in their place. skipped: rows that are not
    to be answered.
    """

    context: Context
    keys: NDArray[np.uint64]
    request: Request
    frozen: NDArray[np.bool_]
    limits: Limits | None
    given: pd.DataFrame | None = None
    known: Known | None = None
    skipped: NDArray[np.bool_] | None = None

    @classmethod
    def make(
        cls, model: Model, rows: pd.DataFrame, request: Request, check: Check | None = None,
        known: Known | None = None,
    ) -> Query:  # fmt: skip
        """The query that the rows of a frame and `request` are to a model; `known` where some values are unseen."""
        if check is not None and not callable(check):
            raise BlackBoxError(f"check must be a callable, got {type(check).__name__}; pass clf.predict")
        bound = _bound(model, request)
        model.encoding.check_columns(rows)
        _refuse_none(rows)
        frame, values = model.encoding.conform(rows)
        values = values if known is None else known.values
        _check_changeable(model.schema, bound.frozen | model.schema.mask(list(bound.constraints.consequences)))
        if request.target is None and check is not None:
            targets = 1 - _said(model, frame, check)
        else:
            targets = _targets(model, request, values)
        plan = _planned(model, request, bound, known)
        return cls._of(model, values, targets, bound.asked(request), plan, given=frame, known=known)

    @classmethod
    def of_cells(
        cls, model: Model, rows: Sequence[Row], request: Request, known: Known | None = None
    ) -> Query:  # fmt: skip
        """The query that rows of plain cells, in the order of the features, and `request` are to a model.

        A row's own target may be None: the class, of two, that the surrogate does not give it. known: where some values
        are unseen.
        """
        bound = _bound(model, request)
        _refuse_none(rows)
        values = model.plain_rows.encode(rows) if known is None else known.values
        _check_changeable(model.schema, bound.frozen | model.schema.mask(list(bound.constraints.consequences)))
        aimed = request.model_copy(update={"target": _aims(model, request, values)})
        plan = _planned(model, aimed, bound, known)
        return cls._of(model, values, _targets(model, aimed, values), bound.asked(aimed), plan, known=known)

    @classmethod
    def of_values(
        cls, model: Model, values: Values, targets: Ints, asked: Request, bound: Binding | None = None
    ) -> Query:  # fmt: skip
        """The query that encoded rows are, each with the class to go to; `asked` is a request as it binds.

        bound: what it was bound by, where that is at hand; else its constraints are worked out.
        """
        if bound is not None:
            return cls._of(model, values, targets, asked, bound.plan)
        dependent = dependent_features(model, asked)
        plan = Plan.of(asked.constraints, model.encoding, dependent) if limited(asked.constraints) else None
        return cls._of(model, values, targets, asked, plan)

    @classmethod
    def _of(
        cls, model: Model, values: Values, targets: Ints, asked: Request, plan: Plan | None,
        given: pd.DataFrame | None = None, known: Known | None = None,
    ) -> Query:  # fmt: skip
        frozen = model.schema.mask(list(asked.constraints.frozen))
        mask = np.repeat(frozen[None], len(values), axis=0)
        limits = None if plan is None else _limits(plan, values, mask, known)
        sure = _confidence(model, asked.confidence, targets)
        # What follows by wish is kept while drawing, and set afterwards.
        held = mask if limits is None else limits.frozen | limits.follows
        context = Context(values, targets, np.full(len(values), asked.p), held, sure)
        assert asked.seed is not None
        return cls(context, row_keys(values, asked.seed), asked, frozen, limits, given=given, known=known)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows in the training dtypes, as they came."""
        assert self.given is not None
        return self.given

    @property
    def labels(self) -> range | pd.Index:
        """What each row is called: its index label, or its place."""
        return range(len(self)) if self.given is None else self.given.index

    @cached_property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows are to be answered, and the constraints leave a chance."""
        left = np.ones(len(self), dtype=bool)
        if self.limits is not None:
            left = np.array([reason is None for reason in self.limits.reasons], dtype=bool)
        return left if self.skipped is None else left & ~self.skipped

    def skipping(self, rows: NDArray[np.bool_]) -> Query:
        """The same query, which leaves out all of these rows but one where no other can be answered.

        What is known of no answer at all would have no columns.
        """
        left = self.feasible & ~rows
        if not left.any() and self.feasible.any():
            left[self.feasible.argmax()] = True
        return replace(self, skipped=rows & ~left)

    @property
    def told(self) -> Context:
        """What answers are conditioned on when the density is asked of them: what follows by wish may differ."""
        if self.limits is None or not self.limits.follows.any():
            return self.context
        return replace(self.context, frozen=self.context.frozen & ~self.limits.follows)

    @property
    def sort(self) -> str:
        """How tightly was asked, as certificates tell it apart."""
        if self.frozen.any() or self.limits is not None:
            return "frozen"
        return "few" if (self.request.p or 0.0) < FEW else "free"

    def answerable(self) -> Ints:
        """The positions of the rows that can be answered; a `ConstraintError` where there is none."""
        able = np.flatnonzero(self.feasible)
        if len(able) == 0:
            self.refuse_unanswerable()
        return able

    def refuse_unanswerable(self) -> None:
        """Raise a `ConstraintError` for the first row that the constraints leave no chance."""
        if self.limits is None:
            return
        unable = [i for i, reason in enumerate(self.limits.reasons) if reason is not None]
        if unable:
            raise ConstraintError(f"row {self.label(unable[0])}: {self.limits.reasons[unable[0]]}")

    def cost(self, values: Values, own: Values) -> Floats | None:
        """What the changes of some rows cost, None where nothing was priced."""
        return None if self.limits is None or not self.request.constraints.cost else self.limits.cost(values, own)

    def label(self, i: int) -> str:
        """The index label of row `i`, as it is shown in messages."""
        return repr(plain(self.labels[i]))


def _bound(model: Model, request: Request) -> Binding:
    """What a request asks of a model, whatever the rows."""
    if request.novel:
        _check_novel(model)
    return bind(model, request)


def _planned(model: Model, request: Request, bound: Binding, known: Known | None) -> Plan | None:
    """What the constraints mean; where values have to be left, even no constraints mean something."""
    if bound.plan is not None or known is None:
        return bound.plan
    return Plan.of(bound.constraints, model.encoding, dependent_features(model, request))


def _limits(plan: Plan, values: Values, frozen: NDArray[np.bool_], known: Known | None) -> Limits:
    if known is None:
        return Limits.of(plan, values, frozen)
    return with_unseen_reasons(Limits.of(plan, values, frozen, known.unseen), known.unseen, known.value)


def _refuse_none(rows: pd.DataFrame | Sequence[Row]) -> None:
    if len(rows) == 0:
        raise QueryError("rows is empty; give at least one row to explain")


def _check_novel(model: Model) -> None:
    """Refuse to look for novel rows where the model can't tell which rows those are."""
    if model.remembered is None:
        raise QueryError(
            "novel=True needs a model that remembers its training rows, and this one does not; "
            "fit(X, y, remember_rows=True), or leave novel out"
        )
    if model.remembered.key is None:
        raise QueryError(
            "novel=True needs the key that the training rows were remembered under, which is in no file; "
            "load(path, row_key=...) with the row_key_ of the explainer that was fitted, or leave novel out"
        )


def _check_changeable(schema: Schema, frozen: NDArray[np.bool_]) -> None:
    if (frozen | schema.is_constant).all():
        raise QueryError("nothing may change: every feature is frozen or constant; free at least one")


def _targets(model: Model, request: Request, values: Values) -> Ints:
    """The class number that each row asks for: None is the class, of two, that the surrogate does not give it."""
    known = {label: i for i, label in enumerate(model.labels)}
    if request.target is None:
        _check_two(model)
        others: Ints = 1 - model.surrogate.probabilities(values).argmax(axis=1)
        return others
    wanted = request.targets(len(values))
    for label in wanted:
        if not isinstance(label, Hashable) or label not in known:
            raise QueryError(named("target", label, known))
    return np.array([known[label] for label in wanted], dtype=np.int64)


def _aims(model: Model, request: Request, values: Values) -> tuple[Any, ...]:
    """The label that each row asks for; where it asks for none, the one that the surrogate does not give it."""
    wanted = request.targets(len(values))
    if None not in wanted:
        return tuple(wanted)
    _check_two(model)
    now = model.surrogate.probabilities(values).argmax(axis=1).tolist()
    return tuple(model.labels[1 - i] if label is None else label for label, i in zip(wanted, now, strict=True))


def _said(model: Model, frame: pd.DataFrame, check: Check) -> Ints:
    """The class that `check` gives to each row, of a model of two."""
    _check_two(model)
    known = {label: i for i, label in enumerate(model.labels)}
    return np.array(
        [known[label] for label in check_labels(check, frame.copy(), model.labels, model.threshold)], dtype=np.int64
    )


def _check_two(model: Model) -> None:
    if len(model.labels) != 2:
        raise QueryError(f"target is needed with {len(model.labels)} classes; choose from {model.labels}")


def _confidence(model: Model, confidence: float | str | None, targets: Ints) -> Floats:
    """How sure the model should be of each row's answers."""
    if confidence is None:
        default: Floats = model.confidence.default[targets]
        return default
    if not model.has_confidence:
        raise ConfidenceError(
            "confidence needs a model that was fitted with the default generator and predict_proba=; "
            "fit(X, y, predict_proba=clf.predict_proba), or leave confidence out"
        )
    if isinstance(confidence, str):
        named_level: Floats = model.level(confidence)[targets]
        return named_level
    for label in np.unique(targets):
        lowest = float(model.confidence.lowest[label])
        if confidence < lowest:
            raise ConfidenceError(
                f"confidence {confidence:g} makes no counterfactual: below {lowest:g} another class may be likelier "
                f"than {model.labels[label]!r}; give at least that, or leave confidence out"
            )
        highest = float(model.confidence.highest[label])
        if confidence > highest + 1e-9:
            raise ConfidenceError(
                f"confidence {confidence:g} is more than the training rows of {model.labels[label]!r} "
                f"support; the highest is {np.floor(highest * 1e4) / 1e4:g}"
            )
    return np.full(len(targets), confidence)
