"""Cells that tell of no fewer than `min_count` rows: shared atoms, round edges, and the rest left as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from dicoflex.generators.base import Context, Table
from dicoflex.generators.mixed import Mixed
from dicoflex.generators.mixed.cells import Grid
from dicoflex.generators.mixed.weights import MixedConfig
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

N = 3000
RNG = np.random.default_rng(0)
GAINS = [5013, 7298, 7688, 15024]
COLUMNS: dict[str, np.ndarray] = {
    "ages": RNG.integers(17, 90, N),
    "few and rare": np.where(RNG.random(N) < 0.97, RNG.choice([0, 10, 20], N), RNG.integers(0, 90, N)),
    "gains": np.select(
        [RNG.random(N) < 0.8, RNG.random(N) < 0.5], [0, RNG.choice(GAINS, N)], RNG.integers(1, 99_999, N)
    ),
    "prices": np.round(RNG.choice(np.arange(5.0, 600.0, 0.25), N), 2),
    "pay": RNG.lognormal(8.0, 1.0, N),
    "cents": np.round(RNG.lognormal(8.0, 1.0, N), 2),
    "rates": np.where(RNG.random(N) < 0.3, 0.0, RNG.normal(size=N)),
    "large": RNG.integers(0, 10**9, N),
    "one value": np.full(N, 3.5),
}


def build(column: Any, min_count: int) -> tuple[Grid, np.ndarray]:
    frame = pd.DataFrame({"a": column})
    schema = Schema.infer(frame, min_count=min_count)
    values = Encoding.unit(schema).encode(frame)
    feature = schema.features[0]
    values = np.clip(values, feature.minimum, feature.maximum)
    encoding = Encoding.of_values(schema, values)
    return Grid.build(encoding, values, min_count=min_count), values


@pytest.mark.parametrize("min_count", [2, 5, 20])
@pytest.mark.parametrize("name", COLUMNS)
def test_cells_are_sorted_and_no_atom_is_a_few_rows_own(name: str, min_count: int) -> None:
    grid, values = build(COLUMNS[name], min_count)
    assert (grid.low <= grid.high).all()
    assert (grid.low[1:] > grid.high[:-1]).all()
    distinct, counts = np.unique(values, return_counts=True)
    held = dict(zip(distinct.tolist(), counts.tolist(), strict=True))
    alone = [held.get(value, 0) for value in grid.low[grid.count == 1].tolist()]
    assert all(n == 0 or n >= min_count for n in alone)
    cell = grid.locate(values).cell
    assert (cell >= 0).all()
    assert grid.holds(values, cell).mean() > 0.9


@pytest.mark.parametrize("name", ["pay", "cents", "rates", "large"])
def test_edges_are_no_rows_own_values(name: str) -> None:
    """Where values have many digits, an edge that is one of them is one that was copied."""
    grid, _ = build(COLUMNS[name], 5)
    distinct, counts = np.unique(COLUMNS[name], return_counts=True)
    rare = distinct[counts < 5].astype(float)
    edges = np.concatenate([grid.low, grid.high])
    near = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    assert len(np.intersect1d(near, rare)) <= 2
    exact, _ = build(COLUMNS[name], 1)
    assert len(np.intersect1d(np.concatenate([exact.low, exact.high]), rare)) > 20


def test_values_that_many_rows_share_stay_atoms() -> None:
    grid, _ = build(COLUMNS["gains"], 5)
    atoms = set(grid.low[grid.count == 1].tolist())
    assert {0, *GAINS} <= atoms


def test_few_values_keep_an_atom_each_where_enough_rows_have_it() -> None:
    grid, values = build(COLUMNS["few and rare"], 5)
    distinct, counts = np.unique(values, return_counts=True)
    assert set(grid.low[grid.count == 1].tolist()) == set(distinct[counts >= 5].tolist())


def test_a_stretch_that_few_rows_lie_in_is_left_out_where_values_are_spaced() -> None:
    column = np.repeat([0, 10, 20, 30], [500, 3, 500, 500])
    grid, _ = build(column, 5)
    assert grid.low.tolist() == [0.0, 20.0, 30.0]
    assert grid.locate(np.array([[10.0]])).cell.tolist() == [[0]]
    enough, _ = build(np.repeat([0, 9, 10, 20, 30], [500, 3, 3, 500, 500]), 5)
    assert list(zip(enough.low, enough.high, strict=True)) == [(0, 0), (1, 19), (20, 20), (30, 30)]


def test_an_answer_that_no_draw_can_be_teaches_nothing() -> None:
    """What lies in no cell belongs to the one before it; where that is the query's own value, a loss had no bound."""
    column = np.concatenate([np.repeat([0, 10, 20], 400), [1, 2, 11, 12]])
    grid, values = build(column, 5)
    own, rare = grid.locate(np.array([[0.0]])), grid.locate(np.array([[1.0]]))
    assert own.alone[0, 0]
    assert not rare.exact[0, 0]
    assert rare.cell[0, 0] == own.cell[0, 0]
    table = Table(Encoding.of_values(Schema.infer(pd.DataFrame({"a": column}), min_count=5), values), values,
                  np.zeros(len(values), dtype=np.int64), 2, min_count=5)  # fmt: skip
    density = Mixed.create(table, MixedConfig(hidden=8, head=4), seed=0)
    free = np.zeros((2, 1), dtype=bool)
    context = Context(np.zeros((2, 1)), np.ones(2, dtype=np.int64), np.full(2, 2.0), free, np.zeros(2))
    loss = density.loss(context, np.array([[1.0], [10.0]]), torch.Generator())
    assert 0.0 < float(loss.detach()) < 100.0
