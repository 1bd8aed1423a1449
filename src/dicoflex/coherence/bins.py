"""Cells for judging rows: a level is a cell of its own, a number falls between quantiles of the training rows."""

from __future__ import annotations

__all__ = ["Bins", "Places", "cell_of"]

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.model_file.taking import Arrays, refuse, taken
from dicoflex.runtime.compiled import compiled
from dicoflex.table.encoding import Values
from dicoflex.table.rarity import round_near
from dicoflex.table.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DIGITS = 3


class Places(NamedTuple):
    """The cells as kernels read them: feature j owns cells offset[j] to offset[j + 1], edges edge_at[j] to [j + 1]."""

    offset: Ints
    edge: Floats
    edge_at: Ints
    number: NDArray[np.bool_]
    missing: NDArray[np.bool_]


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
        """At most `n` cells per number, at its quantiles in `values`; a number that may be missing has one more."""
        edges = []
        shares = np.linspace(0.0, 1.0, n + 1)[1:-1]
        for j, feature in enumerate(schema.features):
            column = values[~np.isnan(values[:, j]), j]
            if not feature.is_number:
                edges.append(np.zeros(0))
            elif min_count > 1:
                edges.append(_round_cuts(column, shares, min_count))
            else:
                edges.append(_cuts(column, shares, whole=feature.is_whole))
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

    @property
    def places(self) -> Places:
        """The arrays as kernels take them."""
        return Places(self.offset, self.edge, self.edge_at, self.number, self.missing)

    @property
    def size(self) -> Ints:
        """How many cells each feature has."""
        return np.diff(self.offset)

    def locate(self, values: Values) -> Ints:
        """The cell of each value, counted from its feature's first."""
        out = np.empty(values.shape, dtype=np.int64)
        _locate(np.ascontiguousarray(values), self.places, out)
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


@compiled(inline="always")
def cell_of(j, value, places):  # type: ignore[no-untyped-def]
    """The cell of one value of feature j."""
    cell = np.int64(0)
    if not places.number[j]:
        cell = np.int64(value)
    elif np.isnan(value):
        cell = places.offset[j + 1] - places.offset[j] - 1
    else:
        left, right = places.edge_at[j], places.edge_at[j + 1]
        while left < right:
            middle = (left + right) // 2
            if places.edge[middle] < value:
                left = middle + 1
            else:
                right = middle
        cell = left - places.edge_at[j]
    return cell


@compiled()
def _locate(values, places, out):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = cell_of(j, values[i, j], places)
