"""The map of two-feature data, with the density."""

from __future__ import annotations

__all__ = ["plot_map"]

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dicoflex.table.feature import Feature, Kind
from dicoflex.table.schema import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from dicoflex.views.canvas import INK, new_figure
from dicoflex.views.tiles import TITLE_SIZE

MAP_STEPS = 160
MAP_DEPTH = 8.0
MAP_LEVELS, MAP_DARKEST = 16, 0.7
MAP_TOP_PERCENTILE = 99.0


def plot_map(
    query: pd.DataFrame,
    frame: pd.DataFrame,
    *,
    schema: Schema,
    title: str = "",
    density: Callable[[pd.DataFrame], np.ndarray] | None = None,
) -> Figure:
    """A map of two number features: the query, its counterfactuals, and where the model expects them.

    query: one row; frame: its counterfactuals; density: the log density of rows, drawn as the background.
    """
    figure = new_figure(6.4, 5.2)
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    if density is not None:
        _draw_density(figure, axes, schema, density)
    _draw_points(axes, query, frame)
    across, up = schema.features
    axes.set_xlabel(str(across.name), parse_math=False)
    axes.set_ylabel(str(up.name), parse_math=False)
    points = np.vstack([_places(query), _places(frame)])
    axes.set_xlim(*_reach(across, points[:, 0]))
    axes.set_ylim(*_reach(up, points[:, 1]))
    axes.set_title(title, loc="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK, pad=10, parse_math=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_density(figure: Figure, axes: Axes, schema: Schema, density: Callable[[pd.DataFrame], np.ndarray]) -> None:
    """The log density over the whole map as filled contours, cut off where it is too low to matter."""
    from matplotlib import colormaps

    across, up = (_steps(feature) for feature in schema.features)
    if len(across) < 2 or len(up) < 2:
        return
    grid = np.meshgrid(across, up)
    rows = pd.DataFrame(
        {
            f.name: pd.Series(values.ravel(), dtype=pd.api.types.pandas_dtype(f.dtype))
            for f, values in zip(schema.features, grid, strict=True)
        }
    )
    height = np.asarray(density(rows), dtype=float).reshape(grid[0].shape)
    known = height[np.isfinite(height)]
    if len(known) == 0:
        return
    # Single cells, such as those of repeated values, can be far denser than all around: they don't set the scale.
    top = float(np.percentile(known, MAP_TOP_PERCENTILE))
    height = np.clip(np.nan_to_num(height - top, nan=-MAP_DEPTH, neginf=-MAP_DEPTH, posinf=0.0), -MAP_DEPTH, 0.0)
    colours = colormaps["Blues"](np.linspace(0.0, MAP_DARKEST, MAP_LEVELS))
    levels = np.linspace(-MAP_DEPTH, 0.0, MAP_LEVELS + 1)
    axes.set_facecolor(colours[0])
    filled = axes.contourf(across, up, height, levels=levels, colors=colours)
    bar = figure.colorbar(filled, ax=axes, pad=0.02, ticks=[-MAP_DEPTH, 0.0])
    bar.ax.set_yticklabels(["rare", "likely"])
    bar.outline.set_visible(False)


def _reach(feature: Feature, points: np.ndarray) -> tuple[float, float]:
    """The feature's limits, widened where a point lies outside or where both are the same."""
    known = [float(feature.minimum or 0.0), float(feature.maximum or 0.0), *points]
    low, high = min(known), max(known)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _steps(feature: Feature) -> np.ndarray:
    """Values to lay the map's grid on; whole numbers for an integer feature."""
    steps = np.linspace(float(feature.minimum or 0.0), float(feature.maximum or 0.0), MAP_STEPS)
    return np.unique(np.round(steps)) if feature.kind is Kind.INTEGER else np.unique(steps)


def _draw_points(axes: Axes, query: pd.DataFrame, frame: pd.DataFrame) -> None:
    """The query as a star and its counterfactuals as dots; rows with a missing value have no place."""
    start, ends = _places(query), _places(frame)
    for x, y in ends if len(start) else []:
        axes.plot([start[0, 0], x], [start[0, 1], y], color="#333333", linewidth=0.7, alpha=0.45, zorder=2)
    whole: dict[str, Any] = {"edgecolor": "white", "clip_on": False}
    axes.scatter(ends[:, 0], ends[:, 1], s=46, color="#D55E00", zorder=3, label="counterfactuals", **whole)
    axes.scatter(start[:, 0], start[:, 1], s=210, marker="*", color="black", zorder=4, label="query", **whole)


def _places(frame: pd.DataFrame) -> np.ndarray:
    places = np.column_stack([frame.iloc[:, j].to_numpy(dtype=float, na_value=np.nan) for j in range(2)])
    known: np.ndarray = places[~np.isnan(places).any(axis=1)]
    return known
