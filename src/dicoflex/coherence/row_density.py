"""A density of the rows themselves: autoregressive over cells, exact, small, and quick to ask for one edit.

    log p(x) = sum_k log softmax(relu(relu(h_k) A_k + a_k) B_k + b_k)[x_k],    h_k = b + sum_{i<k} E[cell of x_i]

Cells are levels, and quantile cells of numbers, so that a cell's mass is a density relative to the feature's own
distribution: no unit and no monotone change of a number matters. Features stand in a fixed order; changing the one at
place k leaves the factors before k as they were.

A row's *weakest factor* is the log probability of the value that the features before it would have expected least. A
row may be likely as a whole and yet hold one value that hardly goes with the rest; both are compared with real rows.
"""

from __future__ import annotations

__all__ = ["BLOCK", "QUANTILES", "Factors", "RowDensity", "factors_of"]

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Arrays, Floats, Ints
from dicoflex.coherence.seen_pairs import Bins
from dicoflex.model_file.taking import refuse, refuse_others, taken
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema

QUANTILES = np.linspace(0.0, 1.0, 101)
WEIGHTS = ("told", "start", "inner", "inner_bias", "outer", "outer_bias")
BLOCK = 8
THREADED = 64
MOST_FLOORS = 64


class Factors(NamedTuple):
    """The network's arrays; those with an entry per place stand in `order`."""

    order: Ints  # (d,): the feature at each place
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
        rows, out = np.ascontiguousarray(values), np.empty((2, len(values)))
        in_threads(lambda low, high: self.core.judge(rows, low, high, out), len(rows), least=THREADED)
        return out[0], out[1]

    @cached_property
    def core(self) -> _core.RowDensity:
        """The density as the core works it out."""
        return _core.RowDensity(self.bins.core, **self.factors._asdict())

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

    def plausibility(self, log_density: Floats, labels: Ints) -> Floats:
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
        return cls(bins, factors_of(order, weights), held, weakest)


def _rising(arrays: Arrays, name: str, n_classes: int) -> Floats:
    """Quantiles per class, as a file has them."""
    table = taken(arrays, name, np.float64, (n_classes, len(QUANTILES)))
    if (np.diff(table, axis=1) < 0).any():
        refuse(name, "falls")
    return table


def factors_of(order: Ints, weights: dict[str, NDArray[np.float32]]) -> Factors:
    """The weights of a network whose features stand in this order."""
    return Factors(order, *(weights[name] for name in WEIGHTS))


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
