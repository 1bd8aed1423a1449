"""Arrays taken from a model file: there, and of the dtype, shape and finiteness that whoever takes them needs."""

from __future__ import annotations

__all__ = ["refuse", "refuse_others", "taken"]

from collections.abc import Collection
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dicoflex._types import Arrays
from dicoflex.errors import ModelFileError, named


def taken(
    arrays: Arrays, name: str, dtype: DTypeLike, shape: tuple[int | None, ...], *, finite: bool = True
) -> NDArray[Any]:
    """The array called `name`; one of another dtype or shape, or with numbers that are not finite, is refused.

    shape: None stands for any length.

    >>> taken({"mean": np.zeros(3)}, "mean", np.float64, (3,))
    array([0., 0., 0.])
    >>> taken({"mean": np.zeros(3)}, "mean", np.float64, (4,))
    Traceback (most recent call last):
    dicoflex.errors.ModelFileError: the model file's array 'mean' is float64 of shape (3,), not float64 of shape (4,)...
    """
    if name not in arrays:
        raise ModelFileError(f"the model file lacks the array {name!r}; save the model again")
    array, wanted = arrays[name], np.dtype(dtype)
    fits = len(array.shape) == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=True))
    if array.dtype != wanted or not fits:
        sizes = str(tuple("any" if length is None else length for length in shape)).replace("'", "")
        refuse(name, f"is {array.dtype} of shape {array.shape}, not {wanted} of shape {sizes}")
    if finite and wanted.kind == "f" and not np.isfinite(array).all():
        refuse(name, "holds numbers that are not finite")
    return array


def refuse(name: str, why: str) -> NoReturn:
    """Say that an array of a model file can't be what it is."""
    raise ModelFileError(f"the model file's array {name!r} {why}; it is damaged or was altered: save the model again")


def refuse_others(arrays: Arrays, known: Collection[str]) -> None:
    """Refuse arrays that nobody takes."""
    for name in arrays:
        if name not in known:
            raise ModelFileError(f"the model file has an array too many: {named('array', name, known)}")
