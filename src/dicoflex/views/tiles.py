"""The changes of one query as a grid of tiles."""

from __future__ import annotations

__all__ = ["TITLE_SIZE", "plot_changes"]

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from dicoflex.views.canvas import BAR, INK, MIN_TILE, QUIET, SOFT, new_figure, short

SIGNS = {"up": "▲", "down": "▼", "other": "●"}
MARKS = {True: "✓", False: "✗", None: "–"}
# Blue, orange and violet of similar depth are told apart by colour-blind readers; the signs say the same again.
COLOURS = {"up": (0.0, 0.376, 0.663), "down": (0.839, 0.451, 0.0), "other": (0.667, 0.565, 0.773)}
MARK_COLOURS = {True: "#1d7a46", False: "#b3261e", None: "#8a93a0"}
LEGEND = (("up", "higher"), ("down", "lower"), ("other", "another value"))
LEGEND_NOTE = "stronger colour: larger step"
LIKELY, USUAL = "how likely", "how usual"
TEXT_SIZE, TITLE_SIZE = 9.0, 11.0
# Bold letters are wider than the regular ones that are measured.
TITLE_WIDENING = 1.2
TILE_HEIGHT = 0.36
GAP = 0.05
MARGIN = 0.2
SECTION_GAP = 0.14


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
        [short(values[name]) for name in features],
        *([_tile_text(a, name) for name in features] for a in answers),
    ]
    edges = _edges([short(name) for name in features], columns)
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


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure whose axes are measured in inches from the lower left corner."""
    figure = new_figure(width, height)
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


def _tile_text(answer: Mapping[str, Any], name: str) -> str:
    change = answer["changes"].get(name)
    return "" if change is None else f"{SIGNS[change['direction']]} {short(change['after'])}"


def _width(text: str, size: float) -> float:
    """The width of a line of text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)[0] / 72.0


def _edges(names: Sequence[str], columns: Sequence[Sequence[str]]) -> list[float]:
    """The right edges in inches of the names, of the query's column and of each counterfactual's."""
    edges = [MARGIN + max(_width(name, TEXT_SIZE) for name in [*names, LIKELY]) + 0.12]
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
        _write(axes, edges[0] - 0.12 + GAP, y, short(name), align="right", weight="normal")
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
    usual = USUAL if all(answer.get("plausibility") is not None for answer in answers) else LIKELY
    lines = [usual] if any(answer["likely"] is not None for answer in answers) else []
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
            if name in (LIKELY, USUAL):
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
