"""Ancestral sampling of the mixed density by the core: one feature after the other, many draws at a time.

Draws of one query that agree so far share their work: they are one *group* until their states part. All arithmetic
of a draw depends on its own query, key and number alone, so batching and threads can't change it.

Under limits every step is restricted to what is allowed given the features before it: each state's mass is scaled
by the allowed share of its cell (0 where none of it is), and a value is drawn from the allowed part alone. Budgets
keep back what features that have to change will need, and rules look ahead to what later features may still be.
"""

from __future__ import annotations

__all__ = ["density_of", "draw", "score"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Floats
from dicoflex.generators.mixed.cells import Grid, Located
from dicoflex.generators.mixed.weights import Conditioning, Weights
from dicoflex.limits.limits import Limits
from dicoflex.limits.once import Arrays
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Values


def limits_of(
    queries: _core.Queries, grid: Grid, limits: Limits, query: Values, stuck: NDArray[np.bool_]
) -> _core.Limits:
    """The limits by cells; `stuck` features can't change."""

    def make(some: Limits, at: NDArray[np.int64]) -> Arrays:
        return _of_queries(grid, some, query[at], stuck[at])

    open_, needed, reserved, price = limits.once(grid, make)
    points, point_at, pointed = limits.plan.listed
    banned, banned_at = limits.plan.ruled_out
    return _core.Limits(
        queries,
        _rules_of(limits, query),
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


def _rules_of(limits: Limits, query: Values) -> _core.Rules | None:
    """The clauses of the limits' rules, None where there are none."""
    if len(limits.clauses) == 0:
        return None
    least, most, may_miss = limits.domain(query)
    c = limits.clauses
    return _core.Rules(
        least=least,
        most=most,
        may_miss=may_miss,
        first=c.sets[limits.clause_set],
        last=c.sets[limits.clause_set + 1],
        touched=np.asarray(c.touches.any(axis=0)),
        ranks=c.ranks,
        start=c.start,
        sort=c.sort,
        op=c.op,
        coefficients=c.coefficients,
        constant=c.constant,
        feature=c.feature,
        levels=c.levels,
        if_missing=c.if_missing,
        touches=c.touches,
    )


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


def density_of(weights: Weights, grid: Grid) -> _core.Density:
    """The network's weights and the grid, laid out for the core.

    Each feature's last layer stands alone, with a column per state and, up to a multiple of `BLOCK`, some for none: the
    sums over states go block by block.
    """
    widths = -(-(grid.size + 1) // _core.BLOCK) * _core.BLOCK
    outer = [
        np.pad(weights["outer"][at, :, : size + 1], ((0, 0), (0, width - size - 1)))
        for at, size, width in zip(grid.rank, grid.size, widths, strict=True)
    ]
    outer_bias = np.zeros((len(widths), widths.max()), dtype=np.float32)
    outer_bias[:, : weights["outer_bias"].shape[1]] = weights["outer_bias"][grid.rank]
    return _core.Density(
        offset=grid.offset,
        slope_at=grid.slope_at,
        low=grid.low,
        high=grid.high,
        count=grid.count,
        step=grid.step,
        scale=grid.spacing[0],
        order=grid.order,
        rank=grid.rank,
        query=weights["query"],
        query_slope=weights["query_slope"],
        settings=weights["settings"],
        trunk=np.ascontiguousarray(weights["trunk.weight"].T),
        trunk_bias=weights["trunk.bias"],
        prefix=weights["prefix"],
        prefix_slope=weights["prefix_slope"],
        prefix_kept=weights["prefix_kept"],
        inner=weights["inner"][grid.rank],
        inner_bias=weights["inner_bias"][grid.rank],
        outer=np.concatenate([layer.ravel() for layer in outer]),
        outer_at=np.cumsum([0, *(layer.size for layer in outer)]).astype(np.int64),
        outer_bias=outer_bias,
    )


def draw(
    grid: Grid,
    density: _core.Density,
    asked: Conditioning,
    n: int,
    *,
    keys: NDArray[np.uint64],
    first: int | NDArray[np.int64],
    limits: Limits | None,
) -> tuple[Values, Floats]:
    """`n` draws for each query (queries, n, d), and their log densities (queries, n)."""
    query = asked.own.values
    out, log_density = np.empty((len(query), n, grid.n_features)), np.zeros((len(query), n))
    if out.size == 0:
        return out, log_density
    queries = _queries(density, asked)
    within = None if limits is None else limits_of(queries, grid, limits, query, asked.stuck)
    start = np.empty(len(out), dtype=np.uint64)
    start[:] = first

    def work(low: int, high: int) -> None:
        density.draw(queries, within, keys=keys, first=start, low=low, high=high, out=out, log_density=log_density)

    in_threads(work, len(out))
    return out, log_density


def score(
    density: _core.Density, asked: Conditioning, of: NDArray[np.int64], answers: Located, kept: NDArray[np.bool_]
) -> Floats:
    """The log probability of the states of given rows (n,): the sampler's arithmetic, so the two agree.

    of: the query of each row. What rows of one query begin with alike is worked out once, where they stand together.
    """
    out = np.zeros(len(kept))
    if len(out):
        queries, cell, where = _queries(density, asked), answers.cell, answers.place

        def work(low: int, high: int) -> None:
            density.score(queries, of=of, cell=cell, where=where, kept=kept, low=low, high=high, out=out)

        in_threads(work, len(out), least=512)
    return out


def _queries(density: _core.Density, asked: Conditioning) -> _core.Queries:
    own = asked.own
    return _core.Queries(
        density,
        values=own.values,
        settings=asked.settings,
        stuck=asked.stuck,
        own=own.cell,
        where=own.place,
        alone=own.alone,
        exact=own.exact,
    )
