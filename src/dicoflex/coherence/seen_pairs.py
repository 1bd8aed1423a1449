"""Pairs of values that occur together: an answer has none that no training row has, unless its query has it too.

Cells are levels, and tenths of numbers (between quantiles of the training rows). A pair of cells is *unseen* where
fewer than `min_count` training rows have it and, were the two independent, at least `expected` rows would. `expected`
is the least number on a fixed scale at which at most 1 % of the training rows (and a standard error) would be called
incoherent by the others: a small table, or a rare level, lacks pairs by chance. Whether a pair is of no row, of one
or of some more that are fewer than `min_count`, is not stored.

To call a row incoherent takes evidence; to keep an answer away from what hardly anybody has does not. So pairs are
*avoided* by the same rule at 6 % in place of 1 %: answers have none of them that their query has not.
"""

from __future__ import annotations

__all__ = ["Bins", "SeenPairs"]

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Arrays, Floats, Ints
from dicoflex.model_file.taking import refuse, refuse_others, taken
from dicoflex.table.encoding import Values
from dicoflex.table.rarity import round_between, round_near
from dicoflex.table.schema import Schema

DIGITS = 3


@dataclass(frozen=True)
class Bins:
    """Cells of all features, end to end.

    edge: between the cells of numbers; a value equal to one belongs below it. They are rounded to three digits of the
    feature's spread; with a `min_count` above one they are round numbers, and no cell is that of fewer rows.
    """

    offset: Ints
    edge: Floats
    edge_at: Ints
    number: NDArray[np.bool_]
    missing: NDArray[np.bool_]

    @classmethod
    def build(cls, schema: Schema, values: Values, *, n: int, min_count: int = 1) -> Bins:
        """At most `n` cells per number, at its quantiles in `values`; a number that may be missing has one more.

        So has one for each of its special values.
        """
        edges = []
        shares = np.linspace(0.0, 1.0, n + 1)[1:-1]
        for j, feature in enumerate(schema.features):
            column = values[~np.isnan(values[:, j]), j]
            measured = column[~np.isin(column, feature.special)] if feature.special else column
            if not feature.is_number:
                edges.append(np.zeros(0))
                continue
            if min_count > 1:
                cuts = _round_cuts(measured, shares, min_count)
            else:
                cuts = _cuts(measured, shares, whole=feature.is_whole)
            edges.append(_apart(cuts, column, feature.special, min_count) if feature.special else cuts)
        return cls.of(schema, edges)

    @classmethod
    def of(cls, schema: Schema, edges: list[Floats]) -> Bins:
        """The cells between given edges, those of each feature sorted."""
        features = schema.features
        sizes = [
            len(e) + 1 + int(f.missing) if f.is_number else f.n_states for e, f in zip(edges, features, strict=True)
        ]
        return cls(
            np.cumsum([0, *sizes]),
            np.concatenate(edges),
            np.cumsum([0, *map(len, edges)]),
            np.array([f.is_number for f in features]),
            np.array([f.is_number and f.missing for f in features]),
        )

    @cached_property
    def core(self) -> _core.Bins:
        """The cells as the core reads them."""
        return _core.Bins(offset=self.offset, edge=self.edge, edge_at=self.edge_at, number=self.number)

    @property
    def size(self) -> Ints:
        """How many cells each feature has."""
        return np.diff(self.offset)

    def locate(self, values: Values) -> Ints:
        """The cell of each value, counted from its feature's first."""
        out = np.empty(values.shape, dtype=np.int64)
        self.core.locate(values, out)
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps; the rest follows from the schema."""
        return {"edge": self.edge, "edge_at": self.edge_at}

    @classmethod
    def restore(cls, schema: Schema, arrays: Arrays) -> Bins:
        """The cells that `arrays` were taken from; refused where they don't fit the schema."""
        edge = taken(arrays, "edge", np.float64, (None,))
        at = taken(arrays, "edge_at", np.int64, (len(schema) + 1,))
        if at[0] != 0 or at[-1] != len(edge) or (np.diff(at) < 0).any():
            refuse("edge_at", "does not rise from 0 to the number of edges")
        edges = [edge[a:b] for a, b in pairwise(at)]
        if any((np.diff(e) <= 0).any() for e in edges):
            refuse("edge", "is not in order")
        if any(len(e) for e, f in zip(edges, schema.features, strict=True) if not f.is_number):
            refuse("edge", "cuts a feature that is no number")
        return cls.of(schema, edges)


def _cuts(column: Floats, shares: Floats, *, whole: bool) -> Floats:
    """Quantiles, rounded: to whole numbers, or to three digits of how far they spread."""
    if len(column) == 0:
        return np.zeros(0)
    cuts = np.quantile(column, shares)
    spread = float(cuts.max() - cuts.min())
    if whole or spread == 0.0:
        return np.unique(np.floor(cuts) if whole else cuts)
    unit = 10.0 ** (np.floor(np.log10(spread)) - DIGITS + 1)
    return np.unique(np.round(cuts / unit) * unit)


def _apart(cuts: Floats, column: Floats, special: tuple[float, ...], min_count: int) -> Floats:
    """Edges that give special values cells of their own, and the cuts that leave no cell to fewer than enough rows."""
    ordered, own = np.sort(column), []
    for value in special:
        below = ordered[: np.searchsorted(ordered, value)]
        if len(below):
            highest = float(below[-1])
            between = min(round_between(highest, value), np.nextafter(value, -np.inf))
            own.append(highest if highest in special else between)
        own.append(value)
    kept: list[float] = []
    for edge in (*sorted(set(own)), *cuts.tolist()):
        edges = np.unique([*kept, edge])
        rows = np.diff([0, *np.searchsorted(ordered, edges, side="right"), len(ordered)])
        if edge not in kept and rows.min() >= min_count:
            kept = edges.tolist()
    return np.array(kept, dtype=np.float64)


def _round_cuts(column: Floats, shares: Floats, min_count: int) -> Floats:
    """Round numbers near the quantiles, with at least `min_count` rows between any two of them and beyond."""
    ordered = np.sort(column)
    if len(ordered) == 0:
        return ordered
    places = (shares * (len(ordered) - 1)).astype(int)
    kept: list[float] = []
    done = 0
    for cut in sorted({round_near(ordered, at, at, min_count) for at in places.tolist()}):
        below = int(np.searchsorted(ordered, cut, side="right"))
        if below - done >= min_count and len(ordered) - below >= min_count:
            kept.append(cut)
            done = below
    return np.array(kept, dtype=np.float64)


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
