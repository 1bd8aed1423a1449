"""Cells: every training value is in exactly one, and what is drawn from a cell lies in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicoflex.errors import ModelFileError
from dicoflex.generators.base import Context
from dicoflex.generators.mixed import Mixed, MixedConfig
from dicoflex.generators.mixed.cells import LOPSIDED, MIN_CELL, Grid
from dicoflex.generators.mixed.weights import shapes
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema
from dicoflex.values import differ


def locate(grid: Grid, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cells of values and their places in them."""
    found = grid.locate(values)
    return found.cell, found.where


def build(column: Any, *, max_cells: int = 96, **overrides: Any) -> tuple[Grid, np.ndarray]:
    """The grid of a frame with one column `a`, and the column's encoded values (n, 1)."""
    frame = pd.DataFrame({"a": column})
    encoding = Encoding.fit(frame, Schema.infer(frame, **{name: {"a": value} for name, value in overrides.items()}))
    values = encoding.encode(frame)
    grid = Grid.build(encoding, values, max_cells=max_cells)
    Grid.from_state(grid.state(), encoding.schema)  # whatever is built can be read back
    return grid, values


def number_cells(grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Low, high and count of the first feature's cells, without the one for missing."""
    at = slice(0, grid.offset[1] - int(grid.has_missing[0]))
    return grid.low[at], grid.high[at], grid.count[at]


def members(grid: Grid, cell: int) -> np.ndarray:
    """All values of a run or an atom."""
    steps = np.arange(grid.count[cell]) * grid.step[0]
    return np.round(grid.low[cell] + steps, grid.decimals[0])


def assert_sound(grid: Grid, values: np.ndarray) -> None:
    """Sorted cells that share nothing and hold every training value; a continuous feature's have no gaps."""
    low, high, count = number_cells(grid)
    assert (low <= high).all()
    assert (low[1:] > high[:-1]).all()
    assert ((count == 1) == (low == high)).all()
    cell, where = locate(grid, values)
    assert grid.holds(values, cell).all()
    assert ((where >= 0) & (where <= 1)).all()
    present = values[~np.isnan(values)]
    owners = ((present[:, None] >= low) & (present[:, None] <= high)).sum(axis=1)
    assert (owners == 1).all()
    assert np.isfinite(grid.log_size(cell, grid.locate(values))).all()
    if grid.step[0] == 0:
        np.testing.assert_array_equal(low[1:], np.nextafter(high[:-1], np.inf))
    else:
        np.testing.assert_allclose(count, np.rint((high - low) / grid.step[0]) + 1)


# -- any column --------------------------------------------------------------------------------------------------

SORTS = {
    "integers": lambda rng, n: rng.integers(-50, 1000, n),
    "few integers": lambda rng, n: rng.integers(0, 4, n) * 7,
    "large integers": lambda rng, n: rng.integers(-(2**53) + 1, 2**53, n),
    "multiples": lambda rng, n: rng.integers(0, 400, n) * 25 + 3,
    "heavy integers": lambda rng, n: np.floor(rng.pareto(0.6, n)).clip(0, 1e15),
    "cents": lambda rng, n: np.round(rng.integers(0, 300, n) / 100, 2),
    "cents of millions": lambda rng, n: np.round(1e8 + rng.integers(0, 300, n) / 100, 2),
    "tenths as a range gives them": lambda rng, n: rng.choice(np.arange(0, 30, 0.1), n),
    "products": lambda rng, n: rng.integers(0, 100, n) * 0.1 * rng.integers(1, 4, n),
    "short floats": lambda rng, n: (rng.integers(0, 300, n) / 100).astype("float32"),
    "continuous": lambda rng, n: rng.normal(size=n),
    "short continuous": lambda rng, n: rng.normal(size=n).astype("float16"),
    "heavy tail": lambda rng, n: rng.pareto(0.5, n),
    "tiny": lambda rng, n: rng.random(n) * 1e-300,
    "point mass": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.gamma(2.0, 500.0, n)),
    "two point masses": lambda rng, n: np.where(rng.random(n) < 0.8, rng.choice([-0.5, 0.5], n), rng.normal(size=n)),
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "constant integer": lambda rng, n: np.full(n, rng.integers(9)),
}


@settings(deadline=None, max_examples=200)
@given(
    sort=st.sampled_from(list(SORTS)),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 600),
    missing=st.booleans(),
    most=st.sampled_from([4, 16, 96]),
    wider=st.sampled_from([0.0, 0.37, 12.0]),
)
def test_every_training_value_has_its_cell(
    sort: str, seed: int, n: int, missing: bool, most: int, wider: float
) -> None:
    rng = np.random.default_rng(seed)
    column = pd.Series(SORTS[sort](rng, n))
    limits = {"limits": (column.min() - wider, column.max() + wider)} if wider and "large" not in sort else {}
    if missing and n > 1:
        column = column.astype("Float64" if column.dtype.kind == "f" else "Int64")
        column[rng.permutation(n)[: n // 3]] = pd.NA
        if not limits:
            column = column.astype(float)
    grid, values = build(column, max_cells=most, **limits)
    assert grid.has_missing[0] == np.isnan(values).any()
    assert grid.n_cells <= 3 * most + len(values) / MIN_CELL
    assert_sound(grid, values)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=60), st.integers(1, 20))
def test_any_floats_have_their_cells(column: list[float], times: int) -> None:
    assert_sound(*build(column * times))


def test_whole_numbers_too_far_apart_to_count_are_held_all_the_same() -> None:
    rng = np.random.default_rng(0)
    assert_sound(*build(rng.integers(-(2**53) + 1, 2**53, 5), max_cells=4))


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(list(SORTS)), st.integers(0, 2**32 - 1), st.integers(2, 500))
def test_what_is_drawn_lies_in_a_cell_and_is_not_the_query(sort: str, seed: int, n: int) -> None:
    """A density with equal states draws from every cell, and never the one feature's own value."""
    rng = np.random.default_rng(seed)
    grid, values = build(SORTS[sort](rng, n), max_cells=16)
    query = values[[rng.integers(0, n)]]
    config, frozen = MixedConfig(hidden=1, head=1), np.zeros((1, 1), dtype=bool)
    weights = {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes(grid, 2, config).items()}
    own = grid.locate(query)
    if own.settled[0, 0]:
        return
    context = Context(query, np.zeros(1, dtype=np.int64), np.ones(1), frozen, np.full(1, 0.5))
    draws, _ = Mixed(grid, 2, config, weights).sample(context, 3000, row_keys(query, seed), 0)
    found, _ = locate(grid, draws[0])
    assert grid.holds(draws[0], found).all()
    assert differ(draws[0], query).all()
    assert len(np.unique(found)) == own.n_others[0, 0]


# -- sorts of cells ----------------------------------------------------------------------------------------------


def test_few_integers_have_an_atom_each() -> None:
    grid, _ = build([0, 3, 9, 9, 12] * 5)
    low, high, count = number_cells(grid)
    assert low.tolist() == high.tolist() == [0, 3, 9, 12]
    assert count.tolist() == [1, 1, 1, 1]
    assert (grid.step[0], grid.decimals[0]) == (3.0, 0)
    assert not grid.wide[0]


def test_many_integers_have_runs_without_gaps() -> None:
    grid, values = build(np.arange(1000), kinds="integer")
    held = np.concatenate([members(grid, cell) for cell in range(grid.n_cells)])
    np.testing.assert_array_equal(held, values[:, 0])
    assert grid.wide[0]
    assert grid.count.sum() == 1000


def test_every_value_of_a_dense_spaced_feature_is_in_exactly_one_cell() -> None:
    cents = np.round(np.tile(np.arange(0, 5000), 3) / 100, 2)
    grid, _ = build(cents)
    held = np.concatenate([members(grid, cell) for cell in range(grid.n_cells)])
    np.testing.assert_array_equal(np.sort(held), np.unique(cents))
    cell, _ = locate(grid, np.unique(cents)[:, None])
    np.testing.assert_array_equal(np.bincount(cell[:, 0]), grid.count)


def test_every_value_of_a_continuous_feature_is_in_exactly_one_cell() -> None:
    rng = np.random.default_rng(0)
    grid, values = build(np.where(rng.random(3000) < 0.3, 0.0, rng.normal(size=3000)))
    low, high, _ = number_cells(grid)
    assert (low[0], high[-1]) == (values.min(), values.max())
    probes = np.concatenate([rng.uniform(values.min(), values.max(), 2000), low, high])
    owners = ((probes[:, None] >= low) & (probes[:, None] <= high)).sum(axis=1)
    assert (owners == 1).all()
    assert np.sum(high - low) == pytest.approx(values.max() - values.min())


@pytest.mark.parametrize(
    ("column", "step", "decimals"),
    [
        (np.round(np.tile(np.arange(300), 4) / 100, 2), 0.01, 2),
        (np.round(np.tile(np.arange(0, 1500, 5), 4) / 100, 2), 0.05, 2),
        (np.round(np.tile(np.arange(300), 4) / 10, 1), 0.1, 1),
        (np.tile(np.arange(300), 4) / 4, 0.25, 2),
        (np.round(np.tile(np.arange(300), 4) / 10000, 4), 0.0001, 4),
        (np.round(np.tile(np.arange(300), 4) / 100000, 5), 0.0, 0),
        (np.tile(np.arange(300) * 5, 4), 5.0, 0),
        (np.random.default_rng(0).normal(size=300), 0.0, 0),
        (np.random.default_rng(0).normal(size=300).round(3), 0.0, 0),
        (np.random.default_rng(0).integers(0, 400, 900) * 0.1, 0.0, 0),
    ],
    ids=["cents", "steps of five cents", "tenths", "quarters", "four digits", "five digits", "fives", "measured",
         "measured to three digits", "nearly tenths"],
)  # fmt: skip
def test_spacing(column: np.ndarray, step: float, decimals: int) -> None:
    grid, values = build(column)
    assert (grid.step[0], grid.decimals[0]) == (step, decimals)
    assert_sound(grid, values)


def test_whole_floats_said_to_be_continuous_are_not_spaced() -> None:
    column = np.tile(np.arange(300.0), 4)
    assert build(column)[0].step[0] == 1.0
    assert build(column, kinds="continuous")[0].step[0] == 0.0
    assert build(column.astype("int64"), kinds="continuous")[0].step[0] == 1.0


def test_a_value_that_repeats_is_an_atom_among_intervals() -> None:
    rng = np.random.default_rng(0)
    grid, values = build(np.concatenate([np.zeros(700), rng.normal(size=300)]))
    cell, where = locate(grid, np.array([[0.0], [np.nextafter(0.0, 1)], [np.nextafter(0.0, -1)]]))
    assert len(set(cell[:, 0])) == 3
    assert grid.count[cell[:, 0]].tolist() == [1, 0, 0]
    assert where[0, 0] == 0.0
    assert_sound(grid, values)


def test_a_constant_is_one_atom() -> None:
    for column in ([0.123456] * 3, [0.123456] * 50, [4] * 3, [0.5]):
        grid, values = build(column)
        assert grid.count.tolist() == [1]
        assert grid.locate(values).n_others.max() == 0
        assert grid.locate(values + 1).n_others.max() == 1


def test_neighbouring_floats_leave_room_for_no_interval() -> None:
    one, two, three = 1.0, np.nextafter(1.0, 2), np.nextafter(np.nextafter(1.0, 2), 2)
    grid, values = build([one] * 60 + [two] * 60 + [three] * 60)
    assert grid.count.tolist() == [1, 1, 1]
    assert_sound(grid, values)


@pytest.mark.parametrize("sort", ["pareto", "lognormal", "whole"])
def test_heavy_tails_are_cut(sort: str) -> None:
    rng = np.random.default_rng(0)
    tail = {"pareto": rng.pareto(0.7, 20_000), "lognormal": np.exp(3 * rng.normal(size=20_000))}
    column = tail["pareto"].round() if sort == "whole" else tail[sort]
    grid, values = build(column, max_cells=32)
    cell, _ = locate(grid, values)
    for number in range(grid.n_cells):
        inside = np.sort(values[cell[:, 0] == number, 0])
        low, high = grid.low[number], grid.high[number]
        if high > low and len(inside) >= MIN_CELL:
            assert abs((inside[len(inside) // 2] - low) / (high - low) - 0.5) <= LOPSIDED
    assert 32 <= grid.n_cells < 100


def test_cells_are_about_as_full_as_each_other() -> None:
    grid, values = build(np.random.default_rng(0).normal(size=9600), max_cells=32)
    cell, _ = locate(grid, values)
    assert np.bincount(cell[:, 0]).max() <= 2.1 * 9600 / 32
    assert grid.n_cells <= 48


def test_wider_limits_are_reached_on_the_spacing() -> None:
    grid, values = build(np.repeat(np.arange(1, 1000, 5), 2), limits=(0, 2003))
    assert_sound(grid, values)
    assert grid.low[0] == 1.0
    assert grid.high[-1] == 2001.0
    cents, values = build(np.round(np.tile(np.arange(100, 400), 3) / 100, 2), limits=(0.995, 4.005))
    assert_sound(cents, values)
    assert (cents.low[0], cents.high[-1]) == (1.0, 4.0)
    line, values = build([0.1234567, 0.5], limits=(-1, 2))
    assert (line.low[0], line.high[-1]) == (-1.0, 2.0)


def test_levels_have_a_cell_each_and_missing_numbers_one() -> None:
    frame = pd.DataFrame({"job": ["a", "b", None], "wage": [0.5, None, 1.25], "ok": [True, True, False]})
    encoding = Encoding.fit(frame, Schema.infer(frame))
    values = encoding.encode(frame)
    grid = Grid.build(encoding, values)
    assert grid.offset.tolist() == [0, 3, 3 + grid.size[1], 5 + grid.size[1]]
    assert grid.has_missing.tolist() == [False, True, False]
    assert grid.n_features == 3
    cell, where = locate(grid, values)
    assert cell[:, 0].tolist() == [0, 1, 2]
    assert cell[1, 1] == grid.size[1] - 1
    assert where[1, 1] == 0.0
    assert grid.holds(values, cell).all()
    assert not grid.holds(np.array([[0.0, np.nan, 0.0]]), np.zeros((1, 3), dtype=np.int64))[0, 1]
    assert not grid.holds(np.array([[0.0, 0.5, 0.0]]), cell[1:2])[0, 1]


def test_a_feature_without_a_number_in_these_rows() -> None:
    frame = pd.DataFrame({"a": [0.5, 2.25, None], "b": pd.array([1, 4, None], dtype="Int64")})
    encoding = Encoding.fit(frame.iloc[2:], Schema.infer(frame))
    grid = Grid.build(encoding, encoding.encode(frame.iloc[2:]))
    assert grid.low.tolist()[:3:2] == [0.5, 1.0]
    assert grid.high.tolist()[:3:2] == [2.25, 4.0]
    assert grid.count.tolist() == [0, 1, 4, 1]


def test_levels_come_first_and_features_with_rows_in_fewer_cells() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "spread": rng.normal(size=400),
            "even": np.tile(["a", "b"], 200),
            "gain": np.where(np.arange(400) < 390, 0.0, rng.uniform(1, 9, 400).round(2)),
            "also even": np.tile(["b", "a"], 200),
            "rare": np.where(np.arange(400) < 399, "a", "b"),
            "constant": 1.0,
        }
    )
    encoding = Encoding.fit(frame, Schema.infer(frame))
    grid = Grid.build(encoding, encoding.encode(frame))
    assert frame.columns[grid.order].tolist() == ["rare", "even", "also even", "constant", "gain", "spread"]
    assert grid.order[grid.rank].tolist() == list(range(6))


# -- looking values up -------------------------------------------------------------------------------------------


@pytest.fixture
def by_hand() -> Grid:
    """One feature each: an interval 0 to 4, an atom 5, an interval to 9; a run 0, 2 … 8 and an atom 10; missing."""
    return Grid(
        offset=np.array([0, 3, 6]),
        low=np.array([0.0, 5.0, np.nextafter(5.0, 6), 0.0, 10.0, np.nan]),
        high=np.array([np.nextafter(5.0, 4), 5.0, 9.0, 8.0, 10.0, np.nan]),
        count=np.array([0, 1, 0, 5, 1, 1]),
        step=np.array([0.0, 2.0]),
        decimals=np.array([0, 0]),
        order=np.array([1, 0]),
    )


def test_locate_clips_what_lies_outside(by_hand: Grid) -> None:
    cell, where = locate(by_hand, np.array([[-7.0, -1.0], [99.0, 99.0], [2.5, 4.0], [5.0, np.nan]]))
    assert cell.tolist() == [[0, 0], [2, 1], [0, 0], [1, 2]]
    np.testing.assert_allclose(where, [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.0, 0.0]])


def test_holds_is_exact(by_hand: Grid) -> None:
    values = np.array([[-7.0, 3.0], [99.0, 2.0], [2.5, 9.0], [5.0, np.nan], [9.0, 10.0], [0.0, 2.0 + 1e-9]])
    cell, _ = locate(by_hand, values)
    expected = [[False, False], [False, True], [True, False], [True, True], [True, True], [True, False]]
    assert by_hand.holds(values, cell).tolist() == expected


def test_log_size_by_hand(by_hand: Grid) -> None:
    query = np.array([[1.0, 2.0]])
    sizes = {(0, 0): (5.0, 4), (1, 1): (1, 1), (2, 2): (4.0, 1)}
    for cells, (first, second) in sizes.items():
        np.testing.assert_allclose(
            np.exp(by_hand.log_size(np.array([cells]), by_hand.locate(query))), [[first, second]]
        )
    off_spacing, elsewhere = np.array([[1.0, 3.0]]), np.array([[1.0, 10.0]])
    cell = np.array([[0, 0]])
    np.testing.assert_allclose(np.exp(by_hand.log_size(cell, by_hand.locate(off_spacing))), [[5.0, 5.0]])
    np.testing.assert_allclose(np.exp(by_hand.log_size(cell, by_hand.locate(elsewhere))), [[5.0, 5.0]])


def test_n_others_by_hand(by_hand: Grid) -> None:
    query = np.array([[5.0, 10.0], [1.0, np.nan], [4.0, 4.0], [50.0, 12.0]])
    assert by_hand.locate(query).n_others.tolist() == [[2, 2], [3, 2], [3, 3], [3, 3]]


def test_slopes_of_wide_features_lie_end_to_end() -> None:
    frame = pd.DataFrame({"a": np.arange(400) ** 2, "b": [1, 2] * 200, "c": np.random.default_rng(0).normal(size=400)})
    encoding = Encoding.fit(frame, Schema.infer(frame))
    grid = Grid.build(encoding, encoding.encode(frame))
    assert grid.wide.tolist() == [True, False, True]
    assert grid.slope_offset[[0, 2]].tolist() == [0, grid.size[0]]


# -- model files -------------------------------------------------------------------------------------------------


@pytest.fixture
def by_hand_schema() -> Schema:
    """What the grid by hand is made for: a number, and one that may be missing."""
    return Schema.infer(pd.DataFrame({"a": [0.0, 5.5, 9.0], "b": [0.0, 10.0, np.nan]}))


def test_a_state_is_restored(by_hand: Grid, by_hand_schema: Schema) -> None:
    state = by_hand.state()
    assert set(state) == {f"grid.{name}" for name in ("offset", "low", "high", "count", "step", "decimals", "order")}
    again = Grid.from_state(state, by_hand_schema)
    for name, array in again.state().items():
        np.testing.assert_array_equal(array, state[name])


BROKEN: dict[str, tuple[str, Any]] = {
    "no offsets": ("offset", np.zeros(0, dtype=np.int64)),
    "a feature without cells": ("offset", np.array([0, 0, 6])),
    "offsets that do not start at 0": ("offset", np.array([1, 3, 6])),
    "offsets that fall": ("offset", np.array([0, 7, 6])),
    "offsets beyond the cells": ("offset", np.array([0, 3, 2**40])),
    "offsets of another dtype": ("offset", np.array([0, 3, 6], dtype=np.int32)),
    "too few cells": ("low", np.zeros(5)),
    "cells of another dtype": ("low", np.zeros(6, dtype=np.float32)),
    "cells in two dimensions": ("high", np.zeros((6, 1))),
    "too many counts": ("count", np.ones(7, dtype=np.int64)),
    "too few steps": ("step", np.zeros(1)),
    "too many decimals": ("decimals", np.zeros(3, dtype=np.int64)),
    "too long an order": ("order", np.arange(3)),
    "a feature twice": ("order", np.array([1, 1])),
    "a feature that is none": ("order", np.array([0, 2])),
    "a step that is none": ("step", np.array([0.0, np.nan])),
    "a step that goes back": ("step", np.array([0.0, -2.0])),
    "a step without end": ("step", np.array([0.0, np.inf])),
    "a step too small to count": ("step", np.array([0.0, 1e-300])),
    "no step where there is a run": ("step", np.array([0.0, 0.0])),
    "fewer digits than none": ("decimals", np.array([0, -1])),
    "more digits than there are": ("decimals", np.array([0, 400])),
}
# What single entries of low, high and count may not be.
BROKEN_CELLS: dict[str, tuple[str, int, Any]] = {
    "a cell that begins after it ends": ("low", 0, 7.0),
    "a cell over another": ("high", 0, 6.0),
    "no number": ("low", 1, np.nan),
    "a number without end": ("high", 2, np.inf),
    "a number that squares to infinity": ("low", 0, -1e200),
    "a missing cell that is there": ("low", 5, 11.0),
    "a count below 0": ("count", 3, -5),
    "more values than the run has": ("count", 3, 10**12),
    "several values at one point": ("count", 1, 2),
    "a count in an interval": ("count", 0, 3),
    "none missing": ("count", 5, 0),
}


@pytest.mark.parametrize("case", [*BROKEN, *BROKEN_CELLS])
def test_a_state_that_does_not_fit_is_refused(case: str, by_hand: Grid, by_hand_schema: Schema) -> None:
    state = by_hand.state()
    if case in BROKEN:
        name, array = BROKEN[case]
    else:
        name, at, wrong = BROKEN_CELLS[case]
        array = state[f"grid.{name}"].copy()
        array[at] = wrong
    with pytest.raises(ModelFileError, match=r"array 'grid\..*; it is damaged or was altered"):
        Grid.from_state(state | {f"grid.{name}": array}, by_hand_schema)


def test_a_state_of_other_features_or_without_an_array_is_refused(by_hand: Grid, by_hand_schema: Schema) -> None:
    for frame in (
        pd.DataFrame({"a": [0.5], "b": [1.5], "c": [2.5]}),
        pd.DataFrame({"a": [0.0, 9.5], "b": [0.0, 10.5]}),
        pd.DataFrame({"a": [0.0, np.nan], "b": [0.0, np.nan]}),
        pd.DataFrame({"a": ["x", "y", "z"], "b": [0.0, 10.0, np.nan]}),
    ):
        with pytest.raises(ModelFileError, match="array 'grid"):
            Grid.from_state(by_hand.state(), Schema.infer(frame))
    state = by_hand.state()
    del state["grid.step"]
    with pytest.raises(ModelFileError, match=r"lacks the array 'grid\.step'"):
        Grid.from_state(state, by_hand_schema)


@pytest.mark.parametrize("wrong", [1e12, -1.0, 0.5, 2.0, np.nan])
def test_levels_are_those_of_the_schema(wrong: float) -> None:
    """Weights are indexed by them: in 0.1.0 (9aa4d8c) a file with 1e12 here made `explain` crash."""
    frame = pd.DataFrame({"a": ["x", "y", "z"]})
    encoding = Encoding.fit(frame, Schema.infer(frame))
    state = Grid.build(encoding, encoding.encode(frame)).state()
    for name in ("grid.low", "grid.high"):
        array = state[name].copy()
        array[1] = wrong
        with pytest.raises(ModelFileError, match="has other cells for 'a' than levels"):
            Grid.from_state(state | {name: array}, encoding.schema)
