"""A rectified vector times a matrix, compiled: what a layer of rectifiers tells the next one."""

from __future__ import annotations

__all__ = ["Actives", "add_rectified", "new_actives"]

import numpy as np
from numpy.typing import NDArray

from dicoflex.runtime.compiled import compiled, lean
from dicoflex.runtime.lanes import LANES, add_scaled, joined, lanes_at, no_lanes, put_lanes

TWO, THREE = 2 * LANES, 3 * LANES
Actives = NDArray[np.float32]


@compiled()
def new_actives(n):  # type: ignore[no-untyped-def]
    """Room for vectors of up to `n` entries, rectified."""
    return np.zeros(n, dtype=np.float32)


@lean(error_model="numpy")
def add_rectified(x, weight, out, n, actives):  # type: ignore[no-untyped-def]
    """Add max(x, 0) @ weight to the first `n` of `out`; the matrix is contiguous.

    Sums stay in registers, up to three lanes of columns at a time, those of even rows and those of odd ones apart: a
    processor adds to six as fast as to one.
    """
    zero, length = np.float32(0.0), len(x)
    for i in range(length):
        actives[i] = max(x[i], zero)
    k = 0
    while k + LANES <= n:
        if k + THREE <= n:
            _add_three(actives, length, weight, out, k)
            k += THREE
        elif k + TWO <= n:
            _add_two(actives, length, weight, out, k)
            k += TWO
        else:
            _add_one(actives, length, weight, out, k)
            k += LANES
    for i in range(length if k < n else 0):
        for r in range(k, n):
            out[r] += actives[i] * weight[i, r]


@lean(error_model="numpy")
def _add_three(x, length, weight, out, k):  # type: ignore[no-untyped-def]
    width, even = weight.shape[1], length // 2 * 2
    a, b, c = lanes_at(out, k), lanes_at(out, k + LANES), lanes_at(out, k + TWO)
    d, e, f = no_lanes(), no_lanes(), no_lanes()
    for i in range(0, even, 2):
        at = i * width + k
        a, b, c = (
            add_scaled(a, x[i], weight, at),
            add_scaled(b, x[i], weight, at + LANES),
            add_scaled(c, x[i], weight, at + TWO),
        )
        at += width
        d, e, f = (
            add_scaled(d, x[i + 1], weight, at),
            add_scaled(e, x[i + 1], weight, at + LANES),
            add_scaled(f, x[i + 1], weight, at + TWO),
        )
    for i in range(even, length):
        at = i * width + k
        a, b, c = (
            add_scaled(a, x[i], weight, at),
            add_scaled(b, x[i], weight, at + LANES),
            add_scaled(c, x[i], weight, at + TWO),
        )
    put_lanes(out, k, joined(a, d))
    put_lanes(out, k + LANES, joined(b, e))
    put_lanes(out, k + TWO, joined(c, f))


@lean(error_model="numpy")
def _add_two(x, length, weight, out, k):  # type: ignore[no-untyped-def]
    width, even = weight.shape[1], length // 2 * 2
    a, b, c, d = lanes_at(out, k), lanes_at(out, k + LANES), no_lanes(), no_lanes()
    for i in range(0, even, 2):
        at = i * width + k
        a, b = add_scaled(a, x[i], weight, at), add_scaled(b, x[i], weight, at + LANES)
        at += width
        c, d = add_scaled(c, x[i + 1], weight, at), add_scaled(d, x[i + 1], weight, at + LANES)
    for i in range(even, length):
        at = i * width + k
        a, b = add_scaled(a, x[i], weight, at), add_scaled(b, x[i], weight, at + LANES)
    put_lanes(out, k, joined(a, c))
    put_lanes(out, k + LANES, joined(b, d))


@lean(error_model="numpy")
def _add_one(x, length, weight, out, k):  # type: ignore[no-untyped-def]
    width, even = weight.shape[1], length // 2 * 2
    a, b = lanes_at(out, k), no_lanes()
    for i in range(0, even, 2):
        at = i * width + k
        a, b = add_scaled(a, x[i], weight, at), add_scaled(b, x[i + 1], weight, at + width)
    for i in range(even, length):
        a = add_scaled(a, x[i], weight, i * width + k)
    put_lanes(out, k, joined(a, b))
