"""What few rows have, and what is told of it instead: common levels, rounded extremes, round numbers, merged counts."""

from __future__ import annotations

__all__ = [
    "common_levels",
    "common_limits",
    "counts_of",
    "means_of_rows",
    "outwards",
    "round_between",
    "round_count",
    "round_near",
    "to_digits",
]

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
import pandas as pd

from dicoflex._types import Floats
from dicoflex.table.feature import Level
from dicoflex.values import plain, typed

EXTREME_DIGITS = 2
MOST_DIGITS = 17


def counts_of(column: pd.Series) -> Mapping[Any, int]:
    """How many rows have each level, by value and type; missing ones are not counted."""
    if column.dtype == object:
        return Counter(typed(plain(value)) for value in column.dropna())
    counted = column.value_counts()
    return {typed(plain(value)): int(n) for value, n in zip(counted.index, counted, strict=True)}


def common_levels(levels: Iterable[Level], counts: Mapping[Any, int], min_count: int) -> tuple[Level, ...]:
    """The levels that at least `min_count` rows have.

    >>> common_levels(["a", "b"], counts_of(pd.Series(["a"] * 5 + ["b"])), 5)
    ('a',)
    """
    return tuple(level for level in levels if counts.get(typed(level), 0) >= min_count)


def common_limits(values: Floats, min_count: int) -> tuple[float, float]:
    """Limits that no fewer than `min_count` rows lie at or beyond, each.

    A limit is a number that as many rows have, or else one of two digits, rounded outwards.

    >>> common_limits(np.array([17.0] * 6 + [20.5, 33.0, 41.0, 61.2, 63.1, 66.7, 80.0, 99.0]), 5)
    (17.0, 62.0)
    """
    ordered = np.sort(values)
    low, high = float(ordered[min_count - 1]), float(ordered[-min_count])
    if np.count_nonzero(values == low) < min_count:
        low = outwards(low, up=False)
    if np.count_nonzero(values == high) < min_count:
        high = outwards(high, up=True)
    return low, high


def outwards(value: float, *, up: bool, digits: int = EXTREME_DIGITS) -> float:
    """The next number of so few significant digits, above or below.

    >>> outwards(823_412.5, up=True), outwards(-0.0123, up=False), outwards(97.0, up=True)
    (830000.0, -0.013, 97.0)
    """
    exact = Decimal(repr(float(value)))
    if exact == 0:
        return 0.0
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return float((exact / unit).to_integral_value(rounding) * unit)


def round_between(low: float, high: float) -> float:
    """A number of few digits above `low` and at most `high`, near the middle.

    >>> round_between(53_217.43, 53_990.1), round_between(0.1234, 0.1311), round_between(41.0, 42.0)
    (53600.0, 0.13, 42.0)
    """
    middle = low + (high - low) / 2
    first = -math.floor(math.log10(high - low)) - 1 if high - low > 0 else MOST_DIGITS
    for decimals in range(first, first + MOST_DIGITS):
        for number in (round(middle, decimals), round(high, decimals)):
            if low < number <= high:
                return float(number)
    return high


def round_near(ordered: Floats, first: int, last: int, min_count: int) -> float:
    """A round number between the rows `first` and `last` of sorted values, or past few of the rows beside them.

    It is the rows' own value where at least `min_count` of them share it.

    >>> round_near(np.array([20.01, 20.47, 33.3, 41.12, 61.2]), 2, 2, 5), round_near(np.full(9, 2.5), 4, 4, 5)
    (40.0, 2.5)
    """
    reach = min_count // 2
    low, high = float(ordered[max(first - reach, 0)]), float(ordered[min(last + reach, len(ordered) - 1)])
    return low if low == high else round_between(low, high)


def means_of_rows(ordered: Floats, min_count: int) -> Floats:
    """The means of `min_count` neighbours each among sorted values, rounded to two decimals; the values for one.

    >>> means_of_rows(np.array([1.0, 2.0, 3.0, 5.0]), 3)
    array([2.  , 3.33])
    """
    if min_count == 1:
        return ordered
    size = min(min_count, len(ordered))
    means: Floats = np.lib.stride_tricks.sliding_window_view(ordered, size).mean(axis=1)
    return np.round(means, 2)


def to_digits(values: Floats, digits: int = 4) -> Floats:
    """Numbers rounded to so many significant digits."""
    return np.array([float(f"{value:.{digits - 1}e}") for value in values], dtype=np.float64)


def round_count(count: int, min_count: int) -> int:
    """A count to two digits, or to a multiple of `min_count` where that is coarser.

    >>> round_count(32_561, 5), round_count(263, 5), round_count(23, 5), round_count(263, 1)
    (33000, 260, 25, 263)
    """
    if min_count == 1:
        return count
    unit = max(min_count, 10 ** (len(str(count)) - 2))
    return int(unit * round(count / unit))
