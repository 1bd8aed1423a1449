"""Different ways: other features before other amounts."""

from __future__ import annotations

import numpy as np

from dicoflex.answers.ways import Merits, choose, ways_of

RANGES = np.array([10.0, 10.0, 0.0])


def merits(n: int) -> Merits:
    return Merits(np.arange(n, dtype=float), np.zeros(n), np.zeros(n))


def test_other_features_come_before_other_amounts() -> None:
    values = np.array([[1.0, 0, 0], [1.5, 0, 0], [2.5, 0, 0], [0, 4.0, 0], [0, 0, 1.0]])
    way = ways_of(values != 0)
    chosen = choose(values, way, merits(5), RANGES, 3, variety=0.8)
    assert sorted(way[chosen].tolist()) == [0, 1, 2]
    assert chosen[0] == 0


def test_without_variety_the_best_come_first() -> None:
    values = np.array([[1.0, 0, 0], [2.5, 0, 0], [4.5, 0, 0], [0, 4.0, 0]])
    assert choose(values, ways_of(values != 0), merits(4), RANGES, 3, variety=0.0).tolist() == [0, 1, 2]


def test_the_same_advice_again_is_the_last_resort() -> None:
    values = np.array([[1.0, 0, 0], [1.01, 0, 0], [3.0, 0, 0], [0, 4.0, 0]])
    assert choose(values, ways_of(values != 0), merits(4), RANGES, 3, variety=0.1).tolist()[-1] != 1
    assert sorted(choose(values, ways_of(values != 0), merits(4), RANGES, 4, variety=0.1).tolist()) == [0, 1, 2, 3]


def test_equal_rows_are_taken_once() -> None:
    values = np.array([[1.0, 0, 0], [1.0, 0, 0]])
    assert len(choose(values, ways_of(values != 0), merits(2), RANGES, 2, variety=0.2)) == 1


def test_nothing_to_choose_from() -> None:
    none = np.zeros((0, 3))
    assert len(choose(none, np.zeros(0, dtype=np.int64), merits(0), RANGES, 3, variety=0.2)) == 0
