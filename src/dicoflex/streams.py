"""Random numbers that belong to a query, not to its place in a batch.

A query's key is a hash of its encoded row and the seed; its numbers are a hash of the key and a counter. So the same
seed gives the same draws for any batching, in any order, on any number of threads.
"""

from __future__ import annotations

__all__ = ["GOLDEN", "row_keys", "uniforms"]

import numba
import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every input bit reaches every output bit."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_A
    z = (z ^ (z >> np.uint64(27))) * _MIX_B
    return z ^ (z >> np.uint64(31))


def row_keys(values: NDArray[np.float64], seed: int) -> NDArray[np.uint64]:
    """One 64-bit key per row of `values`; equal rows have equal keys.

    >>> a = row_keys(np.array([[1.0, 2.0], [3.0, 4.0]]), seed=0)
    >>> b = row_keys(np.array([[3.0, 4.0]]), seed=0)
    >>> bool(a[1] == b[0]), bool(a[0] == a[1])
    (True, False)
    """
    # Zero and missing have one pattern of bits each here, whatever sign they came with.
    bits = np.ascontiguousarray(np.where(np.isnan(values), np.nan, values + 0.0)).view(np.uint64)
    keys = np.full(len(values), np.uint64(seed % 2**64))
    _hash_rows(bits, keys)
    return keys


@numba.njit(cache=True, nogil=True)
def _hash_rows(bits, keys):  # type: ignore[no-untyped-def]
    """Mix all of a row's bits into its key, one column after the other."""
    for i in range(len(keys)):
        z = keys[i]
        for j in range(bits.shape[1]):
            z = (z ^ bits[i, j]) + GOLDEN
            z = (z ^ (z >> np.uint64(30))) * _MIX_A
            z = (z ^ (z >> np.uint64(27))) * _MIX_B
            z = z ^ (z >> np.uint64(31))
        keys[i] = z


def uniforms(keys: NDArray[np.uint64], first: int, count: int) -> NDArray[np.float64]:
    """Numbers `first` to `first + count` of each key's stream, strictly between 0 and 1: (len(keys), count)."""
    counter = np.arange(first + 1, first + 1 + count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits = _mix(keys[:, None] + counter[None, :] * GOLDEN)
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
