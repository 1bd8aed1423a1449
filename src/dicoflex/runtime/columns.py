"""Records of equally long arrays, one entry per row: take some, join several, repeat each."""

from __future__ import annotations

__all__ = ["Columns", "is_all"]

from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np


class Columns:
    """A base for frozen dataclasses whose fields are arrays with one entry per row.

    WHOLE names fields that belong to the record as a whole, and are left as they are.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Points(Columns):
    ...     x: np.ndarray
    ...     y: np.ndarray
    >>> points = Points(np.arange(3), np.arange(3) * 10)
    >>> Points.join([points.take([2]), points.take(slice(1))]).y
    array([20,  0])
    """

    WHOLE: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _by_row(cls) -> tuple[str, ...]:
        return _names(cls)[0]  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.__dict__[_names(type(self))[0][0]])  # type: ignore[arg-type]

    def take(self, index: Any) -> Self:
        """The rows at `index`; the record itself where that is all of them."""
        own, by_row = self.__dict__, _names(type(self))[0]  # type: ignore[arg-type]
        if is_all(index, len(own[by_row[0]])):
            return self
        return self._with({name: own[name][index] for name in by_row})

    def but(self, **columns: Any) -> Self:
        """The same record with some of its columns set otherwise."""
        return self._with({name: self.__dict__[name] for name in self._by_row()} | columns)

    def repeat(self, n: int) -> Self:
        """Every row `n` times, one after the other."""
        return self._with({name: np.repeat(getattr(self, name), n, axis=0) for name in self._by_row()})

    def _with(self, changed: dict[str, Any]) -> Self:
        """The same record with other columns; `dataclasses.replace` would look at every field anew."""
        made = object.__new__(type(self))
        own = self.__dict__
        for name in _names(type(self))[1]:  # type: ignore[arg-type]
            changed[name] = own[name]
        made.__dict__.update(changed)
        return made

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """All rows of `parts`, one after the other; what is of the whole is the first one's."""
        if len(parts) == 1:
            return parts[0]
        return parts[0]._with({n: np.concatenate([getattr(part, n) for part in parts]) for n in cls._by_row()})


def is_all(index: Any, n: int) -> bool:
    """Whether an index is seen at once to be that of all rows in their order; single rows are asked for most often."""
    if isinstance(index, slice):
        return index.start in (0, None) and index.step is None and (index.stop is None or index.stop >= n)
    if not isinstance(index, np.ndarray) or len(index) != n:
        return False
    return bool(index.all()) if index.dtype == bool else n == 1 and bool(index[0] == 0)


@cache
def _names(kind: type[Columns]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of a class of records that have an entry per row, and those of the whole."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    by_row = tuple(name for name in names if name not in kind.WHOLE)
    return by_row, tuple(name for name in names if name in kind.WHOLE)
