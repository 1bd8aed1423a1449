"""The search against plain float64 ones: the same distances, the same rows, however large or odd the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from dicoflex import _core, neighbours
from dicoflex.neighbours import Pool, nearest
from dicoflex.runtime.threads import thread_limit, use_threads
from dicoflex.table.encoding import Encoding, Parts
from dicoflex.table.schema import Schema

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


def test_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "SERIAL_WORK", 0)
    world = table()
    before = thread_limit()
    many = search(world, np.full(40, 0.08), 16)
    try:
        use_threads(1)
        one = search(world, np.full(40, 0.08), 16)
    finally:
        use_threads(before)
    np.testing.assert_array_equal(one.rows, many.rows)
    np.testing.assert_array_equal(one.distances, many.distances)


# -- pools of many leaves ------------------------------------------------------------------------------------------


Columns = tuple[np.ndarray, np.ndarray]


def usual(rng: np.random.Generator, n: int) -> Columns:
    return rng.integers(0, 4, (n, 5)), np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 30, (n, 2)) / 7.0])


def numbers_alone(rng: np.random.Generator, n: int) -> Columns:
    return np.zeros((n, 0)), rng.gamma(1.0, 2.0, (n, 6))


def codes_alone(rng: np.random.Generator, n: int) -> Columns:
    return rng.integers(0, 3, (n, 9)), np.zeros((n, 0))


def beyond_float32(rng: np.random.Generator, n: int) -> Columns:
    """Numbers that are the same in float32, that float32 can't hold, or whose differences vanish in it."""
    same = 1e8 + rng.integers(0, 50, n) * 1e-3
    close = 1.0 + rng.integers(0, 50, n) * 1e-9
    tiny, huge = rng.integers(0, 50, (2, n))
    far = rng.standard_cauchy((2, n)) * 1e6
    return rng.integers(0, 2, (n, 1)), np.column_stack([same, close, tiny * 1e-20, huge * 1e38, *far])


def coarse_in_float32(rng: np.random.Generator, n: int) -> Columns:
    """Numbers that float32 rounds by as much as the nearest are apart."""
    return np.zeros((n, 0)), 1e8 + rng.uniform(0.0, 1000.0, (n, 1))


def constants(rng: np.random.Generator, n: int) -> Columns:
    return np.full((n, 2), 3), np.column_stack([np.full((n, 2), -1.5), rng.normal(size=n)])


def odd_codes(rng: np.random.Generator, n: int) -> Columns:
    """Codes that are alike modulo 32 and modulo 2^16, and zeros of either sign."""
    return rng.choice([-1, 0, 31, 32, 65536, 65568], (n, 4)), rng.choice([-0.0, 0.0, 0.5], (n, 2)) * rng.normal(
        size=(n, 2)
    )


def wide(rng: np.random.Generator, n: int) -> Columns:
    return rng.integers(0, 2, (n, 150)), rng.normal(size=(n, 60))


def copies(rng: np.random.Generator, n: int) -> Columns:
    """One row, over and over, but for the last few."""
    few = np.arange(n) > n - 5
    return np.outer(few, [1, 0]), np.outer(few * rng.normal(size=n), [1.0, 2.0])


TABLES = [usual, numbers_alone, codes_alone, beyond_float32, coarse_in_float32, constants, odd_codes, wide, copies]


@dataclass(frozen=True)
class Task:
    """A pool of several leaves per class, and anchors under random conditions, half of them no rows of the pool."""

    parts: Parts
    labels: np.ndarray
    confidence: np.ndarray
    anchors: Parts
    target: np.ndarray
    mask: np.ndarray
    least: np.ndarray

    @classmethod
    def make(cls, columns: Columns, rng: np.random.Generator, n_anchors: int = 30) -> Task:
        codes, numbers = columns[0].astype(np.int32), columns[1].astype(np.float64)
        n, width = len(codes), codes.shape[1] + numbers.shape[1]
        parts = Parts(codes, numbers, np.arange(codes.shape[1]), np.arange(codes.shape[1], width))
        rows = rng.integers(0, n, (3, n_anchors))
        other = np.where(rng.random((n_anchors, numbers.shape[1])) < 0.3, numbers[rows[2]], numbers[rows[0]])
        mixed = np.where(np.arange(n_anchors)[:, None] % 2, (other + numbers[rows[1]]) / 2, numbers[rows[0]])
        return cls(
            parts,
            rng.choice(3, n, p=[0.6, 0.38, 0.02]),
            rng.random(n).round(1),
            Parts(codes[rows[0]], mixed, parts.code_feature, parts.number_feature),
            rng.integers(0, 3, n_anchors),
            rng.random((n_anchors, width)) < 0.3,
            rng.choice([0.0, 0.4, 0.9], n_anchors),
        )

    def search(self, p: float, k: int, alpha: float, *, judged: bool) -> neighbours.Neighbours:
        return nearest(
            self.anchors,
            Pool.group(self.parts, self.labels, 3, self.confidence if judged else None),
            target=self.target,
            p=np.full(len(self.target), p),
            mask=self.mask,
            confidence=self.least if judged else None,
            k=k,
            alpha=alpha,
        )

    def plain(self, i: int, p: float, alpha: float, *, judged: bool) -> tuple[np.ndarray, np.ndarray]:
        """The rows that anchor `i` may find, in the pool's order, and their distances."""
        rows = np.lexsort((-self.confidence,)) if judged else np.arange(len(self.labels))
        rows = rows[(self.labels[rows] == self.target[i]) & (not judged or self.confidence[rows] >= self.least[i])]
        weight = np.where(self.mask[i], alpha, 1.0)
        codes = 2.0 * (self.parts.codes[rows] != self.anchors.codes[i])
        numbers = np.abs(self.parts.numbers[rows] - self.anchors.numbers[i]) ** p
        return rows, np.hstack([codes, numbers]) @ weight


def assert_nearest(task: Task, p: float, *, k: int = 16, alpha: float = 10.0, judged: bool = False) -> None:
    """Distances to 1e-9, and no row is missing that is nearer than the last by more than rounding."""
    found = task.search(p, k, alpha, judged=judged)
    for i in range(len(task.target)):
        rows, distances = task.plain(i, p, alpha, judged=judged)
        n = min(k, len(rows))
        order = np.argsort(distances, kind="stable")
        np.testing.assert_allclose(found.distances[i, :n], distances[order[:n]], rtol=1e-9, atol=1e-300)
        assert (found.rows[i, n:] == -1).all()
        assert len(set(found.rows[i, :n])) == n
        clearly = distances < (distances[order[n - 1]] * (1 - 1e-9) if n else 0.0)
        assert set(rows[clearly]) <= set(found.rows[i, :n])


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 1.0, 1.7, 2.0, 4.0])
@pytest.mark.parametrize("columns", TABLES)
def test_pools_of_many_leaves(columns: Callable[..., Columns], p: float, judged: bool) -> None:
    rng = np.random.default_rng(7)
    assert_nearest(Task.make(columns(rng, 1500), rng), p, judged=judged)


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 300.0, 1e20])
@pytest.mark.parametrize("p", [0.01, 2.0])
def test_any_alpha(p: float, alpha: float) -> None:
    rng = np.random.default_rng(8)
    assert_nearest(Task.make(usual(rng, 1500), rng), p, alpha=alpha)


@pytest.mark.parametrize("k", [1, _core.LEAF, _core.LEAF + 1, 200])
@pytest.mark.parametrize("p", [0.01, 2.0])
def test_as_many_as_a_leaf_has_and_more(p: float, k: int) -> None:
    rng = np.random.default_rng(9)
    assert_nearest(Task.make(usual(rng, 1500), rng), p, k=k, judged=True)


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize(("p", "steps"), [(0.01, 2), (0.25, 2), (1.0, 5), (2.0, 5)])
def test_ties_go_to_the_first_rows_of_the_pool(p: float, steps: int, judged: bool) -> None:
    """Distances are exact here: differences are 0 or 1, or powers of them are multiples of 1/16."""
    rng = np.random.default_rng(10)
    numbers = rng.integers(0, steps, (2000, 3)) / (steps - 1)
    task = Task.make((rng.integers(0, 2, (2000, 3)), numbers), rng)
    task = replace(task, anchors=take(task.parts, np.arange(30)))
    found = task.search(p, 16, 10.0, judged=judged)
    for i in range(30):
        rows, distances = task.plain(i, p, 10.0, judged=judged)
        first = np.argsort(distances, kind="stable")[:16]
        assert found.rows[i, : len(first)].tolist() == rows[first].tolist()
        assert found.distances[i, : len(first)].tolist() == distances[first].tolist()


@pytest.mark.parametrize("p", EXPONENTS)
def test_little_work_on_one_thread_gives_the_same(p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    task = Task.make(usual(rng, 1500), rng)
    found = []
    for least in (0, 10**12):
        monkeypatch.setattr(neighbours, "SERIAL_WORK", least)
        found.append(task.search(p, 16, 10.0, judged=True))
    np.testing.assert_array_equal(found[0].rows, found[1].rows)
    np.testing.assert_array_equal(found[0].distances, found[1].distances)


@pytest.mark.parametrize("columns", TABLES)
def test_every_row_is_in_one_leaf_of_its_class(columns: Callable[..., Columns]) -> None:
    rng = np.random.default_rng(12)
    task = Task.make(columns(rng, 1500), rng)
    pool = Pool.group(task.parts, task.labels, 4)
    first, positions = neighbours._cut(pool.parts.codes, pool.parts.numbers, pool.start)
    filled = positions < 1500
    assert sorted(positions[filled]) == list(range(1500))
    for label in range(4):
        at = slice(first[label], first[label + 1])
        assert (task.labels[pool.order[positions[at][filled[at]]]] == label).all()
    assert filled.any(axis=1).all()
