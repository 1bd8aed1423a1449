"""The keyed hash of rows is SipHash-2-4: the published values, and nothing of a row but its values counts."""

from __future__ import annotations

import numpy as np
import pytest

from dicoflex.runtime.threads import THREADED
from dicoflex.table.remembered import keyed_hashes

KEY = bytes(range(16))
MASK = 2**64 - 1


def turned(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & MASK


def siphash(message: bytes, key: bytes) -> int:
    """SipHash-2-4 of whole words as its authors define it, in plain integers."""

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = turned(v[1], 13) ^ v[0]
            v[0] = turned(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = turned(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = turned(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = turned(v[1], 17) ^ v[2]
            v[2] = turned(v[2], 32)

    k = [int.from_bytes(key[i : i + 8], "little") for i in (0, 8)]
    v = [k[0] ^ 0x736F6D6570736575, k[1] ^ 0x646F72616E646F6D, k[0] ^ 0x6C7967656E657261, k[1] ^ 0x7465646279746573]
    words = [int.from_bytes(message[i : i + 8], "little") for i in range(0, len(message), 8)]
    for word in [*words, (len(message) % 256) << 56]:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


# The first bytes 0, 1, 2, … under the key 0, 1, …, 15: entries of the list that the authors publish.
PUBLISHED = {8: 0x93F5F5799A932462, 16: 0x3F2ACC7F57C29BDB}


@pytest.mark.parametrize("size", PUBLISHED)
def test_published_values(size: int) -> None:
    message = bytes(range(size))
    row = np.frombuffer(message, dtype="<f8")[None, :]
    assert siphash(message, KEY) == PUBLISHED[size]
    assert int(keyed_hashes(row, KEY)[0]) == PUBLISHED[size]


@pytest.mark.parametrize("width", [1, 5, 32, 40])
def test_rows_of_any_width_on_any_number_of_threads(width: int) -> None:
    rows = np.random.default_rng(0).normal(size=(THREADED + 3, width))
    hashes = keyed_hashes(rows, KEY)
    some = [0, 17, THREADED + 2]
    assert hashes[some].tolist() == [siphash(rows[i].astype("<f8").tobytes(), KEY) for i in some]
    assert len(np.unique(hashes)) == len(rows)


def test_signs_of_zero_and_of_missing_don_t_count() -> None:
    rows = np.array([[0.0, np.nan], [-0.0, -np.nan], [0.0, 1.0]])
    one, two, other = keyed_hashes(rows, KEY)
    assert one == two != other


def test_another_key_gives_other_hashes() -> None:
    rows = np.arange(200.0).reshape(100, 2)
    assert not np.isin(keyed_hashes(rows, bytes(16)), keyed_hashes(rows, KEY)).any()


def test_no_rows() -> None:
    assert keyed_hashes(np.zeros((0, 3)), KEY).tolist() == []
