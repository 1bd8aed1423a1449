"""Pictures of one query's counterfactuals: the changes as a grid of tiles, and the map of two-feature data."""

from __future__ import annotations

__all__ = ["plot_changes", "plot_map", "to_png"]

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dicoflex.table.schema import Feature, Kind, Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIGNS = {"up": "▲", "down": "▼", "other": "●"}
MARKS = {True: "✓", False: "✗", None: "–"}
# Blue, orange and violet of similar depth are told apart by colour-blind readers; the signs say the same again.
COLOURS = {"up": (0.0, 0.376, 0.663), "down": (0.839, 0.451, 0.0), "other": (0.667, 0.565, 0.773)}
MARK_COLOURS = {True: "#1d7a46", False: "#b3261e", None: "#8a93a0"}
LEGEND = (("up", "higher"), ("down", "lower"), ("other", "another value"))
LEGEND_NOTE = "stronger colour: larger step"
INK, QUIET, SOFT, BAR = "#1b2330", "#6b7583", "#f1f3f6", "#2a7f72"

TEXT_SIZE, TITLE_SIZE = 9.0, 11.0
# Bold letters are wider than the regular ones that are measured.
TITLE_WIDENING = 1.2
TILE_HEIGHT = 0.36
GAP = 0.05
MARGIN = 0.2
SECTION_GAP = 0.14
MIN_TILE, MAX_TEXT = 0.62, 22

MAP_STEPS = 160
MAP_DEPTH = 8.0
MAP_LEVELS, MAP_DARKEST = 16, 0.7
MAP_TOP_PERCENTILE = 99.0


def plot_changes(card: Mapping[str, Any], *, most: int = 12) -> Figure:
    """A grid of one query's changes: a line per changed feature, a column per counterfactual, at most `most`.

    The first column holds the query's values. Tiles are blue where a value rises, orange where it falls, violet
    where it is replaced; the larger the step, the stronger the colour. `card` is one of `report.cards`.
    """
    answers = card["answers"][:most]
    features = [name for name in card["features"] if any(name in answer["changes"] for answer in answers)]
    if not features:
        return _empty(card)
    values = {value["feature"]: value["value"] for value in card["query"]}
    columns = [
        [_short(values[name]) for name in features],
        *([_tile_text(a, name) for name in features] for a in answers),
    ]
    edges = _edges([_short(name) for name in features], columns)
    trust = _trust_lines(answers)
    lines = len(features) + len(trust)
    height = 2 * MARGIN + (lines + 2) * TILE_HEIGHT + (lines - 1) * GAP + 2 * SECTION_GAP + TILE_HEIGHT
    title = _heading(card) + (f"  (first {most} of {len(card['answers'])})" if len(card["answers"]) > most else "")
    width = MARGIN + max(edges[-1], MARGIN + _legend_width(), MARGIN + TITLE_WIDENING * _width(title, TITLE_SIZE))
    figure, axes = _canvas(width, height)
    y = _draw_head(axes, title, answers, edges, top=height - MARGIN)
    y = _draw_tiles(axes, columns, features, answers, edges, y)
    y = _draw_trust(axes, trust, answers, edges, y - SECTION_GAP)
    _draw_legend(axes, y - SECTION_GAP)
    return figure


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
    figure = _figure(6.4, 5.2)
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


def to_png(figure: Figure, *, dpi: int = 130) -> bytes:
    """The figure as a PNG file's bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def _figure(width: float, height: float) -> Figure:
    """A figure that pyplot does not know of; a notebook that has not loaded pyplot shows it all the same."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    figure._repr_png_ = partial(to_png, figure)  # type: ignore[attr-defined]
    return figure


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure whose axes are measured in inches from the lower left corner."""
    figure = _figure(width, height)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0.0, width)
    axes.set_ylim(0.0, height)
    return figure, axes


def _empty(card: Mapping[str, Any]) -> Figure:
    text = card["shortfall"] or "no counterfactual differs from the query"
    title = _heading(card)
    width = 2 * MARGIN + max(_width(text, TEXT_SIZE), TITLE_WIDENING * _width(title, TITLE_SIZE))
    _, axes = canvas = _canvas(width, 2 * MARGIN + 2 * TILE_HEIGHT)
    _write(axes, MARGIN, MARGIN + 1.5 * TILE_HEIGHT, title, size=TITLE_SIZE, weight="bold")
    _write(axes, MARGIN, MARGIN + 0.5 * TILE_HEIGHT, text, colour=QUIET)
    return canvas[0]


def _heading(card: Mapping[str, Any]) -> str:
    return f"row {card['heading']} → {card['target']}"


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _tile_text(answer: Mapping[str, Any], name: str) -> str:
    change = answer["changes"].get(name)
    return "" if change is None else f"{SIGNS[change['direction']]} {_short(change['after'])}"


def _width(text: str, size: float) -> float:
    """The width of a line of text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)[0] / 72.0


def _edges(names: Sequence[str], columns: Sequence[Sequence[str]]) -> list[float]:
    """The right edges in inches of the names, of the query's column and of each counterfactual's."""
    edges = [MARGIN + max(_width(name, TEXT_SIZE) for name in [*names, "how likely"]) + 0.12]
    for texts in columns:
        edges.append(edges[-1] + max(MIN_TILE, max(_width(text, TEXT_SIZE) for text in texts) * 1.06 + 0.24) + GAP)
    return edges


def _write(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    *,
    align: str = "left",
    colour: Any = INK,
    size: float = TEXT_SIZE,
    weight: str = "normal",
) -> None:
    axes.text(
        x, y, text, ha=align, va="center_baseline", color=colour, fontsize=size, fontweight=weight, parse_math=False
    )


def _box(axes: Axes, left: float, right: float, y: float, colour: Any, height: float = TILE_HEIGHT) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = f"round,pad=0,rounding_size={min(0.06, height / 2)}"
    axes.add_patch(FancyBboxPatch((left, y - height / 2), right - left, height, boxstyle=style, fc=colour, ec="none"))


def _draw_head(
    axes: Axes, title: str, answers: Sequence[Mapping[str, Any]], edges: Sequence[float], *, top: float
) -> float:
    """The title and the names of the columns; returns the y below them."""
    _write(axes, MARGIN, top - TILE_HEIGHT / 2, title, size=TITLE_SIZE, weight="bold")
    y = top - 1.5 * TILE_HEIGHT
    for i, name in enumerate(["query", *(f"cf {answer['cf']}" for answer in answers)]):
        _write(axes, (edges[i] + GAP + edges[i + 1]) / 2, y, name, align="center", colour=QUIET)
    return top - 2 * TILE_HEIGHT


def _draw_tiles(
    axes: Axes,
    columns: Sequence[Sequence[str]],
    features: Sequence[str],
    answers: Sequence[Mapping[str, Any]],
    edges: Sequence[float],
    top: float,
) -> float:
    """A line of tiles per feature; returns the y below them."""
    for line, name in enumerate(features):
        y = top - line * (TILE_HEIGHT + GAP) - TILE_HEIGHT / 2
        _write(axes, edges[0] - 0.12 + GAP, y, _short(name), align="right", weight="normal")
        _write(axes, (edges[0] + GAP + edges[1]) / 2, y, columns[0][line], align="center")
        for i, answer in enumerate(answers, start=1):
            colour = _tile_colour(answer["changes"].get(name))
            _box(axes, edges[i] + GAP, edges[i + 1], y, colour)
            text = columns[i][line] or "·"
            ink = _ink(colour) if columns[i][line] else QUIET
            _write(axes, (edges[i] + GAP + edges[i + 1]) / 2, y, text, align="center", colour=ink)
    return top - len(features) * (TILE_HEIGHT + GAP) + GAP


def _tile_colour(change: Mapping[str, Any] | None) -> Any:
    """The direction's colour, mixed with white for small steps; the root keeps small steps visible."""
    if change is None:
        return SOFT
    strength = 0.25 + 0.75 * change["size"] ** 0.5 if change["direction"] != "other" else 0.6
    return tuple(1.0 - strength * (1.0 - part) for part in COLOURS[change["direction"]])


def _ink(colour: tuple[float, float, float]) -> str:
    """Dark or white text, whichever has the better contrast on `colour`."""
    red, green, blue = (part**2.2 for part in colour)
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.215 else "white"


def _trust_lines(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["how likely"] if any(answer["likely"] is not None for answer in answers) else []
    if any(answer["probability"] is not None for answer in answers):
        lines.append("confidence")
    return [*lines, "accepted"]


def _draw_trust(
    axes: Axes, lines: Sequence[str], answers: Sequence[Mapping[str, Any]], edges: Sequence[float], top: float
) -> float:
    """How likely each counterfactual is and whether it was accepted; returns the y below."""
    for line, name in enumerate(lines):
        y = top - line * (TILE_HEIGHT + GAP) - TILE_HEIGHT / 2
        _write(axes, edges[0] - 0.12 + GAP, y, name, align="right", colour=QUIET)
        for i, answer in enumerate(answers, start=1):
            left, right = edges[i] + GAP, edges[i + 1]
            if name == "how likely":
                _draw_bar(axes, left, right, y, answer["likely"])
            elif name == "confidence":
                _write(axes, (left + right) / 2, y, answer["confidence"], align="center")
            else:
                valid = answer["valid"]
                _write(
                    axes, (left + right) / 2, y, MARKS[valid], align="center", colour=MARK_COLOURS[valid], weight="bold"
                )
    return top - len(lines) * (TILE_HEIGHT + GAP) + GAP


def _draw_bar(axes: Axes, left: float, right: float, y: float, share: float | None) -> None:
    if share is None:
        _write(axes, (left + right) / 2, y, "–", align="center", colour=QUIET)
        return
    _box(axes, left, right, y, "#e1e5eb", height=0.09)
    _box(axes, left, left + max(share * (right - left), 0.09), y, BAR, height=0.09)


def _legend_width() -> float:
    return sum(_width(f"{SIGNS[key]} {word}", 8.0) + 0.5 for key, word in LEGEND) + _width(LEGEND_NOTE, 8.0)


def _draw_legend(axes: Axes, top: float) -> None:
    x, y = MARGIN, top - TILE_HEIGHT / 2
    for key, word in LEGEND:
        text = f"{SIGNS[key]} {word}"
        _box(axes, x, x + 0.16, y, COLOURS[key], height=0.16)
        _write(axes, x + 0.22, y, text, colour=QUIET, size=8.0)
        x += _width(text, 8.0) + 0.5
    _write(axes, x, y, LEGEND_NOTE, colour=QUIET, size=8.0)


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
