"""The training rows that a model remembers: hashes under a key that stands in no file.

Without the key a hash can neither be inverted nor compared with a guess.
"""

from __future__ import annotations

__all__ = ["KEY_BYTES", "Hashes", "Remembered", "keyed_hashes", "new_key", "read_key", "row_hashes"]

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.errors import SettingError
from dicoflex.runtime.threads import THREADED, in_threads
from dicoflex.table.reals import Values

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


Hashes = NDArray[np.uint64]
KEY_BYTES = 32
MARK_BYTES = 8


@dataclass(frozen=True, eq=False)
class Remembered:
    """Which rows a model was trained on, told to those alone who have the key.

    hashes: one per different row, sorted. mark: by which the right key is told from others. key: the secret of whoever
    fitted the model; None where it was not handed in, as after loading a file without it.

    >>> key = new_key()
    >>> remembered = Remembered.of([row_hashes(np.array([[1.0, 2.0], [3.0, 4.0]]), key)], key)
    >>> remembered.hold(np.array([[3.0, 4.0], [3.0, 5.0]])).tolist()
    [True, False]
    """

    hashes: Hashes
    mark: str
    key: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, parts: Sequence[Hashes], key: bytes) -> Remembered:
        """The rows whose `row_hashes` under `key` are in one of the parts."""
        return cls(np.unique(np.concatenate(parts)), _mark(key), key)

    def opened(self, key: bytes) -> Remembered:
        """The same rows with their key at hand; another key is a `SettingError`."""
        if _mark(key) != self.mark:
            raise SettingError(
                "row_key is not the key that this model's rows were remembered under; give the row_key_ of the "
                "explainer that was fitted, or leave it out"
            )
        return replace(self, key=key)

    def hold(self, values: Values) -> NDArray[np.bool_]:
        """Which rows of a matrix are among them; a row that is not passes for one with a chance of n / 2**64."""
        assert self.key is not None
        if len(self.hashes) == 0:
            return np.zeros(len(values), dtype=bool)
        wanted = row_hashes(values, self.key)
        at = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        held: NDArray[np.bool_] = self.hashes[at] == wanted
        return held


def new_key() -> bytes:
    """A fresh key; it must be kept by whoever wants to use it again."""
    return secrets.token_bytes(KEY_BYTES)


def read_key(given: Any, name: str = "row_key") -> bytes:
    """The key that a caller hands in: 32 bytes, or their 64 hexadecimal digits.

    A word that people could guess is refused: with it the file could be tried on guesses.

    >>> read_key("00" * 32) == bytes(32)
    True
    """
    key = given
    if isinstance(given, str):
        try:
            key = bytes.fromhex(given.strip())
        except ValueError:
            key = b""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise SettingError(
            f"{name} must be {KEY_BYTES} bytes or their {2 * KEY_BYTES} hexadecimal digits, as secrets.token_hex"
            f"({KEY_BYTES}) makes them"
        )
    return key


def row_hashes(values: Values, key: bytes) -> Hashes:
    """The hashes under `key` of a matrix's rows; repeats are left in."""
    return keyed_hashes(values, hashlib.blake2b(key=key, digest_size=HASH_KEY_BYTES, person=b"dicoflex rows").digest())


def _mark(key: bytes) -> str:
    return hashlib.blake2b(key=key, digest_size=MARK_BYTES, person=b"dicoflex mark").hexdigest()
