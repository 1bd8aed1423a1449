"""The search against a plain float64 one over one-hot tables: the same distances, the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import pandas as pd
import pytest

from dicoflex import neighbours
from dicoflex.encoding import Encoding, Parts
from dicoflex.neighbours import Pool, nearest
from dicoflex.schema import Schema

EXPONENTS = [0.01, 0.08, 0.25, 1.0, 2.0]
N_CLASSES = 3


@dataclass(frozen=True)
class World:
    """A table with labels and confidences, as the search sees it and as one float64 matrix."""

    encoding: Encoding
    values: np.ndarray
    labels: np.ndarray
    confidence: np.ndarray

    @property
    def parts(self) -> Parts:
        return self.encoding.parts(self.values)

    def pool(self, *, judged: bool = False) -> Pool:
        return Pool.group(self.parts, self.labels, N_CLASSES, self.confidence if judged else None)


def table(n: int = 250, *, tied: bool = False) -> World:
    """Features of every sort, two of them numbers that may be missing."""
    rng = np.random.default_rng(n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 25 if tied else 80, n),
            "wage": np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 3, n) if tied else rng.gamma(2.0, 500.0, n)),
            "job": rng.choice(["a", "b", "c", None], n),
            "size": rng.integers(0, 2, n) if tied else rng.normal(size=n),
            "ok": rng.random(n) < 0.5,
            "debt": pd.array(np.where(rng.random(n) < 0.2, None, rng.integers(0, 5, n)), dtype="Int64"),
        }
    )
    encoding = Encoding.fit(frame, Schema.infer(frame))
    return World(encoding, encoding.encode(frame), rng.integers(0, N_CLASSES, n), rng.random(n).round(2))


def one_hot(world: World) -> tuple[np.ndarray, np.ndarray]:
    """The paper's table in float64, and the feature that each of its columns belongs to."""
    columns, owner = [], []
    for j, feature in enumerate(world.encoding.schema.features):
        column = world.values[:, j]
        if feature.is_number:
            scaled = (column - np.nanmean(column)) / np.nanstd(column)
            block = [np.where(np.isnan(column), 0.0, scaled)]
            block += [np.isnan(column) == absent for absent in (False, True)] if feature.missing else []
        else:
            block = [column == code for code in range(feature.n_states)]
        columns += block
        owner += [j] * len(block)
    return np.array(columns, dtype=np.float64).T, np.array(owner)


def brute(
    world: World, anchor: int, target: int, p: float, mask: np.ndarray, alpha: float, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """All rows of the target class that are sure enough, nearest first, and their distances."""
    table, owner = one_hot(world)
    apart = np.abs(table - table[anchor]) ** p
    spread = mask[owner]
    distance = alpha * apart[:, spread].sum(axis=1) + apart[:, ~spread].sum(axis=1)
    rows = np.flatnonzero((world.labels == target) & (world.confidence >= least))
    rows = rows[np.argsort(distance[rows], kind="stable")]
    return rows, distance[rows]


def conditions(world: World, n: int = 40) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "anchors": rng.integers(0, len(world.values), n),
        "target": rng.integers(0, N_CLASSES, n),
        "mask": rng.random((n, len(world.encoding.schema))) < 0.4,
        "least": rng.choice([0.0, 0.5, 0.9, 0.97], n),
    }


def take(parts: Parts, rows: np.ndarray) -> Parts:
    return Parts(parts.codes[rows], parts.numbers[rows], parts.code_feature, parts.number_feature)


def search(world: World, p: np.ndarray, k: int, alpha: float = 10.0, *, judged: bool = False) -> neighbours.Neighbours:
    given = conditions(world, len(p))
    return nearest(
        take(world.parts, given["anchors"]),
        world.pool(judged=judged),
        target=given["target"],
        p=p,
        mask=given["mask"],
        confidence=given["least"] if judged else None,
        k=k,
        alpha=alpha,
    )


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("k", [1, 16, 120])
@pytest.mark.parametrize("p", EXPONENTS)
def test_the_same_as_brute_force(p: float, k: int, judged: bool) -> None:
    world = table()
    given = conditions(world)
    found = search(world, np.full(40, p), k, judged=judged)
    assert found.rows.shape == found.distances.shape == (40, k)
    for i in range(40):
        least = given["least"][i] if judged else 0.0
        rows, distances = brute(world, given["anchors"][i], given["target"][i], p, given["mask"][i], 10.0, least)
        n = min(k, len(rows))
        np.testing.assert_allclose(found.distances[i, :n], distances[:n], rtol=1e-9, atol=1e-12)
        assert np.isinf(found.distances[i, n:]).all()
        assert (found.rows[i, n:] == -1).all()
        assert len(set(found.rows[i, :n])) == n
        assert set(found.rows[i, :n]) <= set(rows)
        clear = n == len(rows) or distances[n] > distances[n - 1] * (1 + 1e-9)
        if clear:
            assert set(found.rows[i, :n]) == set(rows[:n])


def test_each_anchor_has_its_own_conditions() -> None:
    world = table()
    p = np.resize(EXPONENTS, 40)
    together = search(world, p, 8)
    given = conditions(world)
    for i in (0, 7, 23):
        rows, distances = brute(world, given["anchors"][i], given["target"][i], p[i], given["mask"][i], 10.0)
        np.testing.assert_allclose(together.distances[i], distances[:8], rtol=1e-9, atol=1e-12)
        assert set(together.rows[i]) == set(rows[:8])


@pytest.mark.parametrize("alpha", [0.0, 1.0, 10.0, 1e6])
def test_alpha_weighs_masked_features(alpha: float) -> None:
    world = table()
    given = conditions(world)
    found = search(world, np.full(40, 1.0), 5, alpha)
    for i in range(40):
        _, distances = brute(world, given["anchors"][i], given["target"][i], 1.0, given["mask"][i], alpha)
        np.testing.assert_allclose(found.distances[i], distances[:5], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("p", EXPONENTS)
def test_ties_have_the_same_distances(p: float) -> None:
    world = table(200, tied=True)
    given = conditions(world)
    found = search(world, np.full(40, p), 12)
    for i in range(40):
        _, distances = brute(world, given["anchors"][i], given["target"][i], p, given["mask"][i], 10.0)
        np.testing.assert_allclose(found.distances[i], distances[:12], rtol=1e-9, atol=1e-12)
        assert (np.diff(found.distances[i]) >= 0).all()


def test_equals_come_in_the_order_of_the_table() -> None:
    parts = numbers_only([0.0] * 6)
    found = nearest(
        take(parts, np.array([0])),
        Pool.group(parts, np.array([1, 0, 1, 1, 0, 1]), 2),
        target=np.array([1]),
        p=np.array([2.0]),
        mask=np.zeros((1, 1), dtype=bool),
        k=3,
    )
    assert found.rows.tolist() == [[0, 2, 3]]


def numbers_only(values: list[float]) -> Parts:
    none = np.zeros(0, dtype=np.int64)
    numbers = np.array(values)[:, None]
    return Parts(np.zeros((len(values), 0), dtype=np.int32), numbers, none, np.array([0]))


def test_only_codes() -> None:
    codes = np.array([[0, 0], [0, 1], [1, 1]], dtype=np.int32)
    parts = Parts(codes, np.zeros((3, 0)), np.array([0, 1]), np.zeros(0, dtype=np.int64))
    mask = np.array([[True, False]])
    pool = Pool.group(parts, np.zeros(3, dtype=np.int64), 1)
    found = nearest(take(parts, np.array([0])), pool, target=np.array([0]), p=np.array([0.01]), mask=mask, k=3)
    assert found.rows.tolist() == [[0, 1, 2]]
    assert found.distances.tolist() == [[0.0, 2.0, 22.0]]


def test_a_class_without_rows_has_no_neighbours() -> None:
    parts = numbers_only([0.0, 1.0])
    pool = Pool.group(parts, np.array([0, 2]), 3)
    mask = np.zeros((2, 1), dtype=bool)
    found = nearest(parts, pool, target=np.array([1, 2]), p=np.ones(2), mask=mask, k=2)
    assert found.rows.tolist() == [[-1, -1], [1, -1]]
    assert found.distances[0].tolist() == [np.inf, np.inf]


def test_a_pool_is_grouped_by_class_and_surest_first() -> None:
    world = table()
    pool = world.pool(judged=True)
    assert sorted(pool.order) == list(range(len(world.values)))
    assert pool.start[0] == 0
    assert pool.start[-1] == len(world.values)
    for label in range(N_CLASSES):
        at = slice(pool.start[label], pool.start[label + 1])
        assert (world.labels[pool.order[at]] == label).all()
        assert (np.diff(pool.confidence[at]) <= 0).all()
        np.testing.assert_array_equal(pool.confidence[at], world.confidence[pool.order[at]])
    np.testing.assert_array_equal(pool.parts.codes, world.parts.codes[pool.order])


@pytest.mark.parametrize("least", [-1.0, 0.0, 0.5, 0.75, 1.0, 2.0])
def test_reach_counts_rows_that_are_at_least_so_sure(least: float) -> None:
    world = table()
    pool = world.pool(judged=True)
    target = np.arange(N_CLASSES)
    reach = pool.reach(target, np.full(N_CLASSES, least)) - pool.start[:-1]
    assert reach.tolist() == [int(((world.labels == c) & (world.confidence >= least)).sum()) for c in target]


def test_progress_counts_every_anchor_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "BLOCK", 16)
    world = table()
    given = conditions(world)
    steps: list[int] = []
    pieces = nearest(
        take(world.parts, given["anchors"]),
        world.pool(),
        target=given["target"],
        p=np.full(40, 0.25),
        mask=given["mask"],
        k=5,
        advance=steps.append,
    )
    assert steps == [16, 16, 8]
    np.testing.assert_array_equal(pieces.rows, search(world, np.full(40, 0.25), 5).rows)


def test_threads_do_not_matter() -> None:
    world = table()
    before = numba.get_num_threads()
    many = search(world, np.full(40, 0.08), 16)
    try:
        numba.set_num_threads(1)
        one = search(world, np.full(40, 0.08), 16)
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(one.rows, many.rows)
    np.testing.assert_array_equal(one.distances, many.distances)


@pytest.mark.parametrize("p", [*EXPONENTS, 0.5, 3.0])
@pytest.mark.parametrize("x", [-2.5, -1e-300, 0.0, 1e-9, 1.0, 7.0])
def test_powers(x: float, p: float) -> None:
    assert neighbours._power.py_func(x, p) == pytest.approx(abs(x) ** p, rel=1e-12)
