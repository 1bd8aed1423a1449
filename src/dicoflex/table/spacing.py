"""How far the values of a number are apart: whole numbers, cents, quarters, or nothing of the kind."""

from __future__ import annotations

__all__ = ["spacing"]

import numpy as np

from dicoflex._types import Floats

MAX_DECIMALS = 4


def spacing(values: Floats, *, whole: bool) -> tuple[float, int]:
    """The spacing of the values and their decimal digits; 0 where they are continuous.

    Fractions count as spaced when they have few digits and repeat: prices in cents, not measurements.
    """
    if not whole and np.all(np.mod(values, 1.0) == 0.0):
        return 0.0, 0  # whole by chance, or said to be continuous
    for decimals in range(1 if whole else MAX_DECIMALS + 1):
        scaled = values * 10.0**decimals
        if np.abs(scaled).max(initial=0.0) < 2**53 and np.all(np.abs(scaled - np.rint(scaled)) < 1e-6):
            points = np.unique(np.rint(scaled).astype(np.int64))
            if decimals > 0 and len(points) > 0.5 * len(values):
                return 0.0, 0
            step = np.gcd.reduce(np.diff(points)) if len(points) > 1 else 1
            return float(step) / 10.0**decimals, decimals
    return 0.0, 0
