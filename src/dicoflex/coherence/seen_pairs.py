"""Pairs of values that occur together: an answer has none that no training row has, unless its query has it too.

Cells are levels, and tenths of numbers. A pair of cells is *unseen* where fewer than `min_count` training rows have it
and, were the two independent, at least `expected` rows would. `expected` is the least number on a fixed scale at
which at most 1 % of the training rows (and a standard error) would be called incoherent by the others: a small table,
or a rare level, lacks pairs by chance. Whether a pair is of no row, of one or of some more that are fewer than
`min_count`, is not told.
"""

from __future__ import annotations

__all__ = ["SeenPairs", "coherent"]

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.coherence.bins import Bins
from dicoflex.model_file.taking import Arrays, refuse_others, taken
from dicoflex.runtime.compiled import compiled
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema

CELLS = 10
SCALE = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 50.0, 100.0, np.inf)
FALSE_ALARMS = 0.01


@dataclass(frozen=True)
class SeenPairs:
    """bins: the cells. unseen: which pairs of cells don't go together (cells, cells). expected, alarms: the rule, and
    the share of training rows that the others would call incoherent by it."""

    bins: Bins
    unseen: NDArray[np.bool_]
    expected: float
    alarms: float

    @classmethod
    def learn(cls, schema: Schema, values: Values, *, min_count: int = 1) -> SeenPairs:
        """Count the pairs of the training rows, and choose the rule."""
        bins = Bins.build(schema, values, n=CELLS, min_count=min_count)
        at = bins.locate(values) + bins.offset[:-1]
        counts = np.zeros((bins.offset[-1], bins.offset[-1]), dtype=np.int64)
        _count(at, counts)
        alone = counts.diagonal().astype(float)
        chance = np.outer(alone, alone) / max(len(values), 1)
        own = np.repeat(np.arange(len(schema)), bins.size)
        other = own[:, None] != own[None, :]
        most = FALSE_ALARMS + np.sqrt(FALSE_ALARMS / max(len(values), 1))
        for expected in SCALE:
            # A row's own pair is unseen by the others where too few are left without it.
            fragile = other & (counts <= min_count) & (counts > 0) & (chance >= expected)
            share = float(_have_one(at, fragile).mean()) if len(values) else 0.0
            if share <= most:
                break
        unseen = other & (counts < min_count) & (chance >= expected)
        return cls(bins, unseen, float(expected), share if min_count == 1 else round(share, 2))

    def broken(self, values: Values, query: Values | None = None) -> NDArray[np.bool_]:
        """Which rows have an unseen pair (that their query has not)."""
        cells = self.bins.locate(values)
        own = np.full_like(cells, -1) if query is None else self.bins.locate(query)
        out = np.empty(len(values), dtype=bool)
        _broken(cells, own, self.bins.offset, self.unseen, out)
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps: a bit per pair."""
        packed = np.packbits(self.unseen, axis=1)
        return {**self.bins.arrays(), "unseen": packed, "rule": np.array([self.expected, self.alarms])}

    @classmethod
    def restore(cls, schema: Schema, arrays: Arrays) -> SeenPairs:
        """What `arrays` were taken from; refused where they don't fit the schema."""
        refuse_others(arrays, ("edge", "edge_at", "unseen", "rule"))
        bins = Bins.restore(schema, arrays)
        n = int(bins.offset[-1])
        packed = taken(arrays, "unseen", np.uint8, (n, -(-n // 8)))
        expected, alarms = taken(arrays, "rule", np.float64, (2,), finite=False).tolist()
        return cls(bins, np.unpackbits(packed, axis=1, count=n).astype(bool), expected, alarms)


@compiled()
def _count(at, counts):  # type: ignore[no-untyped-def]
    for i in range(at.shape[0]):
        for a in range(at.shape[1]):
            for b in range(at.shape[1]):
                counts[at[i, a], at[i, b]] += 1


@compiled()
def _have_one(at, marked):  # type: ignore[no-untyped-def]
    out = np.zeros(at.shape[0], dtype=np.bool_)
    for i in range(at.shape[0]):
        for a in range(at.shape[1]):
            for b in range(a):
                out[i] |= marked[at[i, a], at[i, b]]
    return out


@compiled(inline="always")
def coherent(cell, own, offset, unseen):  # type: ignore[no-untyped-def]
    """Whether a row's cells have no unseen pair that the cells of its query, `own`, have not."""
    fine = True
    for a in range(len(cell)):
        if cell[a] != own[a]:
            at = offset[a] + cell[a]
            for b in range(len(cell)):
                if b != a and unseen[at, offset[b] + cell[b]]:
                    fine = False
                    break
            if not fine:
                break
    return fine


@compiled()
def _broken(cells, own, offset, unseen, out):  # type: ignore[no-untyped-def]
    for i in range(len(cells)):
        out[i] = not coherent(cells[i], own[i], offset, unseen)
