"""How far numbers reach: what a difference is measured by."""

from __future__ import annotations

__all__ = ["ranges_of"]

import numpy as np
from numpy.typing import NDArray

from dicoflex.table.schema import Schema

Floats = NDArray[np.float64]


def ranges_of(schema: Schema) -> Floats:
    """How far each number reaches from its least to its greatest; 0 for levels."""
    spans = [(f.maximum or 0.0) - (f.minimum or 0.0) if f.is_number else 0.0 for f in schema.features]
    return np.array(spans)
