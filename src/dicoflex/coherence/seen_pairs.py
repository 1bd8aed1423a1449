"""Pairs of values that occur together: an answer has none that no training row has, unless its query has it too.

Cells are levels, and tenths of numbers. A pair of cells is *unseen* where fewer than `min_count` training rows have it
and, were the two independent, at least `expected` rows would. `expected` is the least number on a fixed scale at
which at most 1 % of the training rows (and a standard error) would be called incoherent by the others: a small table,
or a rare level, lacks pairs by chance. Whether a pair is of no row, of one or of some more that are fewer than
`min_count`, is not told.

To call a row incoherent takes evidence; to keep an answer away from what hardly anybody has does not. So pairs are
*avoided* by the same rule at 6 % in place of 1 %: answers have none of them that their query has not.
"""

from __future__ import annotations

__all__ = ["SeenPairs"]

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.coherence.bins import Bins
from dicoflex.model_file.taking import Arrays, refuse_others, taken
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema

CELLS = 10
SCALE = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 50.0, 100.0, np.inf)
TABLES = ("unseen", "avoided")
FALSE_ALARMS = 0.01
LEFT_ASIDE = 0.06


@dataclass(frozen=True)
class SeenPairs:
    """bins: the cells. unseen: which pairs of cells don't go together (cells, cells). avoided: those and some more,
    which no answer is to have. expected, alarms: the rule for `unseen`, and the share of training rows that the others
    would call incoherent by it."""

    bins: Bins
    unseen: NDArray[np.bool_]
    avoided: NDArray[np.bool_]
    expected: float
    alarms: float

    @classmethod
    def learn(cls, schema: Schema, values: Values, *, min_count: int = 1) -> SeenPairs:
        """Count the pairs of the training rows, and choose the rule."""
        bins = Bins.build(schema, values, n=CELLS, min_count=min_count)
        counts = np.zeros((bins.offset[-1], bins.offset[-1]), dtype=np.int64)
        bins.core.count_pairs(values, counts)
        alone = counts.diagonal().astype(float)
        chance = np.outer(alone, alone) / max(len(values), 1)
        own = np.repeat(np.arange(len(schema)), bins.size)
        other = own[:, None] != own[None, :]
        few, fragile = other & (counts < min_count), other & (counts <= min_count) & (counts > 0)
        expected, share = _rule(bins, values, fragile, chance, FALSE_ALARMS)
        less, _ = _rule(bins, values, fragile, chance, LEFT_ASIDE)
        told = share if min_count == 1 else round(share, 2)
        return cls(bins, few & (chance >= expected), few & (chance >= less), expected, told)

    def broken(self, values: Values, query: Values | None = None) -> NDArray[np.bool_]:
        """Which rows have an unseen pair (that their query has not)."""
        return _having(_core.MarkedPairs(self.bins.core, self.unseen), values, query)

    def strays(self, values: Values, query: Values | None = None) -> NDArray[np.bool_]:
        """Which rows have a pair that answers avoid (and that their query has not)."""
        return _having(self.core, values, query)

    @cached_property
    def core(self) -> _core.MarkedPairs:
        """The pairs that answers avoid, as the core reads them."""
        return _core.MarkedPairs(self.bins.core, self.avoided)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps: two bits per pair."""
        packed = {name: np.packbits(getattr(self, name), axis=1) for name in TABLES}
        return {**self.bins.arrays(), **packed, "rule": np.array([self.expected, self.alarms])}

    @classmethod
    def restore(cls, schema: Schema, arrays: Arrays) -> SeenPairs:
        """What `arrays` were taken from; refused where they don't fit the schema."""
        refuse_others(arrays, ("edge", "edge_at", *TABLES, "rule"))
        bins = Bins.restore(schema, arrays)
        n = int(bins.offset[-1])
        packed = [taken(arrays, name, np.uint8, (n, -(-n // 8))) for name in TABLES]
        unseen, avoided = (np.unpackbits(table, axis=1, count=n).astype(bool) for table in packed)
        expected, alarms = taken(arrays, "rule", np.float64, (2,), finite=False).tolist()
        return cls(bins, unseen, avoided, expected, alarms)


def _having(marked: _core.MarkedPairs, values: Values, query: Values | None) -> NDArray[np.bool_]:
    """Which rows have a marked pair (that their query has not)."""
    out = np.empty(len(values), dtype=bool)
    marked.find(values, query, out)
    return out


def _rule(
    bins: Bins, values: Values, fragile: NDArray[np.bool_], chance: NDArray[np.float64], share: float
) -> tuple[float, float]:  # fmt: skip
    """The least expected number at which at most `share` of the rows have a pair that is unseen by the others.

    fragile: pairs that too few rows are left with when one of them is taken away.
    """
    most = share + np.sqrt(share / max(len(values), 1))
    for expected in SCALE:
        marked = _core.MarkedPairs(bins.core, fragile & (chance >= expected))
        found = float(_having(marked, values, None).mean()) if len(values) else 0.0
        if found <= most:
            break
    return float(expected), found
