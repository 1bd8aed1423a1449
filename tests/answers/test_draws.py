"""Draws: distinct, never the query, the doubtful ones last, and each query's its own."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from dicoflex.answers import draws as sampling
from dicoflex.answers.draws import MOST_ROUNDS, Draws, Terms, Verdict, draw
from dicoflex.constraints import Constraints
from dicoflex.generators.base import Context
from dicoflex.limits.limits import Limits
from dicoflex.runtime.randomness import row_keys, uniforms
from dicoflex.table.encoding import Encoding
from dicoflex.table.remembered import Remembered, row_hashes
from dicoflex.table.schema import Schema

FRAME = pd.DataFrame({"n": range(101), "x": np.linspace(0.05, 1.0, 101), "s": ["a", "b"] * 50 + ["a"]})
ENCODING = Encoding.fit(FRAME, Schema.infer(FRAME, kinds={"n": "integer"}))


class Fixed:
    """A density whose draw number i is row i of a list, over and over; its log density is minus the first value."""

    def __init__(self, rows: Any, *, scores: bool = False) -> None:
        self.rows = np.asarray(rows, dtype=float)
        self.scores = scores
        self.calls: list[tuple[int, list[int]]] = []

    def sample(
        self, context: Context, n: int, _: np.ndarray, first: Any, _limits: Limits | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        start = np.broadcast_to(first, len(context))
        self.calls.append((n, start.tolist()))
        values = self.rows[(start[:, None] + np.arange(n)) % len(self.rows)]
        return values, -values[:, :, 0] if self.scores else None

    def log_prob(self, _: Context, answers: np.ndarray) -> np.ndarray:
        return -answers[:, 0]


class Uniform:
    """Numbers from 0 to 99, all as likely; the level stays."""

    def sample(
        self, context: Context, n: int, keys: np.ndarray, first: Any, _limits: Limits | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        numbers = np.floor(100 * uniforms(keys, first, n))
        values = np.repeat(context.query[:, None, :], n, axis=1)
        values[:, :, 0] = numbers
        return values, np.zeros((len(context), n))


class Counted:
    """Another density, with its calls written down: draws each, and the number of every entry's first."""

    def __init__(self, other: Any) -> None:
        self.other = other
        self.calls: list[tuple[int, list[int]]] = []

    def sample(
        self, context: Context, n: int, keys: np.ndarray, first: Any, limits: Limits | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        self.calls.append((n, np.broadcast_to(first, len(context)).tolist()))
        return self.other.sample(context, n, keys, first, limits)


def contexts(query: Any, *, frozen: Any = None) -> Context:
    values = np.atleast_2d(np.asarray(query, dtype=float))
    mask = np.zeros(values.shape, dtype=bool) if frozen is None else np.asarray(frozen)
    n = len(values)
    return Context(values, np.ones(n, dtype=np.int64), np.full(n, 2.0), mask, np.zeros(n))


def take(generator: Any, context: Context, n: int, *, enough: int | None = None, seed: int = 0, **terms: Any) -> Draws:
    names = {"doubt": "surrogate", "floor": "least_probability"}
    given = {names.get(name, name): value for name, value in terms.items()}
    if given.get("surrogate") is not None:
        given["surrogate"] = Says(given["surrogate"], context.target)
    given = Terms(**({"surrogate": None, "least_probability": np.zeros(len(context))} | given))
    return draw(generator, ENCODING, context, row_keys(context.query, seed), n, given, enough=enough)


class Says:
    """A surrogate that gives every row's target what a function says."""

    def __init__(self, says: Any, target: np.ndarray) -> None:
        self.says, self.target = says, target

    def probabilities(self, values: np.ndarray) -> np.ndarray:
        sure = np.asarray(self.says(values, self.target), dtype=float)
        return np.column_stack([1 - sure, sure])


def remembered(rows: list[list[float]]) -> Remembered:
    key = bytes(32)
    return Remembered.of([row_hashes(np.reshape(np.array(rows, dtype=float), (len(rows), 3)), key)], key)


def first_values(draws: Draws) -> list[float]:
    return draws.values[:, 0].tolist()


QUERY = [50.0, 0.5, 0.0]


def row(first: float, x: float = 0.5, level: float = 0.0) -> list[float]:
    return [first, x, level]


# -- distinct, and never the query ------------------------------------------------------------------------------------


def test_repeats_and_copies_of_the_query_are_skipped() -> None:
    draws = take(Fixed([row(1), row(1), QUERY, row(2), row(1), QUERY, row(3), row(4)]), contexts(QUERY), 4)
    assert first_values(draws) == [1, 2, 3, 4]
    assert (draws.verdict == Verdict.GOOD).all()
    assert draws.query.tolist() == [0] * 4


def test_copies_after_rounding_are_copies_too() -> None:
    """What differs only before it is put on its grid is the same row."""
    draws = take(Fixed([row(50.2), row(49.8), row(1.3), row(0.9), row(2.2)]), contexts(QUERY), 2)
    assert first_values(draws) == [1, 2]


def test_exactly_n_with_repeats_where_there_are_too_few() -> None:
    generator = Fixed([row(1), row(2), QUERY])
    draws = take(generator, contexts(QUERY), 7)
    assert len(draws.values) == 7
    assert set(first_values(draws)) == {1, 2}
    assert first_values(draws)[:2] == [1, 2]
    assert len(generator.calls) == MOST_ROUNDS


def test_fewer_than_n_without_repeats_where_some_are_enough() -> None:
    draws = take(Fixed([row(1), row(2), QUERY]), contexts(QUERY), 7, enough=7)
    assert first_values(draws) == [1, 2]


def test_no_round_is_made_for_more_than_enough() -> None:
    generator = Fixed([row(i % 25) for i in range(100)])
    assert len(take(generator, contexts(QUERY), 40, enough=20).values) == 25
    assert generator.calls == [(40, [0])]


def never(values: np.ndarray, _targets: np.ndarray) -> np.ndarray:
    """No doubt about any row."""
    return np.ones(len(values))


@pytest.mark.parametrize(("doubt", "first"), [(None, 75), (never, 90)], ids=["as drawn", "filtered"])
def test_later_rounds_draw_what_is_lacking_and_start_at_fixed_places(doubt: Any, first: int) -> None:
    """So that what one query lacks changes nothing for another in the batch."""
    generator = Uniform()
    counted = Counted(generator)
    rows = [row(i) for i in (50, 3, 97)]
    together = take(counted, contexts(rows), 60, doubt=doubt)
    assert counted.calls[0] == (first, [0, 0, 0])
    assert {n for n, _ in counted.calls[1:]} == {30}
    for number, (_, starts) in enumerate(counted.calls[1:]):
        assert set(starts) <= {first + 120 * number + 30 * block for block in range(4)}
    assert len(counted.calls[1][1]) < 12
    alone = [take(generator, contexts(query), 60, doubt=doubt) for query in rows]
    assert first_values(together) == [value for draws in alone for value in first_values(draws)]


def test_fewer_draws_than_n_are_repeated_over_and_over() -> None:
    rows = [row(i) for i in range(1, 100)]
    draws = take(Fixed([*rows, row(100)]), contexts(QUERY), 300, remembered=remembered(rows))
    assert first_values(draws) == [100] * 300


@pytest.mark.parametrize("enough", [None, 3])
def test_query_that_has_no_draw_at_all_has_none(enough: int | None) -> None:
    """And takes none from its neighbours in the batch."""
    context = contexts([QUERY, row(1), row(2)])
    draws = take(Fixed([row(1)]), context, 3, enough=enough)
    assert set(draws.query) == {0, 2}
    assert set(first_values(draws)) == {1}
    assert len(take(Fixed([QUERY]), contexts(QUERY), 3, enough=enough).values) == 0


def test_draws_go_on_where_the_last_round_ended() -> None:
    generator = Fixed([row(1)] * 15 + [row(2)] * 15 + [row(i) for i in range(3, 40)])
    draws = take(generator, contexts(QUERY), 4)
    assert first_values(draws) == [1, 2, 3, 4]
    used = [start + i for n, starts in generator.calls for start in starts for i in range(n)]
    assert used == list(range(len(used)))


def test_only_queries_that_are_short_get_more_rounds() -> None:
    class OneIsShort(Fixed):
        def sample(self, context: Context, n: int, keys: np.ndarray, first: Any, _limits: Limits | None = None) -> Any:
            values, _ = super().sample(context, n, keys, first)
            values[context.query[:, 0] == 50, :, 0] = 7
            return values, None

    generator = OneIsShort([row(i) for i in range(20)])
    take(generator, contexts([row(90), QUERY, row(91)]), 5)
    assert generator.calls[0][1] == [0, 0, 0]
    assert all(len(set(starts)) == len(starts) for _, starts in generator.calls[1:])
    assert len(generator.calls) == MOST_ROUNDS


def test_missing_values_equal_each_other() -> None:
    frame = pd.DataFrame({"n": [1.0, np.nan, 3.0], "m": [1.0, 2.5, np.nan]})
    encoding = Encoding.fit(frame, Schema.infer(frame))
    context = contexts([np.nan, 2.5])
    rows = [[np.nan, 2.5], [np.nan, np.nan], [-np.nan, np.nan], [1.0, np.nan]]
    draws = draw(Fixed(rows), encoding, context, row_keys(context.query, 0), 2, Terms(None, np.zeros(1)))
    np.testing.assert_array_equal(draws.values, [[np.nan, np.nan], [1.0, np.nan]])


# -- what a draw may be -----------------------------------------------------------------------------------------------


def test_new_values_are_put_on_their_grid_and_within_limits() -> None:
    draws = take(Fixed([[-5.4, 7.0, 1.0], [120.0, -3.0, 0.0], [3.4, 0.123, 1.0]]), contexts(QUERY), 3)
    np.testing.assert_array_equal(draws.values, [[0, 1.0, 1], [100, 0.05, 0], [3, 0.123, 1]])


def test_kept_and_frozen_values_stay_beyond_the_limits() -> None:
    query = [500.0, -9.0, 0.0]
    draws = take(Fixed([[500.0, 0.3, 0.0], [7.0, -9.0, 0.0]]), contexts(query), 2)
    np.testing.assert_array_equal(draws.values, [[500.0, 0.3, 0.0], [7.0, -9.0, 0.0]])
    frozen = [[True, False, False]]
    draws = take(Fixed([[100.0, 0.3, 0.0]]), contexts(query, frozen=frozen), 1)
    np.testing.assert_array_equal(draws.values, [[500.0, 0.3, 0.0]])


def test_frozen_values_alone_make_no_difference() -> None:
    """A draw that differs in nothing but how a frozen value was clipped is the query."""
    context = contexts([500.0, 0.5, 0.0], frozen=[[True, False, False]])
    draws = take(Fixed([[100.0, 0.5, 0.0], [100.0, 0.6, 0.0]]), context, 1)
    assert draws.values[0].tolist() == [500.0, 0.6, 0.0]


def test_density_is_that_of_the_row_as_returned() -> None:
    draws = take(Fixed([row(3.4), row(4.4)]), contexts(QUERY), 2)
    assert draws.log_density.tolist() == [-3.0, -4.0]


def test_density_from_the_sampler_is_kept() -> None:
    draws = take(Fixed([row(3), row(4)], scores=True), contexts(QUERY), 2)
    assert draws.log_density.tolist() == [-3.0, -4.0]


# -- terms ------------------------------------------------------------------------------------------------------------


def small_is_sure(values: np.ndarray, target: np.ndarray) -> np.ndarray:
    assert (target == 1).all()
    return 1 - values[:, 0] / 100


def test_doubtful_draws_surrogate_only_where_too_few_pass() -> None:
    rows = [row(80), row(10), row(90), row(20), row(30)]
    given = {"doubt": small_is_sure, "floor": np.array([0.5])}
    draws = take(Fixed(rows), contexts(QUERY), 3, **given)
    assert first_values(draws) == [10, 20, 30]
    np.testing.assert_allclose(draws.probability, [0.9, 0.8, 0.7])
    some = take(Fixed(rows), contexts(QUERY), 5, enough=5, **given)
    assert first_values(some) == [10, 20, 30]
    every = take(Fixed(rows[:1]), contexts(QUERY), 2, **given)
    assert first_values(every) == [80, 80]
    assert (every.verdict == Verdict.DOUBTFUL).all()


def test_floor_belongs_to_the_query() -> None:
    rows = [row(i) for i in (80, 60, 40, 20)]
    context = contexts([QUERY, row(51), row(52)])
    draws = take(Fixed(rows), context, 4, enough=4, doubt=small_is_sure, floor=np.array([0.9, 0.7, 0.5]))
    assert [draws.values[draws.query == i, 0].tolist() for i in range(3)] == [[], [20], [40, 20]]


def test_a_draw_that_is_likelier_of_another_class_is_doubtful_whatever_the_floor() -> None:
    """0.1.0 (9aa4d8c) took it, and so gave rows that the classifier refuses."""
    rows = [row(i) for i in (80, 60, 40, 20)]
    draws = take(Fixed(rows), contexts([QUERY]), 4, enough=4, doubt=small_is_sure, floor=np.array([0.1]))
    assert draws.values[:, 0].tolist() == [40, 20]


def test_without_a_surrogate_nothing_is_doubted() -> None:
    draws = take(Fixed([row(1), row(2)]), contexts(QUERY), 2)
    assert np.isnan(draws.probability).all()


def test_known_rows_are_never_drawn() -> None:
    known, four = remembered([row(1), row(3)]), Fixed([row(1), row(2), row(3), row(4)])
    for enough in (None, 9):
        draws = take(four, contexts(QUERY), 9, enough=enough, remembered=known)
        assert set(first_values(draws)) == {2, 4}
    assert len(take(Fixed([row(1)]), contexts(QUERY), 2, remembered=remembered([])).values) == 2


def test_least_likely_draws_come_last() -> None:
    rows = [row(i) for i in range(1, 41) if i != 50]
    draws = take(Fixed(rows[::-1]), contexts(QUERY), 20, unlikely=0.25)
    assert max(first_values(draws)) <= 33
    assert (draws.verdict == Verdict.GOOD).all()
    few = take(Fixed([row(1), row(2), row(3), row(40)]), contexts(QUERY), 4, unlikely=0.2)
    assert first_values(few) == [1, 2, 3, 40]
    assert few.verdict[-1] == Verdict.UNLIKELY


# -- limits -----------------------------------------------------------------------------------------------------------


def within(query: Any, **given: Any) -> Limits:
    values = np.atleast_2d(np.asarray(query, dtype=float))
    return Limits.build(Constraints(**given), ENCODING, values, np.zeros(values.shape, dtype=bool))


@pytest.mark.parametrize("enough", [None, 3])
def test_what_breaks_a_limit_is_dropped_even_where_too_few_are_left(enough: int | None) -> None:
    rows = [row(i) for i in (60, 10, 55, 70)]
    draws = take(Fixed(rows), contexts(QUERY), 5, enough=enough, limits=within(QUERY, ranges={"n": (52, 65)}))
    assert set(first_values(draws)) == {60, 55}
    assert len(draws.values) == (2 if enough else 5)
    none = take(Fixed(rows), contexts(QUERY), 5, enough=enough, limits=within(QUERY, ranges={"n": (80, 90)}))
    assert len(none.values) == 0


def test_limits_are_judged_after_rounding() -> None:
    limits = within(QUERY, ranges={"n": (0, 60)})
    draws = take(Fixed([row(60.4), row(60.6)]), contexts(QUERY), 2, enough=2, limits=limits)
    assert first_values(draws) == [60]


def test_limits_belong_to_their_query() -> None:
    """Also in later rounds, when only some queries still wait, and in chunks."""
    queries = [row(i) for i in (10, 50, 90)]
    limits = within(queries, increase=["n"])
    with mock.patch.object(sampling, "CHUNK_CELLS", 60):
        draws = take(Uniform(), contexts(queries), 9, enough=9, limits=limits)
    for i, own in enumerate((10, 50, 90)):
        mine = draws.values[draws.query == i, 0]
        assert (mine > own).all()
        assert len(mine) == 9 if own < 90 else len(mine) > 4


def test_the_generator_is_told_the_limits_of_those_who_wait() -> None:
    told: list[np.ndarray] = []

    class Listens(Fixed):
        def sample(self, context: Context, n: int, keys: np.ndarray, first: Any, limits: Limits | None = None) -> Any:
            assert limits is not None
            told.append(limits.low[:, 0])
            return super().sample(context, n, keys, first)

    queries = [row(30), row(90)]
    take(Listens([row(i) for i in range(0, 95, 5)]), contexts(queries), 5, limits=within(queries, increase=["n"]))
    assert told[0].tolist() == [31, 91]
    assert [set(low.tolist()) for low in told[1:]] == [{91}] * (MOST_ROUNDS - 1)


def test_terms_can_be_taken() -> None:
    queries = [row(10), row(50), row(90)]
    terms = Terms(None, np.array([0.1, 0.2, 0.3]), limits=within(queries, increase=["n"]))
    part = terms.take(np.array([2, 0]))
    assert part.least_probability.tolist() == [0.3, 0.1]
    assert part.limits is not None
    assert part.limits.low[:, 0].tolist() == [91, 11]
    assert Terms(None, np.zeros(3)).take(slice(1, 2)).limits is None


def test_densities_are_not_reckoned_where_nobody_asks() -> None:
    draws = take(Fixed([row(1), row(2)]), contexts(QUERY), 2, scored=False)
    assert np.isnan(draws.log_density).all()


# -- batches ----------------------------------------------------------------------------------------------------------


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    context = contexts([row(i, i / 100) for i in range(30)])
    terms = {"doubt": small_is_sure, "floor": np.linspace(0, 0.9, 30)}
    together = take(Uniform(), context, 10, **terms)
    monkeypatch.setattr(sampling, "CHUNK_CELLS", 200)
    apart = take(Uniform(), context, 10, **terms)
    for name in ("values", "query", "log_density", "probability", "verdict"):
        np.testing.assert_array_equal(getattr(together, name), getattr(apart, name))
    assert together.query.tolist() == np.repeat(range(30), 10).tolist()


def test_batching_does_not_matter() -> None:
    context = contexts([row(i, i / 100) for i in range(12)])
    together = take(Uniform(), context, 40, seed=3)
    for i in range(12):
        alone = take(Uniform(), context.take(slice(i, i + 1)), 40, seed=3)
        np.testing.assert_array_equal(alone.values, together.values[together.query == i])
    assert not np.array_equal(together.values, take(Uniform(), context, 40, seed=4).values)


def test_more_distinct_rows_than_one_round_gives() -> None:
    draws = take(Uniform(), contexts(QUERY), 60)
    assert len(set(first_values(draws))) == 60
    assert 50 not in first_values(draws)


def test_draws_can_be_taken_joined_and_renamed() -> None:
    draws = take(Uniform(), contexts([QUERY, row(1)]), 5)
    halves = [draws.take(draws.query == i) for i in (0, 1)]
    np.testing.assert_array_equal(Draws.join(halves).values, draws.values)
    assert halves[1].of(np.array([7, 9])).query.tolist() == [9] * 5
    twice = Draws.join([draws, draws])
    np.testing.assert_array_equal(twice.without_repeats().values, draws.values)
