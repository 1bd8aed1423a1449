"""What a page sends: bodies read and checked once."""

from __future__ import annotations

__all__ = [
    "MOST_PLANS",
    "Asking",
    "Cohort",
    "Limited",
    "Looking",
    "Naming",
    "NotThis",
    "RefusedError",
    "Scoring",
    "Settling",
    "read",
]

from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dicoflex.errors import QueryError
from dicoflex.request import Level

MOST_PLANS = 12
Plain = bool | int | float | str | None
Count = Annotated[int, Field(ge=1, le=MOST_PLANS)]


class RefusedError(QueryError):
    """A body does not fit. place: a JSON pointer to what is wrong; feature: whose it is, where it is one's."""

    def __init__(self, message: str, *, place: str = "", feature: str | None = None) -> None:
        super().__init__(message)
        self.place, self.feature = place, feature


class Body(BaseModel):
    """A body; a name that it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class NotThis(Body):
    """A change that a plan may not show."""

    feature: str
    value: Plain = None


class Limited(Body):
    """What is asked for of plans, whosever they are."""

    target: bool | int | float | str | None = None
    n: Count = 4
    p: float | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | Level | None = None
    constraints: dict[str, Any] = Field(default_factory=dict)
    pinned: dict[str, Plain] = Field(default_factory=dict)
    refused: list[NotThis] = Field(default_factory=list, max_length=200)
    seed: int = Field(default=0, ge=0, lt=2**63)
    seq: int = 0


class Asking(Limited):
    """Plans for one person: one of the people by name, or values that were entered."""

    person: str | None = None
    values: dict[str, Plain] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.person is None) == (self.values is None):
            raise ValueError("give either person or values")
        return self


class Settling(Asking):
    """The same, with the keys of the plans that are shown, or were chosen."""

    keys: list[str] = Field(default_factory=list, max_length=MOST_PLANS)


class Cohort(Limited):
    """One set of limits for many people; None are the first thousand. groups: a feature to tell them apart by."""

    people: list[str] | None = Field(default=None, max_length=1000)
    groups: str | None = None


class Looking(Body):
    """A look into the list of people."""

    search: str = Field(default="", max_length=200)
    offset: int = Field(default=0, ge=0)
    most: int = Field(default=200, ge=1, le=200)
    order: str = Field(default="file", pattern="^(file|near)$")
    target: bool | int | float | str | None = None


class Naming(Body):
    """One of the people."""

    person: str


class Scoring(Body):
    """A row by hand. features: whose strips are wanted; None are all."""

    values: dict[str, Plain]
    target: bool | int | float | str | None = None
    seq: int = 0
    strips: bool = True
    features: list[str] | None = None


Kind = TypeVar("Kind", bound=Body)


def read(kind: type[Kind], body: Any) -> Kind:
    """A body of a kind; what is wrong with it is a `RefusedError` with its place.

    >>> read(Naming, {"person": "633"}).person
    '633'
    """
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = "/" + "/".join(map(str, first["loc"]))
    raise RefusedError(f"{place}: {first['msg'].removeprefix('Value error, ')}", place=place)
