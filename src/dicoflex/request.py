"""One question: everything asked of a model besides the rows, declared once.

The command line, HTTP bodies, the client and the JSON Schema of a server take types, defaults, limits and descriptions
from the fields of `Request`; `Explainer.explain` has an argument for each.
"""

from __future__ import annotations

__all__ = ["ERROR", "LEVELS", "REPLACE", "Level", "Request", "switch"]

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dicoflex.constraints import Constraints
from dicoflex.errors import ConstraintError, QueryError, named
from dicoflex.runtime.randomness import seed_of
from dicoflex.targets import Goal, Interval, OneOf, Shift, one_of
from dicoflex.values import plain

Level = Literal["just", "safe", "sure"]
LEVELS: tuple[str, ...] = get_args(Level)
Label = bool | int | float | str
Target = Label | Interval | Shift | OneOf
NOTHING = Constraints()
REPLACE: Final = "replace"
ERROR: Final = "error"


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
    return tuple(_goal(label) if isinstance(label, Mapping) else label for label in labels)


def _goal(given: Mapping[Any, Any]) -> Any:
    """The target that a dict states, as JSON has it."""
    try:
        return TypeAdapter(Interval | Shift | OneOf).validate_python(dict(given))
    except ValidationError:
        raise QueryError(
            f"target {dict(given)!r} is unknown; write {{'at_least': 620}}, {{'at_least': 600, 'at_most': 700}}, "
            "{'by': 40} or {'one_of': ['a', 'b']}"
        ) from None


def _frozen(given: Any) -> tuple[Any, ...]:
    return _names(given, "frozen")


def _to_vary(given: Any) -> tuple[Any, ...] | None:
    # DiCE's word for no restriction; a feature of that name is given in a list.
    if given is None or (isinstance(given, str) and given == "all"):
        return None
    names = _names(given, "features_to_vary")
    if not names:
        raise QueryError("features_to_vary is empty, so that nothing may change; name a feature, or leave it out")
    return names


def _names(given: Any, name: str) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise QueryError(f"{name} must be a list of features, got {given!r}; write {name}=[{given!r}]")
    return tuple(dict.fromkeys(plain(feature) for feature in given))


def _constraints(given: Any) -> Constraints:
    if given is None:
        return NOTHING
    if isinstance(given, Constraints):
        return given
    if isinstance(given, Mapping):
        odd = next((name for name in given if not isinstance(name, str)), None)
        if odd is not None:
            raise ConstraintError(f"constraints has the field {odd!r}, which is not a name; use those of Constraints")
        return Constraints(**given)
    raise QueryError(f"constraints must be Constraints(...) or a dict of its fields, got {type(given).__name__}")


READERS: dict[str, Callable[[Any], Any]] = {
    "target": _target,
    "frozen": _frozen,
    "features_to_vary": _to_vary,
    "constraints": _constraints,
}
"""Fields for which Python callers may write more than JSON has: sets and other iterables, dicts, NumPy's arrays."""


class Request(BaseModel):
    """What is asked of a model, besides the rows.

    Each argument of `Explainer.explain`, `check` aside, is a field. A request can be checked once, stored as JSON, sent
    to a server and repeated.

    Examples
    --------
    >>> Request.of(target="yes", n=3, frozen=["age"], random_state=7).model_dump(exclude_defaults=True)
    {'target': 'yes', 'n': 3, 'frozen': ('age',), 'seed': 7}
    >>> Request.model_validate_json('{"n": 2, "constraints": {"max_changes": 1}}').constraints.max_changes
    1
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: Target | tuple[Target, ...] | None = Field(
        default=None,
        description="Target class; 'other', or any of several labels. For a model of scores an interval or a change. "
        "By default the other one of two classes.",
    )
    n: int = Field(default=10, ge=1, description="Number of counterfactuals per row.")
    p: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        default=None,
        description="Exponent of the distance, within the trained range: 2 stays close in every feature, 0.01 changes "
        "as few features as possible. By default 2, or the smallest where max_changes is set.",
    )
    frozen: tuple[int | str, ...] = Field(default=(), description="Features that keep the row's value.")
    features_to_vary: Annotated[tuple[int | str, ...], Field(min_length=1)] | None = Field(
        default=None, description="The only features that may change; by default all."
    )
    constraints: Constraints = Field(default=NOTHING, description="What else an answer must satisfy.")
    confidence: Annotated[float, Field(ge=0, le=1)] | Level | None = Field(
        default=None,
        description="Confidence of the model in the target: a number, or a level. 'just' is the decision itself; at "
        "'safe', the default, an estimated 85 % of retrained models would accept the answer too, at 'sure' 95 %.",
    )
    novel: bool = Field(
        default=False, description="Return no exact copy of a training row; needs a model that remembers its rows."
    )
    refine: bool = Field(
        default=True, description="Undo needless changes and move answers as near as possible; otherwise return draws."
    )
    coherent: bool = Field(
        default=True,
        description="Return no combination of values that no training row has, and keep dependencies between features.",
    )
    min_plausibility: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="Least plausibility of an answer: the share of real rows with the target that are less typical.",
    )
    diversity: float = Field(
        default=0.2, ge=0, le=1, description="Weight of diversity against distance in the choice of answers, 0 to 1."
    )
    exhaustive: bool = Field(
        default=True,
        description="If sampling finds nothing, search the feasible rows: all if they are few enough, else a sample.",
    )
    handle_unknown: Literal["replace", "error"] = Field(
        default=REPLACE, description="A row with a value unknown to training: replace the value, or raise an error."
    )
    seed: int | None = Field(default=None, ge=0, description="The same seed gives the same answers.")

    @classmethod
    def of(cls, *, random_state: Any = None, **arguments: Any) -> Request:
        """Return the request that arguments of `explain` and `sample` state.

        Parameters
        ----------
        random_state : int, optional
            The seed; one is drawn by default.
        **arguments : Any
            Values of the other fields.

        Returns
        -------
        Request
            The request, checked.

        Raises
        ------
        QueryError
            If an argument is unknown or out of its range.
        """
        read = {name: READERS.get(name, plain)(value) for name, value in arguments.items()}
        try:
            return cls.model_validate({**read, "seed": seed_of(random_state)}, strict=True)
        except ValidationError as error:
            refusal = _refusal(error.errors(include_url=False)[0])
        raise refusal

    def targets(self, n_rows: int) -> list[Any]:
        """Return one target per row; a single target applies to all of them."""
        if not isinstance(self.target, tuple):
            return [self.target] * n_rows
        if len(self.target) != n_rows:
            raise QueryError(f"target has {len(self.target)} labels for {n_rows} rows; give one, or one per row")
        return list(self.target)


RULES = {
    "n": "must be a whole number of at least 1",
    "p": "must lie in the trained range, and be a number",
    "confidence": f"must lie between 0 and 1, or be one of {', '.join(map(repr, LEVELS))}",
    "min_plausibility": "must be at least 0 and below 1",
    "diversity": "must lie between 0 and 1",
    "handle_unknown": f"must be {REPLACE!r} or {ERROR!r}",
}
"""What a field may be, in words; a field without a line is a switch."""
SWITCH = "must be True or False"


def _refusal(first: Any) -> QueryError:
    """What pydantic refused, as an error of ours: the argument, its rule and the value."""
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return QueryError(named("argument", name, Request.model_fields))
    if name in ("target", "frozen", "features_to_vary"):
        return QueryError(f"{name} has the entry {first['input']!r}; use text, a number or a boolean")
    return QueryError(f"{name} {RULES.get(name, SWITCH)}, got {first['input']!r}")


def switch(value: Any, name: str) -> bool:
    """Return a switch, checked: a text such as "no" would count as true, and is refused."""
    if not isinstance(value, bool | np.bool_):
        raise QueryError(f"{name} {SWITCH}, got {value!r}")
    return bool(value)
