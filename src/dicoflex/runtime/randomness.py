"""Random numbers that belong to a query, not to its place in a batch.

A query's key is a hash of its encoded row and the seed; its numbers are a hash of the key and a counter. So the same
seed gives the same draws for any batching, in any order, on any number of threads.
"""

from __future__ import annotations

__all__ = ["GOLDEN", "mix", "pattern_of", "row_keys", "seed_of", "uniforms"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.errors import SettingError
from dicoflex.runtime.compiled import compiled
from dicoflex.runtime.threads import THREADED, in_threads

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
MISSING = np.uint64(0x7FF8000000000000)


def seed_of(random_state: Any) -> int:
    """The seed that a `random_state` states, whatever its size; None draws one.

    >>> seed_of(7), seed_of(2**64 + 7)
    (7, 7)
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] % 2**63)
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise SettingError(f"random_state must be a whole number of at least 0 or None, got {random_state!r}")
    return int(random_state) % 2**64


@compiled(inline="always")
def mix(z):  # type: ignore[no-untyped-def]
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every input bit reaches every output bit.

    `mix.py_func` is the same for arrays.
    """
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
    values = np.ascontiguousarray(values, dtype=np.float64)
    keys, bits = np.full(len(values), np.uint64(seed % 2**64)), values.view(np.uint64)
    if len(keys) < THREADED:
        _hash_rows(0, len(keys), values, bits, keys)
    else:
        in_threads(lambda low, high: _hash_rows(low, high, values, bits, keys), len(keys))
    return keys


@compiled()
def pattern_of(value, bits):  # type: ignore[no-untyped-def]
    """The bits of a value to hash; zero and missing have one pattern each, whatever sign they came with."""
    if value == 0.0:
        return np.uint64(0)
    return MISSING if np.isnan(value) else bits


@compiled(nogil=True)
def _hash_rows(low, high, values, bits, keys):  # type: ignore[no-untyped-def]
    """Mix all of a row's bits into its key, one column after the other."""
    for i in range(low, high):
        z = keys[i]
        for j in range(values.shape[1]):
            z = mix((z ^ pattern_of(values[i, j], bits[i, j])) + GOLDEN)
        keys[i] = z


def uniforms(keys: NDArray[np.uint64], first: int | NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Numbers `first` to `first + count` of each key's stream, strictly between 0 and 1: (len(keys), count).

    `first` is one number, or one per key.
    """
    start = np.broadcast_to(np.asarray(first, dtype=np.uint64), len(keys))
    counter: NDArray[np.uint64] = np.add.outer(start, np.arange(1, count + 1, dtype=np.uint64))
    with np.errstate(over="ignore"):
        bits: NDArray[np.uint64] = mix.py_func(keys[:, None] + counter * GOLDEN)
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
