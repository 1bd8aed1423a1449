"""A rectified vector times a matrix, compiled: what a layer of rectifiers tells the next one."""

from __future__ import annotations

__all__ = ["Actives", "add_rectified", "new_actives"]

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.runtime.compiled import compiled, lean


class Actives(NamedTuple):
    """Room for the entries of a vector that are above zero, and for where they stand."""

    at: NDArray[np.int64]
    value: NDArray[np.float32]


@compiled()
def new_actives(n):  # type: ignore[no-untyped-def]
    """Room for vectors of up to `n` entries."""
    return Actives(np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.float32))


@lean(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def add_rectified(x, weight, out, n, actives):  # type: ignore[no-untyped-def]
    """Add max(x, 0) @ weight to the first `n` of `out`.

    About half of the entries are zero, which half can't be foreseen: those above it are gathered without a branch, and
    then taken two at a time. A branch for each would be mistaken so often that it takes three times as long.
    """
    at, value, zero = actives.at, actives.value, np.float32(0.0)
    found = 0
    for i in range(len(x)):
        at[found], value[found] = i, x[i]
        found += 1 if x[i] > zero else 0
    at[found], value[found] = 0, zero
    for e in range(0, found, 2):
        i, j, a, b = at[e], at[e + 1], value[e], value[e + 1]
        for k in range(n):
            out[k] += a * weight[i, k] + b * weight[j, k]
