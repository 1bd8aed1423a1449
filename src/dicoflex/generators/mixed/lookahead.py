"""The limits of one call as the compiled sampler reads them: what part of each state a step may draw.

Everything here depends on a query and on the features drawn so far, never on the network. `None` in place of bounds or
rules makes numba compile a kernel without their branches, where the test for it stands alone; hence the nested ifs.
What is called in innermost loops is inlined: a call counts the references to all arrays in the tuples that it is given.
"""

from __future__ import annotations

__all__ = [
    "bounds_of",
    "changes",
    "cost",
    "depends",
    "is_spent",
    "no_dead_end",
    "part",
    "rules_of",
    "value",
    "weigh",
]

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.generators.mixed.cells import Grid
from dicoflex.limits import SLACK
from dicoflex.limits.clauses import BELOW, EQUAL, LEVELS, LINEAR, MISSING, UNEQUAL
from dicoflex.limits.limits import Limits
from dicoflex.limits.once import Arrays
from dicoflex.runtime.compiled import compiled
from dicoflex.table.encoding import Values

POINT = 1e-9  # what a single point of an interval weighs: nothing, unless it is all that is allowed


class Bounds(NamedTuple):
    """`Limits` by cells; needed, price: what later features that must change will need of changes and cost.

    reserved: where a change must be left for later features to mend a rule.
    """

    low: Any
    high: Any
    open: Any
    may_keep: Any
    needed: Any
    reserved: Any
    price: Any
    points: Any
    point_at: Any
    pointed: Any
    banned: Any
    banned_at: Any
    level: Any
    fixed: Any
    unit: Any
    most_changes: Any
    most_cost: Any


class Rules(NamedTuple):
    """`Clauses`, and what each feature of a draw may end as: least, most, may_miss.

    Query i is bound by clauses first[i] to last[i]; touched: whether any clause touches a feature.
    """

    least: Any
    most: Any
    may_miss: Any
    first: Any
    last: Any
    touched: Any
    ranks: Any
    start: Any
    sort: Any
    op: Any
    coefficients: Any
    constant: Any
    feature: Any
    levels: Any
    if_missing: Any
    touches: Any


def bounds_of(grid: Grid, limits: Limits, query: Values, stuck: NDArray[np.bool_]) -> Bounds:
    """The limits by cells; `stuck` features can't change."""

    def make(some: Limits, at: NDArray[np.int64]) -> Arrays:
        return _of_queries(grid, some, query[at], stuck[at])

    open_, needed, reserved, price = limits.once(grid, make)
    points, point_at, pointed = limits.plan.listed
    banned, banned_at = limits.plan.ruled_out
    return Bounds(
        low=limits.low,
        high=limits.high,
        open=open_,
        may_keep=limits.may_keep,
        needed=needed,
        reserved=reserved,
        price=price,
        points=points,
        point_at=point_at,
        pointed=pointed,
        banned=banned,
        banned_at=banned_at,
        level=limits.plan.is_level,
        fixed=limits.fixed,
        unit=limits.unit,
        most_changes=limits.most_changes,
        most_cost=limits.most_cost,
    )


def _of_queries(grid: Grid, limits: Limits, query: Values, stuck: NDArray[np.bool_]) -> Arrays:
    """Of each query `open`, `needed`, `reserved` and `price`."""
    must = ~limits.may_keep & ~stuck
    price = np.where(must, limits.least_cost(query), 0.0)
    needed, reserved = _later(must, grid), limits.reserved(query, grid.rank)
    return _open(grid, limits), needed.astype(np.int64), reserved.astype(np.int64), _later(price, grid)


def _later(amounts: NDArray[Any], grid: Grid) -> NDArray[Any]:
    """For each feature the sum over those drawn after it (n, d)."""
    drawn = amounts[:, grid.order]
    after: NDArray[Any] = (np.cumsum(drawn[:, ::-1], axis=1)[:, ::-1] - drawn)[:, grid.rank]
    return after


def rules_of(limits: Limits, query: Values) -> Rules | None:
    """The clauses of the limits' rules, None where there are none."""
    if len(limits.clauses) == 0:
        return None
    least, most, may_miss = limits.domain(query)
    c = limits.clauses
    return Rules(
        least, most, may_miss, c.sets[limits.clause_set], c.sets[limits.clause_set + 1], c.touches.any(axis=0), c.ranks,
        c.start, c.sort, c.op, c.coefficients, c.constant, c.feature, c.levels, c.if_missing,
        c.touches,
    )  # fmt: skip


def _open(grid: Grid, limits: Limits) -> NDArray[np.bool_]:
    """Which cells hold an allowed changed value, as far as levels, atoms and missing states go (n, cells)."""
    allowed = np.ones((len(limits), grid.n_cells), dtype=bool)
    for j, values in limits.banned.items():
        at = slice(grid.offset[j], grid.offset[j + 1])
        allowed[:, at] = ~(np.isin(grid.low[at], values) & (grid.count[at] == 1))
    for j, feature in enumerate(limits.encoding.schema.features):
        states = limits.states[:, limits.offset[j] : limits.offset[j + 1]]
        if not feature.is_number:
            allowed[:, grid.offset[j] : grid.offset[j + 1]] = states
        elif feature.missing:
            allowed[:, grid.offset[j + 1] - 1] = states[:, 0]
    return allowed


# -- the allowed part of a cell -----------------------------------------------------------------------------------


@compiled(error_model="numpy", inline="always")
def _listed(j, bounds, low, high):  # type: ignore[no-untyped-def]
    """Of a feature's points, the first within the ends and how many there are."""
    a, b = bounds.point_at[j], bounds.point_at[j + 1]
    first = a + np.searchsorted(bounds.points[a:b], low, side="left")
    return first, a + np.searchsorted(bounds.points[a:b], high, side="right") - first


@compiled(error_model="numpy", inline="always")
def part(i, j, cell, low, high, cells, asked, bounds):  # type: ignore[no-untyped-def]
    """The part of a cell within [low, high]: its share, its ends, its first value's number, and how many it has.

    How many is 0 for an interval, 1 for an atom; the query's own value does not count.
    """
    at = cells.offset[j] + cell
    count, start, end = cells.count[at], cells.low[at], cells.high[at]
    if np.isnan(start):
        return 1.0, start, end, 0, 1
    a, b = max(start, low), min(end, high)
    if not a <= b:
        return 0.0, a, b, 0, 0
    q, mine = asked.query[i, j], cell == asked.own[i, j]
    own_here = mine and asked.on_grid[i, j]
    if bounds is not None:  # noqa: SIM102 - numba drops the branch only if the test stands alone
        if bounds.pointed[j]:
            first, number = _listed(j, bounds, a, b)
            besides = number - (mine and _is_listed(q, bounds.points[first : first + number]))
            return (float(besides) if count == 1 else _dense(j, besides, end - start, bounds)), a, b, first, besides
    if count == 1:
        return (0.0 if own_here else 1.0), a, b, 0, 1
    if count == 0:
        width = end - start
        return ((b - a) / width if width > 0.0 and b > a else POINT), a, b, 0, 0
    first = np.int64(np.ceil((a - start) / cells.step[j] - 1e-6))
    last = np.int64(np.floor((b - start) / cells.step[j] + 1e-6))
    own_inside = own_here and a <= q <= b
    besides = last - first + 1 - own_inside
    if bounds is not None:
        # Limits may lie next to a value: only the value itself tells on which side.
        first += _on_run(j, start, first, cells) < a
        last -= _on_run(j, start, last, cells) > b
        besides = last - first + 1 - own_inside
        for t in range(bounds.banned_at[j], bounds.banned_at[j + 1]):
            v = bounds.banned[t]
            if a <= v <= b and not (own_inside and v == q):
                besides -= _on_run(j, start, _place(j, start, v, cells), cells) == v
    return (besides / float(count - own_here) if besides > 0 else 0.0), a, b, first, besides


@compiled(error_model="numpy", inline="always")
def _on_run(j, start, k, cells):  # type: ignore[no-untyped-def]
    """Value number k of a run."""
    return np.rint((start + k * cells.step[j]) * cells.scale[j]) / cells.scale[j]


@compiled(error_model="numpy", inline="always")
def _place(j, start, value, cells):  # type: ignore[no-untyped-def]
    """Which number of a run a value is."""
    return np.int64(np.rint((value - start) / cells.step[j]))


@compiled(error_model="numpy")
def _past(j, start, k, a, b, q, own_here, cells, bounds):  # type: ignore[no-untyped-def]
    """Number k of a run's values, counted without the forbidden ones and the query's own."""
    if bounds is not None:
        for t in range(bounds.banned_at[j], bounds.banned_at[j + 1]):
            v = bounds.banned[t]
            if own_here and q < v:
                k += k >= _place(j, start, q, cells)
                own_here = False
            place = _place(j, start, v, cells)
            if a <= v <= b and _on_run(j, start, place, cells) == v:
                k += k >= place
                own_here = own_here and q != v
    if own_here:
        k += k >= _place(j, start, q, cells)
    return k


@compiled(error_model="numpy", inline="always")
def _is_listed(value, points):  # type: ignore[no-untyped-def]
    k = np.searchsorted(points, value)
    return k < len(points) and points[k] == value


@compiled(error_model="numpy", inline="always")
def _dense(j, number, width, bounds):  # type: ignore[no-untyped-def]
    """The share of a stretch that some of a feature's points stand for, each for the mean distance between two."""
    if number <= 0:
        return 0.0
    a, b = bounds.point_at[j], bounds.point_at[j + 1]
    spacing = (bounds.points[b - 1] - bounds.points[a]) / max(b - a - 1, 1)
    return min(1.0, number * spacing / width) if spacing > 0.0 and width > 0.0 else 1.0


@compiled(error_model="numpy", inline="always")
def value(i, j, cell, a, b, first, number, u, cells, asked, bounds):  # type: ignore[no-untyped-def]
    """A value of the allowed part of a cell, never the query's own."""
    at = cells.offset[j] + cell
    count, start = cells.count[at], cells.low[at]
    if np.isnan(start):
        return start
    q = asked.query[i, j]
    mine = cell == asked.own[i, j] and a <= q <= b
    k = first + min(np.int64(u * number), number - 1)
    if bounds is not None:  # noqa: SIM102
        if bounds.pointed[j] and not bounds.level[j]:
            listed = bounds.points[first : first + number + 1]
            return bounds.points[k + (mine and _is_listed(q, listed) and bounds.points[k] >= q)]
    if count == 1:
        return start
    if count == 0:
        return min(a + u * (b - a), b)
    k = _past(j, start, k, a, b, q, mine and asked.on_grid[i, j], cells, bounds)
    return _on_run(j, start, k, cells)


# -- limits that depend on the features before ----------------------------------------------------------------------


@compiled(error_model="numpy", inline="always")
def _span(i, k, j, row, locked, cells, asked, bounds, rules):  # type: ignore[no-untyped-def]
    """Between which values feature k ends, as known when j is drawn, and whether it may (1) or will (2) be missing."""
    drawn = cells.rank[k] < cells.rank[j]
    if drawn or (locked and bounds.may_keep[i, k]):
        value = row[k] if drawn else asked.query[i, k]
        if np.isnan(value) or value >= rules.ranks[k]:
            return 0.0, 0.0, 2
        return value, value, 0
    if np.isnan(rules.least[i, k]):
        return 0.0, 0.0, 2
    return rules.least[i, k], rules.most[i, k], np.int64(rules.may_miss[i, k])


@compiled(error_model="numpy", inline="always")
def _others(i, literal, j, row, locked, cells, asked, bounds, rules):  # type: ignore[no-untyped-def]
    """The least and greatest sum of a linear literal without feature j, and whether one may or will be missing."""
    low = high = rules.constant[literal]
    missing = 0
    for k in range(rules.coefficients.shape[1]):
        weight = rules.coefficients[literal, k]
        if weight == 0.0 or k == j:
            continue
        least, most, absent = _span(i, k, j, row, locked, cells, asked, bounds, rules)
        missing = max(missing, absent)
        low += weight * (least if weight > 0.0 else most)
        high += weight * (most if weight > 0.0 else least)
    return low, high, missing


@compiled(error_model="numpy")
def _level_possible(i, literal, j, row, locked, cells, asked, bounds, rules):  # type: ignore[no-untyped-def]
    """Whether a literal about another feature's levels may come true."""
    k = rules.feature[literal]
    drawn = cells.rank[k] < cells.rank[j]
    if drawn or ((locked or asked.stuck[i, k]) and bounds.may_keep[i, k]):
        return rules.levels[literal, np.int64(row[k] if drawn else asked.query[i, k])]
    for c in range(cells.offset[k + 1] - cells.offset[k]):
        here = c == asked.own[i, k]
        if rules.levels[literal, c] and (bounds.may_keep[i, k] if here else bounds.open[i, cells.offset[k] + c]):
            return True
    return False


@compiled(error_model="numpy")
def _may_hold(op, if_missing, low, high, missing):  # type: ignore[no-untyped-def]
    """Whether an expression between `low` and `high` may compare so with 0."""
    if missing == 2 or (missing == 1 and if_missing):
        return if_missing
    if op == EQUAL:
        return low <= SLACK and high >= -SLACK
    if op == UNEQUAL:
        return not (low == 0.0 and high == 0.0)
    return low < 0.0 if op == BELOW else low <= SLACK


@compiled(error_model="numpy")
def _interval(op, if_missing, weight, low, high, missing):  # type: ignore[no-untyped-def]
    """Between which values a number times `weight`, plus something between `low` and `high`, compares so with 0."""
    if missing == 2:
        return (-np.inf, np.inf) if if_missing else (np.inf, -np.inf)
    if (missing == 1 and if_missing) or op == UNEQUAL:
        return -np.inf, np.inf
    most = -low / weight
    least = -high / weight if op == EQUAL else -np.inf * weight
    if op == BELOW:
        # By more than the room for rounding, or what is kept would count as below itself.
        most -= np.sign(weight) * 4.0 * SLACK * max(1.0, abs(most))
    return min(least, most), max(least, most)


@compiled(error_model="numpy")
def _narrow(i, j, row, locked, cells, asked, bounds, rules, fits):  # type: ignore[no-untyped-def]
    """Between which values the rules let number j lie, and if it may be missing; for levels, in `fits`, which may be.

    A clause that a literal about other features may still make true says nothing of j.
    """
    low, high, missing = -np.inf, np.inf, True
    fits[:] = True
    for c in range(rules.first[i], rules.last[i]):
        if not rules.touches[c, j]:
            continue
        least, most, absent, loose = np.inf, -np.inf, False, False
        for literal in range(rules.start[c], rules.start[c + 1]):
            sort, if_missing, about = rules.sort[literal], rules.if_missing[literal], rules.feature[literal] == j
            if sort == LINEAR:
                op, weight = rules.op[literal], rules.coefficients[literal, j]
                below, above, gone = _others(i, literal, j, row, locked, cells, asked, bounds, rules)
                if weight != 0.0:
                    a, b = _interval(op, if_missing, weight, below, above, gone)
                    least, most, absent = min(least, a), max(most, b), absent or if_missing
                else:
                    loose = loose or _may_hold(op, if_missing, below, above, gone)
            elif sort == LEVELS:
                loose = loose or (
                    not about and _level_possible(i, literal, j, row, locked, cells, asked, bounds, rules)
                )
            elif sort == MISSING and about:
                absent = absent or if_missing
                if not if_missing:
                    least, most = -np.inf, np.inf
            elif sort == MISSING:
                _, _, gone = _span(i, rules.feature[literal], j, row, locked, cells, asked, bounds, rules)
                loose = loose or (gone > 0 if if_missing else gone < 2)
            else:
                loose = True
        if not loose:
            low, high, missing = max(low, least), min(high, most), missing and absent
            _fit_levels(c, j, least, most, absent, rules, fits)
    return low, high, missing


@compiled(error_model="numpy")
def _fit_levels(c, j, least, most, absent, rules, fits):  # type: ignore[no-untyped-def]
    """Rule out the levels that no literal of a clause names, and whose rank is not between the ends."""
    for code in range(rules.levels.shape[1]):
        named = absent if code >= rules.ranks[j] else least - SLACK <= code <= most + SLACK
        for literal in range(rules.start[c], rules.start[c + 1]):
            named = named or (rules.feature[literal] == j and rules.levels[literal, code])
        fits[code] = fits[code] and named


@compiled(error_model="numpy", inline="always")
def is_spent(i, j, used, spent, bounds):  # type: ignore[no-untyped-def]
    """Whether a draw can't afford to change feature j."""
    to_spend = bounds.most_cost - spent - bounds.price[i, j] - bounds.fixed[j]
    return bounds.most_changes - used - bounds.needed[i, j] - bounds.reserved[i, j] < 1 or to_spend < -0.5 * SLACK


@compiled(error_model="numpy")
def depends(j, bounds, rules):  # type: ignore[no-untyped-def]
    """Whether what feature j may change to depends on the features before it."""
    if rules is not None:  # noqa: SIM102
        if rules.touched[j]:
            return True
    return bounds.unit[j] > 0.0 and np.isfinite(bounds.most_cost)


@compiled(error_model="numpy")
def changes(i, j, n_states, cells, asked, bounds, share):  # type: ignore[no-untyped-def]
    """The share of each state that is allowed whatever was drawn before, in `share`."""
    own, level, start = asked.own[i, j], bounds.level[j], cells.offset[j]
    share[:n_states] = 0.0
    share[0] = 1.0 if bounds.may_keep[i, j] else 0.0
    for cell in range(n_states - 1):
        if not bounds.open[i, start + cell] or (cell == own and asked.alone[i, j]):
            continue
        share[cell + 1] = 1.0
        if not level:
            share[cell + 1] = part(i, j, cell, bounds.low[i, j], bounds.high[i, j], cells, asked, bounds)[0]


@compiled(error_model="numpy")
def _restrict(i, j, n_states, low, high, missing, fits, cells, asked, bounds, share):  # type: ignore[no-untyped-def]
    """Take from the shares of changed states what lies beyond the ends, is missing or does not fit."""
    level, lows, highs, start = bounds.level[j], cells.low, cells.high, cells.offset[j]
    for cell in range(n_states - 1):
        if share[cell + 1] == 0.0:
            continue
        least, most = lows[start + cell], highs[start + cell]
        if level:
            gone = not fits[cell]
        elif np.isnan(least):
            gone = not missing
        else:
            gone = most < low or least > high
        if gone:
            share[cell + 1] = 0.0
        elif not level and (least < low or most > high):
            share[cell + 1] = part(i, j, cell, low, high, cells, asked, bounds)[0]


@compiled(error_model="numpy")
def weigh(i, j, n_states, row, used, spent, cells, asked, bounds, rules, fits, share):  # type: ignore[no-untyped-def]
    """Narrow the shares of `changes` to what was drawn so far; returns the ends for a changed number."""
    q = asked.query[i, j]
    left = bounds.most_changes - used - bounds.needed[i, j]
    to_spend = bounds.most_cost - spent - bounds.price[i, j] - bounds.fixed[j]
    low, high, missing = bounds.low[i, j], bounds.high[i, j], True
    stays = bounds.may_keep[i, j]
    if rules is not None:
        for changed in range(2):
            # What later features may be depends on whether this one's change is the last one.
            least, most, absent = _narrow(i, j, row, left <= changed, cells, asked, bounds, rules, fits)
            if changed:
                low, high, missing = max(low, least), min(high, most), absent
            elif bounds.level[j]:
                stays = stays and fits[asked.own[i, j]]
            else:
                room = SLACK * max(1.0, abs(q))
                stays = stays and (absent if np.isnan(q) else least - room <= q <= most + room)
    if bounds.unit[j] > 0.0 and np.isfinite(to_spend):
        # With room for rounding, or a value that costs all that is left would be out of reach.
        reach = (to_spend + 0.5 * SLACK) / bounds.unit[j]
        missing = missing and reach >= 1.0 - SLACK
        if not np.isnan(q):
            low, high = max(low, q - reach), min(high, q + reach)
        elif reach < 1.0 - SLACK:
            high = -np.inf
    _restrict(i, j, n_states, low, high, missing, fits, cells, asked, bounds, share)
    share[0] = 1.0 if stays else 0.0
    return low, high


@compiled(error_model="numpy")
def no_dead_end(share, n_states, closed):  # type: ignore[no-untyped-def]
    """Rule keeping out where it is closed; but where nothing is left, keep: such a draw is dropped when finished."""
    if closed:
        share[0] = 0.0
    for s in range(n_states):
        if share[s] > 0.0:
            return
    share[0] = 1.0


@compiled(error_model="numpy", inline="always")
def cost(value, query, fixed, unit):  # type: ignore[no-untyped-def]
    """What a changed feature costs."""
    apart = abs(value - query)
    return fixed + unit * (1.0 if np.isnan(apart) else apart)
