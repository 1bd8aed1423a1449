"""What a call computes for each of its queries once, however often and in whatever parts they are drawn for."""

from __future__ import annotations

__all__ = ["Arrays", "Once"]

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Ints

Arrays = tuple[NDArray[Any], ...]


@dataclass
class _Known:
    """The arrays of one key; `done` says which queries' entries are there."""

    key: object  # kept, so that no other object gets its number
    done: NDArray[np.bool_]
    arrays: Arrays = ()


class Once:
    """Arrays with one entry per query of a call, each entry computed when it is first asked for.

    >>> squares = Once(4)
    >>> def make(at):
    ...     print("making", rows[at])
    ...     return (rows[at] ** 2,)
    >>> rows = np.array([1, 3])
    >>> squares.get("square", rows, make)
    making [1 3]
    (array([1, 9]),)
    >>> rows = np.array([3, 2, 3])
    >>> squares.get("square", rows, make)
    making [2]
    (array([9, 4, 9]),)
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._known: dict[int, _Known] = {}

    def get(self, key: object, rows: Ints, make: Callable[[Ints], Arrays]) -> Arrays:
        """The entries of the queries numbered `rows`; `make` gives those at some places of `rows`."""
        known = self._known.setdefault(id(key), _Known(key, np.zeros(self._n, dtype=bool)))
        if not known.done[rows].all():
            numbers, places = np.unique(rows, return_index=True)
            lacking = ~known.done[numbers]
            self._fill(known, numbers[lacking], make(places[lacking]))
        return tuple(array[rows] for array in known.arrays)

    def _fill(self, known: _Known, numbers: Ints, made: Arrays) -> None:
        if not known.arrays:
            known.arrays = tuple(np.empty((self._n, *part.shape[1:]), dtype=part.dtype) for part in made)
        for array, part in zip(known.arrays, made, strict=True):
            array[numbers] = part
        known.done[numbers] = True
