"""A keyed hash of rows: without the key it can be neither run backwards nor tried on a guess."""

from __future__ import annotations

__all__ = ["HASH_KEY_BYTES", "keyed_hashes"]

import numpy as np
from numpy.typing import NDArray

from dicoflex.runtime.compiled import compiled
from dicoflex.runtime.randomness import pattern_of
from dicoflex.runtime.threads import THREADED, in_threads

HASH_KEY_BYTES = 16
# The initial state and the finaliser of SipHash.
_START = np.frombuffer(b"somepseudorandomlygeneratedbytes", dtype=">u8").astype(np.uint64)
_END = np.uint64(0xFF)


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
    one, two = np.frombuffer(key[:HASH_KEY_BYTES], dtype="<u8").astype(np.uint64)
    start = _START ^ np.array([one, two, one, two])

    def work(low: int, high: int) -> None:
        _sip_rows(low, high, values, values.view(np.uint64), start, hashes)

    in_threads(work, len(hashes), least=THREADED)
    return hashes


@compiled(nogil=True)
def _sip_rows(low, high, values, bits, start, hashes):  # type: ignore[no-untyped-def]
    """Hash rows low to high; the last word of a message is its length in bytes."""
    d = values.shape[1]
    length = np.uint64((8 * d) % 256) << np.uint64(56)
    for i in range(low, high):
        a, b, c, e = start[0], start[1], start[2], start[3]
        for j in range(d + 1):
            word = pattern_of(values[i, j], bits[i, j]) if j < d else length
            e = e ^ word
            a, b, c, e = _sip_round(a, b, c, e)
            a, b, c, e = _sip_round(a, b, c, e)
            a = a ^ word
        c = c ^ _END
        for _ in range(4):
            a, b, c, e = _sip_round(a, b, c, e)
        hashes[i] = a ^ b ^ c ^ e


@compiled()
def _sip_round(a, b, c, e):  # type: ignore[no-untyped-def]
    a, c = a + b, c + e
    b, e = _turned(b, np.uint64(13)) ^ a, _turned(e, np.uint64(16)) ^ c
    a = _turned(a, np.uint64(32))
    c, a = c + b, a + e
    b, e = _turned(b, np.uint64(17)) ^ c, _turned(e, np.uint64(21)) ^ a
    return a, b, _turned(c, np.uint64(32)), e


@compiled()
def _turned(x, by):  # type: ignore[no-untyped-def]
    return (x << by) | (x >> (np.uint64(64) - by))
