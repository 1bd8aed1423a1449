"""Ancestral sampling of the mixed density, compiled: one feature after the other, many draws at a time.

Draws of one query that agree so far share their work: they are one *group* until their states part. All arithmetic
of a draw depends on its own query, key and number alone, so batching and threads can't change it.

Under limits every step is restricted to what is allowed given the features before it: each state's mass is scaled by
the allowed share of its cell (0 where none of it is), and a value is drawn from the allowed part alone; see
`mixed_limits`. Budgets keep back what features that have to change will need, and rules look ahead to what later
features may still be.
"""

from __future__ import annotations

__all__ = ["Net", "draw", "score"]

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from dicoflex.encoding import Values
from dicoflex.generators.base import Context
from dicoflex.generators.grid import Grid
from dicoflex.generators.mixed_limits import (
    bounds_of,
    changes,
    cost,
    depends,
    is_spent,
    no_dead_end,
    part,
    rules_of,
    value,
    weigh,
)
from dicoflex.limits import Limits
from dicoflex.parallel import in_threads

Floats = NDArray[np.float64]
Weights = dict[str, NDArray[np.float32]]


def draw(
    grid: Grid,
    net: Net,
    context: Context,
    settings: NDArray[np.float32],
    own: NDArray[np.int64],
    where: Floats,
    alone: NDArray[np.bool_],
    n: int,
    keys: NDArray[np.uint64],
    first: int,
    limits: Limits | None,
) -> tuple[Values, Floats]:
    """`n` draws for each entry of `context` (len(context), n, d), and their log densities (len(context), n)."""
    out = np.empty((len(context), n, grid.n_features))
    log_density = np.zeros((len(context), n))
    if out.size == 0:
        return out, log_density
    stuck = context.frozen | (grid.size - alone == 0)
    on_grid = grid.holds(context.query, own)
    asked = _Asked(context.query, settings, stuck, own, where.astype(np.float32), alone, on_grid, keys)
    bounds = None if limits is None else bounds_of(grid, limits, context.query, stuck)
    rules = None if limits is None else rules_of(limits, context.query)
    cells = _cells(grid)

    def work(low: int, high: int) -> None:
        _draw(low, high, cells, net, asked, bounds, rules, np.uint64(first), out, log_density)

    in_threads(work, len(out))
    return out, log_density


def score(
    grid: Grid,
    net: Net,
    settings: NDArray[np.float32],
    own: NDArray[np.int64],
    own_where: Floats,
    alone: NDArray[np.bool_],
    stuck: NDArray[np.bool_],
    cell: NDArray[np.int64],
    where: Floats,
    kept: NDArray[np.bool_],
) -> Floats:
    """The log probability of the states of given rows (n,): the sampler's arithmetic, so the two agree."""
    out = np.zeros(len(own))
    if len(own):
        asked = _Asked(where, settings, stuck, own, own_where.astype(np.float32), alone, kept, np.zeros(0, np.uint64))
        cells, places = _cells(grid), where.astype(np.float32)
        in_threads(lambda low, high: _score(low, high, cells, net, asked, cell, places, kept, out), len(out), least=512)
    return out


class _Cells(NamedTuple):
    """The grid; `slope_at` is -1 for a feature without slopes, `scale` rounds to a feature's digits."""

    offset: Any
    slope_at: Any
    low: Any
    high: Any
    count: Any
    step: Any
    scale: Any


class Net(NamedTuple):
    """The weights; each feature's last layer stands alone in `outer`, from `outer_at` on, and has no padding."""

    query: Any
    query_slope: Any
    settings: Any
    trunk: Any
    trunk_bias: Any
    prefix: Any
    prefix_slope: Any
    prefix_kept: Any
    inner: Any
    inner_bias: Any
    outer: Any
    outer_at: Any
    outer_bias: Any

    @classmethod
    def pack(cls, weights: Weights, grid: Grid) -> Net:
        """The network's weights, laid out for the kernels."""
        trunk = np.ascontiguousarray(weights["trunk.weight"].T)
        layers = [weights["outer"][j, :, : size + 1].ravel() for j, size in enumerate(grid.size)]
        outer_at = np.cumsum([0, *map(len, layers)]).astype(np.int64)
        names = ("query", "query_slope", "settings", "prefix", "prefix_slope", "prefix_kept", "inner", "inner_bias")
        same = {name: weights[name] for name in (*names, "outer_bias")}
        outer = np.concatenate(layers)
        return cls(trunk=trunk, trunk_bias=weights["trunk.bias"], outer=outer, outer_at=outer_at, **same)


class _Asked(NamedTuple):
    """The queries: values, settings, what can't change, own cell, place in it, and whether it is all of that cell."""

    query: Any
    settings: Any
    stuck: Any
    own: Any
    where: Any
    alone: Any
    on_grid: Any
    keys: Any


def _cells(grid: Grid) -> _Cells:
    slope_at = np.where(grid.wide, grid.slope_offset, -1)
    scale = 10.0 ** grid.decimals.astype(float)
    return _Cells(grid.offset, slope_at, grid.low, grid.high, grid.count, grid.step, scale)


def _power_of_two(degree: int) -> NDArray[np.float64]:
    """Coefficients of a polynomial that is 2 to the power of f between 0 and 1."""
    fit = np.polynomial.Chebyshev.interpolate(np.exp2, degree, domain=[0.0, 1.0])
    return np.asarray(fit.convert(kind=np.polynomial.Polynomial).coef)


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOG2E = np.float32(1.4426950408889634)
# 2 to the power of f for f from 0 to 1: interpolation at Chebyshev nodes, relative error below 2e-8.
P0, P1, P2, P3, P4, P5, P6 = (np.float32(c) for c in _power_of_two(6))


@numba.njit(cache=True, error_model="numpy", inline="always")
def _uniform(key, counter):  # type: ignore[no-untyped-def]
    """Number `counter` of a key's stream; the same numbers as `streams.uniforms`."""
    z = key + (counter + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (np.float64(z >> np.uint64(12)) + 0.5) * 2.0**-52


@numba.njit(cache=True, error_model="numpy")
def _add_product(x, weight, out):  # type: ignore[no-untyped-def]
    """out += x @ weight, skipping zeros: about half of what a rectifier gives."""
    for i in range(len(x)):
        value = x[i]
        if value != 0.0:
            row = weight[i]
            for k in range(len(out)):
                out[k] += value * row[k]


@numba.njit(cache=True, error_model="numpy")
def _rectify(x):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        x[k] = max(x[k], np.float32(0.0))


@numba.njit(cache=True, error_model="numpy")
def _add_row(share, row, out):  # type: ignore[no-untyped-def]
    for k in range(len(out)):
        out[k] += share * row[k]


@numba.njit(cache=True, error_model="numpy")
def _context(i, cells, net, asked):  # type: ignore[no-untyped-def]
    """What the network knows of one query and its conditions."""
    context = np.zeros(net.query.shape[1], dtype=np.float32)
    for j in range(asked.own.shape[1]):
        own, where = asked.own[i, j], asked.where[i, j]
        _add_row(np.float32(1.0), net.query[cells.offset[j] + own], context)
        if cells.slope_at[j] >= 0 and where != 0.0:
            _add_row(where, net.query_slope[cells.slope_at[j] + own], context)
    _add_product(asked.settings[i], net.settings, context)
    _rectify(context)
    more = net.trunk_bias.copy()
    _add_product(context, net.trunk, more)
    _rectify(more)
    return context + more


@numba.njit(cache=True, error_model="numpy")
def _tell(told, r, j, cell, slope, inside, kept, prefix, prefix_slope, prefix_kept, out, t):  # type: ignore[no-untyped-def]
    """Row t of `out`: row r of `told`, and what feature j tells the features after it.

    cell and slope are rows of `prefix` and `prefix_slope`, the latter -1 for none. Whole arrays and row numbers are
    passed, here and below: a view of one row counts references, which takes longer than the sums.
    """
    for k in range(told.shape[1]):
        out[t, k] = told[r, k] + prefix[cell, k]
    if slope >= 0 and inside != 0.0:
        for k in range(told.shape[1]):
            out[t, k] += inside * prefix_slope[slope, k]
    if kept:
        for k in range(told.shape[1]):
            out[t, k] += prefix_kept[j, k]


@numba.njit(cache=True, error_model="numpy", inline="always")
def _rows(j, cell, offset, slope_at):  # type: ignore[no-untyped-def]
    """Where a cell's weights stand: its row of `prefix`, and of `prefix_slope` or -1."""
    return offset[j] + cell, (slope_at[j] + cell if slope_at[j] >= 0 else -1)


@numba.njit(cache=True, error_model="numpy")
def _last_free(stuck):  # type: ignore[no-untyped-def]
    """The last feature that can change, -1 if none can: where a draw that kept all others has to."""
    last = -1
    for j in range(len(stuck)):
        if not stuck[j]:
            last = j
    return last


@numba.njit(cache=True, error_model="numpy")
def _logits(told, live, j, n_states, net):  # type: ignore[no-untyped-def]
    """The logits of feature j's states (live groups, states), given what each group was told."""
    hidden, head = net.inner.shape[1], net.inner.shape[2]
    h = np.empty((len(live), hidden), dtype=np.float32)
    for r in range(len(live)):
        source = live[r]
        for k in range(hidden):
            h[r, k] = max(told[source, k], np.float32(0.0))
    g = np.dot(h, net.inner[j])
    bias = net.inner_bias[j]
    for r in range(len(live)):
        for k in range(head):
            g[r, k] = max(g[r, k] + bias[k], np.float32(0.0))
    logits = np.dot(g, net.outer[net.outer_at[j] : net.outer_at[j + 1]].reshape(head, n_states))
    bias = net.outer_bias[j]
    for r in range(len(live)):
        for s in range(n_states):
            # Weights that are not finite must not stop the draw.
            x = logits[r, s] + bias[s]
            logits[r, s] = x if np.isfinite(x) else np.float32(0.0)
    return logits


@numba.njit(cache=True, error_model="numpy")
def _open_all(i, j, n_states, asked, share):  # type: ignore[no-untyped-def]
    """The share of each state that may be drawn when nothing is limited: all but the query's own value."""
    share[:n_states] = 1.0
    if asked.alone[i, j]:
        share[asked.own[i, j] + 1] = 0.0


@numba.njit(cache=True, error_model="numpy")
def _cumulate(logits, k, n_states, share, powers, total, r):  # type: ignore[no-untyped-def]
    """Running sums of exp(logits), row k, times the states' shares, in row r of `total`; `powers` is room to work in.

    The exponential is 2 to a whole power times a polynomial for the rest, exact to the last digits of float32 and free
    of calls, so that the compiler does many states at once.
    """
    top = np.float32(-1e30)
    for s in range(n_states):
        if share[s] > 0.0:
            top = max(top, logits[k, s])
    for s in range(n_states):
        y = max((logits[k, s] - top) * LOG2E, np.float32(-126.0))
        whole = np.floor(y)
        f = y - whole
        powers[s] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        logits[k, s] = P0 + f * (P1 + f * (P2 + f * (P3 + f * (P4 + f * (P5 + f * P6)))))
    twos = powers.view(np.float32)
    running = 0.0
    for s in range(n_states):
        if share[s] > 0.0:
            running += np.float64(logits[k, s] * twos[s]) * share[s]
        total[r, s] = running


@numba.njit(cache=True, error_model="numpy", inline="always")
def _pick(total, r, n_states, u):  # type: ignore[no-untyped-def]
    """The first state whose running sum, in row r, exceeds `u`."""
    low, high = 0, n_states - 1
    while low < high:
        middle = (low + high) // 2
        if total[r, middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@numba.njit(cache=True, error_model="numpy", inline="always")
def _anywhere(u, low, high, count, number, query, step, scale):  # type: ignore[no-untyped-def]
    """A value of a whole run or interval: `value` without limits, on plain numbers. A run lacks the query's own value
    where `number`, how many may be drawn, is less than its `count`."""
    if count == 0:
        return min(low + u * (high - low), high)
    k = min(np.int64(u * number), number - 1)
    if number < count:
        k += k >= np.int64(np.rint((query - low) / step))
    return np.rint((low + k * step) * scale) / scale


# -- drawing and scoring ------------------------------------------------------------------------------------------


@numba.njit(cache=True, error_model="numpy")
def _keep_all(i, j, n, n_groups, cells, net, asked, told, out):  # type: ignore[no-untyped-def]
    """A feature that can't change: every draw has the query's value."""
    cell, slope = _rows(j, asked.own[i, j], cells.offset, cells.slope_at)
    for r in range(n_groups):
        _tell(
            told, r, j, cell, slope, asked.where[i, j], True, net.prefix, net.prefix_slope, net.prefix_kept, told, r
        )  # fmt: skip
    for t in range(n):
        out[t, j] = asked.query[i, j]


@numba.njit(cache=True, error_model="numpy")
def _live(i, j, n_groups, used, spent, bounds, live):  # type: ignore[no-untyped-def]
    """How many groups may change feature j; their numbers in `live`."""
    if bounds is None:
        return n_groups
    n = 0
    for r in range(n_groups):
        if not is_spent(i, j, used[r], spent[r], bounds):
            live[n] = r
            n += 1
    return n


@numba.njit(cache=True, error_model="numpy")
def _draw_query(i, last, first, cells, net, asked, bounds, rules, out, log_density):  # type: ignore[no-untyped-def]
    """All draws of query i, feature by feature."""
    n, d = out.shape
    widest = net.outer_bias.shape[1]
    # Taken out of their tuples once: a look into a tuple counts references, which is slow inside a loop.
    offset, slope_at, count, low, high = cells.offset, cells.slope_at, cells.count, cells.low, cells.high
    step, scale, on_grid = cells.step, cells.scale, asked.on_grid
    prefix, prefix_slope, prefix_kept = net.prefix, net.prefix_slope, net.prefix_kept
    key = asked.keys[i]
    told, told_next = np.empty((2, n, net.prefix.shape[1]), dtype=np.float32)
    used, used_next = np.zeros((2, n), dtype=np.int64)
    spent, spent_next = np.zeros((2, n))
    member, member_next = np.zeros((2, n), dtype=np.int64)
    ends = np.empty((n, 2))
    ends[:, 0], ends[:, 1] = -np.inf, np.inf
    group, live = np.zeros(n, dtype=np.int64), np.arange(n)
    base, share, powers = np.empty(widest), np.empty(widest), np.empty(widest, dtype=np.int32)
    fits = np.ones(widest, dtype=np.bool_)
    totals, successor = np.empty((n, widest)), np.empty((n, widest), dtype=np.int64)
    n_groups = 1
    told[0] = _context(i, cells, net, asked)
    for j in range(d):
        n_states = offset[j + 1] - offset[j] + 1
        own, q, place = asked.own[i, j], asked.query[i, j], asked.where[i, j]
        if asked.stuck[i, j]:
            _keep_all(i, j, n, n_groups, cells, net, asked, told, out)
            continue
        n_live = _live(i, j, n_groups, used, spent, bounds, live)
        logits = _logits(told, live[:n_live], j, n_states, net)
        for r in range(n_groups):
            for s in range(n_states):
                totals[r, s] = 1.0  # what a group that can't afford a change keeps to
                successor[r, s] = -1
        varies = False
        if bounds is None:
            _open_all(i, j, n_states, asked, base)
        else:
            varies = depends(j, bounds, rules)
            fits[:] = True
            changes(i, j, n_states, cells, asked, bounds, base)
            ends[:n_groups, 0], ends[:n_groups, 1] = bounds.low[i, j], bounds.high[i, j]
        for k in range(n_live):
            r = live[k]
            for s in range(n_states):
                share[s] = base[s]
            if bounds is not None:  # noqa: SIM102
                if varies:
                    row = out[member[r]]
                    ends[r] = weigh(i, j, n_states, row, used[r], spent[r], cells, asked, bounds, rules, fits, share)
            no_dead_end(share, n_states, j == last and used[r] == 0)
            _cumulate(logits, k, n_states, share, powers, totals, r)
        n_next = 0
        for t in range(n):
            r = group[t]
            counter = (first + np.uint64(t)) * np.uint64(2 * d) + np.uint64(2 * j)
            s = _pick(totals, r, n_states, _uniform(key, counter) * totals[r, n_states - 1])
            cell, drawn, inside, shared, size = own, q, place, True, 0.0
            if s > 0:
                cell = s - 1
                at = offset[j] + cell
                width = high[at] - low[at]
                shared = count[at] == 1
                drawn = low[at]
                if not shared:
                    v = _uniform(key, counter + np.uint64(1))
                    if bounds is None:
                        number = count[at] - (cell == own and on_grid[i, j])
                        drawn = _anywhere(v, low[at], high[at], count[at], number, q, step[j], scale[j])
                        size = np.log(np.float64(number)) if number > 0 else (np.log(width) if width > 0.0 else 0.0)
                    else:
                        _, a, b, start, number = part(i, j, cell, ends[r, 0], ends[r, 1], cells, asked, bounds)
                        drawn = value(i, j, cell, a, b, start, number, v, cells, asked, bounds)
                        size = np.log(np.float64(number)) if number > 0 else (np.log(b - a) if b > a else 0.0)
                inside = np.float32((drawn - low[at]) / width) if width > 0.0 else np.float32(0.0)
            out[t, j] = drawn
            mass = totals[r, s] - (totals[r, s - 1] if s > 0 else 0.0)
            log_density[t] += np.log(mass / totals[r, n_states - 1]) - size
            if shared and successor[r, s] >= 0:
                group[t] = successor[r, s]
                continue
            if shared:
                successor[r, s] = n_next
            row, slope = _rows(j, cell, offset, slope_at)
            _tell(
                told, r, j, row, slope, inside, s == 0, prefix, prefix_slope, prefix_kept, told_next, n_next
            )  # fmt: skip
            used_next[n_next] = used[r] + (s > 0)
            if bounds is not None:
                spent_next[n_next] = spent[r] + (cost(j, drawn, q, bounds) if s > 0 else 0.0)
            member_next[n_next] = t
            group[t] = n_next
            n_next += 1
        told, told_next = told_next, told
        used, used_next = used_next, used
        spent, spent_next = spent_next, spent
        member, member_next = member_next, member
        n_groups = n_next


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _draw(low, high, cells, net, asked, bounds, rules, first, out, log_density):  # type: ignore[no-untyped-def]
    for i in range(low, high):
        last = _last_free(asked.stuck[i])
        _draw_query(i, last, first, cells, net, asked, bounds, rules, out[i], log_density[i])


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _score(low, high, cells, net, asked, cell, where, kept, out):  # type: ignore[no-untyped-def]
    widest = net.outer_bias.shape[1]
    share, powers, total = np.empty(widest), np.empty(widest, dtype=np.int32), np.empty((1, widest))
    alone = np.zeros(1, dtype=np.int64)
    for i in range(low, high):
        last = _last_free(asked.stuck[i])
        told = _context(i, cells, net, asked).reshape(1, -1)
        changed = False
        for j in range(cell.shape[1]):
            if not asked.stuck[i, j]:
                n_states = cells.offset[j + 1] - cells.offset[j] + 1
                logits = _logits(told, alone, j, n_states, net)
                _open_all(i, j, n_states, asked, share)
                no_dead_end(share, n_states, j == last and not changed)
                _cumulate(logits, 0, n_states, share, powers, total, 0)
                s = 0 if kept[i, j] else cell[i, j] + 1
                mass = total[0, s] - (total[0, s - 1] if s > 0 else 0.0)
                out[i] += np.log(mass / total[0, n_states - 1]) if mass > 0.0 else -np.inf
                changed = changed or s > 0
            row, slope = _rows(j, cell[i, j], cells.offset, cells.slope_at)
            _tell(
                told, 0, j, row, slope, where[i, j], kept[i, j], net.prefix, net.prefix_slope, net.prefix_kept, told, 0
            )  # fmt: skip
