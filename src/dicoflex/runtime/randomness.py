"""Random numbers that belong to a query, not to its place in a batch.

A query's key is a hash of its encoded row and the seed; its numbers are a hash of the key and a counter. So the same
seed gives the same draws for any batching, in any order, on any number of threads.
"""

from __future__ import annotations

__all__ = ["GOLDEN", "row_keys", "seed_of", "uniforms"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.errors import SettingError
from dicoflex.runtime.threads import THREADED, in_threads

GOLDEN = np.uint64(_core.GOLDEN)


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


def row_keys(values: NDArray[np.float64], seed: int) -> NDArray[np.uint64]:
    """One 64-bit key per row of `values`; equal rows have equal keys.

    >>> a = row_keys(np.array([[1.0, 2.0], [3.0, 4.0]]), seed=0)
    >>> b = row_keys(np.array([[3.0, 4.0]]), seed=0)
    >>> bool(a[1] == b[0]), bool(a[0] == a[1])
    (True, False)
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    keys = np.full(len(values), np.uint64(seed % 2**64))

    def work(low: int, high: int) -> None:
        _core.hash_rows(values, low=low, high=high, keys=keys)

    in_threads(work, len(keys), least=THREADED)
    return keys


def uniforms(keys: NDArray[np.uint64], first: int | NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Numbers `first` to `first + count` of each key's stream, strictly between 0 and 1: (len(keys), count).

    `first` is one number, or one per key.
    """
    start = np.empty(len(keys), dtype=np.uint64)
    start[:] = first
    out = np.empty((len(keys), count))
    _core.uniforms(keys=keys, first=start, out=out)
    return out
