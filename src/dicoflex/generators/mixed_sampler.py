"""Ancestral sampling of the mixed density, compiled: one feature after the other, many draws at a time.

Draws of one query that agree so far share their work: they are one *group* until their states part. All arithmetic
of a draw depends on its own query, key and number alone, so batching and threads can't change it.
"""

from __future__ import annotations

__all__ = ["draw", "score"]


import numba
import numpy as np
from numpy.typing import NDArray

from dicoflex.encoding import Values
from dicoflex.generators.base import Context
from dicoflex.generators.grid import Grid


def draw(
    grid: Grid,
    weights: dict[str, NDArray[np.float32]],
    context: Context,
    settings: NDArray[np.float32],
    own: NDArray[np.int64],
    where: NDArray[np.float64],
    alone: NDArray[np.bool_],
    n: int,
    keys: NDArray[np.uint64],
    first: int,
) -> tuple[Values, NDArray[np.float64]]:
    """`n` draws for each entry of `context` (len(context), n, d), and their log densities (len(context), n)."""
    out = np.empty((len(context), n, grid.n_features))
    log_density = np.zeros((len(context), n))
    if out.size == 0:
        return out, log_density
    stuck = context.frozen | (grid.size - alone == 0)
    scale = 10.0 ** grid.decimals.astype(float)
    on_grid = grid.holds(context.query, own)
    _draw(
        *_cells(grid), grid.low, grid.high, grid.count, grid.step, scale, *_weights(weights),
        context.query, settings, stuck, own, where.astype(np.float32), alone, on_grid, keys, np.uint64(first),
        out, log_density,
    )  # fmt: skip
    return out, log_density


def score(
    grid: Grid,
    weights: dict[str, NDArray[np.float32]],
    settings: NDArray[np.float32],
    own: NDArray[np.int64],
    own_where: NDArray[np.float64],
    alone: NDArray[np.bool_],
    stuck: NDArray[np.bool_],
    cell: NDArray[np.int64],
    where: NDArray[np.float64],
    kept: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """The log probability of the states of given rows (n,): the sampler's arithmetic, so the two agree."""
    out = np.zeros(len(own))
    if len(own):
        _score(
            *_cells(grid), *_weights(weights), settings, own, own_where.astype(np.float32), alone, stuck,
            cell, where.astype(np.float32), kept, out,
        )  # fmt: skip
    return out


def _cells(grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each feature's cells and slopes start; -1 for a feature without slopes."""
    return grid.offset, np.where(grid.wide, grid.slope_offset, -1)


def _weights(weights: dict[str, NDArray[np.float32]]) -> tuple[NDArray[np.float32], ...]:
    trunk = np.ascontiguousarray(weights["trunk.weight"].T)
    names = ("prefix", "prefix_slope", "prefix_kept", "inner", "inner_bias", "outer", "outer_bias")
    first = (weights["query"], weights["query_slope"], weights["settings"], trunk, weights["trunk.bias"])
    return (*first, *(weights[name] for name in names))


GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@numba.njit(cache=True, inline="always")
def _uniform(key, counter):  # type: ignore[no-untyped-def]
    """Number `counter` of a key's stream; the same numbers as `streams.uniforms`."""
    z = key + (counter + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (np.float64(z >> np.uint64(12)) + 0.5) * 2.0**-52


@numba.njit(cache=True)
def _add_product(x, weight, out):  # type: ignore[no-untyped-def]
    """out += x @ weight, skipping zeros: about half of what a rectifier gives."""
    for i in range(len(x)):
        value = x[i]
        if value != 0.0:
            row = weight[i]
            for k in range(len(out)):
                out[k] += value * row[k]


@numba.njit(cache=True)
def _rectify(x):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        x[k] = max(x[k], np.float32(0.0))


@numba.njit(cache=True)
def _add_row(share, row, out):  # type: ignore[no-untyped-def]
    for k in range(len(out)):
        out[k] += share * row[k]


@numba.njit(cache=True)
def _context(own, where, settings, offset, slope_at, query, query_slope, setting_rows, trunk, trunk_bias):  # type: ignore[no-untyped-def]
    """What the network knows of one query and its conditions."""
    context = np.zeros(query.shape[1], dtype=np.float32)
    for j in range(len(own)):
        _add_row(np.float32(1.0), query[offset[j] + own[j]], context)
        if slope_at[j] >= 0 and where[j] != 0.0:
            _add_row(where[j], query_slope[slope_at[j] + own[j]], context)
    _add_product(settings, setting_rows, context)
    _rectify(context)
    more = trunk_bias.copy()
    _add_product(context, trunk, more)
    _rectify(more)
    return context + more


@numba.njit(cache=True)
def _tell(j, cell, inside, kept, offset, slope_at, prefix, prefix_slope, prefix_kept, told):  # type: ignore[no-untyped-def]
    """Add to `told` what feature j, being in `cell`, tells the features after it."""
    _add_row(np.float32(1.0), prefix[offset[j] + cell], told)
    if slope_at[j] >= 0 and inside != 0.0:
        _add_row(inside, prefix_slope[slope_at[j] + cell], told)
    if kept:
        _add_row(np.float32(1.0), prefix_kept[j], told)


@numba.njit(cache=True)
def _last_free(stuck):  # type: ignore[no-untyped-def]
    """The last feature that can change, -1 if none can: where a draw that kept all others has to."""
    last = -1
    for j in range(len(stuck)):
        if not stuck[j]:
            last = j
    return last


@numba.njit(cache=True)
def _logits(told, inner, inner_bias, outer, outer_bias, h, g, logits):  # type: ignore[no-untyped-def]
    """The logits of one feature's states; `h` and `g` are room to work in."""
    n_states = len(outer_bias)
    h[:] = told
    _rectify(h)
    g[:] = inner_bias
    _add_product(h, inner, g)
    _rectify(g)
    logits[:n_states] = outer_bias
    _add_product(g, outer, logits[:n_states])
    # Weights that are not finite must not stop the draw.
    for s in range(n_states):
        if not np.isfinite(logits[s]):
            logits[s] = np.float32(0.0)


@numba.njit(cache=True)
def _cumulate(logits, n_states, dead, closed, total):  # type: ignore[no-untyped-def]
    """Running sums of exp(logits) over the states, in `total`; state `dead` (if any) and a closed keep get nothing."""
    top = np.float32(-1e30)
    for s in range(1 if closed else 0, n_states):
        if s != dead and logits[s] > top:
            top = logits[s]
    running = 0.0
    for s in range(n_states):
        if s != dead and not (closed and s == 0):
            running += np.exp(np.float64(logits[s] - top))
        total[s] = running


@numba.njit(cache=True, inline="always")
def _pick(total, n_states, u):  # type: ignore[no-untyped-def]
    """The first state whose running sum exceeds `u`."""
    low, high = 0, n_states - 1
    while low < high:
        middle = (low + high) // 2
        if total[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@numba.njit(cache=True, inline="always")
def _value(low, high, count, step, scale, own_here, query, u):  # type: ignore[no-untyped-def]
    """A value of the cell: its only one, one of its run besides the query's, or a point of its interval."""
    if count == 1:
        return low
    if count == 0:
        return min(low + u * (high - low), high)
    besides = count - 1 if own_here else count
    k = min(np.int64(u * besides), besides - 1)
    if own_here and k >= np.int64(np.rint((query - low) / step)):
        k += 1
    return np.rint((low + k * step) * scale) / scale


@numba.njit(cache=True, parallel=True)
def _draw(  # type: ignore[no-untyped-def]
    offset, slope_at, low, high, count, step, scale,
    query_rows, query_slope, setting_rows, trunk, trunk_bias, prefix, prefix_slope, prefix_kept,
    inner, inner_bias, outer, outer_bias,
    query, settings, stuck, own, where, alone, on_grid, keys, first, out, log_density,
):  # fmt: skip
    n_queries, n, d = out.shape
    hidden, head, widest = prefix.shape[1], inner.shape[2], outer.shape[2]
    for i in numba.prange(n_queries):
        last = _last_free(stuck[i])
        start = _context(
            own[i], where[i], settings[i], offset, slope_at, query_rows, query_slope, setting_rows, trunk, trunk_bias
        )
        group = np.zeros(n, dtype=np.int64)
        n_groups = 1
        told = np.empty((n, hidden), dtype=np.float32)
        told_next = np.empty((n, hidden), dtype=np.float32)
        told[0] = start
        changed = np.zeros(n, dtype=np.bool_)
        changed_next = np.zeros(n, dtype=np.bool_)
        h = np.empty(hidden, dtype=np.float32)
        g = np.empty(head, dtype=np.float32)
        logits = np.empty(widest, dtype=np.float32)
        totals = np.empty((n, widest))
        successor = np.empty((n, widest), dtype=np.int64)
        for j in range(d):
            n_states = offset[j + 1] - offset[j] + 1
            if stuck[i, j]:
                for r in range(n_groups):
                    _tell(j, own[i, j], where[i, j], True, offset, slope_at, prefix, prefix_slope, prefix_kept, told[r])
                for t in range(n):
                    out[i, t, j] = query[i, j]
                continue
            dead = own[i, j] + 1 if alone[i, j] else -1
            for r in range(n_groups):
                _logits(
                    told[r], inner[j], inner_bias[j], outer[j, :, :n_states], outer_bias[j, :n_states], h, g, logits
                )
                _cumulate(logits, n_states, dead, j == last and not changed[r], totals[r])
                successor[r, :n_states] = -1
            n_next = 0
            for t in range(n):
                r = group[t]
                counter = (first + np.uint64(t)) * np.uint64(2 * d) + np.uint64(2 * j)
                u = _uniform(keys[i], counter) * totals[r, n_states - 1]
                s = _pick(totals[r], n_states, u)
                cell, value, inside, shared, size = own[i, j], query[i, j], where[i, j], True, 0.0
                if s > 0:
                    cell = s - 1
                    at = offset[j] + cell
                    own_here = cell == own[i, j] and on_grid[i, j]
                    v = _uniform(keys[i], counter + np.uint64(1))
                    value = _value(low[at], high[at], count[at], step[j], scale[j], own_here, query[i, j], v)
                    width = high[at] - low[at]
                    inside = np.float32((value - low[at]) / width) if width > 0.0 else np.float32(0.0)
                    shared = count[at] == 1
                    if count[at] == 0:
                        size = np.log(width) if width > 0.0 else 0.0
                    elif not shared:
                        size = np.log(np.float64(count[at] - own_here))
                out[i, t, j] = value
                mass = totals[r, s] - (totals[r, s - 1] if s > 0 else 0.0)
                log_density[i, t] += np.log(mass / totals[r, n_states - 1]) - size
                if shared and successor[r, s] >= 0:
                    group[t] = successor[r, s]
                    continue
                if shared:
                    successor[r, s] = n_next
                told_next[n_next] = told[r]
                _tell(j, cell, inside, s == 0, offset, slope_at, prefix, prefix_slope, prefix_kept, told_next[n_next])
                changed_next[n_next] = changed[r] or s > 0
                group[t] = n_next
                n_next += 1
            told, told_next = told_next, told
            changed, changed_next = changed_next, changed
            n_groups = n_next


@numba.njit(cache=True, parallel=True)
def _score(  # type: ignore[no-untyped-def]
    offset, slope_at,
    query_rows, query_slope, setting_rows, trunk, trunk_bias, prefix, prefix_slope, prefix_kept,
    inner, inner_bias, outer, outer_bias,
    settings, own, own_where, alone, stuck, cell, where, kept, out,
):  # fmt: skip
    n, d = own.shape
    hidden, head, widest = prefix.shape[1], inner.shape[2], outer.shape[2]
    for i in numba.prange(n):
        last = _last_free(stuck[i])
        told = _context(
            own[i],
            own_where[i],
            settings[i],
            offset,
            slope_at,
            query_rows,
            query_slope,
            setting_rows,
            trunk,
            trunk_bias,
        )
        h = np.empty(hidden, dtype=np.float32)
        g = np.empty(head, dtype=np.float32)
        logits = np.empty(widest, dtype=np.float32)
        total = np.empty(widest)
        changed = False
        for j in range(d):
            if not stuck[i, j]:
                n_states = offset[j + 1] - offset[j] + 1
                dead = own[i, j] + 1 if alone[i, j] else -1
                _logits(told, inner[j], inner_bias[j], outer[j, :, :n_states], outer_bias[j, :n_states], h, g, logits)
                _cumulate(logits, n_states, dead, j == last and not changed, total)
                s = 0 if kept[i, j] else cell[i, j] + 1
                mass = total[s] - (total[s - 1] if s > 0 else 0.0)
                out[i] += np.log(mass / total[n_states - 1]) if mass > 0.0 else -np.inf
                changed = changed or s > 0
            _tell(j, cell[i, j], where[i, j], kept[i, j], offset, slope_at, prefix, prefix_slope, prefix_kept, told)
