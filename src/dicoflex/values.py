"""One cell's value: plain, missing, equal, told apart by type, as JSON; and where arrays of them differ."""

from __future__ import annotations

__all__ = ["differ", "equal", "is_half_read", "is_missing", "is_number", "jsonable", "plain", "typed"]

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def plain(value: Any) -> Any:
    """A numpy scalar as its Python value; others as they are.

    >>> plain(np.int64(3)), plain("a")
    (3, 'a')
    """
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """Whether `value` is None, NaN, NaT or NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA is neither equal nor unequal to itself
        return True


def is_half_read(value: Any) -> bool:
    """Whether `value` is text with half a character, as bytes read by the wrong encoding leave it: no file can hold it.

    >>> is_half_read("caf" + chr(0xDCE9)), is_half_read("café")
    (True, False)
    """
    try:
        if isinstance(value, str):
            value.encode()
    except UnicodeEncodeError:
        return True
    return False


def is_number(value: Any) -> bool:
    """Whether `value` is a number; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Equality of two values that are there: text never equals a number, 1 equals 1.0 and True.

    >>> equal(1, 1.0), equal(1, "1")
    (True, False)
    """
    return isinstance(one, str) == isinstance(other, str) and bool(one == other)


def typed(value: Any) -> tuple[str, Any]:
    """A key under which 1, 1.0 and True differ, as they do in a column of mixed objects."""
    return type(value).__name__, value


def differ(values: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where two matrices differ; missing equals missing.

    >>> differ(np.array([1.0, np.nan, 2.0]), np.array([1.0, np.nan, 3.0]))
    array([False, False,  True])
    """
    different: NDArray[np.bool_] = (values != other) & ~(np.isnan(values) & np.isnan(other))
    return different


def jsonable(value: Any) -> Any:
    """A value that strict JSON can hold: missing and infinite numbers become None, odd labels text.

    >>> jsonable({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [jsonable(item) for item in value]
    value = plain(value)
    if is_missing(value) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)
