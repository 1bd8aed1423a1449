"""Small models of every sort, which ship with the package, and rows that fit a model: to try things out."""

from __future__ import annotations

__all__ = ["EXAMPLES", "rows_like"]

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema

EXAMPLES = sorted((Path(__file__).parent / "models").glob("*.dicoflex"))


def rows_like(schema: Schema, n: int, *, seed: int = 0) -> pd.DataFrame:
    """Rows of any values that a schema knows, missing ones among them."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({feature.name: _column(feature, n, rng) for feature in schema.features})


def _column(feature: Feature, n: int, rng: np.random.Generator) -> list[Any]:
    if feature.is_number:
        numbers = rng.uniform(feature.minimum or 0.0, feature.maximum or 0.0, n).astype(feature.narrow or np.float64)
        found: list[Any] = [int(v) for v in np.rint(numbers)] if feature.is_whole else numbers.tolist()
    else:
        levels = feature.levels or (None,)
        found = [levels[i] for i in rng.integers(len(levels), size=n)]
    return [None if feature.missing and i % 7 == 6 else value for i, value in enumerate(found)]
