"""Exact nearest rows of a target class under the paper's masked L_p distance.

The distance is eq. (dpm) of the paper on the encoded table, a feature's mask spread over its columns:

    d_{p,m}(x, x') = alpha * sum_j m_j |x_j - x'_j|^p + sum_j (1 - m_j) |x_j - x'_j|^p

In a one-hot block two different levels differ in two columns by 1, so a mismatch counts 2 whatever p is; codes are
compared instead of one-hot columns. With m = 0 this is d_p of eq. (sparse) before its outer root, which does not
change who is near. A row is left as soon as its partial sum exceeds the K-th best so far: exact, and mostly early.
"""

from __future__ import annotations

__all__ = ["Neighbours", "Pool", "nearest"]

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from dicoflex.encoding import Parts

MISMATCH = 2.0
BLOCK = 2048


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
    start = pool.start[target]
    stop = pool.start[target + 1] if confidence is None else pool.reach(target, confidence)
    positions = np.full((n, k), -1, dtype=np.int64)
    distances = np.full((n, k), np.inf)
    code_weight = MISMATCH * np.where(mask[:, anchors.code_feature], alpha, 1.0)
    number_weight = np.where(mask[:, anchors.number_feature], alpha, 1.0)
    for low in range(0, n, BLOCK):
        at = slice(low, min(low + BLOCK, n))
        _search(
            anchors.codes[at],
            anchors.numbers[at],
            pool.parts.codes,
            pool.parts.numbers,
            start[at],
            stop[at],
            p[at],
            code_weight[at],
            number_weight[at],
            positions[at],
            distances[at],
        )
        if advance is not None:
            advance(at.stop - at.start)
    rows = np.where(positions >= 0, pool.order[positions], -1)
    return Neighbours(rows, distances)


@numba.njit(cache=True, inline="always")
def _power(x: float, p: float) -> float:
    """|x|^p, with the two common exponents spelt out."""
    if p == 2.0:
        return x * x
    x = abs(x)
    if p == 1.0 or x == 0.0:
        return x
    return float(np.exp(p * np.log(x)))


@numba.njit(cache=True)
def _insert(distance: float, position: int, distances: NDArray[np.float64], positions: NDArray[np.int64]) -> None:
    """Keep the two arrays sorted by distance, dropping their last entry."""
    i = len(distances) - 1
    while i > 0 and distances[i - 1] > distance:
        distances[i] = distances[i - 1]
        positions[i] = positions[i - 1]
        i -= 1
    distances[i] = distance
    positions[i] = position


@numba.njit(cache=True, parallel=True)
def _search(  # type: ignore[no-untyped-def]
    codes, numbers, pool_codes, pool_numbers, start, stop, exponents, code_weight, number_weight, positions, distances
):
    n_codes, n_numbers = codes.shape[1], numbers.shape[1]
    for i in numba.prange(len(start)):
        p = exponents[i]
        worst = np.inf
        for row in range(start[i], stop[i]):
            total = 0.0
            for c in range(n_codes):
                if pool_codes[row, c] != codes[i, c]:
                    total += code_weight[i, c]
            if total >= worst:
                continue
            for c in range(n_numbers):
                total += number_weight[i, c] * _power(pool_numbers[row, c] - numbers[i, c], p)
                if total >= worst:
                    break
            if total < worst:
                _insert(total, row, distances[i], positions[i])
                worst = distances[i, -1]
