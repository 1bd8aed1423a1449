"""One question, as asked: what the answers should be, in a form that can be checked once, stored, sent and repeated."""

from __future__ import annotations

__all__ = ["ERROR", "LEVELS", "REPLACE", "Level", "Request", "switch"]

import sys
from collections.abc import Hashable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dicoflex.constraints import Constraints
from dicoflex.errors import ConstraintError, QueryError
from dicoflex.runtime.randomness import seed_of
from dicoflex.targets import Goal, Interval, OneOf, Shift, one_of
from dicoflex.values import is_number, plain

Level = Literal["just", "safe", "sure"]
LEVELS: tuple[str, ...] = get_args(Level)
Label = bool | int | float | str
NOTHING = Constraints()
REPLACE: Final = "replace"
ERROR: Final = "error"


class Request(BaseModel):
    """What is asked of a model, besides the rows.

    target: a label, an interval of scores, a change of one's own, any of some labels, "other", one of these per row,
    or None for the other class of two. n: how many answers per row. p: how few features should change; None leaves it
    to the model. frozen: features that may not change. features_to_vary: the only ones that may, None for all.
    constraints: what else an answer must obey. confidence: how sure the model should be, as a number or a level: "just"
    the decision, "safe" or "sure" that most retrained models would decide so too; None is "safe". novel: no exact copy
    of a training row. refine: nothing needless, as near as possible. coherent: nothing that no training row has
    together, dependencies kept. min_plausibility: the share of real rows that an answer may at most be rarer than.
    diversity: how much other ways are preferred to better answers of the same. exhaustive: where no answer is drawn,
    look at all rows that are allowed, or at many of them. handle_unknown: "replace" answers rows with a value that
    training never had, by leaving it, or "error". seed: the same one gives the same answers; None draws one.

    >>> Request.of(target="yes", n=3, frozen=["age"], random_state=7).model_dump(exclude_defaults=True)
    {'target': 'yes', 'n': 3, 'frozen': ('age',), 'seed': 7}
    >>> Request.model_validate_json('{"n": 2, "constraints": {"max_changes": 1}}').constraints.max_changes
    1
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: Label | Interval | Shift | OneOf | tuple[Label | Interval | Shift | OneOf, ...] | None = None
    n: int = Field(default=10, ge=1)
    p: float | None = None
    frozen: tuple[int | str, ...] = ()
    features_to_vary: Annotated[tuple[int | str, ...], Field(min_length=1)] | None = None
    constraints: Constraints = NOTHING
    confidence: Annotated[float, Field(ge=0, le=1)] | Level | None = None
    novel: bool = False
    refine: bool = True
    coherent: bool = True
    min_plausibility: float = Field(default=0.05, ge=0, lt=1)
    diversity: float = Field(default=0.2, ge=0, le=1)
    exhaustive: bool = True
    handle_unknown: Literal["replace", "error"] = REPLACE
    seed: int | None = Field(default=None, ge=0)

    @classmethod
    def of(
        cls,
        *,
        target: Any = None,
        n: Any = 10,
        p: Any = None,
        frozen: Any = (),
        features_to_vary: Any = None,
        constraints: Any = None,
        confidence: Any = None,
        novel: bool = False,
        refine: bool = True,
        coherent: bool = True,
        min_plausibility: Any = 0.05,
        diversity: Any = 0.2,
        exhaustive: bool = True,
        handle_unknown: str = REPLACE,
        random_state: Any = None,
    ) -> Request:
        """The request that the arguments of `explain` and `sample` state; a `QueryError` names one that is wrong."""
        return cls.model_construct(
            target=_target(target),
            n=_count(n),
            p=_number(p, "p"),
            frozen=_names(frozen, "frozen"),
            features_to_vary=_to_vary(features_to_vary),
            constraints=_constraints(constraints),
            confidence=_confidence(confidence),
            novel=switch(novel, "novel"),
            refine=switch(refine, "refine"),
            coherent=switch(coherent, "coherent"),
            min_plausibility=_min_plausibility(min_plausibility),
            diversity=_share(diversity, "diversity"),
            exhaustive=switch(exhaustive, "exhaustive"),
            handle_unknown=_handle_unknown(handle_unknown),
            seed=seed_of(random_state),
        )

    def targets(self, n_rows: int) -> list[Any]:
        """The label asked for by each row; what was asked for as one label is asked for by all."""
        if not isinstance(self.target, tuple):
            return [self.target] * n_rows
        if len(self.target) != n_rows:
            raise QueryError(f"target has {len(self.target)} labels for {n_rows} rows; give one, or one per row")
        return list(self.target)


def _target(given: Any) -> Any:
    if given is None or np.isscalar(given) or isinstance(given, Goal):
        return plain(given)
    if isinstance(given, set | frozenset):
        return one_of(*sorted(given, key=str))
    if isinstance(given, Mapping):
        return _goal(given)
    labels = [plain(label) for label in np.asarray(given, dtype=object).ravel()]
    for label in labels:
        if not isinstance(label, Hashable):
            raise QueryError(f"target {label!r} is unknown; a label is text, a number or a boolean")
    return tuple(labels)


def _goal(given: Mapping[Any, Any]) -> Any:
    """What a dict, as JSON has it, asks for."""
    try:
        return Request.model_validate({"target": dict(given)}).target
    except ValidationError:
        raise QueryError(
            f"target {dict(given)!r} is unknown; write {{'at_least': 620}}, {{'at_least': 600, 'at_most': 700}}, "
            "{'by': 40} or {'one_of': ['a', 'b']}"
        ) from None


def _count(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise QueryError(f"n must be a whole number of at least 1, got {n!r}")
    return int(n)


def _number(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if is_number(value) and abs(value) <= sys.float_info.max:
        return float(value)
    raise QueryError(f"{name} must lie in the trained range, and be a number, got {value!r}")


def _confidence(value: Any) -> float | str | None:
    if value is None or (isinstance(value, str) and value in LEVELS):
        return value
    if is_number(value) and abs(value) <= sys.float_info.max:
        return float(value)
    levels = ", ".join(map(repr, LEVELS))
    raise QueryError(f"confidence must lie between 0 and 1, or be one of {levels}, got {value!r}")


def switch(value: Any, name: str) -> bool:
    """True or False; a text such as "no" would count as true, and is refused."""
    if not isinstance(value, bool | np.bool_):
        raise QueryError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def _handle_unknown(value: Any) -> str:
    if not isinstance(value, str) or value not in (REPLACE, ERROR):
        raise QueryError(f"handle_unknown must be {REPLACE!r} or {ERROR!r}, got {value!r}")
    return value


def _min_plausibility(value: Any) -> float:
    """A share of real rows; no answer is more plausible than all of them."""
    if not is_number(value) or not 0 <= value < 1:
        raise QueryError(f"min_plausibility must be at least 0 and below 1, got {value!r}")
    return float(value)


def _share(value: Any, name: str) -> float:
    if not is_number(value) or not 0 <= value <= 1:
        raise QueryError(f"{name} must lie between 0 and 1, got {value!r}")
    return float(value)


def _names(given: Any, name: str) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise QueryError(f"{name} must be a list of features, got {given!r}; write {name}=[{given!r}]")
    return tuple(dict.fromkeys(plain(feature) for feature in given))


def _to_vary(given: Any) -> tuple[Any, ...] | None:
    # DiCE's word for no restriction; a feature of that name is given in a list.
    if given is None or (isinstance(given, str) and given == "all"):
        return None
    names = _names(given, "features_to_vary")
    if not names:
        raise QueryError("features_to_vary is empty, so that nothing may change; name a feature, or leave it out")
    return names


def _constraints(given: Any) -> Constraints:
    if given is None:
        return NOTHING
    if isinstance(given, Constraints):
        return given
    if isinstance(given, Mapping):
        odd = next((name for name in given if not isinstance(name, str)), None)
        if odd is not None:
            raise ConstraintError(f"constraints has the field {odd!r}, which is no name; use those of Constraints")
        return Constraints(**given)
    raise QueryError(f"constraints must be Constraints(...) or a dict of its fields, got {type(given).__name__}")
