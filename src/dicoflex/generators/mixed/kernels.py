"""Ancestral sampling of the mixed density, compiled: one feature after the other, many draws at a time.

Draws of one query that agree so far share their work: they are one *group* until their states part. All arithmetic
of a draw depends on its own query, key and number alone, so batching and threads can't change it.

Under limits every step is restricted to what is allowed given the features before it: each state's mass is scaled by
the allowed share of its cell (0 where none of it is), and a value is drawn from the allowed part alone; see
`lookahead`. Budgets keep back what features that have to change will need, and rules look ahead to what later
features may still be.
"""

from __future__ import annotations

__all__ = ["Net", "draw", "score"]

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.generators.mixed.cells import Grid, Located
from dicoflex.generators.mixed.lookahead import (
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
from dicoflex.generators.mixed.weights import Asked, Weights
from dicoflex.limits.limits import Limits
from dicoflex.runtime.compiled import compiled
from dicoflex.runtime.randomness import GOLDEN, mix
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Values

Floats = NDArray[np.float64]


def draw(
    grid: Grid,
    net: Net,
    asked: Asked,
    n: int,
    *,
    keys: NDArray[np.uint64],
    first: int | NDArray[np.int64],
    limits: Limits | None,
) -> tuple[Values, Floats]:
    """`n` draws for each query asked for (queries, n, d), and their log densities (queries, n)."""
    query = asked.own.values
    out = np.empty((len(query), n, grid.n_features))
    log_density = np.zeros((len(query), n))
    if out.size == 0:
        return out, log_density
    bounds = None if limits is None else bounds_of(grid, limits, query, asked.stuck)
    rules = None if limits is None else rules_of(limits, query)
    cells, queries = _cells(grid), _Queries.of(asked, keys)
    start = np.empty(len(out), dtype=np.uint64)
    start[:] = first

    def work(low: int, high: int) -> None:
        _draw(low, high, cells, net, queries, bounds, rules, start, out, log_density)

    in_threads(work, len(out))
    return out, log_density


def score(
    grid: Grid, net: Net, asked: Asked, of: NDArray[np.int64], answers: Located, kept: NDArray[np.bool_]
) -> Floats:  # fmt: skip
    """The log probability of the states of given rows (n,): the sampler's arithmetic, so the two agree.

    of: the query of each row. What rows of one query begin with alike is worked out once, where they stand together.
    """
    out = np.zeros(len(kept))
    if len(out):
        cells, queries = _cells(grid), _Queries.of(asked, np.zeros(0, np.uint64))
        cell, places = answers.cell, answers.place

        def work(low: int, high: int) -> None:
            _score(low, high, cells, net, queries, of, cell, places, kept, out)

        in_threads(work, len(out), least=512)
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
    order: Any
    rank: Any


class Net(NamedTuple):
    """The weights; each feature's last layer stands alone in `outer`, from `outer_at` on.

    It has a column per state and, up to a multiple of BLOCK, some for none: the sums over states go block by block.
    """

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
        widths = -(-(grid.size + 1) // BLOCK) * BLOCK
        outer = [
            np.pad(weights["outer"][at, :, : size + 1], ((0, 0), (0, width - size - 1)))
            for at, size, width in zip(grid.rank, grid.size, widths, strict=True)
        ]
        outer_bias = np.zeros((len(widths), widths.max()), dtype=np.float32)
        outer_bias[:, : weights["outer_bias"].shape[1]] = weights["outer_bias"][grid.rank]
        same = ("query", "query_slope", "settings", "prefix", "prefix_slope", "prefix_kept")
        return cls(
            trunk=np.ascontiguousarray(weights["trunk.weight"].T),
            trunk_bias=weights["trunk.bias"],
            inner=weights["inner"][grid.rank],
            inner_bias=weights["inner_bias"][grid.rank],
            outer=np.concatenate([layer.ravel() for layer in outer]),
            outer_at=np.cumsum([0, *(layer.size for layer in outer)]).astype(np.int64),
            outer_bias=outer_bias,
            **{name: weights[name] for name in same},
        )


class _Queries(NamedTuple):
    """The queries: values, settings, what can't change, own cell, place in it, and whether it is all of that cell."""

    query: Any
    settings: Any
    stuck: Any
    own: Any
    where: Any
    alone: Any
    on_grid: Any
    keys: Any

    @classmethod
    def of(cls, asked: Asked, keys: NDArray[np.uint64]) -> _Queries:
        """What the kernels read of the queries; keys are needed to draw only."""
        own = asked.own
        return cls(own.values, asked.settings, asked.stuck, own.cell, own.place, own.alone, own.exact, keys)


def _cells(grid: Grid) -> _Cells:
    scale, _ = grid.spacing
    return _Cells(grid.offset, grid.slope_at, grid.low, grid.high, grid.count, grid.step, scale, grid.order, grid.rank)


def _power_of_two(degree: int) -> NDArray[np.float64]:
    """Coefficients of a polynomial that is 2 to the power of f between 0 and 1."""
    fit = np.polynomial.Chebyshev.interpolate(np.exp2, degree, domain=[0.0, 1.0])
    return np.asarray(fit.convert(kind=np.polynomial.Polynomial).coef)


BLOCK = 16
RECALLED = 16
"""So many rows before it a row that is scored is compared with."""
LEAST_SHARE = np.float32(1e-9)
LOWEST = np.float32(-1e4)
LEAST_POWER = np.float32(-126.0)
LOG2E = np.float32(1.4426950408889634)
# 2 to the power of f for f from 0 to 1: interpolation at Chebyshev nodes, relative error below 2e-8.
P0, P1, P2, P3, P4, P5, P6 = (np.float32(c) for c in _power_of_two(6))


@compiled(error_model="numpy", inline="always")
def _uniform(key, counter):  # type: ignore[no-untyped-def]
    """Number `counter` of a key's stream; the same numbers as `randomness.uniforms`."""
    z = mix(key + (counter + np.uint64(1)) * GOLDEN)
    return (np.float64(z >> np.uint64(12)) + 0.5) * 2.0**-52


@compiled(error_model="numpy")
def _add_product(x, weight, out):  # type: ignore[no-untyped-def]
    """out += x @ weight, skipping zeros: about half of what a rectifier gives."""
    for i in range(len(x)):
        value = x[i]
        if value != 0.0:
            for k in range(len(out)):
                out[k] += value * weight[i, k]


@compiled(error_model="numpy")
def _rectify(x):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        x[k] = max(x[k], np.float32(0.0))


@compiled(error_model="numpy")
def _add_cells(own, where, offset, slope_at, rows, slopes, out):  # type: ignore[no-untyped-def]
    """Add what the cells of one query, and its places in them, tell."""
    for j in range(len(own)):
        at, slope, x = offset[j] + own[j], slope_at[j] + own[j], where[j]
        for k in range(len(out)):
            out[k] += rows[at, k]
        if slope_at[j] >= 0 and x != 0.0:
            for k in range(len(out)):
                out[k] += x * slopes[slope, k]


@compiled(error_model="numpy")
def _context(i, cells, net, asked):  # type: ignore[no-untyped-def]
    """What the network knows of one query and its conditions."""
    context = np.zeros(net.query.shape[1], dtype=np.float32)
    _add_cells(asked.own[i], asked.where[i], cells.offset, cells.slope_at, net.query, net.query_slope, context)
    _add_product(asked.settings[i], net.settings, context)
    _rectify(context)
    more = net.trunk_bias.copy()
    _add_product(context, net.trunk, more)
    _rectify(more)
    return context + more


@compiled(error_model="numpy")
def _tell(  # type: ignore[no-untyped-def]
    n, told, source, member, state, inside, own, j, offset, slope_at, prefix, prefix_slope, prefix_kept, out
):
    """What n groups know after feature j: each what its `source` was told, and what the feature tells.

    That is known of a group's `member`: its state, and where in its cell its value lies; `own` is the query's cell.
    """
    width = told.shape[1]
    for g in range(n):
        r, s, x = source[g], state[member[g]], inside[member[g]]
        cell = own if s == 0 else s - 1
        at, slope = offset[j] + cell, slope_at[j] + cell
        if slope_at[j] >= 0 and x != 0.0:
            for k in range(width):
                out[g, k] = told[r, k] + (prefix[at, k] + x * prefix_slope[slope, k])
        else:
            for k in range(width):
                out[g, k] = told[r, k] + prefix[at, k]
        if s == 0:
            for k in range(width):
                out[g, k] += prefix_kept[j, k]


@compiled(error_model="numpy")
def _last_free(stuck, order):  # type: ignore[no-untyped-def]
    """The last feature that can change, -1 if none can: where a draw that kept all others has to."""
    last = -1
    for j in order:
        if not stuck[j]:
            last = j
    return last


@compiled(error_model="numpy")
def _logits(told, live, j, inner, inner_bias, outer, outer_at, hidden, head, out):  # type: ignore[no-untyped-def]
    """The logits of feature j's states (live groups, states), but for the bias, given what each group was told.

    hidden, head and out are room to work in; the result is the beginning of `out`.
    """
    n, n_head = len(live), inner.shape[2]
    width = (outer_at[j + 1] - outer_at[j]) // n_head
    for r in range(n):
        source = live[r]
        for k in range(hidden.shape[1]):
            hidden[r, k] = max(told[source, k], np.float32(0.0))
    np.dot(hidden[:n], inner[j], head[:n])
    for r in range(n):
        for k in range(n_head):
            head[r, k] = max(head[r, k] + inner_bias[j, k], np.float32(0.0))
    logits = out[: n * width].reshape(n, width)
    np.dot(head[:n], outer[outer_at[j] : outer_at[j + 1]].reshape(n_head, width), logits)
    return logits


@compiled(error_model="numpy")
def _open_all(n_states, own, alone, share):  # type: ignore[no-untyped-def]
    """The share of each state that may be drawn when nothing is limited: all but the query's own value."""
    share[:n_states] = 1.0
    if alone:
        share[own + 1] = 0.0


@compiled(error_model="numpy")
def _rounded(share, n_states, out):  # type: ignore[no-untyped-def]
    """The shares in single precision, what is allowed never 0; 0 for the columns that are no states."""
    out[:] = 0.0
    for s in range(n_states):
        if share[s] > 0.0:
            out[s] = max(np.float32(share[s]), LEAST_SHARE)


@compiled(error_model="numpy", inline="always")
def _ordered(bits):  # type: ignore[no-untyped-def]
    """The bits of a float32 as a whole number that compares as the float does, and back."""
    return bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))


@compiled(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _weigh_states(low, high, logits, j, share, bias, bits, floats, sums, total):  # type: ignore[no-untyped-def]
    """Rows low to high of `logits` become masses, exp(logit + bias) times the states' shares, but for a factor per row.

    Their running sums at the end of each block of states go to `sums`, the last one to `total`. `bits` and `floats` are
    the same room to work in. Every loop is free of calls and of what compilers shy at, so that they do many states at
    once: the greatest is found among whole numbers, and the exponential is 2 to a whole power times a polynomial for
    the rest, exact to the last digits of float32.
    """
    width = logits.shape[1]
    for k in range(low, high):
        for s in range(width):
            # Weights that are not finite must not stop the draw: a comparison with NaN is false.
            x = logits[k, s] + bias[j, s]
            x = x if x > LOWEST else LOWEST
            x = x if x < -LOWEST else -LOWEST
            floats[s] = x if share[s] > 0.0 else LOWEST
        greatest = _ordered(bits[0])
        for s in range(width):
            greatest = max(greatest, _ordered(bits[s]))
        for s in range(width):
            logits[k, s] = floats[s]
        bits[0] = _ordered(greatest)
        top = floats[0]
        for s in range(width):
            y = (logits[k, s] - top) * LOG2E
            y = y if y > LEAST_POWER else LEAST_POWER
            whole = np.floor(y)
            f = y - whole
            bits[s] = (np.int32(whole) + np.int32(127)) << np.int32(23)
            logits[k, s] = share[s] * (P0 + f * (P1 + f * (P2 + f * (P3 + f * (P4 + f * (P5 + f * P6))))))
        for s in range(width):
            logits[k, s] *= floats[s]
        running = 0.0
        for b in range(width // BLOCK):
            block = 0.0
            for s in range(b * BLOCK, (b + 1) * BLOCK):
                block += np.float64(logits[k, s])
            running += block
            sums[k, b] = running
        total[k] = running


@compiled(error_model="numpy")
def _pick(key, counter, stride, group, row_of, masses, sums, total, state, density):  # type: ignore[no-untyped-def]
    """The state of every draw: the first at which the running sum of its group's masses exceeds a uniform number.

    counter: the first draw's number in the key's stream; the next ones are a stride apart. Densities are multiplied by
    the states' probabilities. A group without a row, which can't afford a change, keeps.
    """
    for t in range(len(group)):
        k = row_of[group[t]]
        state[t] = 0
        if k < 0:
            continue
        u = _uniform(key, counter + np.uint64(t) * stride) * total[k]
        b = 0
        while sums[k, b] <= u:
            b += 1
        running = sums[k, b - 1] if b > 0 else 0.0
        for s in range(b * BLOCK, (b + 1) * BLOCK):
            mass = np.float64(masses[k, s])
            if mass > 0.0:
                state[t] = s
                running += mass
                if running > u:
                    break
        density[t] *= np.float64(masses[k, state[t]]) / total[k]


@compiled(error_model="numpy", inline="always")
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


@compiled(error_model="numpy")
def _live(i, j, n_groups, used, spent, bounds, live, row_of):  # type: ignore[no-untyped-def]
    """How many groups may change feature j; their numbers in `live`, and in `row_of` the place of each, -1 for none."""
    if bounds is None:
        return n_groups
    n = 0
    for r in range(n_groups):
        row_of[r] = -1
        if not is_spent(i, j, used[r], spent[r], bounds):
            live[n], row_of[r] = r, n
            n += 1
    return n


@compiled(error_model="numpy")
def _fill(  # type: ignore[no-untyped-def]
    i, j, state, group, ends, key, counter, stride, cells, asked, bounds, out, inside, density, log_density
):
    """Feature j of every draw, given its state: the value in `out`, and where in its cell it lies in `inside`.

    Densities are divided by the size of what a value was drawn from; what could run out of range goes into the logs.
    """
    # Taken out of their tuples once: a look into a tuple counts references, which is slow inside a loop.
    offset, count, lows, highs, on_grid = cells.offset[j], cells.count, cells.low, cells.high, asked.on_grid[i, j]
    own, q, own_inside, step, scale = (
        asked.own[i, j],
        asked.query[i, j],
        asked.where[i, j],
        cells.step[j],
        cells.scale[j],
    )
    for t in range(len(state)):
        out[t, j], inside[t] = q, own_inside
        if state[t] > 0:
            cell = state[t] - 1
            at = offset + cell
            low, high = lows[at], highs[at]
            drawn, size = low, 1.0
            if count[at] != 1:
                u = _uniform(key, counter + np.uint64(t) * stride + np.uint64(1))
                if bounds is None:
                    a, b, number = low, high, count[at] - (cell == own and on_grid)
                    drawn = _anywhere(u, low, high, count[at], number, q, step, scale)
                else:
                    r = group[t]
                    _, a, b, start, number = part(i, j, cell, ends[r, 0], ends[r, 1], cells, asked, bounds)
                    drawn = value(i, j, cell, a, b, start, number, u, cells, asked, bounds)
                size = np.float64(number) if number > 0 else (b - a if b > a else 1.0)
            out[t, j] = drawn
            inside[t] = np.float32((drawn - low) / (high - low)) if high > low else np.float32(0.0)
            density[t] /= size
        if not 1e-150 < density[t] < 1e150:
            log_density[t] += np.log(density[t])
            density[t] = 1.0


@compiled(error_model="numpy")
def _regroup(n_groups, many, group, state, size, successor, size_next, source, member):  # type: ignore[no-untyped-def]
    """Put draws that agree so far into one group; returns how many there are.

    many: per state, whether it holds several values, so that its draws part. source, member: for each new group the old
    one, and one of its draws.
    """
    for r in range(n_groups):
        if size[r] > 1:
            for s in range(len(many)):
                successor[r, s] = -1
    n = 0
    for t in range(len(group)):
        r, s = group[t], state[t]
        if size[r] > 1 and not many[s]:
            if successor[r, s] >= 0:
                group[t] = successor[r, s]
                size_next[group[t]] += 1
                continue
            successor[r, s] = n
        source[n], member[n], size_next[n], group[t] = r, t, 1, n
        n += 1
    return n


@compiled(error_model="numpy")
def _draw_query(i, last, first, cells, net, asked, bounds, rules, out, log_density):  # type: ignore[no-untyped-def]
    """All draws of query i, feature by feature: the states' masses, each draw's state and value, what they tell.

    Loops over draws and groups stand in functions of their own that are called once per feature: a call counts the
    references to all arrays that it is given, which takes longer than a group's sums.
    """
    n, d = out.shape
    n_hidden, n_head, widest = net.prefix.shape[1], net.inner.shape[2], net.outer_bias.shape[1]
    key, stride = asked.keys[i], np.uint64(2 * d)
    group, state, density = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.ones(n)
    inside = np.empty(n, dtype=np.float32)
    told, told_next = np.empty((2, n, n_hidden), dtype=np.float32)
    size, size_next = np.full((2, n), n)
    used, used_next = np.zeros((2, n), dtype=np.int64)
    spent, spent_next = np.zeros((2, n))
    source, member, successor = np.arange(n), np.zeros(n, dtype=np.int64), np.empty((n, widest), dtype=np.int32)
    live, row_of, ends = np.arange(n), np.arange(n), np.empty((n, 2))
    hidden, head = np.empty((n, n_hidden), dtype=np.float32), np.empty((n, n_head), dtype=np.float32)
    room, bits = np.empty(n * widest, dtype=np.float32), np.empty(widest, dtype=np.int32)
    sums, total = np.empty((n, widest // BLOCK)), np.empty(n)
    base, share, rounded = np.empty(widest), np.empty(widest), np.empty(widest, dtype=np.float32)
    fits, many = np.ones(widest, dtype=np.bool_), np.zeros(widest, dtype=np.bool_)
    told[0] = _context(i, cells, net, asked)
    n_groups = 1
    for j in cells.order:
        n_states = cells.offset[j + 1] - cells.offset[j] + 1
        if asked.stuck[i, j]:
            state[:] = 0
            out[:, j] = asked.query[i, j]
            inside[:] = asked.where[i, j]
        else:
            n_live = _live(i, j, n_groups, used, spent, bounds, live, row_of)
            masses = _logits(
                told, live[:n_live], j, net.inner, net.inner_bias, net.outer, net.outer_at, hidden, head, room
            )  # fmt: skip
            varies = False
            if bounds is None:
                _open_all(n_states, asked.own[i, j], asked.alone[i, j], base)
            else:
                varies = depends(j, bounds, rules)
                fits[:] = True
                changes(i, j, n_states, cells, asked, bounds, base)
                ends[:n_groups, 0], ends[:n_groups, 1] = bounds.low[i, j], bounds.high[i, j]
            alike = not varies and j != last
            for k in range(min(n_live, 1) if alike else n_live):
                r = live[k]
                share[:n_states] = base[:n_states]
                if bounds is not None:  # noqa: SIM102
                    if varies:
                        ends[r] = weigh(
                            i, j, n_states, out[member[r]], used[r], spent[r], cells, asked, bounds, rules, fits, share
                        )  # fmt: skip
                no_dead_end(share, n_states, j == last and used[r] == 0)
                _rounded(share, n_states, rounded)
                end = n_live if alike else k + 1
                _weigh_states(
                    k, end, masses, j, rounded, net.outer_bias, bits, bits.view(np.float32), sums, total
                )  # fmt: skip
            counter = first * stride + np.uint64(2 * j)
            _pick(key, counter, stride, group, row_of, masses, sums, total, state, density)
            _fill(
                i, j, state, group, ends, key, counter, stride, cells, asked, bounds, out, inside, density, log_density
            )  # fmt: skip
        if j == cells.order[-1]:
            break
        many[1:n_states] = cells.count[cells.offset[j] : cells.offset[j + 1]] != 1
        n_groups = _regroup(n_groups, many[:n_states], group, state, size, successor, size_next, source, member)
        _tell(
            n_groups, told, source, member, state, inside, asked.own[i, j], j, cells.offset, cells.slope_at, net.prefix,
            net.prefix_slope, net.prefix_kept, told_next,
        )  # fmt: skip
        for g in range(n_groups):
            used_next[g] = used[source[g]] + (state[member[g]] > 0)
        if bounds is not None:
            q, fixed, unit = asked.query[i, j], bounds.fixed[j], bounds.unit[j]
            for g in range(n_groups):
                paid = cost(out[member[g], j], q, fixed, unit) if state[member[g]] > 0 else 0.0
                spent_next[g] = spent[source[g]] + paid
        told, told_next = told_next, told
        used, used_next = used_next, used
        spent, spent_next = spent_next, spent
        size, size_next = size_next, size
    for t in range(n):
        log_density[t] += np.log(density[t])


@compiled(error_model="numpy", nogil=True)
def _draw(low, high, cells, net, asked, bounds, rules, first, out, log_density):  # type: ignore[no-untyped-def]
    for i in range(low, high):
        last = _last_free(asked.stuck[i], cells.order)
        _draw_query(i, last, first[i], cells, net, asked, bounds, rules, out[i], log_density[i])


@compiled(error_model="numpy")
def _likest(i, low, order, of, cell, where, kept):  # type: ignore[no-untyped-def]
    """The row among those before i, of the same query, that begins like it for longest, and for how many features."""
    found, longest = -1, -1
    for other in range(max(low, i - RECALLED + 1), i):
        if of[other] != of[i]:
            continue
        n = 0
        for j in order:
            if kept[other, j] != kept[i, j] or cell[other, j] != cell[i, j] or where[other, j] != where[i, j]:
                break
            n += 1
        if n > longest:
            found, longest = other, n
    return found, max(longest, 0)


@compiled(error_model="numpy", nogil=True)
def _score(low, high, cells, net, asked, of, cell, where, kept, out):  # type: ignore[no-untyped-def]
    widest, n_hidden, n_head, d = net.outer_bias.shape[1], net.prefix.shape[1], net.inner.shape[2], len(cells.order)
    share, rounded, bits = np.empty(widest), np.empty(widest, dtype=np.float32), np.empty(widest, dtype=np.int32)
    hidden, head = np.empty((1, n_hidden), dtype=np.float32), np.empty((1, n_head), dtype=np.float32)
    room, sums, total = np.empty(widest, dtype=np.float32), np.empty((1, widest // BLOCK)), np.empty(1)
    alone, state, inside = np.zeros(1, dtype=np.int64), np.empty(1, dtype=np.int64), np.empty(1, dtype=np.float32)
    # Of each of the last rows what was told before each of its features, the sum up to it, and whether one changed.
    recalled, step = min(RECALLED, high - low), np.zeros(1, dtype=np.int64)
    tolds, so_far = np.empty((recalled, d + 1, n_hidden), dtype=np.float32), np.zeros((recalled, d + 1))
    changed = np.zeros((recalled, d + 1), dtype=np.bool_)
    for i in range(low, high):
        q, slot = of[i], (i - low) % recalled
        told, last = tolds[slot], _last_free(asked.stuck[q], cells.order)
        like, first = _likest(i, low, cells.order, of, cell, where, kept)
        if like < 0:
            told[0] = _context(q, cells, net, asked)
        else:
            other = (like - low) % recalled
            told[: first + 1] = tolds[other, : first + 1]
            so_far[slot, : first + 1], changed[slot, : first + 1] = (
                so_far[other, : first + 1],
                changed[other, : first + 1],
            )
        for k in range(first, d):
            j = cells.order[k]
            s = 0 if kept[i, j] else cell[i, j] + 1
            step[0], more, moved = k, 0.0, changed[slot, k]
            if not asked.stuck[q, j]:
                n_states = cells.offset[j + 1] - cells.offset[j] + 1
                masses = _logits(
                    told, step, j, net.inner, net.inner_bias, net.outer, net.outer_at, hidden, head, room
                )  # fmt: skip
                _open_all(n_states, asked.own[q, j], asked.alone[q, j], share)
                no_dead_end(share, n_states, j == last and not moved)
                _rounded(share, n_states, rounded)
                _weigh_states(0, 1, masses, j, rounded, net.outer_bias, bits, bits.view(np.float32), sums, total)
                more = np.log(np.float64(masses[0, s]) / total[0]) if masses[0, s] > 0.0 else -np.inf
                moved = moved or s > 0
            so_far[slot, k + 1], changed[slot, k + 1] = so_far[slot, k] + more, moved
            state[0], inside[0] = s, where[i, j]
            _tell(
                1, told, step, alone, state, inside, cell[i, j], j, cells.offset, cells.slope_at, net.prefix,
                net.prefix_slope, net.prefix_kept, told[k + 1 : k + 2],
            )  # fmt: skip
        out[i] = so_far[slot, d]
