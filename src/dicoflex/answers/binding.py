"""What a request asks of a model's table, whatever the rows: worked out once for the same constraints."""

from __future__ import annotations

__all__ = ["Binding", "bind", "bound_by", "check_askable", "dependent_features", "exponent", "limited", "uncounted"]

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dicoflex.constraints import Constraints
from dicoflex.constraints.statement import combine
from dicoflex.errors import ConstraintError, QueryError, named
from dicoflex.limits.plan import Plan
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.schema import Schema
from dicoflex.values import typed

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
