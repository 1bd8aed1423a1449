"""Along the features: the decision at each value of one, and where the values of all that was found landed."""

from __future__ import annotations

__all__ = ["reach_of", "strips_of"]

from collections.abc import Sequence
from typing import Any

import numpy as np

from dicoflex.answers.what_if import decision_along
from dicoflex.explorer.texts import Names
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.plain_rows import Cells
from dicoflex.values import differ


def strips_of(
    model: Model, own: Values, target: int, which: Sequence[int], names: Names, cells: Cells
) -> dict[str, list[dict[str, Any]]]:
    """For each feature in `which`, the probability of the target at the values of its grid."""
    found = {}
    for j, (rows, said) in zip(which, decision_along(model, own, target, which), strict=True):
        plain = [cells.shown(j, value) for value in rows[:, j].tolist()]
        found[names.keys[j]] = [
            {"value": value, "text": names.shown(j, value), "probability": round(chance, 4)}
            for value, chance in zip(plain, said.tolist(), strict=True)
        ]
    return found


MOST_REACHED = 24


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
    step = max(1, -(-len(known) // MOST_REACHED))
    return {
        "low": low,
        "high": high,
        "low_text": names.shown(j, low),
        "high_text": names.shown(j, high),
        "values": known[::step],
    }
