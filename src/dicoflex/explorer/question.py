"""One asking, resolved: whose row, which result, under which limits; ready to be asked of the model."""

from __future__ import annotations

__all__ = ["Question", "feature_in", "label_of", "request_of"]

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dicoflex.answers.query import Query, bind
from dicoflex.constraints import Constraints
from dicoflex.errors import QueryError, named
from dicoflex.explorer.messages import Limited, RefusedError
from dicoflex.explorer.texts import Names
from dicoflex.explorer.user_limits import Limit
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.encoding import Values


@dataclass(frozen=True)
class Question:
    """Plans for one row.

    own: the row, encoded (1, d). cells: its plain values. person: its name, None for values entered by hand. now: what
    the surrogate says of it, class by class. target: the class asked for. request: what is asked, with all limits.
    limits: the caller's own, one by one.
    """

    model: Model
    own: Values
    cells: list[Any]
    person: str | None
    now: Values
    target: int
    request: Request
    limits: list[Limit]

    @property
    def is_already(self) -> bool:
        """Whether the row has the result that is asked for."""
        return int(self.now.argmax()) == self.target

    def query(self) -> Query:
        """The question as the model takes it; what does not fit is refused here, before anything is drawn."""
        bound = bind(self.model, self.request)
        return Query.of_values(self.model, self.own, np.array([self.target]), bound.asked(self.request), bound)

    def under(self, constraints: Constraints, *, confidence: float | bool | None = False, n: int = 0) -> Question:
        """The same question under other limits. confidence: False leaves it as it is."""
        changed: dict[str, Any] = {"constraints": constraints}
        if confidence is not False:
            changed["confidence"] = confidence
        if n:
            changed["n"] = n
        return replace(self, request=self.request.model_copy(update=changed))


def request_of(asked: Limited, label: Any, constraints: Constraints) -> Request:
    """What a body asks for, as a request."""
    return Request.of(
        target=label, n=asked.n, p=asked.p, constraints=constraints, confidence=asked.confidence,
        random_state=asked.seed,
    )  # fmt: skip


def label_of(given: Any, model: Model, now: Values) -> int:
    """The class that a body asks for; None is the other of two."""
    known = {(isinstance(label, bool), label): i for i, label in enumerate(model.labels)}
    if given is None:
        if len(known) != 2:
            raise RefusedError(
                f"target is needed with {len(known)} classes; choose from {model.labels}", place="/target"
            )
        return 1 - int(now.argmax())
    found = known.get((isinstance(given, bool), given))
    if found is None:
        raise RefusedError(named("target", given, model.labels), place="/target")
    return found


def feature_in(error: QueryError | Exception, names: Names) -> str | None:
    """The feature that an error is about, in JSON's words; None where it names none."""
    told = getattr(error, "feature", None)
    if told is not None:
        return str(told)
    text = str(error)
    found = [(text.find(repr(name)), key) for name, key in zip(names.schema.names, names.keys, strict=True)]
    return min(((at, key) for at, key in found if at >= 0), default=(0, None))[1]
