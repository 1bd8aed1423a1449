"""Values at which a changed number may come to rest: those that several training rows share, where most rows have such.

Round amounts, whole years and prices are where people stop; a number between them would look made up. Numbers that
hardly two rows share may stop anywhere on their grid.
"""

from __future__ import annotations

__all__ = ["MOST_DECIMALS", "Stops", "decimals_of"]

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Arrays, Floats
from dicoflex.coherence.seen_pairs import Bins
from dicoflex.model_file.taking import refuse, refuse_others, taken
from dicoflex.table.encoding import Values
from dicoflex.table.rarity import round_near
from dicoflex.table.schema import Schema
from dicoflex.table.spacing import spacing

LEAST_ROWS = 5
COVERED = 0.5
DIGITS = 3
MOST_DECIMALS = 6
MOST_DIGITS = 15


@dataclass(frozen=True)
class Stops:
    """value: all features' stops end to end, sorted; feature j owns value[at[j]:at[j + 1]], none if it has none.

    typical: per cell of the row density a value that stands for it. step: how far a feature's values are apart, 0 where
    that can't be told. decimals: digits after the point that they have; twelve where they are not rounded.
    """

    at: NDArray[np.int64]
    value: Floats
    typical: Floats
    step: Floats
    decimals: NDArray[np.int64]

    @classmethod
    def learn(cls, schema: Schema, values: Values, bins: Bins, *, min_count: int = 1) -> Stops:
        """The values that at least five rows have, where they cover half of the rows besides the commonest value.

        min_count: so many rows, where that is more; typical values are then round, or shared by as many.
        """
        least = max(LEAST_ROWS, min_count)
        found = [
            _shared(values[~np.isnan(values[:, j]), j], least) if feature.is_number else np.zeros(0)
            for j, feature in enumerate(schema.features)
        ]
        present = [values[~np.isnan(values[:, j]), j] for j in range(len(schema))]
        steps = [
            spacing(c, whole=f.is_whole)[0] if len(c) else 0.0 for c, f in zip(present, schema.features, strict=True)
        ]
        return cls(
            np.cumsum([0, *map(len, found)]),
            np.concatenate(found),
            _typical(schema, values, bins, found, min_count),
            np.array(steps),
            np.array([decimals_of(column) for column in present], dtype=np.int64),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""
        return {
            "at": self.at,
            "value": self.value,
            "typical": self.typical,
            "step": self.step,
            "decimals": self.decimals,
        }

    @classmethod
    def restore(cls, schema: Schema, arrays: Arrays, bins: Bins) -> Stops:
        """What `arrays` were taken from; refused where they don't fit the schema and the density's cells."""
        d = len(schema)
        refuse_others(arrays, ("at", "value", "typical", "step", "decimals"))
        at = taken(arrays, "at", np.int64, (d + 1,))
        value = taken(arrays, "value", np.float64, (None,))
        if at[0] != 0 or at[-1] != len(value) or (np.diff(at) < 0).any():
            refuse("at", "does not rise from 0 to the number of stops")
        if any((np.diff(value[a:b]) <= 0).any() for a, b in pairwise(at)):
            refuse("value", "is not in order")
        step, decimals = taken(arrays, "step", np.float64, (d,)), taken(arrays, "decimals", np.int64, (d,))
        if (step < 0).any() or not ((decimals >= 0) & (decimals <= MOST_DIGITS)).all():
            refuse("decimals", "or the steps beside it are none")
        return cls(at, value, _typical_of(schema, bins, arrays), step, decimals)


def _typical_of(schema: Schema, bins: Bins, arrays: Arrays) -> Floats:
    """The typical values that a file has: a level's is itself, a number's is one, or NaN where none stands out."""
    typical: Floats = taken(arrays, "typical", np.float64, (int(bins.offset[-1]),), finite=False)
    for feature, (a, b) in zip(schema.features, pairwise(bins.offset), strict=True):
        own = typical[a:b]
        if np.isinf(own).any() if feature.is_number else not np.array_equal(own, np.arange(b - a)):
            refuse("typical", f"has what is no value of {feature.name!r}")
    return typical


def decimals_of(column: Floats) -> int:
    """How many digits after the point the values have; twelve where they are not rounded."""
    for digits in range(MOST_DECIMALS + 1):
        if np.array_equal(column, np.round(column, digits)):
            return digits
    return 12


def _shared(column: Floats, least: int) -> Floats:
    distinct, counts = np.unique(column, return_counts=True)
    if len(distinct) == 0:
        return distinct
    usual = counts >= least
    rest = counts.sum() - counts.max()
    covered = (counts[usual].sum() - counts.max()) / rest if rest else 0.0
    return distinct[usual] if covered >= COVERED else np.zeros(0)


def _typical(schema: Schema, values: Values, bins: Bins, stops: list[Floats], min_count: int) -> Floats:
    """A value per cell: the level itself, or for a number the middle of the rows there, at a stop or rounded."""
    cell, least = bins.locate(values), max(LEAST_ROWS, min_count)
    out = np.full(bins.offset[-1], np.nan)
    for j, feature in enumerate(schema.features):
        at = bins.offset[j]
        if not feature.is_number:
            out[at : bins.offset[j + 1]] = np.arange(bins.size[j])
            continue
        for c in range(bins.size[j]):
            inside = values[cell[:, j] == c, j]
            if len(inside) >= least and not np.isnan(inside).any():
                out[at + c] = _middle(np.sort(inside), stops[j], whole=feature.is_whole, min_count=min_count)
    return out


def _middle(inside: Floats, stops: Floats, *, whole: bool, min_count: int) -> float:
    middle = float(np.median(inside))
    near = stops[(stops >= inside.min()) & (stops <= inside.max())]
    if len(near):
        return float(near[np.abs(near - middle).argmin()])
    if min_count > 1:
        return round_near(inside, len(inside) // 2, len(inside) // 2, min_count)
    spread = float(inside.max() - inside.min())
    if whole or spread == 0.0:
        return float(np.rint(middle)) if whole else middle
    unit = 10.0 ** (np.floor(np.log10(spread)) - DIGITS + 1)
    return float(np.round(middle / unit) * unit)
