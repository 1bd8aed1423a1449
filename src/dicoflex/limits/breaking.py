"""Rows that break a limit of a single feature, or change too many, compiled."""

from __future__ import annotations

__all__ = ["mark_broken"]

import numpy as np

from dicoflex.runtime.compiled import compiled


@compiled()
def mark_broken(  # type: ignore[no-untyped-def]
    values, query, which, low, high, states, may_keep, offset, is_level, uncounted, most_changes, broken
):
    """Mark rows with a value that is kept or changed where it may not be, or with too many changes; see `Limits`."""
    for i in range(len(values)):
        at, changes = which[i], 0
        for j in range(values.shape[1]):
            x, q = values[i, j], query[i, j]
            if x == q or (np.isnan(x) and np.isnan(q)):
                broken[i] |= not may_keep[at, j]
                continue
            changes += not uncounted[j]
            if is_level[j]:
                broken[i] |= not states[at, offset[j] + np.int64(x)]
            elif np.isnan(x):
                broken[i] |= offset[j] == offset[j + 1] or not states[at, offset[j]]
            else:
                broken[i] |= not low[at, j] <= x <= high[at, j]
        broken[i] |= changes > most_changes
