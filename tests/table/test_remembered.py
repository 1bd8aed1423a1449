"""Remembered rows: found by whoever has the key, and by nobody else."""

from __future__ import annotations

import numpy as np
import pytest

from dicoflex.errors import SettingError
from dicoflex.table.remembered import KEY_BYTES, Remembered, new_key, read_key, row_hashes

ROWS = np.random.default_rng(0).integers(0, 9, (500, 4)).astype(float)
KEY = bytes(range(KEY_BYTES))


def remembered(*parts: np.ndarray, key: bytes = KEY) -> Remembered:
    return Remembered.of([row_hashes(part, key) for part in parts], key)


def test_rows_and_others_are_told_apart() -> None:
    known = remembered(ROWS[:200], ROWS[150:300])
    assert known.hold(ROWS[:300]).all()
    others = np.array([row for row in ROWS[300:] if not (ROWS[:300] == row).all(axis=1).any()])
    assert len(others) > 100
    assert not known.hold(others).any()
    assert len(known.hashes) == len(np.unique(ROWS[:300], axis=0))


def test_no_rows() -> None:
    assert not remembered(ROWS[:0]).hold(ROWS).any()


def test_the_right_key_opens_and_another_does_not() -> None:
    locked = Remembered(remembered(ROWS).hashes, remembered(ROWS).mark)
    assert locked.opened(KEY).hold(ROWS).all()
    with pytest.raises(SettingError, match="row_key is not the key"):
        locked.opened(new_key())


def test_the_key_is_not_shown() -> None:
    assert KEY.hex() not in repr(remembered(ROWS))
    assert str(KEY) not in repr(remembered(ROWS))


def test_keys_are_read_as_bytes_or_digits() -> None:
    assert read_key(KEY) == read_key(KEY.hex()) == read_key(f" {KEY.hex().upper()}\n") == KEY
    assert len({new_key() for _ in range(3)}) == 3


@pytest.mark.parametrize("given", [b"short", "a word", "zz" * 32, "00" * 31, bytearray(32), 7, None])
def test_what_is_no_key_is_refused_and_not_repeated(given: object) -> None:
    with pytest.raises(SettingError, match="row_key must be 32 bytes or their 64 hexadecimal digits") as error:
        read_key(given)
    if isinstance(given, str):
        assert given not in str(error.value)
