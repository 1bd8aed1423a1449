"""Values at which a changed number may come to rest: those that several training rows share, where most rows have such.

Round amounts, whole years and prices are where people stop; a number between them would look made up. Numbers that
hardly two rows share may stop anywhere on their grid.
"""

from __future__ import annotations

__all__ = ["Stops", "decimals_of"]

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.coherence.bins import Bins
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema
from dicoflex.table.spacing import spacing

Floats = NDArray[np.float64]
LEAST_ROWS = 5
COVERED = 0.5
DIGITS = 3
MOST_DECIMALS = 6


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
    def learn(cls, schema: Schema, values: Values, bins: Bins) -> Stops:
        """The values that at least five rows have, where they cover half of the rows besides the commonest value."""
        found = [
            _shared(values[~np.isnan(values[:, j]), j]) if feature.is_number else np.zeros(0)
            for j, feature in enumerate(schema.features)
        ]
        present = [values[~np.isnan(values[:, j]), j] for j in range(len(schema))]
        steps = [
            spacing(c, whole=f.is_whole)[0] if len(c) else 0.0 for c, f in zip(present, schema.features, strict=True)
        ]
        return cls(
            np.cumsum([0, *map(len, found)]),
            np.concatenate(found),
            _typical(schema, values, bins, found),
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
    def restore(cls, schema: Schema, arrays: dict[str, NDArray[Any]]) -> Stops:
        """What `arrays` were taken from."""
        at, value, typical = arrays["at"], arrays["value"], arrays["typical"]
        step, decimals = arrays["step"], arrays["decimals"]
        fits = at.dtype == np.int64 and at.shape == (len(schema) + 1,) and value.ndim == typical.ndim == 1
        if not fits or value.dtype != np.float64 or typical.dtype != np.float64:
            raise ValueError("its stops do not fit the schema")
        if at[0] != 0 or at[-1] != len(value) or (np.diff(at) < 0).any() or not np.isfinite(value).all():
            raise ValueError("its stops are not in order")
        if (
            decimals.shape != (len(schema),)
            or decimals.dtype != np.int64
            or not ((decimals >= 0) & (decimals <= 15)).all()
        ):
            raise ValueError("its digits do not fit the schema")
        return cls(at, value, typical, step, decimals)


def decimals_of(column: Floats) -> int:
    """How many digits after the point the values have; twelve where they are not rounded."""
    for digits in range(MOST_DECIMALS + 1):
        if np.array_equal(column, np.round(column, digits)):
            return digits
    return 12


def _shared(column: Floats) -> Floats:
    distinct, counts = np.unique(column, return_counts=True)
    if len(distinct) == 0:
        return distinct
    usual = counts >= LEAST_ROWS
    rest = counts.sum() - counts.max()
    covered = (counts[usual].sum() - counts.max()) / rest if rest else 0.0
    return distinct[usual] if covered >= COVERED else np.zeros(0)


def _typical(schema: Schema, values: Values, bins: Bins, stops: list[Floats]) -> Floats:
    """A value per cell: the level itself, or for a number the middle of the rows there, at a stop or rounded."""
    cell = bins.locate(values)
    out = np.full(bins.offset[-1], np.nan)
    for j, feature in enumerate(schema.features):
        at = bins.offset[j]
        if not feature.is_number:
            out[at : bins.offset[j + 1]] = np.arange(bins.size[j])
            continue
        for c in range(bins.size[j]):
            inside = values[cell[:, j] == c, j]
            if len(inside) >= LEAST_ROWS and not np.isnan(inside).any():
                out[at + c] = _middle(inside, stops[j], whole=feature.is_whole)
    return out


def _middle(inside: Floats, stops: Floats, *, whole: bool) -> float:
    middle = float(np.median(inside))
    near = stops[(stops >= inside.min()) & (stops <= inside.max())]
    if len(near):
        return float(near[np.abs(near - middle).argmin()])
    spread = float(inside.max() - inside.min())
    if whole or spread == 0.0:
        return float(np.rint(middle)) if whole else middle
    unit = 10.0 ** (np.floor(np.log10(spread)) - DIGITS + 1)
    return float(np.round(middle / unit) * unit)
