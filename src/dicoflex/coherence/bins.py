"""Cells for judging rows: a level is a cell of its own, a number falls between quantiles of the training rows."""

from __future__ import annotations

__all__ = ["Bins"]

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Floats, Ints
from dicoflex.model_file.taking import Arrays, refuse, taken
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
