"""Arrays of a file shortened, lengthened, reshaped, of another dtype, or with other numbers in them."""

from __future__ import annotations

__all__ = ["forge_arrays"]

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Arrays

Generator = np.random.Generator
Array = NDArray[Any]
DTYPES = ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
WHOLE = 0.2
EXTREMES = (0.0, -1.0, 1.0, 2.0, 1e3, -1e3, 2.0**31, -(2.0**31), 1e12, 1e18, 1e30, -1e30, 1e150, 1.7e308, 5e-324)


def forge_arrays(arrays: Arrays, rng: Generator) -> tuple[Arrays, str]:
    """The arrays with one of them altered, gone or under another's name, and what was done to which."""
    names = sorted(arrays)
    name, other = (names[int(i)] for i in rng.integers(len(names), size=2))
    if rng.random() < WHOLE:
        way = str(rng.choice(list(WHOLE_WAYS)))
        return WHOLE_WAYS[way](arrays, name, other), f"{name}: {way}"
    way = str(rng.choice(list(WAYS)))
    with np.errstate(all="ignore"):
        return arrays | {name: WAYS[way](arrays[name], rng)}, f"{name}: {way}"


# -- which arrays there are -------------------------------------------------------------------------------------------


def _removed(arrays: Arrays, name: str, other: str) -> Arrays:  # noqa: ARG001
    return {k: v for k, v in arrays.items() if k != name}


def _renamed(arrays: Arrays, name: str, other: str) -> Arrays:  # noqa: ARG001
    return {f"{k}.more" if k == name else k: v for k, v in arrays.items()}


def _added(arrays: Arrays, name: str, other: str) -> Arrays:  # noqa: ARG001
    return arrays | {f"{name}_": arrays[name]}


def _swapped(arrays: Arrays, name: str, other: str) -> Arrays:
    return arrays | {name: arrays[other], other: arrays[name]}


def _anothers(arrays: Arrays, name: str, other: str) -> Arrays:
    return arrays | {name: arrays[other]}


WHOLE_WAYS: dict[str, Callable[[Arrays, str, str], Arrays]] = {
    "removed": _removed,
    "renamed": _renamed,
    "there twice": _added,
    "swapped": _swapped,
    "another's": _anothers,
}


# -- what is in one ---------------------------------------------------------------------------------------------------


def _shortened(array: Array, rng: Generator) -> Array:
    axis = int(rng.integers(array.ndim)) if array.ndim else 0
    if array.ndim == 0:
        return array.reshape(1)[:0]
    left = int(rng.choice([0, 1, max(0, array.shape[axis] - 1), array.shape[axis] // 2]))
    return array.take(np.arange(min(left, array.shape[axis])), axis=axis)


def _lengthened(array: Array, rng: Generator) -> Array:
    if array.ndim == 0 or array.size == 0:
        return np.zeros(3, array.dtype)
    axis = int(rng.integers(array.ndim))
    more = int(rng.choice([1, 2, array.shape[axis], 1000]))
    return np.concatenate([array, np.repeat(array.take([-1], axis=axis), more, axis=axis)], axis=axis)


def _reshaped(array: Array, rng: Generator) -> Array:
    shapes = [(-1,), (1, -1), (-1, 1), (1, 1, -1), (1, *array.shape), (*array.shape, 1)]
    if array.ndim > 1:
        return array.T if bool(rng.integers(2)) else array.reshape(-1)
    return array.reshape(shapes[int(rng.integers(len(shapes)))]) if array.size else array.reshape(0, 5)


def _retyped(array: Array, rng: Generator) -> Array:
    dtype = np.dtype(str(rng.choice(DTYPES)))
    same_size = array.size and array.dtype.itemsize == dtype.itemsize and dtype.kind != "b"
    return array.view(dtype) if same_size and bool(rng.integers(2)) else array.astype(dtype)


def _zeros(array: Array, rng: Generator) -> Array:  # noqa: ARG001
    return np.zeros_like(array)


def _no_numbers(array: Array, rng: Generator) -> Array:
    """NaN or an infinity in one place, or in all; in integers what a cast makes of them."""
    odd = float(rng.choice([np.nan, np.inf, -np.inf]))
    return _put(array, rng, np.asarray(odd).astype(array.dtype))


def _extreme(array: Array, rng: Generator) -> Array:
    return _put(array, rng, np.asarray(float(rng.choice(EXTREMES))).astype(array.dtype))


def _huge(array: Array, rng: Generator) -> Array:
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        return _put(array, rng, np.asarray([info.max, info.min, info.max // 2][int(rng.integers(3))], array.dtype))
    return (array.astype(np.float64) * float(rng.choice([1e6, 1e30, -1e30, 1e300]))).astype(array.dtype)


def _put(array: Array, rng: Generator, value: Array) -> Array:
    """A copy with a value in one place, in a few, or in all."""
    forged = array.copy()
    flat = forged.reshape(-1)
    if array.size:
        n = int(rng.choice([1, 1, min(5, array.size), array.size]))
        flat[rng.choice(array.size, n, replace=False)] = value
    return forged


def _negative(array: Array, rng: Generator) -> Array:  # noqa: ARG001
    return ~array if array.dtype.kind == "b" else (np.zeros_like(array) - array).astype(array.dtype)


def _ordered(array: Array, rng: Generator) -> Array:
    ordered = np.sort(array.reshape(-1))
    return (ordered if bool(rng.integers(2)) else ordered[::-1]).reshape(array.shape)


def _shuffled(array: Array, rng: Generator) -> Array:
    return rng.permutation(array.reshape(-1)).reshape(array.shape)


def _neighbours(array: Array, rng: Generator) -> Array:
    """One place a little off: plus or minus one, or the number beside it."""
    if not array.size or array.dtype.kind == "b":
        return array
    forged = array.copy()
    flat, at = forged.reshape(-1), int(rng.integers(array.size))
    if bool(rng.integers(2)):
        flat[at] = flat[at - 1]
    else:
        flat[at] += np.asarray(int(rng.choice([1, -1]))).astype(array.dtype)
    return forged


def _random(array: Array, rng: Generator) -> Array:
    """Any bytes; of floats those that are finite."""
    if array.dtype.kind == "b":
        return rng.random(array.shape) < 0.5
    if array.dtype.kind in "iu":
        top = int(rng.choice([2, 12, max(2, array.size), 2**7 - 1]))
        return rng.integers(top, size=array.shape).astype(array.dtype)
    return (rng.standard_normal(array.shape) * 10.0 ** int(rng.integers(-5, 30))).astype(array.dtype)


WAYS: dict[str, Callable[[Array, Generator], Array]] = {
    "shortened": _shortened,
    "lengthened": _lengthened,
    "reshaped": _reshaped,
    "another dtype": _retyped,
    "zeros": _zeros,
    "no numbers": _no_numbers,
    "extreme": _extreme,
    "huge": _huge,
    "negative": _negative,
    "ordered": _ordered,
    "shuffled": _shuffled,
    "a little off": _neighbours,
    "random": _random,
}
