"""A keyed hash of rows: without the key it can be neither run backwards nor tried on a guess."""

from __future__ import annotations

__all__ = ["HASH_KEY_BYTES", "keyed_hashes"]

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.runtime.threads import THREADED, in_threads

HASH_KEY_BYTES = 16


def keyed_hashes(values: NDArray[np.float64], key: bytes) -> NDArray[np.uint64]:
    """One 64-bit hash per row of `values` under a key of 16 bytes; equal rows have equal hashes.

    It is SipHash-2-4 (Aumasson and Bernstein 2012) over the row's eight-byte numbers.

    >>> rows = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    >>> a, b, again = keyed_hashes(rows, bytes(16))
    >>> bool(a == again), bool(a == b), bool(a == keyed_hashes(rows, b"another key of 16")[0])
    (True, False, False)
    """
    # Why not `row_keys` with a secret seed: each of its steps is a bijection that anybody can run backwards, so the
    # seed falls out of one known row, and any column out of the others. SipHash is built to be a pseudorandom function:
    # what it gives for some rows tells nothing of the key, nor of what it gives for others, and it is as quick.
    values = np.ascontiguousarray(values, dtype=np.float64)
    hashes = np.empty(len(values), dtype=np.uint64)
    one, two = np.frombuffer(key[:HASH_KEY_BYTES], dtype="<u8").tolist()

    def work(low: int, high: int) -> None:
        _core.keyed_hashes(values, one=one, two=two, low=low, high=high, hashes=hashes)

    in_threads(work, len(hashes), least=THREADED)
    return hashes
