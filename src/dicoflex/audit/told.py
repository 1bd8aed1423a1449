"""What a model tells of few training rows: levels, single values and extremes that fewer than five have."""

from __future__ import annotations

__all__ = ["told_of_few"]

import numpy as np
import pandas as pd

from dicoflex.generators.mixed import Mixed
from dicoflex.model import Model
from dicoflex.table.rarity import counts_of
from dicoflex.values import typed

FEW = 5


def told_of_few(model: Model, train: pd.DataFrame) -> dict[str, int]:
    """How many levels and single values of the model fewer than five training rows have, but at least one.

    An extreme counts where it is some row's value and fewer than five lie at or beyond it.
    """
    found = {"levels": 0, "single values": 0, "extremes": 0}
    for j, feature in enumerate(model.schema.features):
        column = train[feature.name]
        if not feature.is_number:
            counts = counts_of(column)
            found["levels"] += sum(0 < counts.get(typed(level), 0) < FEW for level in feature.levels)
            continue
        low, high = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
        numbers = column.dropna().to_numpy(dtype=float)
        ends = {low: numbers <= low, high: numbers >= high}
        found["extremes"] += sum(end in numbers and beyond.sum() < FEW for end, beyond in ends.items())
        # Rows beyond a limit were taken for it, and stand for it together.
        within = numbers.clip(low, high)
        found["single values"] += sum(0 < (within == value).sum() < FEW for value in _single(model, j))
    return {name: int(count) for name, count in found.items()}


def _single(model: Model, j: int) -> list[float]:
    """The values that the file names one by one: of the density's cells, and those at which a number may rest."""
    named: list[float] = []
    if isinstance(model.generator, Mixed):
        grid = model.generator.grid
        at = slice(grid.offset[j], grid.offset[j + 1])
        named += grid.low[at][(grid.count[at] == 1) & np.isfinite(grid.low[at])].tolist()
    if model.coherence is not None:
        first, last = model.coherence.stops.at[[j, j + 1]]  # noqa: PD008
        named += model.coherence.stops.value[first:last].tolist()
    return sorted(set(named))
