"""The parts of a statement that are no plain values: ranges, and costs per unit."""

from __future__ import annotations

__all__ = ["PerUnit", "Range", "Stated", "costs", "delta", "per_unit", "ranges", "relative"]

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_serializer, model_validator

from dicoflex.constraints.reading import Name, by_feature, number, positive, within
from dicoflex.constraints.words import percent, plain, signed
from dicoflex.errors import ConstraintError, named

RangeKind = Literal["absolute", "relative", "difference"]
JSON_KEYS: dict[str, RangeKind] = {"relative": "relative", "delta": "difference"}


class Stated(BaseModel):
    """A frozen model whose errors are `ConstraintError`s, however it is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    FIELD: ClassVar[str] = ""  # what one of its fields is called

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            refusal = _refusal(error.errors()[0], type(self))
        else:
            return
        raise refusal


def _refusal(first: Any, kind: type[Stated]) -> ConstraintError:
    """The first thing that pydantic refused, as an error of ours."""
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return ConstraintError(named(kind.FIELD, where, kind.model_fields))
    if first["type"] == "value_error" and isinstance(error := first["ctx"]["error"], ConstraintError):
        return error
    return ConstraintError(f"{where or kind.__name__}: {first['msg']}, got {first['input']!r}")


# -- ranges ------------------------------------------------------------------------------------------------------


class Range(Stated):
    """Limits of a value: absolute, relative to the query's value, or of the difference from it.

    >>> Range(low=20, high=50).text
    '20 to 50'
    """

    FIELD = "field of Range"

    low: float | None = None
    high: float | None = None
    kind: RangeKind = "absolute"

    @field_validator("low", "high", mode="before")
    @classmethod
    def _bound(cls, value: Any) -> float | None:
        if value is None or (isinstance(value, float) and math.isinf(value)):
            return None
        return number(value, "a limit of a range must be a number or None")

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.low is None and self.high is None:
            raise ConstraintError("a range needs a low or a high limit, got neither; leave the range out")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ConstraintError(
                f"the low limit {plain(self.low)} is above the high limit {plain(self.high)}; swap them"
            )
        return self

    @model_serializer
    def _dump(self) -> Any:
        limits = [self.low, self.high]
        key = next((key for key, kind in JSON_KEYS.items() if kind == self.kind), None)
        return limits if key is None else {key: limits}

    @property
    def text(self) -> str:
        """The limits in words."""
        show: Callable[[float], str] = {"absolute": plain, "relative": percent, "difference": signed}[self.kind]
        if self.low is None or self.high is None:
            return f"at least {show(self.low)}" if self.low is not None else f"at most {show(self.high or 0.0)}"
        return f"{show(self.low)} to {show(self.high)}"

    def holds(self, value: float) -> bool:
        """Whether a value lies between the limits, taken as they are."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


def relative(low: float | None, high: float | None) -> Range:
    """A range in shares of the query's size: `relative(-0.1, 0.25)` is from 10% less to 25% more.

    >>> relative(-0.1, 0.25).text
    '-10% to +25%'
    """
    return Range(low=low, high=high, kind="relative")


def delta(low: float | None, high: float | None) -> Range:
    """A range of the difference from the query: `delta(0, 5)` is up to 5 more.

    >>> delta(0, 5).text
    '0 to +5'
    """
    return Range(low=low, high=high, kind="difference")


def ranges(given: Any, field: str) -> dict[Name, tuple[Range, ...]]:
    """Features with one range or several, those of one kind intersected; from Python and JSON."""
    return {name: within(name, field, _ranges, value) for name, value in by_feature(given, field)}


def _ranges(given: Any) -> tuple[Range, ...]:
    forms = list(given) if isinstance(given, list | tuple) and _are_ranges(given) else [given]
    if not forms:
        raise ConstraintError("the list of ranges is empty; leave the feature out")
    joined: dict[RangeKind, Range] = {}
    for found in map(_range, forms):
        joined[found.kind] = _intersected(joined[found.kind], found) if found.kind in joined else found
    return tuple(joined.values())


def _are_ranges(given: Any) -> bool:
    """Whether a list holds ranges rather than two limits."""
    return all(isinstance(form, Range | Mapping | list | tuple) for form in given)


def _range(given: Any) -> Range:
    if isinstance(given, Range):
        return given
    kind: RangeKind = "absolute"
    if isinstance(given, Mapping) and len(given) == 1 and (key := next(iter(given))) in JSON_KEYS:
        kind, given = JSON_KEYS[key], given[key]
    if not isinstance(given, list | tuple) or len(given) != 2:
        forms = '[20, 50], {"relative": [-0.1, 0.25]} or {"delta": [0, 5]}'
        raise ConstraintError(f"a range is written {forms}, got {given!r}")
    return Range(low=given[0], high=given[1], kind=kind)


def _intersected(one: Range, two: Range) -> Range:
    low = max((r.low for r in (one, two) if r.low is not None), default=None)
    high = min((r.high for r in (one, two) if r.high is not None), default=None)
    if low is not None and high is not None and low > high:
        raise ConstraintError(f"the ranges {one.text} and {two.text} have nothing in common; widen one of them")
    return Range(low=low, high=high, kind=one.kind)


# -- costs -------------------------------------------------------------------------------------------------------


class PerUnit(Stated):
    """A cost for every unit by which a number changes."""

    FIELD = "field of PerUnit"

    weight: float

    @field_validator("weight", mode="before")
    @classmethod
    def _positive(cls, value: Any) -> float:
        return positive(value, "the cost per unit")

    @model_serializer
    def _dump(self) -> dict[str, float]:
        return {"per_unit": self.weight}


def per_unit(weight: float) -> PerUnit:
    """A cost of `weight` for every unit by which a number changes.

    >>> per_unit(0.5).weight
    0.5
    """
    return PerUnit(weight=weight)


def costs(given: Any, field: str) -> dict[Name, float | PerUnit]:
    """Features with a cost each, from Python and JSON."""
    return {name: _cost(value, f"{field} {name!r}") for name, value in by_feature(given, field)}


def _cost(given: Any, where: str) -> float | PerUnit:
    if isinstance(given, PerUnit):
        return given
    if isinstance(given, Mapping):
        if list(given) != ["per_unit"]:
            raise ConstraintError(f'{where}: a cost is a number above 0 or {{"per_unit": 0.5}}, got {dict(given)!r}')
        return PerUnit(weight=positive(given["per_unit"], f"{where}: the cost per unit"))
    return positive(given, f"{where}: the cost")
