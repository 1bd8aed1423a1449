"""Exact nearest rows of a target class under the paper's masked L_p distance.

The distance is eq. (dpm) of the paper on the encoded table, a feature's mask spread over its columns:

    d_{p,m}(x, x') = alpha * sum_j m_j |x_j - x'_j|^p + sum_j (1 - m_j) |x_j - x'_j|^p

In a one-hot block two different levels differ in two columns by 1, so a mismatch counts 2 whatever p is; codes are
compared instead of one-hot columns. With m = 0 this is d_p of eq. (sparse) before its outer root, which does not
change who is near.

Most rows are never measured. Rows that are alike share a *leaf*, and a leaf whose box is farther than the K-th best so
far is passed over. The rows of other leaves are bounded from below, all of a leaf at once: by whole-number counts of
what differs, then by float32 sums of powers. Only rows whose bound is within the K-th best are measured, in float64,
and that measure alone decides. Rows at the same distance come in the order of the pool.
"""

from __future__ import annotations

__all__ = ["Neighbours", "Pool", "nearest"]

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.runtime.compiled import compiled
from dicoflex.runtime.randomness import GOLDEN
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Parts

MISMATCH = 2.0
BLOCK = 2**15
SLICE = 256
# Rows times columns below which starting threads costs more than it saves.
SERIAL_WORK = 20_000_000

LEAF = 64
# Leaves visited in the order of their bounds; to sort the others costs more than it saves.
BEST_FIRST = 4
# Pairs of rows that are looked at to choose the column along which rows are halved.
PAIRS = 128
# Below this exponent a small difference counts nearly as much as a large one: how many there are is a good bound.
COUNTING = 0.5
# With so few rows left of a leaf, measuring them is faster than bounding all of them once more.
FEW = 2

# Counts are sums in int16, far from overflow. OUT marks a row that may not be found.
MAX_COUNT, MAX_COUNTED_WEIGHT, OUT = 15_000, 256.0, np.int16(16_000)
# Bounds are sums in float32. Numbers, weights and powers are cut to these sizes, which can only lower a bound, so that
# none reaches FAR. GONE marks what has been looked at.
MAX_NUMBER, MAX_WEIGHT, MAX_LOG = 1e9, 1e12, np.float32(60.0)
FAR, GONE = np.float32(1e36), np.float32(1e37)
# The error of a difference of float32s relative to the anchor's number; and of a bound relative to the distance.
ROUNDING, UNDERFLOW = np.float32(2.0**-22), np.float32(2.0**-120)
SLACK = 3e-5

# Inner loops own no memory. With reference counts, atomic and one per array and call, they take twice the time.
kernel = compiled(forceinline=True, _nrt=False)
# The same for float32 bounds, in any order of operations: an error within SLACK does no harm.
bound_kernel = compiled(forceinline=True, _nrt=False, fastmath={"nnan", "nsz", "contract", "reassoc"})


class Leaves(NamedTuple):
    """A pool's rows as the search reads them: leaves of up to LEAF rows of one class that are alike.

    first: class to its first leaf (and one past the last class).
    positions: of a leaf's rows in the pool; past its end in the unfilled places. last: the greatest that is filled.
    keys, near: what is counted and bounded, column by column; in unfilled places the leaf's first row again.
    codes, numbers: what is measured, row by row, LEAF rows per leaf.
    levels: the codes in a leaf as bits, modulo 32. low, high: the box of its numbers.
    values: the distinct numbers of each class and column, ascending, from `edges[class, column]` on.
    """

    first: NDArray[np.int64]
    positions: NDArray[np.int32]
    last: NDArray[np.int32]
    keys: NDArray[np.int16]
    near: NDArray[np.float32]
    codes: NDArray[np.int32]
    numbers: NDArray[np.float64]
    levels: NDArray[np.uint32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    values: NDArray[np.float64]
    edges: NDArray[np.int64]


class Query(NamedTuple):
    """Anchors and their conditions; `stop` is one past the last position of the pool that an anchor may find."""

    codes: NDArray[np.int32]
    numbers: NDArray[np.float64]
    keys: NDArray[np.int16]
    target: NDArray[np.int64]
    stop: NDArray[np.int64]
    p: NDArray[np.float64]
    code_weight: NDArray[np.float64]
    number_weight: NDArray[np.float64]

    def take(self, at: slice) -> Query:
        """Some of the anchors."""
        return Query._make(field[at] for field in self)


class Aim(NamedTuple):
    """One anchor as bounds need it: weights and numbers in float32, and `counted` weights in units of `unit`.

    least: per number column, the least that a value other than the anchor's can add (where p is below COUNTING).
    """

    near: NDArray[np.float32]
    code_weight: NDArray[np.float32]
    number_weight: NDArray[np.float32]
    least: NDArray[np.float32]
    counted: NDArray[np.int16]
    unit: np.float32
    p: np.float32


class Desk(NamedTuple):
    """Where the rows of one leaf are worked on."""

    counts: NDArray[np.int16]
    sums: NDArray[np.float32]
    sorted: NDArray[np.float32]


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
    def leaves(self) -> Leaves:
        """The rows once more, as the search reads them; made by the first search."""
        codes, numbers = self.parts.codes, self.parts.numbers
        first, positions = _cut(codes, numbers, self.start)
        rows = np.where(positions < len(codes), positions, positions[:, :1])
        keys, near = _by_column(_keys(codes, numbers)[rows]), _by_column(_float32(numbers)[rows])
        bits = np.left_shift(np.uint32(1), (codes & 31).astype(np.uint32))[rows]
        return Leaves(
            first,
            positions,
            rows.max(axis=1),
            keys,
            near,
            codes[rows.reshape(-1)],
            numbers[rows.reshape(-1)],
            np.ascontiguousarray(np.bitwise_or.reduce(bits, axis=1).T),
            np.ascontiguousarray(near.min(axis=2).T),
            np.ascontiguousarray(near.max(axis=2).T),
            *_distinct(numbers, self.start),
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
        _search_block(query.take(at), pool, positions[at], distances[at])
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
) -> Query:
    """The anchors in the one layout that the search is compiled for."""
    return Query(
        np.ascontiguousarray(anchors.codes, dtype=np.int32),
        np.ascontiguousarray(anchors.numbers, dtype=np.float64),
        _keys(anchors.codes, anchors.numbers),
        np.ascontiguousarray(target, dtype=np.int64),
        stop,
        np.ascontiguousarray(p, dtype=np.float64),
        np.ascontiguousarray(MISMATCH * weight[:, anchors.code_feature]),
        np.ascontiguousarray(weight[:, anchors.number_feature]),
    )


def _search_block(query: Query, pool: Pool, positions: NDArray[np.int64], distances: NDArray[np.float64]) -> None:
    """Fill in what some anchors find; on one thread where there is little to do."""
    rows = int((query.stop - pool.start[query.target]).sum())
    leaves, n = pool.leaves, len(positions)
    least = n + 1 if rows * query.keys.shape[1] < SERIAL_WORK else 1
    in_threads(lambda low, high: _search(low, high, query, leaves, positions, distances), n, least=least, most=SLICE)


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
    columns = np.concatenate([codes.T, numbers.T])
    order = np.arange(len(codes))
    begins = np.zeros(len(codes), dtype=bool)
    for low, high in pairwise(start):
        _sort_alike(order[low:high], begins[low:high], columns, codes.shape[1])
    edges = np.flatnonzero(begins)
    leaf = np.cumsum(begins) - 1
    positions = np.full((len(edges), LEAF), len(codes), dtype=np.int32)
    positions[leaf, np.arange(len(codes)) - edges[leaf]] = order
    return np.searchsorted(edges, start), positions


def _distinct(numbers: NDArray[np.float64], start: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The distinct values of each class and column in one array, and per class where those of each column begin."""
    width = numbers.shape[1]
    found = [np.unique(numbers[low:high, j]) for low, high in pairwise(start) for j in range(width)]
    ends = np.cumsum([0, *map(len, found)])
    edges = np.arange(len(start) - 1)[:, None] * width + np.arange(width + 1)
    return np.concatenate([*found, np.empty(0)]), ends[edges]


@compiled()
def _sort_alike(
    order: NDArray[np.int64], begins: NDArray[np.bool_], columns: NDArray[np.float64], n_codes: int
) -> None:
    """Order rows so that those of a leaf are alike, and mark where leaves begin.

    Rows are halved, and the halves again, along the column in which they differ most.
    """
    pending = [(0, len(order))]
    while len(pending) > 0:
        low, high = pending.pop()
        if low < high <= low + LEAF:
            begins[low] = True
        if high <= low + LEAF:
            continue
        rows = order[low:high].copy()
        column = columns[_widest(rows, columns, n_codes)]
        order[low:high] = rows[np.argsort(column[rows], kind="quicksort")]
        middle = low + _middle(column[order[low:high]])
        pending.append((low, middle))
        pending.append((middle, high))


@compiled()
def _widest(rows: NDArray[np.int64], columns: NDArray[np.float64], n_codes: int) -> int:
    """The column in which two of the rows are farthest apart on average, for p = 1; judged by some pairs."""
    ones, others = np.empty(PAIRS, dtype=np.int64), np.empty(PAIRS, dtype=np.int64)
    for i in range(PAIRS):  # multiples of two primes: as good as random
        ones[i], others[i] = rows[i * 7919 % len(rows)], rows[(i + 1) * 104729 % len(rows)]
    best, widest = 0, -1.0
    for c in range(len(columns)):
        apart = 0.0
        for i in range(PAIRS):
            gap = abs(columns[c, ones[i]] - columns[c, others[i]])
            apart += gap if c >= n_codes else MISMATCH * (gap > 0.0)
        if apart > widest:
            best, widest = c, apart
    return best


@compiled()
def _middle(values: NDArray[np.float64]) -> int:
    """Where to halve sorted values: at a change of value in the middle two thirds, else so that leaves are full."""
    n = len(values)
    for step in range(n // 3):
        for at in (n // 2 - step, n // 2 + step):
            if values[at - 1] != values[at]:
                return at
    return (n // LEAF + 1) // 2 * LEAF


# -- an anchor's bounds ----------------------------------------------------------------------------------------------


@compiled()
def _aim(i, query, leaves):  # type: ignore[no-untyped-def]
    """Anchor `i` as bounds need it."""
    near = np.empty(query.numbers.shape[1], dtype=np.float32)
    number_weight = np.empty(len(near), dtype=np.float32)
    least = np.zeros(len(near), dtype=np.float32)
    edges = leaves.edges[query.target[i]]
    for c in range(len(near)):
        near[c] = min(max(query.numbers[i, c], -MAX_NUMBER), MAX_NUMBER)
        number_weight[c] = min(query.number_weight[i, c], MAX_WEIGHT)
        if query.p[i] < COUNTING:
            gap = _nearest_other(leaves.values, edges[c], edges[c + 1], query.numbers[i, c])
            least[c] = min(query.number_weight[i, c] * _power(gap, query.p[i]), MAX_WEIGHT)
    code_weight = np.empty(query.codes.shape[1], dtype=np.float32)
    for c in range(len(code_weight)):
        code_weight[c] = min(query.code_weight[i, c], MAX_WEIGHT)
    counted = np.empty(len(code_weight) + len(least), dtype=np.int16)
    unit = _to_counts(code_weight, least, counted)
    return Aim(near, code_weight, number_weight, least, counted, np.float32(unit), np.float32(query.p[i]))


@kernel
def _nearest_other(values, low, high, value):  # type: ignore[no-untyped-def]
    """How far the nearest other of the ascending values[low:high] is from `value`; 0 if there is none."""
    at, n = low, high - low
    while n > 1:
        at = at + n // 2 if values[at + n // 2] <= value else at
        n -= n // 2
    gap = np.inf
    for j in range(max(low, at - 1), min(high, at + 2)):
        if values[j] != value:
            gap = min(gap, abs(values[j] - value))
    return gap if gap < np.inf else 0.0


@kernel
def _to_counts(code_weight, least, counted):  # type: ignore[no-untyped-def]
    """Fill in the weights as whole numbers, rounded down; what one of them stands for is returned, a power of two."""
    total = 1.0
    for weights in (code_weight, least):
        for c in range(len(weights)):
            total += min(weights[c], MAX_COUNTED_WEIGHT)
    unit = 2.0 ** np.ceil(np.log2(total / MAX_COUNT))
    for c in range(len(code_weight)):
        counted[c] = np.int16(min(code_weight[c], MAX_COUNTED_WEIGHT) / unit)
    for c in range(len(least)):
        counted[len(code_weight) + c] = np.int16(min(least[c], MAX_COUNTED_WEIGHT) / unit)
    return unit


@bound_kernel
def _bound_leaves(bounds, first, code, aim, leaves):  # type: ignore[no-untyped-def]
    """Fill in how far each leaf from `first` on is at least."""
    for leaf in range(len(bounds)):
        bounds[leaf] = np.float32(0.0)
    for c in range(len(aim.code_weight)):
        _add_lacking(bounds, leaves.levels[c, first : first + len(bounds)], code[c], aim.code_weight[c])
    for c in range(len(aim.near)):
        low, high = leaves.low[c, first : first + len(bounds)], leaves.high[c, first : first + len(bounds)]
        if aim.p < COUNTING:
            _add_outside(bounds, low, high, aim.near[c], aim.least[c])
        else:
            _add_box_powers(bounds, low, high, aim.near[c], aim.number_weight[c], aim.p)


@bound_kernel
def _add_lacking(bounds, levels, code, weight):  # type: ignore[no-untyped-def]
    """Add `weight` where no row of a leaf has the code."""
    bit = np.uint32(np.uint32(1) << np.uint32(code & 31))
    for leaf in range(len(bounds)):
        bounds[leaf] += weight if np.uint32(levels[leaf] & bit) == np.uint32(0) else np.float32(0.0)


@bound_kernel
def _add_outside(bounds, low, high, value, weight):  # type: ignore[no-untyped-def]
    """Add `weight` where the value is outside of a leaf's box."""
    for leaf in range(len(bounds)):
        bounds[leaf] += weight if (value < low[leaf]) | (value > high[leaf]) else np.float32(0.0)


@bound_kernel
def _add_box_powers(bounds, low, high, value, weight, p):  # type: ignore[no-untyped-def]
    """Add the weighted power of the distance from the value to a leaf's box."""
    doubt = ROUNDING * abs(value) + UNDERFLOW
    if p == 2.0:
        for leaf in range(len(bounds)):
            gap = max(max(low[leaf] - value, value - high[leaf]) - doubt, np.float32(0.0))
            bounds[leaf] += weight * (gap * gap)
    else:
        for leaf in range(len(bounds)):
            gap = max(max(low[leaf] - value, value - high[leaf]) - doubt, np.float32(0.0))
            bounds[leaf] += weight * _power32(gap, p)


@bound_kernel
def _add_powers(sums, near, leaf, aim):  # type: ignore[no-untyped-def]
    """Add the weighted powers of the differences to a leaf's rows; less where float32 can't tell how large they are."""
    for c in range(len(aim.near)):
        value, weight, p = aim.near[c], aim.number_weight[c], aim.p
        doubt = ROUNDING * abs(value) + UNDERFLOW
        if p == 2.0:
            for r in range(LEAF):
                gap = max(abs(near[leaf, c, r] - value) - doubt, np.float32(0.0))
                sums[r] += weight * (gap * gap)
        elif p == 1.0:
            for r in range(LEAF):
                sums[r] += weight * max(abs(near[leaf, c, r] - value) - doubt, np.float32(0.0))
        else:
            for r in range(LEAF):
                gap = max(abs(near[leaf, c, r] - value) - doubt, np.float32(0.0))
                sums[r] += weight * _power32(gap, p)


@bound_kernel
def _power32(x, p):  # type: ignore[no-untyped-def]
    """x^p for x >= 0 as 2^(p log2 x), in steps that a compiler can do for many x at once."""
    power = _exp2(min(p * _log2(x), MAX_LOG))
    return power if x >= UNDERFLOW else np.float32(0.0)


@bound_kernel
def _log2(x):  # type: ignore[no-untyped-def]
    """log2 x: the exponent of x, plus a polynomial of its significand in [sqrt 1/2, sqrt 2) (error 1e-6)."""
    bits = np.float32(x).view(np.int32)
    exponent = np.int32(np.int32(bits - np.int32(0x3F3504F3)) >> np.int32(23))
    u = np.int32(bits - np.int32(exponent << np.int32(23))).view(np.float32) - np.float32(1.0)
    log = np.float32(0.16818659) * u - np.float32(0.26796387)
    log = log * u + np.float32(0.29611956)
    log = log * u - np.float32(0.35952446)
    log = log * u + np.float32(0.48061313)
    log = log * u - np.float32(0.72136018)
    log = log * u + np.float32(1.44269652)
    return log * u + np.float32(exponent)


@bound_kernel
def _exp2(x):  # type: ignore[no-untyped-def]
    """2^x, or 0 below the range of float32: a polynomial of what x is off the next whole number (error 1e-7)."""
    whole = np.floor(x + np.float32(0.5))
    u = x - whole
    power = np.float32(0.0013390863) * u + np.float32(0.0096760319)
    power = power * u + np.float32(0.0555035711)
    power = power * u + np.float32(0.2402210749)
    power = power * u + np.float32(0.6931471880)
    power = power * u + np.float32(1.0000000755)
    scale = np.int32(np.int32(np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return power * scale if x > np.float32(-126.0) else np.float32(0.0)


@kernel
def _count(counts, keys, leaf, key, weight, columns):  # type: ignore[no-untyped-def]
    """Add the weights of the columns in which a leaf's rows differ."""
    for c in columns:
        mine, heavy = key[c], weight[c]
        for r in range(LEAF):
            counts[r] += heavy if keys[leaf, c, r] != mine else np.int16(0)


@kernel
def _within(bounds, limit):  # type: ignore[no-untyped-def]
    """How many of a leaf's bounds are within a limit."""
    n = np.int16(0)
    for r in range(LEAF):
        n = np.int16(n + np.int16(bounds[r] <= limit))
    return n


@kernel
def _bound_rows(leaf, i, query, leaves, aim, limit, desk):  # type: ignore[no-untyped-def]
    """Bound a leaf's rows in `desk.sums`, and say whether any is within the limit."""
    counts, sums, key = desk.counts, desk.sums, query.keys[i]
    most = np.int16(min(limit / aim.unit, MAX_COUNT))
    n_codes = len(aim.code_weight)
    _clear(counts, leaf, leaves, np.int32(query.stop[i]))
    _count(counts, leaves.keys, leaf, key, aim.counted, range(n_codes))
    if _within(counts, most) == 0:
        return False
    _to_sums(sums, counts, aim.unit)
    if aim.p < COUNTING:
        _count(counts, leaves.keys, leaf, key, aim.counted, range(n_codes, len(key)))
        left = _within(counts, most)
        if left <= FEW:
            _to_sums(sums, counts, aim.unit)
            return left > 0
    _add_powers(sums, leaves.near, leaf, aim)
    return _within(sums, limit) > 0


@kernel
def _clear(counts, leaf, leaves, stop):  # type: ignore[no-untyped-def]
    """Set the counts to 0, or to OUT for rows that may not be found."""
    if leaves.last[leaf] < stop:
        for r in range(LEAF):
            counts[r] = np.int16(0)
    else:
        for r in range(LEAF):
            counts[r] = np.int16(0) if leaves.positions[leaf, r] < stop else OUT


@kernel
def _to_sums(sums, counts, unit):  # type: ignore[no-untyped-def]
    for r in range(LEAF):
        sums[r] = unit * np.float32(counts[r]) if counts[r] < OUT else GONE


# -- search ----------------------------------------------------------------------------------------------------------


@compiled(nogil=True)
def _search(low, high, query, leaves, positions, distances):  # type: ignore[no-untyped-def]
    """Fill in the positions and distances of what the anchors from `low` to `high` find."""
    desk = Desk(np.empty(LEAF, np.int16), np.empty(LEAF, np.float32), np.empty(LEAF, np.float32))
    bounds = np.empty(leaves.first[-1], dtype=np.float32)
    for i in range(low, high):
        label = query.target[i]
        mine = bounds[: leaves.first[label + 1] - leaves.first[label]]
        _visit(i, query, leaves, _aim(i, query, leaves), desk, mine, positions[i], distances[i])


@kernel
def _visit(i, query, leaves, aim, desk, bounds, positions, distances):  # type: ignore[no-untyped-def]
    """Look at the leaves of the anchor's class that may hold something nearer than the K-th best."""
    first = leaves.first[query.target[i]]
    _bound_leaves(bounds, first, query.codes[i], aim, leaves)
    slack = 1.0 + SLACK * (1.0 + aim.p) + ROUNDING * len(aim.near)
    limit = FAR
    early = min(BEST_FIRST, len(bounds))
    for turn in range(early + len(bounds)):
        leaf = _lowest(bounds) if turn < early else turn - early
        if bounds[leaf] > limit:
            continue
        bounds[leaf] = GONE
        if _bound_rows(first + leaf, i, query, leaves, aim, limit, desk):
            if limit == FAR:  # nothing to go by yet: the rows with the least bounds come before the others
                nearest = min(_kth(desk, len(distances)), FAR)
                limit = _measure_rows(first + leaf, i, query, leaves, desk.sums, nearest, slack, positions, distances)
            limit = _measure_rows(first + leaf, i, query, leaves, desk.sums, limit, slack, positions, distances)


@kernel
def _lowest(bounds):  # type: ignore[no-untyped-def]
    """Where the least of some floats stands that are not negative: their bits have the same order."""
    bits = bounds.view(np.int32)
    least = bits[0]
    for leaf in range(len(bits)):
        least = min(least, bits[leaf])
    leaf = 0
    while bits[leaf] != least:
        leaf += 1
    return leaf


@kernel
def _kth(desk, k):  # type: ignore[no-untyped-def]
    """The k-th least of a leaf's sums."""
    if k > LEAF:
        return GONE
    least = desk.sorted
    for r in range(LEAF):
        i = min(r, k - 1)
        if r < k or desk.sums[r] < least[i]:
            while i > 0 and least[i - 1] > desk.sums[r]:
                least[i] = least[i - 1]
                i -= 1
            least[i] = desk.sums[r]
    return least[k - 1]


@kernel
def _measure_rows(leaf, i, query, leaves, sums, limit, slack, positions, distances):  # type: ignore[no-untyped-def]
    """Measure the rows of a leaf whose bounds are within the limit, and return the limit of the next leaf."""
    stop, k = np.int32(query.stop[i]), len(distances)
    for r in range(LEAF):
        if sums[r] <= limit:
            sums[r] = GONE
            position = leaves.positions[leaf, r]
            if position < stop:
                _insert(_distance(leaf * LEAF + r, i, query, leaves), position, distances, positions)
                limit = min(limit, np.float32(slack * distances[k - 1]))
    return min(np.float32(slack * distances[k - 1]), FAR)


@kernel
def _distance(row, i, query, leaves):  # type: ignore[no-untyped-def]
    """What the paper defines, between a row and anchor `i`."""
    total = 0.0
    for c in range(query.codes.shape[1]):
        total += query.code_weight[i, c] if leaves.codes[row, c] != query.codes[i, c] else 0.0
    for c in range(query.numbers.shape[1]):
        total += query.number_weight[i, c] * _power(leaves.numbers[row, c] - query.numbers[i, c], query.p[i])
    return total


@kernel
def _power(x, p):  # type: ignore[no-untyped-def]
    """|x|^p, with the two common exponents spelt out."""
    if p == 2.0:
        return x * x
    x = abs(x)
    if p == 1.0 or x == 0.0:
        return x
    return np.exp(p * np.log(x))


@kernel
def _insert(distance, position, distances, positions):  # type: ignore[no-untyped-def]
    """Keep the two arrays sorted by distance, then position; what comes last is dropped."""
    i = len(distances)
    while i > 0 and (distances[i - 1] > distance or (distances[i - 1] == distance and positions[i - 1] > position)):
        i -= 1
        if i + 1 < len(distances):
            distances[i + 1] = distances[i]
            positions[i + 1] = positions[i]
    if i < len(distances):
        distances[i] = distance
        positions[i] = position
