"""One column of a frame: the numbers and levels read from it, and arrays of its dtype to give them back in."""

from __future__ import annotations

__all__ = [
    "EXACT",
    "code_lookup",
    "column_dtype",
    "extends",
    "factorize",
    "few_numbers",
    "level_array",
    "read_numbers",
    "same_dtype",
]

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import QueryError
from dicoflex.table.feature import Feature, Level, dtype_of
from dicoflex.table.reals import Values
from dicoflex.values import plain, typed

EXACT = 2**53  # whole numbers up to here are floats without rounding


def few_numbers(feature: Feature, cells: list[Any]) -> list[float] | None:
    least, greatest = feature.bounds
    whole = feature.is_whole
    for v in cells:
        if not (type(v) is int or type(v) is float) or not least <= v <= greatest or (whole and v % 1):
            return None
        if type(v) is int and not -EXACT <= v <= EXACT:
            return None
    return None if feature.narrow is not None and feature.rounds(np.array(cells, dtype=np.float64)).any() else cells


def read_numbers(feature: Feature, column: pd.Series, absent: NDArray[np.bool_]) -> Values:
    if absent.all():
        return np.full(len(column), np.nan)
    if not _holds_numbers(column):
        text = f"column {feature.name!r} is {feature.kind} and holds values that are not numbers (dtype {column.dtype})"
        raise QueryError(f"{text}; convert it with pd.to_numeric")
    try:
        values: Values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except OverflowError:
        raise QueryError(f"column {feature.name!r} holds numbers that no float can hold; replace them") from None
    present = values[~absent]
    if not np.isfinite(present).all():
        raise QueryError(f"column {feature.name!r} holds infinite numbers; replace them")
    if feature.is_whole and (np.mod(present, 1.0) != 0.0).any():
        raise QueryError(f"column {feature.name!r} holds fractions, and training had whole numbers alone; round them")
    least, greatest = feature.bounds
    if present.min() < least or present.max() > greatest:
        far = present.max() if present.max() > greatest else present.min()
        raise QueryError(
            f"column {feature.name!r} holds {far:.16g}, and its dtype in training, {feature.dtype}, holds "
            f"{least:.16g} to {greatest:.16g}; replace it, or fit on a wider dtype"
        )
    _refuse_rounded(feature, column[~absent], present)
    _refuse_narrowed(feature, present)
    return values


def _refuse_narrowed(feature: Feature, values: Values) -> None:
    """Refuse numbers that the training dtype would round: an answer could not keep them as they are."""
    rounded = np.flatnonzero(feature.rounds(values))
    if len(rounded):
        value = float(values[rounded[0]])
        kept = feature.narrow.type(value)  # type: ignore[union-attr]
        raise QueryError(
            f"column {feature.name!r} holds {value:.17g}, and its dtype in training, {feature.dtype}, rounds that to "
            f"{kept:.17g}; round the rows with .astype({feature.dtype!r}), or fit on float64"
        )


def _refuse_rounded(feature: Feature, column: pd.Series, values: Values) -> None:
    """Refuse whole numbers that a float rounds: they would not come back as they were."""
    for i in np.flatnonzero(np.abs(values) >= EXACT):
        if plain(column.iloc[i]) != float(values[i]):
            raise QueryError(
                f"column {feature.name!r} holds {column.iloc[i]}, which is kept as {values[i]:.0f}; round it, or keep "
                "such numbers as text"
            )


NUMBER_OBJECTS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean"}


def _holds_numbers(column: pd.Series) -> bool:
    """Whether the column is of numbers already; text that looks like one, and dates, are not."""
    values = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    if values.dtype == object:
        return pd.api.types.infer_dtype(values, skipna=True) in NUMBER_OBJECTS
    return pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_complex_dtype(values.dtype)


def same_dtype(dtype: Any, other: Any) -> bool:
    """Whether two dtypes are one; pandas holds unordered categories for equal in any order."""
    if dtype is other:
        return True
    if not isinstance(dtype, pd.CategoricalDtype) or not isinstance(other, pd.CategoricalDtype):
        return bool(dtype == other)
    same = dtype.ordered == other.ordered and dtype.categories.dtype == other.categories.dtype
    return same and list(map(typed, dtype.categories)) == list(map(typed, other.categories))


def extends(dtype: Any, other: Any) -> bool:
    """Whether a categorical dtype has all categories of another, in their order, and more of its own.

    >>> extends(pd.CategoricalDtype(["a", "b", "c"]), pd.CategoricalDtype(["a", "c"]))
    True
    """
    if not isinstance(dtype, pd.CategoricalDtype) or not isinstance(other, pd.CategoricalDtype):
        return False
    if dtype.ordered != other.ordered or dtype.categories.dtype != other.categories.dtype:
        return False
    wanted = list(map(typed, other.categories))
    known = set(wanted)
    kept = [key for key in map(typed, dtype.categories) if key in known]
    return len(dtype.categories) > len(wanted) and kept == wanted


def factorize(column: pd.Series) -> tuple[NDArray[Any], list[Any]]:
    """Codes and plain distinct values; in object columns 1, 1.0 and True are told apart."""
    if column.dtype == object:
        cells = [plain(v) for v in column]
        odd = [v for v in cells if not isinstance(v, Level)]
        if odd:
            return np.zeros(len(cells), dtype=np.int64), odd[:1]
        table: dict[Any, int] = {}
        keys = np.array([table.setdefault(typed(v), len(table)) for v in cells], dtype=np.int64)
        return keys, [value for _, value in table]
    keys, uniques = pd.factorize(column)
    return keys, [plain(v) for v in uniques]


def code_lookup(levels: tuple[Any, ...]) -> dict[Any, int]:
    lookup: dict[Any, int] = {typed(value): code for code, value in enumerate(levels)}
    equals = Counter(levels)
    for code, value in enumerate(levels):
        if equals[value] == 1:
            lookup[("any", value)] = code
    return lookup


def column_dtype(feature: Feature) -> Any:
    if feature.categories is None:
        return dtype_of(feature.dtype)
    inner = dtype_of(feature.categories_dtype or "object")
    return pd.CategoricalDtype(pd.Index(list(feature.categories), dtype=inner), ordered=feature.ordered)


def level_array(feature: Feature, dtype: Any) -> Any:
    """The levels, and the missing value after them, as an array of the column's dtype to take codes from."""
    values = [*feature.levels, None] if feature.missing else list(feature.levels)
    if dtype == object:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        if feature.missing:
            array[-1] = MISSING_OBJECTS[feature.missing_object]
        return array
    if isinstance(dtype, np.dtype):
        return np.array([np.nan if v is None else v for v in values], dtype=dtype)
    return pd.array(values, dtype=dtype)


MISSING_OBJECTS = {"None": None, "nan": np.nan, "NA": pd.NA}
