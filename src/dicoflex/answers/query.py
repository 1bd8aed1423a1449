"""Rows and a request, conditioned for a model: everything about a call, checked before any work starts."""

from __future__ import annotations

__all__ = ["Query", "bound_by", "exponent"]

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.check import Check, check_labels
from dicoflex.constraints import Constraints
from dicoflex.constraints.joining import combine
from dicoflex.errors import BlackBoxError, ConstraintError, QueryError, named
from dicoflex.generators.base import Context
from dicoflex.limits.limits import Limits
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema
from dicoflex.values import plain

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DEFAULT_EXPONENT = 2.0
FEW = 0.5
NOTHING = Constraints()


@dataclass(frozen=True)
class Query:
    """The rows in the training dtypes, what they are conditioned on, their keys, and what was asked.

    request: as it binds: with the schema's own constraints, and with the exponent that is taken. frozen: which
    features are frozen by wish. limits: what the constraints are for these rows, or None where nothing but frozen
    features is asked for.
    """

    frame: pd.DataFrame
    context: Context
    keys: NDArray[np.uint64]
    request: Request
    frozen: NDArray[np.bool_]
    limits: Limits | None

    @classmethod
    def make(cls, model: Model, rows: pd.DataFrame, request: Request, check: Check | None = None) -> Query:
        """The query that `rows` and `request` are to a model."""
        if check is not None and not callable(check):
            raise BlackBoxError(f"check must be a callable, got {type(check).__name__}; pass clf.predict")
        if request.novel:
            _check_novel(model)
        bound = bound_by(model.schema, request)
        p = exponent(request.p, model.exponents, sparse=bound.max_changes is not None)
        model.encoding.check_columns(rows)
        if len(rows) == 0:
            raise QueryError("rows is empty; give at least one row to explain")
        frame, values = model.encoding.conform(rows)
        _check_changeable(model.schema, model.schema.mask(list(bound.frozen)))
        targets = _targets(model, request, frame, values, check)
        asked = request.model_copy(update={"p": p, "frozen": bound.frozen, "constraints": bound})
        return cls.of_values(model, values, targets, asked, frame=frame)

    @classmethod
    def of_values(
        cls, model: Model, values: Values, targets: Ints, asked: Request, *, frame: pd.DataFrame | None = None
    ) -> Query:
        """The query that encoded rows are, each with the class to go to; `asked` is a request as it binds."""
        bound = asked.constraints
        frozen = model.schema.mask(list(bound.frozen))
        mask = np.tile(frozen, (len(values), 1))
        limits = Limits.build(bound, model.encoding, values, mask) if limited(bound) else None
        sure = _confidence(model, asked.confidence, targets)
        held = mask if limits is None else limits.frozen
        context = Context(values, targets, np.full(len(values), asked.p), held, sure)
        assert asked.seed is not None
        rows = pd.DataFrame(index=range(len(values))) if frame is None else frame
        return cls(rows, context, row_keys(values, asked.seed), asked, frozen, limits)

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows the constraints leave a chance."""
        if self.limits is None:
            return np.ones(len(self), dtype=bool)
        return np.array([reason is None for reason in self.limits.reasons])

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
        unable = np.flatnonzero(~self.feasible)
        if len(unable) and self.limits is not None:
            raise ConstraintError(f"row {self.label(int(unable[0]))}: {self.limits.reasons[unable[0]]}")

    def cost(self, values: Values, own: Values) -> Floats | None:
        """What the changes of some rows cost, None where nothing was priced."""
        return None if self.limits is None or not self.request.constraints.cost else self.limits.cost(values, own)

    def label(self, i: int) -> str:
        """The index label of row `i`, as it is shown in messages."""
        return repr(plain(self.frame.index[i]))


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


def bound_by(schema: Schema, request: Request) -> Constraints:
    """The constraints that bind a call: the schema's, the call's, and the features in `frozen`.

    What the call overrides stays written in them, so that a record of them can be asked for again.
    """
    for name in request.frozen:
        if name not in schema.names:
            raise QueryError(named("frozen feature", name, schema.names))
    given = request.constraints
    if given == NOTHING and schema.constraints == NOTHING:
        return NOTHING.model_copy(update={"frozen": request.frozen})
    names = tuple(dict.fromkeys([*given.frozen, *request.frozen]))
    bound = combine(schema.constraints, given.model_copy(update={"frozen": names}))
    schema.check_constraints(bound)
    return bound.model_copy(update={"override": given.override})


def limited(bound: Constraints) -> bool:
    """Whether more is asked for than frozen features; weights alone rule nothing out, but rank."""
    return bound.model_copy(update={"frozen": (), "strict": False, "override": ()}) != NOTHING


def exponent(p: float | None, trained: tuple[float, ...], *, sparse: bool) -> float:
    """The exponent to ask for; by default 2, or the least that was trained where few features may change."""
    low, high = min(trained), max(trained)
    if p is None:
        return low if sparse else min(max(DEFAULT_EXPONENT, low), high)
    if not low <= p <= high:
        raise QueryError(f"p must lie in the trained range, {low:g} to {high:g}, got {p:g}")
    return p


def _check_changeable(schema: Schema, frozen: NDArray[np.bool_]) -> None:
    constant = np.array(
        [f.minimum == f.maximum and not f.missing if f.is_number else f.n_states < 2 for f in schema.features]
    )
    if (frozen | constant).all():
        raise QueryError("nothing may change: every feature is frozen or constant; free at least one")


def _targets(model: Model, request: Request, frame: pd.DataFrame, values: Values, check: Check | None) -> Ints:
    """The class number that each row asks for."""
    known = {label: i for i, label in enumerate(model.labels)}
    if request.target is None:
        return 1 - _present(model, known, frame, values, check)
    wanted = request.targets(len(frame))
    for label in wanted:
        if not isinstance(label, Hashable) or label not in known:
            raise QueryError(named("target", label, known))
    return np.array([known[label] for label in wanted], dtype=np.int64)


def _present(model: Model, known: dict[Any, int], frame: pd.DataFrame, values: Values, check: Check | None) -> Ints:
    """The class that each row of a model of two classes has now."""
    if len(known) != 2:
        raise QueryError(f"target is needed with {len(known)} classes; choose from {list(known)}")
    if check is None:
        now: Ints = model.stand_in.probabilities(values).argmax(axis=1)
        return now
    return np.array([known[label] for label in check_labels(check, frame.copy(), list(known))], dtype=np.int64)


def _confidence(model: Model, confidence: float | None, targets: Ints) -> Floats:
    """How sure the black box should be of each row's answers."""
    if confidence is None:
        default: Floats = model.confidence.default[targets]
        return default
    if not model.has_confidence:
        raise QueryError(
            "confidence needs a model that was fitted with the default generator and predict_proba=; "
            "fit(X, y, predict_proba=clf.predict_proba), or leave confidence out"
        )
    if not 0 <= confidence <= 1:
        raise QueryError(f"confidence must lie between 0 and 1, got {confidence!r}")
    for label in np.unique(targets):
        lowest = float(model.confidence.lowest[label])
        if confidence < lowest:
            raise QueryError(
                f"confidence {confidence:g} makes no counterfactual: below {lowest:g} another class may be likelier "
                f"than {model.labels[label]!r}; give at least that, or leave confidence out"
            )
        highest = float(model.confidence.highest[label])
        if confidence > highest + 1e-9:
            raise QueryError(
                f"confidence {confidence:g} is more than the training rows of {model.labels[label]!r} "
                f"support; the highest is {np.floor(highest * 1e4) / 1e4:g}"
            )
    return np.full(len(targets), confidence)
