"""A column of a frame to its feature; what can't be learned from is refused."""

from __future__ import annotations

__all__ = ["FRAMES", "MAX_LEVELS", "WORD", "check_frame", "describe", "distinct", "kind_of_frame"]

import math
import re
from collections.abc import Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.errors import DataError, SchemaError, named
from dicoflex.table.feature import (
    MAX_EXACT_INTEGER,
    MAX_NUMBER,
    Feature,
    Kind,
    Level,
    dtype_bounds,
    dtype_text,
    is_dtype,
)
from dicoflex.table.native import refused_kind, remedy
from dicoflex.table.rarity import common_levels, common_limits, counts_of
from dicoflex.values import is_half_read, plain, typed

IDENTIFIER_SHARE = 0.9
EQUAL_STEPS = 0.5
"""The share of equal steps from row to row above which numbers that rise count rows."""
IDENTIFIER_ROWS = 50
IDENTIFIER_WORDS = {
    *("id", "ids", "identifier", "uuid", "guid", "idx", "pk", "serial", "rowid", "rownum", "userid", "custid"),
    *("customerid", "clientid", "personid", "patientid", "accountid", "orderid", "sessionid"),
}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
NINES = re.compile("99+")
# Special values: how many rows share one at least, how many there are at most beside how many measured ones, and how
# far a greatest one is from the next, as a share of all others' range.
LEAST_SPECIAL, SPECIAL_SHARE, MOST_SPECIAL, LEAST_MEASURED, SPECIAL_GAP = 5, 0.002, 5, 5, 0.5
MAX_LEVELS = 2000
FRAMES = "a frame of pandas, polars or Arrow, a dict of columns, or an array of two dimensions"
MOST_BEYOND = 0.5
REFUSED_OBJECTS = {Decimal: "decimal", date: "date", time: "time", timedelta: "duration"}


def kind_of_frame(frame: Any) -> str:
    """What a caller gave in place of a pandas frame, and how to make one of it.

    >>> kind_of_frame([[1]])
    'list; wrap arrays with pd.DataFrame(...)'
    """
    kind = type(frame)
    if hasattr(frame, "to_pandas"):
        return f"{kind.__module__.split('.')[0]}.{kind.__name__}; convert it with .to_pandas()"
    if hasattr(frame, "collect"):
        return f"{kind.__module__.split('.')[0]}.{kind.__name__}; convert it with .collect().to_pandas()"
    return f"{kind.__name__}; wrap arrays with pd.DataFrame(...)"


def check_frame(frame: Any) -> None:
    """Refuse what can't be a table of features, before anything is learned from it."""
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"rows must be {FRAMES}, got {kind_of_frame(frame)}")
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise DataError(
            f"the frame is empty: {frame.shape[0]} rows and {frame.shape[1]} columns; give at least one of each"
        )
    repeated = frame.columns[frame.columns.duplicated()].unique().tolist()
    if repeated:
        raise DataError(f"column names repeat: {repeated}; rename them so that each is unique")
    odd = [c for c in frame.columns if not isinstance(plain(c), str) and type(plain(c)) is not int]
    if odd:
        raise DataError(
            f"column names must be text or whole numbers, found {odd[0]!r}; rename with frame.columns = [...]"
        )
    for name in frame.columns:
        _refuse_half_read("a column is called", [name])


def describe(
    column: pd.Series,
    kind: Kind | str | None,
    order: Sequence[Level] | None,
    limits: tuple[float, float] | None,
    min_count: int = 1,
    special: Sequence[float] | None = None,
) -> Feature:
    """One column's feature, from its dtype and values and from what the caller overrides.

    min_count: what fewer rows have is not named, unless the caller did so. special: numbers that stand for something;
    None looks for them.
    """
    _refuse_dtype(column)
    chosen = _kind_of(column, None if kind is None else _known_kind(column, kind), order)
    missing = int(column.isna().sum()) >= min_count
    common = {
        "name": plain(column.name),
        "kind": chosen,
        "dtype": dtype_text(column.dtype),
        "missing": missing,
        "missing_object": _missing_object(column) if missing else "nan",
        **_category_facts(column),
    }
    if chosen.is_number:
        low, high = _limits(column, limits, whole=chosen is Kind.INTEGER)
        if limits is None and min_count > 1:
            low, high = _common_limits(column, min_count)
        if kind is None and chosen is Kind.INTEGER:
            _refuse_counter(column)
        found = _found_special(column, min_count) if special is None else _given_special(column, special)
        return Feature(**common, minimum=low, maximum=high, special=found)
    if special:
        raise SchemaError(f"column {column.name!r} is {chosen}: special values are for numbers; drop it from special")
    if limits is not None:
        raise SchemaError(f"column {column.name!r} is {chosen}: limits are for numbers; drop it from limits")
    levels = _levels(column, order)
    _refuse_half_read(f"column {column.name!r} holds", [*levels, *(common.get("categories") or ())])
    _refuse_identifier(column, len(levels), overridden=kind is not None or order is not None)
    if order is None and min_count > 1:
        common, levels = _without_rare(column, common, levels, min_count)
    return Feature(**common, levels=levels)


def _refuse_half_read(where: str, values: Sequence[Any]) -> None:
    """Refuse text that no file can hold, before a model is trained that can't be saved."""
    odd = next((value for value in values if is_half_read(value)), None)
    if odd is not None:
        raise DataError(f"{where} {odd!r}, which is no text in Unicode; read the table by its own encoding")


def _known_kind(column: pd.Series, kind: Kind | str) -> Kind:
    try:
        return Kind(kind)
    except ValueError:
        raise SchemaError(f"column {column.name!r}: " + named("kind", kind, [k.value for k in Kind])) from None


def _kind_of(column: pd.Series, chosen: Kind | None, order: Sequence[Level] | None) -> Kind:
    if order is not None:
        if chosen not in (None, Kind.ORDINAL):
            raise SchemaError(
                f"column {column.name!r} has an order, which makes it ordinal, and kind {str(chosen)!r}; drop one"
            )
        return Kind.ORDINAL
    guess = _guess(column)
    if chosen is None:
        return guess
    if chosen.is_number and not guess.is_number:
        raise SchemaError(
            f"column {column.name!r} holds {column.dtype} values and can't be {chosen}; convert it to numbers first"
        )
    if chosen is Kind.INTEGER and guess is Kind.CONTINUOUS:
        raise SchemaError(
            f"column {column.name!r} has fractions and can't be integer; round it first or leave it continuous"
        )
    if chosen is Kind.BOOLEAN and column.dropna().nunique() > 2:
        raise SchemaError(f"column {column.name!r} has more than two values and can't be boolean; use categorical")
    return chosen


def _guess(column: pd.Series) -> Kind:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return Kind.ORDINAL if dtype.ordered else Kind.CATEGORICAL
    if pd.api.types.is_bool_dtype(dtype):
        return Kind.BOOLEAN
    if pd.api.types.is_integer_dtype(dtype):
        return Kind.INTEGER
    if pd.api.types.is_float_dtype(dtype):
        values = column.dropna().to_numpy(dtype=float)
        whole = len(values) > 0 and bool(np.all(np.mod(values, 1.0) == 0.0))
        return Kind.INTEGER if whole else Kind.CONTINUOUS
    return Kind.CATEGORICAL


def _refuse_dtype(column: pd.Series) -> None:
    dtype = column.dtype
    name = column.name
    kinds = pd.api.types
    what = refused_kind(dtype)
    if what is not None:
        raise DataError(f"column {name!r} holds {what}s ({dtype}), which no feature can be; {remedy(what, name)}")
    odd = kinds.is_complex_dtype(dtype) or isinstance(dtype, pd.SparseDtype | pd.IntervalDtype)
    if dtype_text(dtype).startswith("dictionary"):
        raise DataError(
            f"column {name!r} has dtype {dtype}, which is not supported; convert it with X[{name!r}].astype('category')"
        )
    if odd or not is_dtype(dtype_text(dtype)):
        raise DataError(f"column {name!r} has dtype {dtype}, which is not supported; convert it to numbers or text")
    if kinds.is_numeric_dtype(dtype) and not kinds.is_bool_dtype(dtype):
        _refuse_numbers(column)
    if dtype == object:
        _refuse_objects(column)


def _refuse_numbers(column: pd.Series) -> None:
    values = column.dropna().to_numpy(dtype=float)
    bad = ~np.isfinite(values)
    if bad.any():
        raise DataError(
            f"column {column.name!r} holds {int(bad.sum())} infinite numbers; replace them with NaN or a limit"
        )
    largest = np.abs(values).max(initial=0.0)
    if largest > MAX_NUMBER:
        raise DataError(
            f"column {column.name!r} holds {largest:g}, beyond {MAX_NUMBER:g}; replace it with NaN or a limit"
        )
    if pd.api.types.is_integer_dtype(column.dtype) and largest > MAX_EXACT_INTEGER:
        raise DataError(
            f"column {column.name!r} holds whole numbers beyond 2**53, as identifiers do; drop it or convert it to text"
        )
    if getattr(column.dtype, "itemsize", 8) > 8:
        raise DataError(f"column {column.name!r} has dtype {column.dtype}; convert it with .astype('float64')")


def _refuse_objects(column: pd.Series) -> None:
    for value in column.array:
        if value is None or value is pd.NA:
            continue
        what = next((what for kind, what in REFUSED_OBJECTS.items() if isinstance(value, kind)), None)
        if what is not None and value is not pd.NaT:
            raise DataError(
                f"column {column.name!r} holds a {type(value).__name__} ({str(value)[:60]}), which no feature can be; "
                + remedy(what, column.name, "objects")
            )
        if not isinstance(value, str | bool | int | float | np.bool_ | np.integer | np.floating):
            raise DataError(
                f"column {column.name!r} holds a {type(value).__name__} ({str(value)[:60]}); categories may be text, "
                "numbers or booleans: convert it with .astype(str)"
            )
        if isinstance(value, float | np.floating) and math.isinf(value):
            raise DataError(f"column {column.name!r} holds an infinite number; replace it with NaN or a limit")


def _refuse_identifier(column: pd.Series, n_levels: int, *, overridden: bool) -> None:
    rows = len(column)
    looks_like_text = not isinstance(column.dtype, pd.CategoricalDtype) and not overridden
    if looks_like_text and rows >= IDENTIFIER_ROWS and n_levels > IDENTIFIER_SHARE * rows:
        raise DataError(
            f"column {column.name!r} has {n_levels} different values in {rows} rows, as identifiers do; drop it, "
            "or say kinds={...: 'categorical'} if it really is a category"
        )
    if n_levels > MAX_LEVELS:
        raise DataError(
            f"column {column.name!r} has {n_levels} categories, more than {MAX_LEVELS}; group the rare ones or drop it"
        )


def _refuse_counter(column: pd.Series) -> None:
    """Refuse whole numbers that name the rows: hardly one repeats, and a name or an order says that they count.

    A table that is sorted by a measured column rises too, but hardly in equal steps.
    """
    values = column.dropna().to_numpy(dtype=float)
    n, different = len(values), len(np.unique(values))
    if n < IDENTIFIER_ROWS or different <= IDENTIFIER_SHARE * n:
        return
    name = str(column.name)
    steps = np.diff(values)
    equal = bool(np.mean(steps == np.median(steps)) > EQUAL_STEPS)
    signs = {
        "its name says so": bool({word.lower() for word in WORD.findall(name)} & IDENTIFIER_WORDS),
        "they rise from row to row": equal and bool((steps > 0).all()),
        "they fall from row to row": equal and bool((steps < 0).all()),
        "they count without a gap": different == n == np.ptp(values) + 1,
    }
    sign = next((text for text, holds in signs.items() if holds), None)
    if sign is not None:
        raise DataError(
            f"column {name!r} has {different} different whole numbers in {n} rows, and {sign}, as identifiers do; drop "
            f"it, or say kinds={{{column.name!r}: 'integer'}} if it really is measured"
        )


def _given_special(column: pd.Series, special: Sequence[float]) -> tuple[float, ...]:
    try:
        found = tuple(sorted({float(value) for value in special}))
    except (TypeError, ValueError):
        found = (math.nan,)
    if not all(map(math.isfinite, found)):
        raise SchemaError(f"column {column.name!r}: special lists numbers, got {special!r}")
    return found


def _found_special(column: pd.Series, min_count: int) -> tuple[float, ...]:
    """Numbers that stand for something, as -9 for no record and 999 for unknown: outside all others, and repeated.

    Below zero they are few whole numbers among others that are none below; above they are written with nines alone,
    far from the next.
    """
    values = column.dropna().to_numpy(dtype=float)
    distinct, counts = np.unique(values, return_counts=True)
    least = max(min_count, LEAST_SPECIAL, math.ceil(SPECIAL_SHARE * len(values)))
    below, found = distinct < 0, []
    coded = 0 < below.sum() <= MOST_SPECIAL and (counts[below] >= least).all() and not np.mod(distinct[below], 1).any()
    if coded and (~below).sum() >= LEAST_MEASURED:
        found += distinct[below].tolist()
    rest = distinct[~below] if found else distinct
    if len(rest) > LEAST_MEASURED and counts[-1] >= least and NINES.fullmatch(f"{rest[-1]:.0f}") and rest[-1] % 1 == 0:
        gap = rest[-1] - rest[-2]
        if gap > SPECIAL_GAP * (rest[-2] - rest[0]):
            found.append(float(rest[-1]))
    return tuple(found)


def _limits(column: pd.Series, limits: tuple[float, float] | None, *, whole: bool) -> tuple[float, float]:
    values = column.dropna().to_numpy(dtype=float)
    if len(values) == 0:
        raise DataError(f"column {column.name!r} is a number column without any number; drop it")
    low, high = float(values.min()), float(values.max())
    if limits is None:
        return low, high
    lowest, highest = _two_numbers(column, limits)
    if not (lowest <= low and high <= highest):
        raise SchemaError(
            f"column {column.name!r}: limits {lowest:g} to {highest:g} are narrower than the values seen, {low:g} to "
            f"{high:g}; widen them, or drop the rows beyond"
        )
    least, greatest = dtype_bounds(column.dtype)
    if lowest < least or highest > greatest:
        raise SchemaError(
            f"column {column.name!r}: limits {lowest:g} to {highest:g} are beyond what {column.dtype} can hold, "
            f"{least:g} to {greatest:g}; narrow them, or convert the column"
        )
    return (float(math.ceil(lowest)), float(math.floor(highest))) if whole else (lowest, highest)


def _common_limits(column: pd.Series, min_count: int) -> tuple[float, float]:
    """Limits that enough rows lie at or beyond, as the column's dtype holds them."""
    values = column.dropna().to_numpy(dtype=float)
    enough = len(values) >= min_count
    low, high = common_limits(values, min_count) if enough else (math.inf, -math.inf)
    if not enough or np.mean((values < low) | (values > high)) > MOST_BEYOND:
        raise DataError(
            f"column {column.name!r} has {len(values)} numbers, too few to hide the least and the greatest of them "
            f"among {min_count}; give more rows, leave it out, or say min_count=1 if the model file may tell them"
        )
    least, greatest = dtype_bounds(column.dtype)
    held: Any = getattr(column.dtype, "numpy_dtype", column.dtype)
    low, high = max(low, least), min(high, greatest)
    return float(np.asarray(low, dtype=held)), float(np.asarray(high, dtype=held))


def _without_rare(
    column: pd.Series, facts: dict[str, Any], levels: tuple[Level, ...], min_count: int
) -> tuple[dict[str, Any], tuple[Level, ...]]:
    """A feature's facts and levels without what few rows have; categories that no row has tell of nobody."""
    counts = counts_of(column)
    common = common_levels(levels, counts, min_count)
    if not common and not facts["missing"]:
        raise DataError(
            f"column {column.name!r} has no value that {min_count} rows share; group its values, leave it out, or say "
            "min_count=1 if the model file may name them"
        )
    if "categories" in facts:
        named = {typed(level) for level in common}
        kept = tuple(c for c in facts["categories"] if typed(c) in named or not counts.get(typed(c)))
        facts = facts | {"categories": kept}
    return facts, common


def _two_numbers(column: pd.Series, limits: Any) -> tuple[float, float]:
    try:
        lowest, highest = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        raise SchemaError(
            f"column {column.name!r}: limits must be two numbers, (lowest, highest), got {limits!r}"
        ) from None
    if not max(abs(lowest), abs(highest)) <= MAX_NUMBER:
        raise SchemaError(f"column {column.name!r}: limits must be finite, got {lowest:g} to {highest:g}; give numbers")
    return lowest, highest


def _levels(column: pd.Series, order: Sequence[Level] | None) -> tuple[Level, ...]:
    """The levels in their order: given, the dtype's own, or sorted."""
    seen = distinct(column)
    if order is not None:
        given = _ordered(column, order)
        known = {typed(v) for v in given}
        absent = [v for v in seen if typed(v) not in known]
        if absent:
            raise SchemaError(f"column {column.name!r}: the order lacks {absent[0]!r}; list every value of the column")
        return given
    if isinstance(column.dtype, pd.CategoricalDtype):
        present = {typed(v) for v in seen}
        return tuple(v for v in map(plain, column.dtype.categories) if typed(v) in present)
    return tuple(sorted(seen, key=lambda v: (type(v).__name__, v)))


def _ordered(column: pd.Series, order: Sequence[Level]) -> tuple[Level, ...]:
    """The order as values of the column's own dtype; what the dtype can't hold, or holds twice, is refused."""
    given = _held(column, list(order))
    where = f"column {column.name!r}: the order"
    if given is None:
        held = f"a value that the column ({column.dtype}) can't hold"
        raise SchemaError(f"{where} {list(order)} has {held}; list the values of the column, lowest first")
    if len({typed(v) for v in given}) < len(given):
        raise SchemaError(f"{where} {list(order)} repeats a value; list each once, lowest first")
    return given


def _held(column: pd.Series, values: list[Any]) -> tuple[Level, ...] | None:
    """`values` as the column's dtype holds them, or None where it can't."""
    given = [plain(v) for v in values]
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = {typed(plain(v)) for v in column.dtype.categories}
        return tuple(given) if all(typed(v) in known for v in given) else None
    try:
        cast = tuple(plain(v) for v in pd.Series(given, dtype=column.dtype))
    except (TypeError, ValueError, OverflowError):
        return None
    finite = all(isinstance(v, Level) and not (isinstance(v, float) and not math.isfinite(v)) for v in cast)
    rounded = pd.api.types.is_float_dtype(column.dtype)
    return cast if finite and (rounded or list(cast) == given) else None


def distinct(column: pd.Series) -> list[Level]:
    """The values that occur, as plain Python values, without missing ones; 1, 1.0 and True stay three values."""
    values = column.dropna()
    if column.dtype == object:
        return list({typed(plain(v)): plain(v) for v in values}.values())
    return [plain(v) for v in values.unique()]


def _missing_object(column: pd.Series) -> str:
    """Which of None, nan and NA an object column uses, so that decoding gives it back."""
    if column.dtype != object or not column.isna().any():
        return "nan"
    first = column[column.isna()].iloc[0]
    return "None" if first is None else "NA" if first is pd.NA else "nan"


def _category_facts(column: pd.Series) -> dict[str, Any]:
    dtype = column.dtype
    if not isinstance(dtype, pd.CategoricalDtype):
        return {}
    categories = tuple(plain(v) for v in dtype.categories)
    odd = [v for v in categories if not isinstance(v, str | bool | int | float)]
    if any(isinstance(v, float) and math.isinf(v) for v in categories):
        raise DataError(f"column {column.name!r} has an infinite category; replace it with NaN or a limit")
    if odd:
        raise DataError(
            f"column {column.name!r} has a category {odd[0]!r} of type {type(odd[0]).__name__}; categories may be "
            "text, numbers or booleans: rename them with .cat.rename_categories(str)"
        )
    return {
        "categories": categories,
        "ordered": bool(dtype.ordered),
        "categories_dtype": dtype_text(dtype.categories.dtype),
    }
