"""The map: a plane of two numbers with the row, its counterfactuals, and what the model says around them."""

from __future__ import annotations

__all__ = ["map"]

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dicoflex.errors import QueryError, named
from dicoflex.plots.canvas import INK, QUIET, TEXT_SIZE, axes_of, plain_axes, titled
from dicoflex.runtime.printable import counted
from dicoflex.table.feature import Feature, Kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dicoflex.answers.counterfactuals import Counterfactuals

STEPS = 140
DEPTH, LEVELS, DARKEST = 8.0, 16, 0.7
TOP_PERCENTILE = 99.0
BACKGROUNDS = ("density", "decision")

Reach = Sequence[tuple[float, float]]


def map(
    result: Counterfactuals,
    row: Any = None,
    *,
    position: int | None = None,
    features: Sequence[Any] | None = None,
    background: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Where one row and its counterfactuals lie in the plane of two numbers.

    The line is the decision boundary of the surrogate, with the row's other features as they are. A counterfactual that
    changes other features as well is a hollow mark: the boundary in this plane is not its own.

    Parameters
    ----------
    result : Counterfactuals
        What `explain` returned.
    row : label, optional
        The row's index label; by default the first row.
    position : int, optional
        The row's place, where labels repeat.
    features : list of two features, optional
        The numbers across and up; by default the two that change most often.
    background : {"density", "decision"}, optional
        What is drawn behind: how likely the model finds each place as a counterfactual of the row, or how confident it
        is of the target there. By default the density where the data have these two features alone.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    QueryError
        If there are not two numbers to draw.

    Examples
    --------
    >>> from dicoflex import load, plots
    >>> from dicoflex.examples import EXAMPLES, rows_like
    >>> explainer = load(EXAMPLES[2])
    >>> cfs = explainer.explain(rows_like(explainer.schema_, 3), target="other", n=3, random_state=0)
    >>> ax = plots.map(cfs, row=1)
    """
    place = result._place(row, position)
    across, up = pair = _two(result, place, features)
    alone = len(result.schema) == 2
    background = background or ("density" if alone else "decision")
    if background not in BACKGROUNDS:
        raise QueryError(named("background", background, BACKGROUNDS))
    query = result.queries.iloc[[place]]
    which = np.flatnonzero(result.positions == place)
    start, ends = _places(query, pair), _places(result.frame.iloc[which], pair)
    inside = _only_these(result, which, pair)
    ax = axes_of(ax, 6.6, 5.0)
    reach = [_reach(f, np.append(start[:, k], ends[:, k]), near=not alone) for k, f in enumerate(pair)]
    _draw_background(ax, result, place, pair, reach, density=background == "density")
    _draw_points(ax, start, ends, inside)
    ax.set_xlim(*reach[0])
    ax.set_ylim(*reach[1])
    for axis, feature in ((ax.xaxis, across), (ax.yaxis, up)):
        axis.set_label_text(str(feature.name), parse_math=False)
        axis.set_major_formatter(lambda value, _: f"{value:,.6g}".replace("-", "−"))
    plain_axes(ax, left=True)
    ax.tick_params(axis="y", labelcolor=QUIET)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False, fontsize=TEXT_SIZE)
    target = result.targets[place] if place < len(result.targets) else None
    wanted = "another class" if target is None else str(target)
    titled(ax, f"Row {query.index[0]}: {counted(len(ends), 'counterfactual')} for {wanted}")
    return ax


def _two(result: Counterfactuals, place: int, names: Sequence[Any] | None) -> tuple[Feature, Feature]:
    """The numbers across and up."""
    if names is None:
        often = result.changed_cells[result.positions == place].sum(axis=0)
        numbers = [j for j, feature in enumerate(result.schema.features) if feature.is_number]
        chosen = sorted(sorted(numbers, key=lambda j: -often[j])[:2])
        names = [result.schema.names[j] for j in chosen]
    if len(names) != 2:
        raise QueryError(f"a map needs two numbers, and {len(names)} were given: pass features=[across, up]")
    across, up = (result.schema[name] for name in names)
    for feature in (across, up):
        if not feature.is_number:
            raise QueryError(f"a map needs two numbers, and {feature.name!r} is {feature.kind.value}")
    return across, up


def _only_these(result: Counterfactuals, which: np.ndarray, pair: tuple[Feature, Feature]) -> np.ndarray:
    """Which answers change nothing but the two features."""
    others = [j for j, feature in enumerate(result.schema.features) if feature not in pair]
    alone: np.ndarray = ~result.changed_cells[which][:, others].any(axis=1)
    return alone


def _draw_background(
    ax: Axes, result: Counterfactuals, place: int, pair: tuple[Feature, Feature], reach: Reach, *, density: bool
) -> None:
    rows, across, up = _grid(result, place, pair, reach)
    if rows is None:
        return
    shape = len(up), len(across)
    known = result.density_at(place) if density else None
    if known is not None:
        _draw_density(ax, across, up, np.asarray(known(rows), dtype=float).reshape(shape))
    if result.origin is None:
        return
    what_if = result.what_if(place)
    chances = what_if.probability(what_if.model.encoding.encode(rows)).reshape(shape)
    if not density:
        filled = ax.contourf(across, up, chances, levels=np.linspace(0, 1, 11), cmap="Blues", alpha=0.75)
        _bar(ax, filled, [0.0, 0.5, 1.0], ["0 %", "50 %", "100 %"], "confidence in the target")
    if chances.min() < what_if.needed < chances.max():
        ax.contour(across, up, chances, levels=[what_if.needed], colors=[INK], linewidths=1.2, linestyles="dashed")
        ax.plot([], [], color=INK, linewidth=1.2, linestyle="dashed", label="confidence needed")


def _grid(
    result: Counterfactuals, place: int, pair: tuple[Feature, Feature], reach: Reach
) -> tuple[pd.DataFrame | None, np.ndarray, np.ndarray]:
    """The row with every pair of values of the two features."""
    across, up = (_steps(feature, *ends) for feature, ends in zip(pair, reach, strict=True))
    if len(across) < 2 or len(up) < 2:
        return None, across, up
    grid = np.meshgrid(across, up)
    rows = result.queries.iloc[np.repeat(place, grid[0].size)].reset_index(drop=True)
    for feature, values in zip(pair, grid, strict=True):
        rows[feature.name] = pd.Series(values.ravel(), dtype=pd.api.types.pandas_dtype(feature.dtype))
    return rows, across, up


def _draw_density(ax: Axes, across: np.ndarray, up: np.ndarray, height: np.ndarray) -> None:
    """The log density as filled contours, cut off where it is too low to matter."""
    from matplotlib import colormaps

    known = height[np.isfinite(height)]
    if len(known) == 0:
        return
    # Single cells, such as those of repeated values, can be far denser than all around: they don't set the scale.
    top = float(np.percentile(known, TOP_PERCENTILE))
    height = np.clip(np.nan_to_num(height - top, nan=-DEPTH, neginf=-DEPTH, posinf=0.0), -DEPTH, 0.0)
    colours = colormaps["Blues"](np.linspace(0.0, DARKEST, LEVELS))
    filled = ax.contourf(across, up, height, levels=np.linspace(-DEPTH, 0.0, LEVELS + 1), colors=colours)
    _bar(ax, filled, [-DEPTH, 0.0], ["rare", "likely"], "")


def _bar(ax: Axes, filled: Any, ticks: Sequence[float], labels: Sequence[str], name: str) -> None:
    figure: Any = ax.get_figure(root=True)
    bar = figure.colorbar(filled, ax=ax, pad=0.02, ticks=ticks)
    bar.ax.set_yticklabels(labels, fontsize=TEXT_SIZE, color=QUIET)
    bar.ax.tick_params(length=0)
    bar.set_label(name, fontsize=TEXT_SIZE, color=QUIET)
    bar.outline.set_visible(False)


def _reach(feature: Feature, points: np.ndarray, *, near: bool) -> tuple[float, float]:
    """The feature's limits, widened where a point lies outside or where both are the same.

    near: only what is around the points, a fifth of the whole range at least.
    """
    low, high = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
    points = points[np.isfinite(points)]
    if near and len(points):
        room = 0.6 * max(float(np.ptp(points)), (high - low) / 12)
        low, high = max(low, float(points.min()) - room), min(high, float(points.max()) + room)
    low, high = min([low, *points]), max([high, *points])
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _steps(feature: Feature, low: float, high: float) -> np.ndarray:
    """Values to lay the map's grid on; whole numbers for an integer feature, and none that training never had."""
    steps = np.linspace(max(low, float(feature.minimum or 0.0)), min(high, float(feature.maximum or 0.0)), STEPS)
    return np.unique(np.round(steps)) if feature.kind is Kind.INTEGER else np.unique(steps)


def _draw_points(ax: Axes, start: np.ndarray, ends: np.ndarray, inside: np.ndarray) -> None:
    """The row as a star, its counterfactuals as dots; rows with a missing value have no place."""
    for x, y in ends if len(start) else []:
        ax.plot([start[0, 0], x], [start[0, 1], y], color=INK, linewidth=0.7, alpha=0.4, zorder=2)
    size: dict[str, Any] = {"s": 52, "zorder": 4, "clip_on": False}
    whole, hollow = ends[inside], ends[~inside]
    if len(whole):
        ax.scatter(*whole.T, color="#D55E00", edgecolor="white", label="counterfactuals", **size)
    if len(hollow):
        ax.scatter(
            *hollow.T, facecolor="white", edgecolor="#D55E00", linewidth=1.6, label="other features change, too", **size
        )
    ax.scatter(
        start[:, 0],
        start[:, 1],
        s=210,
        marker="*",
        color="black",
        edgecolor="white",
        zorder=5,
        label="now",
        clip_on=False,
    )


def _places(frame: pd.DataFrame, pair: tuple[Feature, Feature]) -> np.ndarray:
    """The values across and up; a missing value is drawn nowhere, as NaN."""
    found = [frame[feature.name].to_numpy(dtype=float, na_value=np.nan) for feature in pair]
    return np.column_stack(found)
