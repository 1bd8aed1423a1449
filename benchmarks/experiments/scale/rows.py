"""Tables of any size that follow Adult's joint distribution."""

from __future__ import annotations

__all__ = ["synthetic_adult"]

import numpy as np
import pandas as pd

from benchmarks.tables import ADULT
from dicoflex import datasets

PLACES = 3
POINT_MASS = 0.1


def synthetic_adult(n: int, seed: int) -> pd.DataFrame:
    """`n` rows that follow Adult's joint distribution, with its columns, dtypes, levels and limits.

    Rows of the shipped table, with replacement; a number moves by up to three places in the list of its column's
    values, unless it is one that more than a tenth of the rows share, such as no capital gain.

    >>> rows = synthetic_adult(50_000, seed=0)
    >>> len(rows), rows.dtypes.equals(datasets.load(ADULT).X_train.dtypes)
    (50000, True)
    """
    data = datasets.load(ADULT)
    rng = np.random.default_rng(seed)
    rows = data.X_train.take(rng.integers(len(data.X_train), size=n)).reset_index(drop=True)
    for feature in data.schema.features:
        if feature.is_number:
            rows[feature.name] = _moved(rows[feature.name].to_numpy(), data.X_train[feature.name].to_numpy(), rng)
    return rows


def _moved(values: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    grid, counts = np.unique(known, return_counts=True)
    place = np.searchsorted(grid, values)
    stays = counts[place] > POINT_MASS * len(known)
    moved = np.clip(place + rng.integers(-PLACES, PLACES + 1, len(values)), 0, len(grid) - 1)
    return grid[np.where(stays, place, moved)]
