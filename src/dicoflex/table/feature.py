"""One column: its kind, its dtype as text, and the values that it may take."""

from __future__ import annotations

__all__ = [
    "MAX_EXACT_INTEGER",
    "MAX_NUMBER",
    "Feature",
    "Kind",
    "Level",
    "dtype_bounds",
    "dtype_of",
    "dtype_text",
    "is_dtype",
]

from collections.abc import Hashable
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, model_serializer, model_validator

from dicoflex.values import typed

Level = bool | int | float | str
Name = int | str
MAX_EXACT_INTEGER = 2**53 - 1
LONGEST_DTYPE = 100
MAX_NUMBER = 1e150  # its square, and so a standard deviation, is still finite


class Kind(StrEnum):
    """The kinds of feature that the library tells apart."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"
    BOOLEAN = "boolean"

    @property
    def is_number(self) -> bool:
        """Whether values are measured (True) or picked from levels (False)."""
        return self in (Kind.CONTINUOUS, Kind.INTEGER)


class Feature(BaseModel):
    """One column: its kind, its pandas dtype and the values it may take.

    special: numbers that are not measured but stand for something, such as -9 for "no record".
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name
    kind: Kind
    dtype: str
    levels: tuple[Level, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    missing: bool = False
    categories: tuple[Level, ...] | None = None
    ordered: bool = False
    categories_dtype: str | None = None
    missing_object: Literal["None", "nan", "NA"] = "nan"
    special: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Feature:
        for dtype in (self.dtype, self.categories_dtype):
            if dtype is not None and not is_dtype(dtype):
                raise ValueError(f"feature {self.name!r}: dtype {dtype!r} is unknown")
        if self.kind.is_number:
            self._check_limits()
        else:
            self._check_levels()
        return self

    def _check_limits(self) -> None:
        if self.minimum is None or self.maximum is None or not self.minimum <= self.maximum:
            raise ValueError(f"feature {self.name!r}: minimum must be at most maximum")
        if self.levels or self.categories is not None or not _holds_numbers(dtype_of(self.dtype)):
            raise ValueError(f"feature {self.name!r}: it is {self.kind}, and its dtype or its levels are not")
        if list(self.special) != sorted(set(self.special)):
            raise ValueError(f"feature {self.name!r}: special values must rise, each once")
        least, greatest = self.bounds
        if self.minimum < max(least, -MAX_NUMBER) or self.maximum > min(greatest, MAX_NUMBER):
            raise ValueError(f"feature {self.name!r}: its limits are beyond what {self.dtype} or {MAX_NUMBER:g} allow")

    def _check_levels(self) -> None:
        if self.special:
            raise ValueError(f"feature {self.name!r}: it is {self.kind}, and special values are for numbers")
        levels = {typed(v) for v in self.levels}
        if len(levels) != len(self.levels):
            raise ValueError(f"feature {self.name!r}: levels repeat")
        if not levels <= {typed(v) for v in self.categories or self.levels}:
            raise ValueError(f"feature {self.name!r}: levels must be among the categories")
        if self.n_states == 0:
            raise ValueError(f"feature {self.name!r}: it has no level and is never missing")

    @model_serializer(mode="wrap")
    def _dump(self, dump: Any) -> Any:
        """Special values are left out where there are none."""
        dumped = dump(self)
        if not self.special:
            del dumped["special"]
        return dumped

    @cached_property
    def is_number(self) -> bool:
        """Whether the feature is measured rather than picked from levels."""
        return self.kind.is_number

    @cached_property
    def is_whole(self) -> bool:
        """Whether values are whole numbers: by kind, or because the dtype holds no others."""
        return self.kind is Kind.INTEGER or (self.is_number and pd.api.types.is_integer_dtype(dtype_of(self.dtype)))

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The least and greatest number that the dtype holds."""
        return dtype_bounds(dtype_of(self.dtype))

    @cached_property
    def narrow(self) -> np.dtype[Any] | None:
        """The floats that the dtype is made of, where they round what a float64 holds; None for every other dtype."""
        if not self.is_number:
            return None
        dtype = dtype_of(self.dtype)
        held = np.dtype(getattr(dtype, "numpy_dtype", dtype))
        return held if held.kind == "f" and held.itemsize < np.dtype(np.float64).itemsize else None

    def rounds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Where a column of the dtype would give back another number, to all digits in which it is written.

        A float32 holds .1 as a number that is again written as .1, and 123456789 as one written as 123456790.
        """
        if self.narrow is None:
            return np.zeros(len(values), dtype=bool)
        held = values.astype(self.narrow)
        changed: NDArray[np.bool_] = held != values
        changed[changed] = held[changed].astype(str).astype(np.float64) != values[changed]
        return changed

    @property
    def n_states(self) -> int:
        """How many codes a picked feature has: its levels, and one for missing."""
        return len(self.levels) + int(self.missing)

    @property
    def rule_kind(self) -> str:
        """What the feature is in a rule: 'number', 'ordinal', 'boolean' or 'level'."""
        if self.is_number or self.kind is Kind.ORDINAL:
            return "number" if self.is_number else "ordinal"
        truths = self.kind is Kind.BOOLEAN and not any(isinstance(v, str) or v not in (0, 1) for v in self.levels)
        return "boolean" if truths else "level"

    def is_level(self, value: Any) -> bool:
        """Whether one of the levels equals `value`."""
        return isinstance(value, Hashable) and (isinstance(value, str), value) in self.level_keys

    @cached_property
    def level_keys(self) -> set[tuple[bool, Any]]:
        """The levels as `is_level` looks for them: text never equals a number."""
        return {(isinstance(level, str), level) for level in self.levels}

    def values_text(self, most: int = 6) -> str:
        """The values that the feature may take, in one short line."""
        if self.is_number:
            text = f"{self.minimum:g} to {self.maximum:g}"
            if self.special:
                text += f"; special: {', '.join(f'{value:g}' for value in self.special)}"
        else:
            joint = " < " if self.kind is Kind.ORDINAL else ", "
            text = joint.join(map(str, self.levels[:most]))
            if len(self.levels) > most:
                text += f"{joint}… ({len(self.levels)})"
        return text + (" or missing" if self.missing else "")


def dtype_text(dtype: Any) -> str:
    """The dtype as text that `dtype_of` reads back; pandas' own text does not say how text is stored.

    >>> dtype_text(pd.Series([1, None], dtype="Int64").dtype)
    'Int64'
    """
    text = str(dtype)
    if isinstance(dtype, pd.StringDtype) and dtype != pd.api.types.pandas_dtype(text):
        return f"{text}[{dtype.storage}]"
    if isinstance(dtype, pd.ArrowDtype) and text == "string[pyarrow]":
        return "utf8[pyarrow]"  # the same type; pandas reads the other name as its own StringDtype
    return text


def dtype_of(text: str) -> Any:
    """The dtype that `dtype_text` described."""
    if text.startswith("str["):
        return pd.StringDtype(text[4:-1], na_value=np.nan)
    return pd.api.types.pandas_dtype(text)


def dtype_bounds(dtype: Any) -> tuple[float, float]:
    """The least and the greatest number that a column of `dtype` can hold and a float64 can tell apart."""
    plain = getattr(dtype, "numpy_dtype", dtype)
    if pd.api.types.is_integer_dtype(plain):
        held = np.iinfo(plain)
        return float(max(held.min, -MAX_EXACT_INTEGER)), float(min(held.max, MAX_EXACT_INTEGER))
    return -float(np.finfo(plain).max), float(np.finfo(plain).max)


def is_dtype(text: str) -> bool:
    """Whether pandas reads `text` as a dtype that a feature can have; some of Arrow's can't be read from their text."""
    if len(text) > LONGEST_DTYPE:
        return False
    try:
        dtype = dtype_of(text)
    except (TypeError, ValueError, NotImplementedError, SyntaxError):
        return False
    if isinstance(dtype, np.dtype):  # bytes and text of numpy's own may be of any length, also of a thousand million
        return dtype.kind in "biufO"
    return dtype.kind in "biufOU" and not isinstance(dtype, pd.SparseDtype | pd.IntervalDtype | pd.PeriodDtype)


def _holds_numbers(dtype: Any) -> bool:
    kinds = pd.api.types
    return kinds.is_any_real_numeric_dtype(dtype) and (kinds.is_integer_dtype(dtype) or kinds.is_float_dtype(dtype))
