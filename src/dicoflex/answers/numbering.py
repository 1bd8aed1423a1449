"""How answers are numbered: the index (row, cf) of a result."""

from __future__ import annotations

__all__ = ["index_of", "numbers_within"]

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def index_of(labels: pd.Index, query: Ints) -> pd.MultiIndex:
    """The index (row, cf) of answers to the queries with these numbers, in order, whose rows have these labels.

    >>> index_of(pd.Index([7, 9]), np.array([0, 0, 1])).tolist()
    [(7, 0), (7, 1), (9, 0)]
    """
    number = numbers_within(query)
    names = ["row", "cf"]
    if _is_level(labels) and len(query) and (np.diff(query, prepend=-1, append=len(labels)) <= 1).all():
        levels: list[Any] = [labels, np.arange(number.max() + 1)]
        codes: list[Any] = [query, number]
        return pd.MultiIndex(levels, codes, names=names, verify_integrity=False)
    flat = pd.Index(labels.to_flat_index().take(query), tupleize_cols=False)
    return pd.MultiIndex.from_arrays([flat, number], names=names)


def _is_level(labels: pd.Index) -> bool:
    """Whether the labels can be a level of an index as they are, which saves looking for the distinct ones."""
    return labels.nlevels == 1 and labels.is_monotonic_increasing and labels.is_unique and not labels.hasnans


def numbers_within(query: Ints) -> Ints:
    """0, 1, 2, … within each run of equal query numbers.

    >>> numbers_within(np.array([4, 4, 7]))
    array([0, 1, 0])
    """
    start = np.flatnonzero(np.diff(query, prepend=-1))
    return np.arange(len(query)) - np.repeat(start, np.diff(np.append(start, len(query))))
