"""What a request asks of a model, and its tasks conditioned for it: all of a call, checked before any work starts."""

from __future__ import annotations

__all__ = ["Binding", "Query", "bind", "bound_by", "check_askable", "exponent", "limited", "uncounted"]

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex._types import Floats, Ints
from dicoflex.answers.tasks import TaskGroup
from dicoflex.constraints import Constraints
from dicoflex.constraints.statement import combine
from dicoflex.errors import ConfidenceError, ConstraintError, QueryError, named
from dicoflex.generators.base import Context
from dicoflex.limits.limits import Limits
from dicoflex.limits.plan import Plan
from dicoflex.limits.reasons import with_unseen_reasons
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema
from dicoflex.table.unseen import EncodedRows
from dicoflex.values import plain, typed

DEFAULT_EXPONENT = 2.0
NOTHING = Constraints()
MOST_KEPT = 64
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Binding:
    """given: the constraints of the call, as they were. constraints: those that bind. p: the exponent that is taken.
    frozen: which features are frozen by wish. plan: what the constraints mean, None where only some are frozen."""

    given: Constraints
    constraints: Constraints
    p: float
    frozen: NDArray[np.bool_]
    plan: Plan | None

    def asked(self, request: Request) -> Request:
        """The request as it binds: with the schema's own constraints, and with the exponent that is taken."""
        frozen = self.constraints.frozen
        bound = {"p": self.p, "frozen": frozen, "features_to_vary": None, "constraints": self.constraints}
        return request.model_copy(update=bound)


_kept: WeakKeyDictionary[Model, dict[Key, Binding]] = WeakKeyDictionary()


def bind(model: Model, request: Request) -> Binding:
    """What a request asks of a model; the last ones that were asked are kept, as servers get the same again and again.

    Constraints are known by their object, and compared with what they were: their dicts could have been changed since.
    """
    kept = _kept.setdefault(model, {})
    alone = 0 if request.constraints == NOTHING else id(request.constraints)
    free = () if request.features_to_vary is None else (True, *request.features_to_vary)
    key = (alone, request.refine and request.coherent, len(free), *map(typed, (request.p, *free, *request.frozen)))
    found = kept.get(key)
    if found is None or found.given != request.constraints:
        found = kept[key] = _bound(model, request)
        for oldest in list(kept)[:-MOST_KEPT]:
            kept.pop(oldest, None)
    return found


def _bound(model: Model, request: Request) -> Binding:
    bound = bound_by(model.schema, request)
    p = exponent(request.p, model.exponents, sparse=bound.max_changes is not None)
    frozen = model.schema.mask(list(bound.frozen))
    dependent = dependent_features(model, request)
    _check_consequences(model, bound, dependent)
    plan = Plan.of(bound, model.encoding, dependent) if limited(bound) else None
    return Binding(request.constraints.model_copy(deep=True), bound, p, frozen, plan)


def _check_consequences(model: Model, bound: Constraints, dependent: NDArray[np.bool_]) -> None:
    """Refuse a consequence for a feature that already follows from others in the table."""
    for name in bound.consequences:
        if dependent[model.schema.position(name)]:
            raise ConstraintError(
                f"consequences {name!r}: it follows from other features in every training row already; leave it out"
            )


def dependent_features(model: Model, request: Request) -> NDArray[np.bool_]:
    """Which features of an answer depend on others in the table, so that they follow and don't count as changes."""
    if not (request.refine and request.coherent) or model.coherence is None:
        return np.zeros(len(model.schema), dtype=bool)
    return model.coherence.dependencies.followers


def uncounted(model: Model, request: Request) -> NDArray[np.bool_]:
    """Which features of an answer follow from others, by wish or in the table; they don't count as changes."""
    by_wish: NDArray[np.bool_] = model.schema.mask(list(request.constraints.consequences))
    return dependent_features(model, request) | by_wish


def bound_by(schema: Schema, request: Request) -> Constraints:
    """The constraints that bind a call: the schema's, the call's, and the features in `frozen`.

    What the call overrides stays written in them, so that a record of them can be asked for again.
    """
    frozen = _frozen_by(schema, request)
    given = request.constraints
    if given == NOTHING and schema.constraints == NOTHING:
        return NOTHING.model_copy(update={"frozen": frozen})
    names = tuple(dict.fromkeys([*given.frozen, *frozen]))
    bound = combine(schema.constraints, given.model_copy(update={"frozen": names}))
    schema.check_constraints(bound)
    return bound.model_copy(update={"override": given.override})


def _frozen_by(schema: Schema, request: Request) -> tuple[Any, ...]:
    """The features that a request freezes: those named, and all but `features_to_vary`."""
    free = request.features_to_vary
    for name in (*request.frozen, *(free or ())):
        if name not in schema.names:
            raise QueryError(named("frozen feature" if name in request.frozen else "feature", name, schema.names))
    if free is None:
        return request.frozen
    rest = (name for name in schema.names if name not in free)
    return tuple(dict.fromkeys([*request.frozen, *rest]))


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


def check_askable(model: Model, request: Request, bound: Binding) -> None:
    """Refuse what no row could be answered, or what the model can't tell."""
    if request.novel:
        _check_novel(model)
    kept = bound.frozen | model.schema.mask(list(bound.constraints.consequences))
    if (kept | model.schema.is_constant).all():
        raise QueryError("nothing may change: every feature is frozen or constant; free at least one")


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


FEW = 0.5


@dataclass(frozen=True)
class Query:
    """Tasks as a model takes them: rows with the class that each goes to, what they are conditioned on, and their keys.

    request: as it binds: with the schema's own constraints, and with the exponent that is taken. frozen: which
    features are frozen by wish. limits: what the constraints mean for these rows, or None where nothing but frozen
    features is asked for. given: the rows in the training dtypes, where they came as a frame. has_unseen: whether they
    hold values that training never had, and others stand in their place. is_open: which rows ask for any class but
    their own; None if none does. skipped: rows that are not to be answered.
    """

    context: Context
    keys: NDArray[np.uint64]
    request: Request
    frozen: NDArray[np.bool_]
    limits: Limits | None
    given: pd.DataFrame | None = None
    has_unseen: bool = False
    is_open: NDArray[np.bool_] | None = None
    skipped: NDArray[np.bool_] | None = None

    @classmethod
    def of_tasks(cls, group: TaskGroup, rows: EncodedRows, asked: Request, bound: Binding) -> Query:
        """The query that some tasks for rows are; `asked` is a request as `bound` binds it."""
        model, at = group.model, group.places
        every = len(at) == len(rows) and bool((at == np.arange(len(at))).all())
        values, frame = (rows.values, rows.frame) if every else (rows.values[at], _picked(rows.frame, at))
        plan = bound.plan
        if group.has_unseen:
            # That there is no way is no proof: one level stands for what was never seen, and is not looked at.
            asked = asked.model_copy(update={"exhaustive": False})
            # Where values have to be left, even no constraints mean something.
            plan = plan or Plan.of(bound.constraints, model.encoding, dependent_features(model, asked))
        unseen = rows.unseen[at] if group.has_unseen else None
        query = cls._of(model, values, group.targets, asked, plan, unseen)
        limits = query.limits
        if limits is not None and unseen is not None:
            limits = with_unseen_reasons(limits, unseen, lambda i, j: rows.value(int(at[i]), j))
        return replace(query, limits=limits, given=frame, has_unseen=group.has_unseen, is_open=group.is_open)

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
        unseen: NDArray[np.bool_] | None = None,
    ) -> Query:  # fmt: skip
        frozen = model.schema.mask(list(asked.constraints.frozen))
        mask = np.repeat(frozen[None], len(values), axis=0)
        limits = None if plan is None else Limits.of(plan, values, mask, *([] if unseen is None else [unseen]))
        sure = _confidence(model, asked.confidence, targets)
        # What follows by wish is kept while drawing, and set afterwards.
        held = mask if limits is None else limits.frozen | limits.follows
        context = Context(values, targets, np.full(len(values), asked.p), held, sure)
        assert asked.seed is not None
        return cls(context, row_keys(values, asked.seed), asked, frozen, limits)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows in the training dtypes, as they came."""
        assert self.given is not None
        return self.given

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
        return repr(i if self.given is None else plain(self.given.index[i]))


def _picked(frame: pd.DataFrame | None, at: Ints) -> pd.DataFrame | None:
    return None if frame is None else frame.iloc[at]


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
