from __future__ import annotations

import numpy as np
import pytest

from dicoflex.runtime.randomness import GOLDEN, row_keys, uniforms


@pytest.fixture
def rows() -> np.ndarray:
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    rows[::7, 1] = np.nan
    return rows


def test_a_key_belongs_to_the_row_and_not_to_its_place(rows: np.ndarray) -> None:
    order = np.random.default_rng(1).permutation(len(rows))
    keys = row_keys(rows, seed=5)
    np.testing.assert_array_equal(row_keys(rows[order], seed=5), keys[order])
    np.testing.assert_array_equal(row_keys(rows[10:11], seed=5), keys[10:11])
    np.testing.assert_array_equal(row_keys(np.asfortranarray(rows), seed=5), keys)
    assert keys.dtype == np.uint64


def test_keys_differ_between_rows_seeds_and_columns(rows: np.ndarray) -> None:
    keys = row_keys(rows, seed=0)
    assert len(np.unique(keys)) == len(rows)
    assert not np.isin(row_keys(rows, seed=1), keys).any()
    assert not np.isin(row_keys(rows[:, ::-1], seed=0), keys).any()
    pair = row_keys(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]), seed=0)
    assert len(np.unique(pair)) == 4


def test_zeros_and_missing_have_one_key_each() -> None:
    missing = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], dtype=np.uint64).view(np.float64)
    assert len(np.unique(row_keys(missing[:, None], seed=0))) == 1
    assert len(np.unique(row_keys(np.array([[0.0], [-0.0]]), seed=0))) == 1


@pytest.mark.parametrize("seed", [0, -1, 2**63, 2**64 + 3, 2**100])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    assert row_keys(np.ones((2, 1)), seed)[0] == row_keys(np.ones((1, 1)), seed % 2**64)[0]


def test_the_input_is_left_as_it_was(rows: np.ndarray) -> None:
    before = rows.copy()
    row_keys(rows, seed=0)
    np.testing.assert_array_equal(rows, before)


def test_a_stream_can_be_read_in_pieces() -> None:
    keys = row_keys(np.arange(5.0)[:, None], seed=0)
    whole = uniforms(keys, 0, 20)
    np.testing.assert_array_equal(np.hstack([uniforms(keys, 0, 7), uniforms(keys, 7, 13)]), whole)
    np.testing.assert_array_equal(uniforms(keys[2:3], 4, 3), whole[2:3, 4:7])
    assert uniforms(keys, 0, 0).shape == (5, 0)
    assert uniforms(keys[:0], 0, 4).shape == (0, 4)


def test_streams_are_uniform_and_unrelated() -> None:
    numbers = uniforms(row_keys(np.arange(500.0)[:, None], seed=0), 0, 400)
    assert numbers.min() > 0.0
    assert numbers.max() < 1.0
    counts = np.histogram(numbers, bins=50, range=(0, 1))[0]
    expected = numbers.size / 50
    assert ((counts - expected) ** 2 / expected).sum() < 100  # 49 degrees of freedom: 99.99 % lie below 97
    assert abs(np.corrcoef(numbers[:, 0], numbers[:, 1])[0, 1]) < 0.2
    assert abs(np.corrcoef(numbers[:-1, 0], numbers[1:, 0])[0, 1]) < 0.2


def unmixed(bits: int) -> int:
    """The input that SplitMix64's finaliser turns into `bits`."""
    word = 2**64
    bits ^= (bits >> 31) ^ (bits >> 62)
    bits = bits * pow(0x94D049BB133111EB, -1, word) % word
    bits ^= (bits >> 27) ^ (bits >> 54)
    bits = bits * pow(0xBF58476D1CE4E5B9, -1, word) % word
    return bits ^ (bits >> 30) ^ (bits >> 60)


def test_the_ends_are_never_reached() -> None:
    """Even the least and the greatest bits give a number strictly between 0 and 1."""
    keys = [(unmixed(bits) - int(GOLDEN)) % 2**64 for bits in (0, 2**64 - 1)]
    least, greatest = uniforms(np.array(keys, dtype=np.uint64), 0, 1)[:, 0]
    assert least == 2.0**-53
    assert greatest == 1 - 2.0**-53


def test_the_numbers_are_those_of_splitmix() -> None:
    """Written out once more in whole numbers of any size."""
    key, word = row_keys(np.array([[4.25]]), seed=9), 2**64
    z = (int(key[0]) + 3 * int(GOLDEN)) % word
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % word
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % word
    assert uniforms(key, 2, 1)[0, 0] == ((z ^ (z >> 31)) // 2**12 + 0.5) * 2.0**-52
