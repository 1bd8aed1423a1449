"""Different ways: other features before other amounts."""

from __future__ import annotations

import numpy as np

from dicoflex.answers.ways import Merits, choose, choose_each, count_ways, distances, ways_of

RANGES = np.array([10.0, 10.0, 0.0])


def merits(n: int) -> Merits:
    return Merits(np.arange(n, dtype=float), np.zeros(n), np.zeros(n))


def test_other_features_come_before_other_amounts() -> None:
    values = np.array([[1.0, 0, 0], [1.5, 0, 0], [2.5, 0, 0], [0, 4.0, 0], [0, 0, 1.0]])
    way = ways_of(values != 0)
    chosen = choose(values, values != 0, merits(5), RANGES, 3, diversity=0.8)
    assert sorted(way[chosen].tolist()) == [0, 1, 2]
    assert chosen[0] == 0


def test_without_variety_the_best_come_first() -> None:
    values = np.array([[1.0, 0, 0], [2.5, 0, 0], [4.5, 0, 0], [0, 4.0, 0]])
    assert choose(values, values != 0, merits(4), RANGES, 3, diversity=0.0).tolist() == [0, 1, 2]


def test_the_same_advice_again_is_the_last_resort() -> None:
    values = np.array([[1.0, 0, 0], [1.01, 0, 0], [3.0, 0, 0], [0, 4.0, 0]])
    assert choose(values, values != 0, merits(4), RANGES, 3, diversity=0.1).tolist()[-1] != 1
    assert sorted(choose(values, values != 0, merits(4), RANGES, 4, diversity=0.1).tolist()) == [0, 1, 2, 3]


def test_a_way_with_an_addition_comes_after_another_way() -> None:
    """Without diversity the nearer one, which adds a change to the first, is second; with it, the one that is apart."""
    values = np.array([[1.0, 0, 0], [0.9, 0.1, 0], [0, 4.0, 1.0]])
    assert choose(values, values != 0, merits(3), RANGES, 2, diversity=0.0).tolist() == [0, 1]
    assert choose(values, values != 0, merits(3), RANGES, 2, diversity=0.4).tolist() == [0, 2]
    # Whichever of the two was taken first.
    turned = values[[1, 0, 2]]
    assert choose(turned, turned != 0, merits(3), RANGES, 2, diversity=0.4).tolist() == [0, 2]


def test_equal_rows_are_taken_once() -> None:
    values = np.array([[1.0, 0, 0], [1.0, 0, 0]])
    assert len(choose(values, values != 0, merits(2), RANGES, 2, diversity=0.2)) == 1


def test_nothing_to_choose_from() -> None:
    none = np.zeros((0, 3))
    assert len(choose(none, none != 0, merits(0), RANGES, 3, diversity=0.2)) == 0


def test_several_queries_are_chosen_for_as_each_alone() -> None:
    values = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [1.0, 1.0], [0.0, 1.0]])
    query, edges, wanted = np.zeros((3, 2)), np.array([0, 3, 3, 5]), (2, 0.2)
    chosen, ways = choose_each(values, query, edges, merits(5), RANGES[:2], wanted)
    for i in (0, 2):
        at = slice(edges[i], edges[i + 1])
        alone = choose(values[at], values[at] != 0, merits(5).take(at), RANGES[:2], 2, diversity=0.2) + edges[i]
        mine = (chosen >= edges[i]) & (chosen < edges[i + 1])
        assert chosen[mine].tolist() == alone.tolist()
        assert ways[mine].tolist() == ways_of(values[alone] != 0).tolist()


def test_ways_are_counted_by_query() -> None:
    values = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    assert count_ways(values, np.zeros((3, 2)), np.array([0, 3, 3, 4])).tolist() == [2, 0, 1]


def test_distances_count_levels_as_one() -> None:
    values, own = np.array([[3.0, 5.0, np.nan]]), np.array([[1.0, 2.0, 4.0]])
    spread, gaps, counted = np.array([2.0, np.inf, 1.0]), np.zeros(3), np.ones(3, dtype=bool)
    assert distances(values, own, spread, gaps, counted, 1.0).tolist() == [3.0]
    assert distances(values, own, spread, gaps, ~counted, 1.0).tolist() == [0.0]


def test_levels_that_have_an_order_are_nearer_the_fewer_lie_between() -> None:
    """Another level counted one, however far; the code after the last level is that of a missing value."""
    values, own = np.array([[2.0], [3.0], [5.0], [6.0]]), np.full((4, 1), 1.0)
    spread, gaps, counted = np.array([np.inf]), np.array([5.0]), np.ones(1, dtype=bool)
    np.testing.assert_allclose(distances(values, own, spread, gaps, counted, 1.0), [0.6, 0.7, 0.9, 1.0])


def test_the_nearest_clear_one_is_first_however_likely_others_are() -> None:
    values = np.array([[1.0, 0, 0], [0, 4.0, 0], [0, 0, 1.0]])
    told = Merits(np.array([2.0, 1.0, 0.5]), np.array([9.0, 0.0, 5.0]), np.array([0.0, 0.0, 1.0]))
    assert choose(values, values != 0, told, RANGES, 3, diversity=0.2).tolist() == [1, 0, 2]
    # Of those equally far the likelier.
    equal = Merits(np.ones(3), np.array([1.0, 3.0, 2.0]), np.zeros(3))
    assert choose(values, values != 0, equal, RANGES, 1, diversity=0.2).tolist() == [1]


def test_a_set_of_changes_comes_again_only_after_all_others() -> None:
    """A way with an addition came after other amounts of the first."""
    values = np.array([[1.0, 0, 0], [2.0, 0, 0], [3.0, 0, 0], [1.0, 1.0, 0], [0, 1.0, 1.0]])
    chosen = choose(values, values != 0, merits(5), RANGES, 5, diversity=0.05)
    assert sorted(chosen[:3].tolist()) == [0, 3, 4]
