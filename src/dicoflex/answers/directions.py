"""Directions that the model itself suggests: features of which more never speaks against the target."""

from __future__ import annotations

__all__ = ["suggested_for"]

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.aiming import score_of
from dicoflex.answers.tasks import goal_of, labels_wanted
from dicoflex.constraints import Constraints
from dicoflex.errors import QueryError
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature, Kind
from dicoflex.targets import Interval

Floats = NDArray[np.float64]
MOST_ROWS, MOST_VALUES = 200, 9
"""Along so many values of a feature, in so many rows, the model is followed."""
MOST_AGAINST = 0.05
"""The share of all movement that may go the other way: surrogates are not smooth to the last digit."""
LEAST_MOVE = 0.02
"""How far the model moves at least along a feature, on average over rows, from its least to its greatest."""


def suggested_for(model: Model, rows: pd.DataFrame, target: Any) -> Constraints:
    """What the columns suggest, and the directions that the model does; see `Explainer.suggested`."""
    model.encoding.check_columns(rows)
    _, values = model.encoding.conform(rows)
    named = model.schema.suggested(rows)
    taken = {*named.frozen, *named.increase, *(name for _, name in named.features() if name in named.ranges)}
    found = {name: up for name, up in _directions(model, values, target).items() if name not in taken}
    towards = Constraints(
        increase=[name for name, up in found.items() if up], decrease=[name for name, up in found.items() if not up]
    )
    return named.merge(towards)


def _directions(model: Model, values: Values, target: Any) -> dict[Any, bool]:
    """By feature, whether more of it (True) or less (False) favours the target, wherever the model is followed.

    Only numbers and ordinals along which the model goes one way in nearly all rows are listed.
    """
    favour = _favour(model, target)
    some = values[np.linspace(0, len(values) - 1, min(len(values), MOST_ROWS)).astype(int)]
    found: dict[Any, bool] = {}
    for j, feature in enumerate(model.schema.features):
        grid = _grid(feature, values[:, j])
        if len(grid) < 2:
            continue
        moved = np.repeat(some, len(grid), axis=0)
        moved[:, j] = np.tile(grid, len(some))
        steps = np.diff(favour(moved).reshape(len(some), len(grid)), axis=1)
        up, down = steps.clip(min=0).sum(), -steps.clip(max=0).sum()
        if (up + down) / len(some) >= LEAST_MOVE and min(up, down) <= MOST_AGAINST * (up + down):
            found[feature.name] = bool(up > down)
    return found


def _grid(feature: Feature, column: Floats) -> Floats:
    """Values to follow the model along: of a number, quantiles of what was measured."""
    if feature.kind == Kind.ORDINAL:
        return np.arange(len(feature.levels), dtype=float)
    if not feature.is_number:
        return np.zeros(0)
    measured = column[~np.isnan(column) & ~np.isin(column, feature.special)]
    if len(measured) == 0:
        return np.zeros(0)
    picked: Floats = np.unique(np.quantile(measured, np.linspace(0, 1, MOST_VALUES), method="nearest"))
    return picked


def _favour(model: Model, target: Any) -> Callable[[Values], Floats]:
    """How far the model goes towards a target, for encoded rows."""
    if model.score is None:
        if target is None:
            raise QueryError(f"suggested needs the target that is wanted; choose from {model.labels}")
        wanted = [model.labels.index(label) for label in labels_wanted(model, target, ())]
        return lambda values: model.surrogate.probabilities(values)[:, wanted].sum(axis=1)
    goal = goal_of(target)
    low, high = (goal if isinstance(goal, Interval) else goal.from_(0.0)).ends
    spread = float(model.score.knots[-1] - model.score.knots[0]) or 1.0
    if np.isfinite(low) and np.isfinite(high):
        raise QueryError(f"target {goal} lies between two scores, so that no direction leads to it; give at_least")
    sign = (1.0 if np.isfinite(low) else -1.0) / spread
    return lambda values: sign * score_of(model, values)
