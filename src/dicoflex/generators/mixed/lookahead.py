"""The limits of one call as the core's sampler reads them: what part of each state a step may draw.

Everything here depends on a query and on the features drawn so far, never on the network.
"""

from __future__ import annotations

__all__ = ["limits_of"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.generators.mixed.cells import Grid
from dicoflex.limits.limits import Limits
from dicoflex.limits.once import Arrays
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
