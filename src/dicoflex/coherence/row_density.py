"""A density of the rows themselves: autoregressive over cells, exact, small, and quick to ask for one edit.

    log p(x) = sum_k log softmax(relu(relu(h_k) A_k + a_k) B_k + b_k)[x_k],    h_k = b + sum_{i<k} E[cell of x_i]

Cells are levels, and quantile cells of numbers, so that a cell's mass is a density relative to the feature's own
distribution: no unit and no monotone change of a number matters. Features stand in a fixed order; changing the one at
place k leaves the factors before k as they were.

A row's *weakest factor* is the log probability of the value that the features before it would have expected least. A
row may be likely as a whole and yet hold one value that hardly goes with the rest; both are compared with real rows.
"""

from __future__ import annotations

__all__ = [
    "BLOCK",
    "QUANTILES",
    "Factors",
    "Room",
    "RowDensity",
    "edited",
    "factor_of",
    "factors_of",
    "new_room",
    "whole",
]

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.coherence.bins import Bins
from dicoflex.model_file.taking import Arrays, refuse, refuse_others, taken
from dicoflex.runtime.compiled import compiled, lean
from dicoflex.runtime.products import Actives, add_rectified, new_actives
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
QUANTILES = np.linspace(0.0, 1.0, 101)
WEIGHTS = ("told", "start", "inner", "inner_bias", "outer", "outer_bias")
BLOCK = 8
THREADED = 64
MOST_FLOORS = 64


class Factors(NamedTuple):
    """The network's arrays as kernels read them; those with an entry per place stand in `order`."""

    order: Ints  # (d,): the feature at each place
    rank: Ints  # (d,): the place of each feature
    first: Ints  # (d,): where a feature's cells start
    size: Ints  # (d,): how many cells it has
    told: NDArray[np.float32]  # (cells, hidden)
    start: NDArray[np.float32]  # (hidden,)
    inner: NDArray[np.float32]  # (d, hidden, head)
    inner_bias: NDArray[np.float32]  # (d, head)
    outer: NDArray[np.float32]  # (d, head, states), states a multiple of BLOCK
    outer_bias: NDArray[np.float32]  # (d, states); very low where a feature has fewer


@dataclass(frozen=True)
class RowDensity:
    """The density, and by class the quantiles of held-out real rows (classes, 101): of their log densities, and of
    their weakest factors."""

    bins: Bins
    factors: Factors
    held: Floats
    weakest: Floats

    def judge(self, values: Values) -> tuple[Floats, Floats]:
        """The log mass of each row's cells, and its weakest factor."""
        cells, out = self.bins.locate(values), np.empty((2, len(values)))
        in_threads(lambda low, high: _score(low, high, cells, self.factors, out), len(values), least=THREADED)
        return out[0], out[1]

    def floors(self, share: float) -> tuple[Floats, Floats]:
        """Per class, the log density and the weakest factor that `share` of the real rows lie below."""
        found = self._floors.get(share)
        if found is None:
            if len(self._floors) >= MOST_FLOORS:
                self._floors.clear()
            found = self._floors[share] = _at(self.held, share), _at(self.weakest, share)
        return found

    @cached_property
    def _floors(self) -> dict[float, tuple[Floats, Floats]]:
        """Those that were asked for: most calls ask for the same."""
        return {}

    def rarity(self, log_density: Floats, labels: Ints) -> Floats:
        """The share of held-out real rows of each row's class that are less likely than it."""
        return _share_below(log_density, self.held, labels)

    def weakness(self, weakest: Floats, labels: Ints) -> Floats:
        """The share of held-out real rows of each row's class whose weakest factor is weaker than its own."""
        return _share_below(weakest, self.weakest, labels)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""
        own = {"order": self.factors.order, "held": self.held, "weakest": self.weakest, **self.bins.arrays()}
        return own | {name: getattr(self.factors, name) for name in WEIGHTS}

    @classmethod
    def restore(cls, schema: Schema, n_classes: int, arrays: Arrays) -> RowDensity:
        """The density with these arrays; refused where they don't fit the schema and each other."""
        refuse_others(arrays, (*WEIGHTS, "order", "held", "weakest", "edge", "edge_at"))
        bins, d = Bins.restore(schema, arrays), len(schema)
        order = taken(arrays, "order", np.int64, (d,))
        if not np.array_equal(np.sort(order), np.arange(d)):
            refuse("order", "names a feature twice or not at all")
        hidden, head = taken(arrays, "inner", np.float32, (d, None, None)).shape[1:]
        states = taken(arrays, "outer", np.float32, (d, head, None)).shape[2]
        if states % BLOCK or states < bins.size.max() or min(hidden, head) < 1:
            refuse("outer", "has room for other cells than the schema's")
        wanted = {
            "told": (int(bins.offset[-1]), hidden), "start": (hidden,), "inner": (d, hidden, head),
            "inner_bias": (d, head), "outer": (d, head, states), "outer_bias": (d, states),
        }  # fmt: skip
        weights = {name: taken(arrays, name, np.float32, shape) for name, shape in wanted.items()}
        held, weakest = (_rising(arrays, name, n_classes) for name in ("held", "weakest"))
        return cls(bins, factors_of(bins, order, weights), held, weakest)


def _rising(arrays: Arrays, name: str, n_classes: int) -> Floats:
    """Quantiles per class, as a file has them."""
    table = taken(arrays, name, np.float64, (n_classes, len(QUANTILES)))
    if (np.diff(table, axis=1) < 0).any():
        refuse(name, "falls")
    return table


def factors_of(bins: Bins, order: Ints, weights: dict[str, NDArray[np.float32]]) -> Factors:
    """The weights with what the cells say."""
    return Factors(order, np.argsort(order), bins.offset[:-1].copy(), bins.size, *(weights[name] for name in WEIGHTS))


def _at(table: Floats, share: float) -> Floats:
    return np.array([np.interp(share, QUANTILES, row) for row in table])


def _share_below(scores: Floats, table: Floats, labels: Ints) -> Floats:
    out = np.empty(len(scores))
    for c, row in enumerate(table):
        mine = labels == c
        if mine.all():
            return np.interp(scores, row, QUANTILES)
        out[mine] = np.interp(scores[mine], row, QUANTILES)
    return out


class Room(NamedTuple):
    """Room to work a factor out in: a place's hidden layer, its logits, and what of a layer is above zero."""

    hidden: NDArray[np.float32]
    logits: NDArray[np.float32]
    actives: Actives


@compiled()
def new_room(f):  # type: ignore[no-untyped-def]
    """Room for the factors of one network."""
    n_hidden, n_head, n_state = len(f.start), f.inner.shape[2], f.outer.shape[2]
    hidden, logits = np.empty(n_head, dtype=np.float32), np.empty(n_state, dtype=np.float32)
    return Room(hidden, logits, new_actives(max(n_hidden, n_head)))


@lean(fastmath=True, error_model="numpy")
def factor_of(k, state, h, f, room):  # type: ignore[no-untyped-def]
    """The log probability of `state` at place k, given what was told; `room.logits` is left with the place's logits.

    The exponential is (1 + r + r^2 / 2 + r^3 / 6)^256 at r = x / 256, which is quick on many at a time: within 3e-5 of
    its value for x above -10, and of no weight below.
    """
    hidden, logits = room.hidden, room.logits
    n_head, n = len(hidden), (f.size[f.order[k]] + 7) // 8 * 8
    zero, one, least = np.float32(0.0), np.float32(1.0), np.float32(-60.0)
    small, half, sixth = np.float32(1.0 / 256.0), np.float32(0.5), np.float32(1.0 / 6.0)
    inner_bias, outer_bias = f.inner_bias, f.outer_bias
    for a in range(n_head):
        hidden[a] = inner_bias[k, a]
    add_rectified(h, f.inner[k], hidden, n_head, room.actives)
    for s in range(n):
        logits[s] = outer_bias[k, s]
    add_rectified(hidden, f.outer[k], logits, n, room.actives)
    top = logits[0]
    for s in range(1, n):
        top = max(top, logits[s])
    total = zero
    for s in range(n):
        r = max(logits[s] - top, least) * small
        e = one + r * (one + r * (half + r * sixth))
        e = e * e
        e = e * e
        e = e * e
        e = e * e
        e = e * e
        e = e * e
        e = e * e
        e = e * e
        total += e
    return np.float64(logits[state] - top) - np.log(np.float64(total))


@lean()
def whole(cell, f, heard, factor, room):  # type: ignore[no-untyped-def]
    """The log density of a row's cells; `heard` and `factor` are filled for later edits."""
    return edited(cell, 0, -np.inf, -np.inf, f, heard, factor, heard, factor, room)


@lean(fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
def edited(cell, k, floor, weak, f, heard, factor, heard_new, factor_new, room):  # type: ignore[no-untyped-def]
    """The log density of cells that differ from those of `heard` from place k on.

    It is -inf where it lies below `floor`, or a factor from k on below `weak`. `heard_new` and `factor_new` are filled
    from k on, unless the work was cut short.
    """
    d, n_hidden, start, told = len(f.order), len(f.start), f.start, f.told
    total = 0.0
    for i in range(k):
        total += factor[i]
    for i in range(n_hidden):
        heard_new[k, i] = start[i] if k == 0 else heard[k, i]
    for i in range(k, d):
        j = f.order[i]
        state = cell[j]
        factor_new[i] = factor_of(i, state, heard_new[i], f, room)
        total += factor_new[i]
        if total < floor or factor_new[i] < weak:
            total = -np.inf
            break
        if i + 1 < d:
            at = f.first[j] + state
            for m in range(n_hidden):
                heard_new[i + 1, m] = heard_new[i, m] + told[at, m]
    return total


@compiled(nogil=True)
def _score(low, high, cells, f, out):  # type: ignore[no-untyped-def]
    d, room = cells.shape[1], new_room(f)
    heard, factor = np.empty((d, len(f.start)), dtype=np.float32), np.empty(d)
    for i in range(low, high):
        out[0, i] = whole(cells[i], f, heard, factor, room)
        out[1, i] = factor.min()
