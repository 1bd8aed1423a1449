"""Where the values of all that was found have landed, feature by feature."""

from __future__ import annotations

__all__ = ["reach_of"]

from typing import Any

import numpy as np

from dicoflex.explorer.texts import Names
from dicoflex.table.cells import Cells
from dicoflex.table.encoding import Values
from dicoflex.values import differ

MOST_VALUES = 24


def reach_of(values: Values, own: Values, names: Names, cells: Cells) -> dict[str, dict[str, Any]]:
    """For each feature that some row changes: between which numbers, and at which, or to which levels."""
    changed = differ(values, own)
    found = {}
    for j in np.flatnonzero(changed.any(axis=0)).tolist():
        landed = np.unique(values[changed[:, j], j])
        plain = [cells.shown(j, value) for value in landed.tolist()]
        known = [value for value in plain if value is not None]
        if names.schema.features[j].is_number and known:
            found[names.keys[j]] = _numbers(known, names, j)
        else:
            found[names.keys[j]] = {"values": plain}
    return found


def _numbers(known: list[Any], names: Names, j: int) -> dict[str, Any]:
    low, high = known[0], known[-1]
    step = max(1, -(-len(known) // MOST_VALUES))
    return {
        "low": low,
        "high": high,
        "low_text": names.shown(j, low),
        "high_text": names.shown(j, high),
        "values": known[::step],
    }
