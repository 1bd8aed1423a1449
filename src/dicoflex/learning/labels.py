"""The labels that the black box gave, as class numbers."""

from __future__ import annotations

__all__ = ["read_labels"]

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import DataError
from dicoflex.values import is_half_read, plain, typed


def read_labels(y: Any, n_rows: int) -> tuple[NDArray[np.int64], list[Any]]:
    """Class numbers and the sorted labels; a `DataError` where `y` is not one label per row of at least two classes.

    >>> read_labels(["yes", "no", "yes"], 3)
    (array([1, 0, 1]), ['no', 'yes'])
    """
    if y is None:
        raise DataError(
            f"fit requires y to be passed, but the target y is None; it needs labels for {n_rows} rows; give one label "
            "per row"
        )
    if np.ndim(y) > 1:
        raise DataError(f"y has {np.ndim(y)} dimensions; give one label per row, such as y.iloc[:, 0] or y.ravel()")
    try:
        column = y if isinstance(y, pd.Series) else pd.Series(y)
    except UnicodeEncodeError as error:
        raise DataError(f"y holds {error.object!r:.80}, which no file can hold; give other labels") from None
    if len(column) != n_rows:
        raise DataError(f"y has {len(column)} labels for {n_rows} rows; give one label per row")
    if column.isna().any():
        raise DataError(f"y has {int(column.isna().sum())} missing labels; drop those rows")
    values = [plain(v) for v in column]
    odd = next((v for v in values if not isinstance(v, str | bool | int | float)), None)
    if odd is not None:
        raise DataError(f"y holds a {type(odd).__name__} ({odd!r}); labels may be text, whole numbers or booleans")
    unheld = next((v for v in values if is_half_read(v) or (isinstance(v, float) and math.isinf(v))), None)
    if unheld is not None:
        raise DataError(f"y holds {unheld!r}, which no file can hold; give other labels, or drop those rows")
    _refuse_twins(values)
    names = sorted(set(values), key=lambda v: (type(v).__name__, v))
    _check_classes(names, n_rows)
    lookup = {name: i for i, name in enumerate(names)}
    return np.array([lookup[v] for v in values], dtype=np.int64), names


def _refuse_twins(values: list[Any]) -> None:
    """Refuse labels such as 1 and True, which are equal, so that no table of labels can tell them apart."""
    seen: dict[Any, Any] = {}
    for kind, value in {typed(v): (type(v), v) for v in values}.values():
        if value in seen:
            raise DataError(f"y holds both {seen[value]!r} and {value!r}, a {kind.__name__}; give labels of one type")
        seen[value] = value


def _check_classes(names: list[Any], n_rows: int) -> None:
    if len(names) < 2:
        raise DataError(f"y has a single class, {names[0]!r}; counterfactuals need at least two")
    if len(names) > max(20, 0.2 * n_rows):
        raise DataError(f"y has {len(names)} different labels in {n_rows} rows; dicoflex explains classes, not numbers")
