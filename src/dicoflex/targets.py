"""What may be asked for besides a label: an interval of scores, a change of one's own score, any of some labels."""

from __future__ import annotations

__all__ = [
    "OTHER",
    "Goal",
    "Interval",
    "OneOf",
    "Shift",
    "as_sent",
    "at_least",
    "at_most",
    "between",
    "by",
    "on_decision_scale",
    "one_of",
    "read_goal",
]

import math
import re
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dicoflex.errors import QueryError
from dicoflex.values import is_number, plain

Label = bool | int | float | str
Kind = TypeVar("Kind", bound="Goal")
OTHER = "other"
"""Any class but the present one; where a class has this very name, that class."""
MOST_PLACES, WHOLE = 15, 2.0**53
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
FORMS = {
    "at least": re.compile(rf">=?\s*({NUMBER})"),
    "at most": re.compile(rf"<=?\s*({NUMBER})"),
    "between": re.compile(rf"({NUMBER})\s*(?:\.\.|to)\s*({NUMBER})"),
    "by": re.compile(rf"by\s*({NUMBER})|(\+{NUMBER})"),
}


class Goal(BaseModel):
    """Base of what may be asked for besides a label: frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Interval(Goal):
    """A score of at least one number, at most another, or between the two; both ends belong to it.

    >>> str(Interval(at_least=620)), str(Interval(at_least=1.5, at_most=2))
    ('>= 620', '1.5 to 2')
    """

    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("an interval has an end: give at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"no score is at least {_text(self.at_least)} and at most {_text(self.at_most)}")
        return self

    def holds(self, score: Any) -> bool:
        """Whether a score lies in it."""
        low, high = self.ends
        return bool(low <= score <= high)

    @property
    def ends(self) -> tuple[float, float]:
        """The two ends; one that is open is infinite."""
        low = -math.inf if self.at_least is None else self.at_least
        return low, math.inf if self.at_most is None else self.at_most

    @property
    def parts(self) -> tuple[list[str], int]:
        """The scores below, inside and above it in words, as far as there are such, and which of them is inside."""
        below = [] if self.at_least is None else [f"< {_text(self.at_least)}"]
        above = [] if self.at_most is None else [f"> {_text(self.at_most)}"]
        return [*below, str(self), *above], len(below)

    def __str__(self) -> str:
        if self.at_least is None:
            return f"<= {_text(self.at_most)}"
        return (
            f">= {_text(self.at_least)}" if self.at_most is None else f"{_text(self.at_least)} to {_text(self.at_most)}"
        )


class Shift(Goal):
    """A score that is higher than the row's own by a number, or lower where the number is below 0.

    >>> str(Shift(by=40)), str(Shift(by=-2.5))
    ('by +40', 'by -2.5')
    """

    by: float

    @model_validator(mode="after")
    def _moves(self) -> Self:
        if self.by == 0:
            raise ValueError("a change by 0 is none; give a number above or below 0")
        return self

    def from_(self, score: float) -> Interval:
        """The interval that a row with this score asks for: its end is rounded outwards, by a hundredth of the change.

        >>> str(Shift(by=2).from_(16.3144)), str(Shift(by=-40).from_(600.0))
        ('>= 18.32', '<= 560')
        """
        end = _outwards(score + self.by, 2 - math.floor(math.log10(abs(self.by))), up=self.by > 0)
        return Interval(at_least=end) if self.by > 0 else Interval(at_most=end)

    def __str__(self) -> str:
        return f"by {'+' if self.by > 0 else ''}{_text(self.by)}"


class OneOf(Goal):
    """Any of some labels."""

    one_of: tuple[Label, ...] = Field(min_length=1)

    def holds(self, label: Any) -> bool:
        """Whether a label is one of them."""
        return plain(label) in self.one_of

    def __str__(self) -> str:
        return " or ".join(map(str, self.one_of))


def at_least(score: float) -> Interval:
    """A score of at least so much, for `target=`.

    >>> at_least(620)
    Interval(at_least=620.0, at_most=None)
    """
    return _made(Interval, at_least=_number(score))


def at_most(score: float) -> Interval:
    """A score of at most so much, for `target=`."""
    return _made(Interval, at_most=_number(score))


def between(low: float, high: float) -> Interval:
    """A score between two numbers, ends included, for `target=`."""
    return _made(Interval, at_least=_number(low), at_most=_number(high))


def by(change: float) -> Shift:
    """A score that is better than the row's own by so much: higher, or lower for a number below 0; for `target=`."""
    return _made(Shift, by=_number(change))


def one_of(*labels: Any) -> OneOf:
    """Any of some labels, for `target=`; a set of labels means the same.

    >>> one_of("approved", "approved with a deposit").one_of
    ('approved', 'approved with a deposit')
    """
    known = [plain(label) for label in labels]
    odd = next((label for label in known if not isinstance(label, bool | int | float | str)), None)
    if odd is not None:
        raise QueryError(f"one_of takes labels, got {odd!r}; write one_of('a', 'b')")
    return _made(OneOf, one_of=tuple(dict.fromkeys(known)))


def read_goal(text: str) -> Interval | Shift:
    """What a text asks for of a score: ">=620", "<=5", "600..700" or "600 to 700", "+40" or "by -40".

    >>> str(read_goal(">= 620")), str(read_goal("600..700")), str(read_goal("+40"))
    ('>= 620', '600 to 700', 'by +40')
    """
    for form, pattern in FORMS.items():
        match = pattern.fullmatch(text.strip())
        if match:
            numbers = [float(number) for number in match.groups() if number is not None]
            return _OF_FORM[form](*numbers)
    raise QueryError(
        f"target {text!r} asks for no score; write '>=620', '<=5', '600..700', or '+40' for more than one's own"
    )


_OF_FORM: dict[str, Callable[..., Interval | Shift]] = {
    "at least": at_least,
    "at most": at_most,
    "between": between,
    "by": by,
}


def as_sent(target: Any) -> Any:
    """A target as JSON has it: labels as they are, others as what they are made of."""
    return target.model_dump(mode="json", exclude_none=True) if isinstance(target, Goal) else target


def _number(value: Any) -> float:
    if not is_number(value) or not math.isfinite(value):
        raise QueryError(f"a score is asked for by a finite number, got {value!r}")
    return float(value)


def _made(kind: type[Kind], **fields: Any) -> Kind:
    try:
        return kind(**fields)
    except ValidationError as error:
        raise QueryError(f"target: {str(error.errors()[0]['msg']).removeprefix('Value error, ')}") from None


def _outwards(number: float, places: int, *, up: bool) -> float:
    """A number with so many decimal places, no nearer; as it is where that is more than a float can tell."""
    many = number * 10.0 ** min(places, MOST_PLACES)
    if abs(many) >= WHOLE or places > MOST_PLACES:
        return number
    # What is round but for its last digits stays where it is.
    near = round(many, 6)
    return round((math.ceil(near) if up else math.floor(near)) / 10.0**places, places)


def _text(number: float | None) -> str:
    return f"{number:.10g}"


def on_decision_scale(probabilities: NDArray[np.float64], threshold: float | None) -> NDArray[np.float64]:
    """Probabilities of two labels on a scale where the second is given from a half on: odds over the threshold's.

    Parameters
    ----------
    probabilities : array (n, 2)
        Of the first label and the second.
    threshold : float or None
        The probability from which on the second is given; None leaves all as it is.

    Examples
    --------
    >>> on_decision_scale(np.array([[0.8, 0.2], [0.2, 0.8]]), 0.2).round(3).tolist()
    [[0.5, 0.5], [0.059, 0.941]]
    """
    if threshold is None:
        return probabilities
    odds = probabilities * np.array([threshold, 1.0 - threshold])
    scaled: NDArray[np.float64] = odds / np.maximum(odds.sum(axis=1, keepdims=True), 1e-300)
    return scaled
