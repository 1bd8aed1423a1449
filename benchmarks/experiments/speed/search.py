"""The search of neighbours, beside brute force that is written in several ways."""

from __future__ import annotations

__all__ = ["CHUNK", "NEIGHBOURS", "NUMPY", "OURS", "Search", "disagreements", "measure"]

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import Cell
from benchmarks.experiments.speed.ground import Amount, tried_threads
from benchmarks.tasks import Task, prepare
from benchmarks.timing import BestThreads, Work, in_turns, threads
from dicoflex.neighbours import Neighbours, Pool, nearest
from dicoflex.table.encoding import Encoding, Parts

EXPONENTS = (2.0, 0.01)
NEIGHBOURS = 16
TIE = 1e-9
# Numbers in one chunk of brute force; a few megabytes are faster than more.
CHUNK = 2**20
OURS, ONE_THREAD = "dicoflex", "dicoflex, one thread"
PLAIN, NUMPY = "numpy, as the formula stands", "numpy, float32 in the cache"
SQUARES, PRODUCT = "numpy, squares in one pass", "numpy, matrix product"

Distances = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Search:
    """All rows of a table against those of the next class, and `some` of them for brute force."""

    parts: Parts
    labels: np.ndarray
    some: np.ndarray
    table: np.ndarray

    @classmethod
    def of(cls, task: Task, n: int, seed: int) -> Search:
        encoding = Encoding.fit(task.data.X_train, task.data.schema)
        parts = encoding.parts(encoding.encode(task.data.X_train))
        _, labels = np.unique(task.labels, return_inverse=True)
        some = np.random.default_rng(seed).choice(len(labels), min(n, len(labels)), replace=False)
        return cls(parts, labels, np.sort(some), one_hot(parts))

    @cached_property
    def target(self) -> np.ndarray:
        return (self.labels + 1) % (self.labels.max() + 1)

    @cached_property
    def scale(self) -> float:
        """How many pairs of rows there are for each pair that brute force looks at."""
        against = np.bincount(self.labels)[self.target]
        return float(against.sum() / against[self.some].sum())

    def ours(self, p: float, rows: np.ndarray | slice = slice(None)) -> Neighbours:
        """What `nearest` finds for `rows`, its pool included."""
        parts = self.parts
        pool = Pool.group(parts, self.labels, int(self.labels.max()) + 1)
        anchors = Parts(parts.codes[rows], parts.numbers[rows], parts.code_feature, parts.number_feature)
        target = self.target[rows]
        n_features = len(np.union1d(parts.code_feature, parts.number_feature))
        mask = np.zeros((len(target), n_features), dtype=bool)
        return nearest(anchors, pool, target=target, p=np.full(len(target), p), mask=mask, k=NEIGHBOURS)

    def brute(self, table: np.ndarray, distances: Distances, k: int, *, width: int = 1) -> Neighbours:
        """What brute force finds for `some` rows; `distances` is one of those below.

        width: how many numbers it holds for a pair of rows, so that chunks fit the cache.
        """
        found = Neighbours(np.empty((len(self.some), k), dtype=np.int64), np.empty((len(self.some), k)))
        for label in np.unique(self.target[self.some]):
            at, rows = np.flatnonzero(self.target[self.some] == label), np.flatnonzero(self.labels == label)
            pool, step = table[rows], max(1, CHUNK // (len(rows) * width))
            for low in range(0, len(at), step):
                here = at[low : low + step]
                near, distance = smallest(distances(table[self.some[here]], pool), k)
                found.rows[here], found.distances[here] = rows[near], distance
        return found


def one_hot(parts: Parts) -> np.ndarray:
    """Standardised numbers and one column per level: the table that the paper's distance is defined on.

    >>> column = np.array([0])
    >>> one_hot(Parts(np.array([[1], [0]], dtype=np.int32), np.array([[0.5], [2.0]]), column, column + 1))
    array([[0.5, 0. , 1. ],
           [2. , 1. , 0. ]])
    """
    levels = [np.eye(int(codes.max()) + 1)[codes] for codes in parts.codes.T]
    return np.concatenate([parts.numbers, *levels], axis=1)


def by_formula(p: float) -> Distances:
    """The distance of all pairs at any p, as one would write it down."""
    return lambda anchors, pool: (np.abs(anchors[:, None] - pool) ** p).sum(axis=2)


def by_difference(p: float) -> Distances:
    """The same without needless copies."""

    def distances(anchors: np.ndarray, pool: np.ndarray) -> np.ndarray:
        apart = anchors[:, None] - pool
        np.abs(apart, out=apart)
        apart **= p
        return apart @ np.ones(apart.shape[2], dtype=apart.dtype)

    return distances


def by_squares(anchors: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """The distance of all pairs at p = 2, squared and added up in one pass over the differences."""
    apart = anchors[:, None] - pool
    return np.einsum("abc,abc->ab", apart, apart)


def by_product(anchors: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """The distance of all pairs at p = 2, from a matrix product."""
    return (anchors**2).sum(axis=1)[:, None] + (pool**2).sum(axis=1) - 2 * anchors @ pool.T


def smallest(distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of the `k` smallest of each row and their values, in order."""
    near = np.argpartition(distances, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(distances, near, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(values, order, axis=1)


def disagreements(found: Neighbours, brute: Neighbours) -> int:
    """How many rows got other neighbours than brute force, which gives one more; of equally far rows any will do."""
    last, next_one = brute.distances[:, -2], brute.distances[:, -1]
    tied = next_one <= last * (1 + TIE)
    same = (np.sort(found.rows, axis=1) == np.sort(brute.rows[:, :-1], axis=1)).all(axis=1)
    as_near = np.isclose(found.distances, brute.distances[:, :-1], rtol=TIE, atol=1e-12).all(axis=1)
    return int((~(as_near & (same | tied))).sum())


def measure(cell: Cell, models: Path) -> dict[str, Any]:  # noqa: ARG001
    """The search of all rows' neighbours in the other class against brute force on some."""
    search = Search.of(prepare(cell), Amount.of(cell).anchors, cell.seed)
    found = {f"{p:g}": _search(search, p, cell) for p in EXPONENTS}
    facts = {"rows": len(search.labels), "columns": search.table.shape[1], "anchors": len(search.some)}
    return facts | {"k": NEIGHBOURS, "exponents": found}


def _search(search: Search, p: float, cell: Cell) -> dict[str, Any]:
    ours, brute = _searches(search, p), _brutes(search, p)
    works = {name: _counted(work) for name, work in ours.items()}
    works |= {name: BestThreads(_counted(work), tried_threads(cell)) for name, work in brute.items()}
    times = in_turns(works, Amount.of(cell).repeats)
    scaled = {name: found["seconds"] * (search.scale if name in brute else 1) for name, found in times.items()}
    exact = search.brute(search.table, by_difference(p), NEIGHBOURS + 1, width=search.table.shape[1])
    return {
        "seconds": scaled,
        "ratios": {name: scaled[name] / scaled[OURS] for name in scaled},
        "scale": search.scale,
        "times": times,
        "disagreements": disagreements(search.ours(p, search.some), exact),
    }


def _searches(search: Search, p: float) -> dict[str, Callable[[], Neighbours]]:
    def one_thread() -> Neighbours:
        with threads(1):
            return search.ours(p)

    return {OURS: lambda: search.ours(p), ONE_THREAD: one_thread}


def _brutes(search: Search, p: float) -> dict[str, Callable[[], Neighbours]]:
    """Brute force by the definition, and what is faster at p = 2."""
    table, k, width = search.table.astype(np.float32), NEIGHBOURS, search.table.shape[1]
    works = {
        PLAIN: lambda: search.brute(search.table, by_formula(p), k),
        NUMPY: lambda: search.brute(table, by_difference(p), k, width=width),
    }
    if p == 2:
        works[SQUARES] = lambda: search.brute(table, by_squares, k, width=width)
        works[PRODUCT] = lambda: search.brute(table, by_product, k)
    return works


def _counted(work: Callable[[], Neighbours]) -> Work:
    return lambda _turn: len(work().rows)
