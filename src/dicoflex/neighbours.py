"""Exact nearest rows of a target class under the paper's masked L_p distance.

The distance is eq. (dpm) of the paper on the encoded table, a feature's mask spread over its columns:

    d_{p,m}(x, x') = alpha * sum_j m_j |x_j - x'_j|^p + sum_j (1 - m_j) |x_j - x'_j|^p

In a one-hot block two different levels differ in two columns by 1, so a mismatch counts 2 whatever p is; codes are
compared instead of one-hot columns. With m = 0 this is d_p of eq. (sparse) before its outer root, which does not
change who is near.

Most rows are never measured. Rows that are alike share a *leaf*, and a leaf whose box is farther than the K-th best so
far is passed over. The rows of other leaves are bounded from below, all of a leaf at once: by whole-number counts of
what differs, then by float32 sums of powers. Only rows whose bound is within the K-th best are measured, in float64,
and that measure alone decides. Rows at the same distance come in the order of the pool. The search itself is compiled:
`core/neighbours.cpp`.
"""

from __future__ import annotations

__all__ = ["Neighbours", "Pool", "nearest"]

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.runtime.randomness import GOLDEN
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Parts

MISMATCH = 2.0
BLOCK = 2**15
SLICE = 256
# Rows times columns below which starting threads costs more than it saves.
SERIAL_WORK = 20_000_000

# Bounds are sums of float32s; a number is cut to this size, which can only lower a bound.
MAX_NUMBER = 1e9


@dataclass(frozen=True)
class Pool:
    """Rows to search, grouped by class and, within a class, surest first: a confidence is a prefix of its class.

    order: position in the pool to row of the table. start: class to its first position (and one past the last class).
    confidence: the black box's probability of the row's own class, by position (1 where unknown).
    """

    parts: Parts
    order: NDArray[np.int64]
    start: NDArray[np.int64]
    confidence: NDArray[np.float64]

    @classmethod
    def group(
        cls, parts: Parts, labels: NDArray[np.int64], n_classes: int, confidence: NDArray[np.float64] | None = None
    ) -> Pool:
        """A pool of all rows in `parts`; `labels` are class numbers."""
        sure = np.ones(len(labels)) if confidence is None else confidence
        order = np.lexsort((-sure, labels))
        start = np.searchsorted(labels[order], np.arange(n_classes + 1))
        grouped = Parts(
            np.ascontiguousarray(parts.codes[order]),
            np.ascontiguousarray(parts.numbers[order]),
            parts.code_feature,
            parts.number_feature,
        )
        return cls(grouped, order, start, sure[order])

    def reach(self, target: NDArray[np.int64], confidence: NDArray[np.float64]) -> NDArray[np.int64]:
        """One past the last position of each target's rows that are at least so confident."""
        stop = np.empty(len(target), dtype=np.int64)
        for label in np.unique(target):
            low, high = self.start[label], self.start[label + 1]
            here = target == label
            stop[here] = low + np.searchsorted(-self.confidence[low:high], -confidence[here], side="right")
        return stop

    @cached_property
    def leaves(self) -> _core.Leaves:
        """The rows once more, as the search reads them: leaves of up to `LEAF` rows of one class that are alike.

        They are made by the first search. In unfilled places of a leaf its first row stands again, at a position past
        the pool's end.
        """
        codes, numbers = self.parts.codes, self.parts.numbers
        first, positions = _cut(codes, numbers, self.start)
        rows = np.where(positions < len(codes), positions, positions[:, :1])
        keys, near = _by_column(_keys(codes, numbers)[rows]), _by_column(_float32(numbers)[rows])
        bits = np.left_shift(np.uint32(1), (codes & 31).astype(np.uint32))[rows]
        values, edges = _distinct(numbers, self.start)
        return _core.Leaves(
            first=first,
            positions=positions,
            last=rows.max(axis=1),
            keys=keys,
            near=near,
            codes=codes[rows.reshape(-1)],
            numbers=numbers[rows.reshape(-1)],
            levels=np.ascontiguousarray(np.bitwise_or.reduce(bits, axis=1).T),
            low=np.ascontiguousarray(near.min(axis=2).T),
            high=np.ascontiguousarray(near.max(axis=2).T),
            values=values,
            edges=edges,
        )


@dataclass(frozen=True)
class Neighbours:
    """Per anchor the rows found, nearest first: their index in the table (-1 where there were fewer) and distance."""

    rows: NDArray[np.int64]
    distances: NDArray[np.float64]


def nearest(
    anchors: Parts,
    pool: Pool,
    *,
    target: NDArray[np.int64],
    p: NDArray[np.float64],
    mask: NDArray[np.bool_],
    confidence: NDArray[np.float64] | None = None,
    k: int = 16,
    alpha: float = 10.0,
    advance: Callable[[int], None] | None = None,
) -> Neighbours:
    """The `k` nearest rows of each anchor's target class under its own p and mask (n, features).

    confidence: per anchor, how sure the black box must be of a row's class for the row to count.
    advance: called with the number of anchors done, for progress.

    >>> numbers = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> codes = np.zeros((4, 0), dtype=np.int32)
    >>> parts = Parts(codes, numbers, np.zeros(0, dtype=np.int64), np.array([0]))
    >>> pool = Pool.group(parts, np.array([0, 1, 1, 1]), 2)
    >>> one = Parts(codes[:1], numbers[:1], parts.code_feature, parts.number_feature)
    >>> nearest(one, pool, target=np.array([1]), p=np.array([2.0]), mask=np.zeros((1, 1), dtype=bool), k=2).rows
    array([[1, 2]])
    """
    n = len(target)
    stop = pool.start[target + 1] if confidence is None else pool.reach(target, confidence)
    query = _query(anchors, target, stop, p, np.where(mask, alpha, 1.0))
    positions = np.full((n, k), -1, dtype=np.int64)
    distances = np.full((n, k), np.inf)
    for low in range(0, n, BLOCK):
        at = slice(low, min(low + BLOCK, n))
        _search_block({name: part[at] for name, part in query.items()}, pool, positions[at], distances[at])
        if advance is not None:
            advance(at.stop - at.start)
    rows = np.where(positions >= 0, pool.order[positions], -1)
    return Neighbours(rows, distances)


def _query(
    anchors: Parts,
    target: NDArray[np.int64],
    stop: NDArray[np.int64],
    p: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> dict[str, NDArray[Any]]:
    """The anchors and their conditions as the core reads them."""
    return {
        "codes": np.ascontiguousarray(anchors.codes, dtype=np.int32),
        "numbers": np.ascontiguousarray(anchors.numbers, dtype=np.float64),
        "keys": _keys(anchors.codes, anchors.numbers),
        "target": np.ascontiguousarray(target, dtype=np.int64),
        "stop": np.ascontiguousarray(stop, dtype=np.int64),
        "p": np.ascontiguousarray(p, dtype=np.float64),
        "code_weight": np.ascontiguousarray(MISMATCH * weight[:, anchors.code_feature]),
        "number_weight": np.ascontiguousarray(weight[:, anchors.number_feature]),
    }


def _search_block(
    query: dict[str, NDArray[Any]], pool: Pool, positions: NDArray[np.int64], distances: NDArray[np.float64]
) -> None:
    """Fill in what some anchors find; on one thread where there is little to do."""
    rows = int((query["stop"] - pool.start[query["target"]]).sum())
    leaves, n = pool.leaves, len(positions)
    least = n + 1 if rows * query["keys"].shape[1] < SERIAL_WORK else 1

    def work(low: int, high: int) -> None:
        _core.search(leaves, **query, low=low, high=high, positions=positions, distances=distances)

    in_threads(work, n, least=least, most=SLICE)


# -- leaves --------------------------------------------------------------------------------------------------------


def _float32(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.clip(numbers, -MAX_NUMBER, MAX_NUMBER).astype(np.float32)


def _by_column(leaves: NDArray[Any]) -> NDArray[Any]:
    """Leaves of rows (leaf, row, column) column by column."""
    return np.ascontiguousarray(leaves.transpose(0, 2, 1))


def _keys(codes: NDArray[np.int32], numbers: NDArray[np.float64]) -> NDArray[np.int16]:
    """What is compared to see that values differ: 16 bits of a code, and of a number's hash. Equal values have the
    same; different ones mostly not, and where they do a bound is lower than it might be.
    """
    bits = (numbers + 0.0).view(np.uint64)  # adding zero turns -0.0 into 0.0, its equal with other bits
    hashes = (bits * GOLDEN) >> np.uint64(48)
    return np.concatenate([codes.astype(np.int16), hashes.astype(np.int16)], axis=1)


def _cut(
    codes: NDArray[np.int32], numbers: NDArray[np.float64], start: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Each class's first leaf, and the positions of every leaf's rows."""
    columns = np.concatenate([codes.T, numbers.T]).astype(np.float64, order="C")
    order = np.arange(len(codes))
    begins = np.zeros(len(codes), dtype=bool)
    for low, high in pairwise(start):
        _core.sort_alike(order[low:high], begins[low:high], columns, codes.shape[1])
    edges = np.flatnonzero(begins)
    leaf = np.cumsum(begins) - 1
    positions = np.full((len(edges), _core.LEAF), len(codes), dtype=np.int32)
    positions[leaf, np.arange(len(codes)) - edges[leaf]] = order
    return np.searchsorted(edges, start), positions


def _distinct(numbers: NDArray[np.float64], start: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The distinct values of each class and column in one array, and per class where those of each column begin."""
    width = numbers.shape[1]
    found = [np.unique(numbers[low:high, j]) for low, high in pairwise(start) for j in range(width)]
    ends = np.cumsum([0, *map(len, found)])
    edges = np.arange(len(start) - 1)[:, None] * width + np.arange(width + 1)
    return np.concatenate([*found, np.empty(0)]), ends[edges]
