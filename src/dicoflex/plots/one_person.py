"""Pictures of one row: what changes, what each change does, and what a feature alone can do."""

from __future__ import annotations

__all__ = ["changes", "levers", "waterfall"]

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dicoflex.errors import QueryError
from dicoflex.plots.canvas import (
    BAR,
    COLOURS,
    HATCHES,
    INK,
    LINE,
    QUIET,
    SOFT,
    TEXT_SIZE,
    axes_of,
    ink_on,
    plain_axes,
    short,
    text_width,
    tinted,
    titled,
)  # fmt: skip
from dicoflex.runtime.printable import counted
from dicoflex.views.cards import Answer, Card, has_rarity
from dicoflex.views.cards import cards as make_cards
from dicoflex.views.words import SIGNS, joined, percent, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dicoflex.answers.counterfactuals import Counterfactuals

MARKS = {True: "✓", False: "✗", None: "–"}
MARK_COLOURS = {True: "#1d7a46", False: "#b3261e", None: QUIET}
TILE, GAP, SECTION = 0.36, 0.06, 0.3
MIN_TILE = 0.66
MOST_LEVERS = 12
HOW_TO_READ = "▲ higher   ▼ lower   ● another value   · as it is now; the stronger the colour, the larger the step"


def changes(
    result: Counterfactuals, row: Any = None, *, position: int | None = None, most: int = 12, ax: Axes | None = None
) -> Axes:
    """What would be different in each counterfactual of one row.

    A line per changed feature, those that change most at the top, and a column per counterfactual. Below them stand how
    usual each is among real rows, the model's confidence, and whether the model accepted it.

    Parameters
    ----------
    result : Counterfactuals
        What `explain` returned.
    row : label, optional
        The row's index label; by default the first row.
    position : int, optional
        The row's place, where labels repeat.
    most : int
        How many counterfactuals to draw.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from dicoflex import load, plots
    >>> from dicoflex.examples import EXAMPLES, rows_like
    >>> explainer = load(EXAMPLES[2])
    >>> rows = rows_like(explainer.schema_, 3)
    >>> cfs = explainer.explain(rows, target="other", n=3, random_state=0)
    >>> ax = plots.changes(cfs, row=1)
    """
    card = make_cards(result, only=[result._place(row, position)])[0]
    answers = card["answers"][:most]
    features = _by_impact(card, answers)
    if not features:
        return _nothing(card, ax)
    now = {value["feature"]: short(value["value"]) for value in card["query"]}
    columns = [
        [now[name] for name in features],
        *([_tile_text(answer, name) for name in features] for answer in answers),
    ]
    edges = np.cumsum([0.0, *(max(MIN_TILE, max(map(text_width, texts)) + 0.26) + GAP for texts in columns)])
    trust = _trust_lines(card, answers)
    height = len(features) * TILE + SECTION + len(trust) * TILE
    labels = max(text_width(short(name)) for name in [*features, *trust])
    width = max(float(edges[-1]) + labels + 0.3, 5.6)
    ax = axes_of(ax, width, height + 1.15)
    ax.set_xlim(0, max(float(edges[-1]), 5.6 - labels - 0.3))
    ax.set_ylim(height, 0)
    _draw_tiles(ax, columns, features, answers, edges)
    places = _draw_trust(ax, trust, answers, edges, len(features) * TILE + SECTION)
    ax.set_xticks((edges[:-1] + edges[1:] - GAP) / 2, ["now", *(short(answer["cf"], 14) for answer in answers)])
    ax.xaxis.tick_top()
    lines = [*((i + 0.5) * TILE for i in range(len(features))), *places]
    ax.set_yticks(lines, [short(name) for name in [*features, *trust]], parse_math=False)
    plain_axes(ax, bottom=False)
    for tick in ax.get_yticklabels()[len(features) :]:
        tick.set_color(QUIET)
    titled(ax, _changes_title(card, answers, features), above=True)
    ax.set_xlabel(HOW_TO_READ, fontsize=8, loc="left", color=QUIET)
    ax.xaxis.set_label_position("bottom")
    return ax


def _by_impact(card: Card, answers: Sequence[Answer]) -> list[str]:
    """The changed features, those that are changed often and far first."""
    weight: dict[str, float] = defaultdict(float)
    for answer in answers:
        for name, change in answer["changes"].items():
            weight[name] += 1.0 + change["size"]
    return sorted(weight, key=lambda name: (-weight[name], card["features"].index(name)))


def _changes_title(card: Card, answers: Sequence[Answer], features: Sequence[str]) -> str:
    often = Counter(name for answer in answers for name in answer["changes"])
    first = features[0]
    share = "all" if often[first] == len(answers) else f"{often[first]} of {len(answers)}"
    part = f", {len(answers)} shown" if len(answers) < len(card["answers"]) else ""
    found = f"{counted(len(card['answers']), 'counterfactual')} for {card['target']}{part}"
    what = f"changes {first}" if len(answers) == 1 else f"{share} change {first}"
    return f"Row {card['heading']}: {found}; {what if len(answers) > 1 else 'it ' + what}"


def _nothing(card: Card, ax: Axes | None) -> Axes:
    text = card["shortfall"] or "no counterfactual differs from the row"
    ax = axes_of(ax, max(5.0, text_width(text) + 0.4), 1.1)
    ax.set_axis_off()
    titled(ax, f"Row {card['heading']}: no counterfactual for {card['target']}")
    ax.text(0, 0.6, text, color=QUIET, fontsize=TEXT_SIZE, transform=ax.transAxes, parse_math=False, wrap=True)
    return ax


def _tile_text(answer: Answer, name: str) -> str:
    change = answer["changes"].get(name)
    return "·" if change is None else f"{SIGNS[change['direction']]} {short(change['after'])}"


def _draw_tiles(
    ax: Axes, columns: Sequence[Sequence[str]], features: Sequence[str], answers: Sequence[Answer], edges: Any
) -> None:
    from matplotlib.patches import Rectangle

    room = ax.get_xlim()[1] / max(float(edges[-1]), ax.get_xlim()[1])
    for i, texts in enumerate(columns):
        left, right = edges[i], edges[i + 1] - GAP
        for line, (name, text) in enumerate(zip(features, texts, strict=True)):
            change = answers[i - 1]["changes"].get(name) if i else None
            colour = tinted(change["direction"], change["size"]) if change else None
            if i:
                ax.add_patch(
                    Rectangle((left, line * TILE + GAP / 2), right - left, TILE - GAP, fc=colour or SOFT, ec="none")
                )
            ax.text(
                (left + right) / 2, (line + 0.5) * TILE, text, ha="center", va="center_baseline", parse_math=False,
                fontsize=TEXT_SIZE * min(1.0, room), clip_on=True,
                color=ink_on(colour) if colour else (INK if not i else QUIET),
            )  # fmt: skip


def _trust_lines(card: Card, answers: Sequence[Answer]) -> list[str]:
    usual = "as usual as" if has_rarity(card) else "how likely"
    lines = [usual] if any(answer["likely"] is not None for answer in answers) else []
    if any(answer["probability"] is not None for answer in answers):
        lines.append("confidence")
    return [*lines, "accepted"] if any(answer["valid"] is not None for answer in answers) else lines


def _draw_trust(ax: Axes, lines: Sequence[str], answers: Sequence[Answer], edges: Any, top: float) -> list[float]:
    """How far each counterfactual can be trusted; returns the places of the lines."""
    places = [top + (i + 0.5) * TILE for i in range(len(lines))]
    ax.plot([0, edges[-1] - GAP], [top - SECTION / 2] * 2, color=LINE, linewidth=0.8)
    for name, y in zip(lines, places, strict=True):
        for i, answer in enumerate(answers, start=1):
            colour, weight, text = INK, "normal", answer["word"]
            if name == "accepted":
                colour, weight, text = MARK_COLOURS[answer["valid"]], "bold", MARKS[answer["valid"]]
            elif name == "confidence":
                text = answer["confidence"]
            ax.text(
                (edges[i] + edges[i + 1] - GAP) / 2, y, text, ha="center", va="center_baseline", color=colour,
                fontsize=TEXT_SIZE, fontweight=weight, parse_math=False,
            )  # fmt: skip
    return places


# -- what each change does ---------------------------------------------------------------------------------------------


def waterfall(
    result: Counterfactuals, row: Any = None, cf: int = 0, *, position: int | None = None, ax: Axes | None = None
) -> Axes:
    """How each change of one counterfactual moves the model, one after another.

    Changes are applied in the order in which each does most for the target. What one of them does depends on those
    before it, so that the steps are this plan's, and not the features' own worth. The confidence is the surrogate's.

    Parameters
    ----------
    result : Counterfactuals
        What `explain` returned.
    row : label, optional
        The row's index label; by default the first row.
    cf : int
        The number of the counterfactual.
    position : int, optional
        The row's place, where labels repeat.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from dicoflex import load, plots
    >>> from dicoflex.examples import EXAMPLES, rows_like
    >>> explainer = load(EXAMPLES[2])
    >>> cfs = explainer.explain(rows_like(explainer.schema_, 3), target="other", n=3, random_state=0)
    >>> ax = plots.waterfall(cfs, row=1, cf=0)
    """
    place = result._place(row, position)
    card = make_cards(result, only=[place])[0]
    frame = result.frame.iloc[np.flatnonzero(result.positions == place)]
    numbers = frame.index.get_level_values("cf").tolist()
    if cf not in numbers:
        raise QueryError(f"the row has {len(numbers)} counterfactuals, and none is number {cf!r}; they count from 0")
    answer = next(a for a in card["answers"] if a["cf"].partition(" ")[0] == str(cf))
    what_if = result.what_if(place)
    steps = what_if.steps(frame.iloc[[numbers.index(cf)]])
    names = [card["query"][j]["feature"] for j, _ in steps]
    levels = [what_if.now, *(chance for _, chance in steps)]
    labels = ["now", *(_step_label(answer, name) for name in names), "counterfactual"]
    ax = axes_of(ax, 7.2, 1.5 + 0.36 * len(labels))
    _draw_steps(ax, levels)
    _draw_needed(ax, what_if.needed)
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    _percent_axis(ax, f"confidence of the model in {card['target']}")
    verb = "takes" if len(steps) == 1 else "take"
    text = f"{counted(len(steps), 'change')} {verb} the model from {percent(levels[0])} to {percent(levels[-1])}"
    titled(ax, f"Row {card['heading']}: {text}", above=True)
    return ax


def _step_label(answer: Answer, name: str) -> str:
    change = answer["changes"].get(name)
    return (
        short(name)
        if change is None
        else f"{short(name)}  {short(change['before'], 14)} → {short(change['after'], 14)}"
    )


def _draw_steps(ax: Axes, levels: Sequence[float]) -> None:
    """A bar per step from the confidence before it to the one after it, and whole bars at both ends."""
    last = len(levels)
    for y, level in ((0, levels[0]), (last, levels[-1])):
        ax.barh(y, level, height=0.62, color=LINE if y == 0 else BAR)
        _write_end(ax, level, y, percent(level), bold=True)
    for y, (before, after) in enumerate(pairwise(levels), start=1):
        direction = "up" if after >= before else "down"
        ax.barh(
            y, after - before, left=before, height=0.62, color=COLOURS[direction], hatch=HATCHES[direction],
            edgecolor="white", linewidth=0,
        )  # fmt: skip
        points = round(100 * (after - before))
        _write_end(ax, max(before, after), y, f"{points:+d} points".replace("-", "−") if points else "< 1 point")
    for y, level in enumerate(levels):
        ax.plot([level, level], [y - 0.31, y + 1.31], color=QUIET, linewidth=0.7, zorder=0)
    ax.set_ylim(last + 0.6, -0.6)


def _write_end(ax: Axes, x: float, y: float, text: str, *, bold: bool = False) -> None:
    ax.annotate(
        text, (x, y), xytext=(5, 0), textcoords="offset points", va="center_baseline", fontsize=TEXT_SIZE, color=INK,
        fontweight="bold" if bold else "normal", annotation_clip=False, parse_math=False, zorder=4,
        bbox={"boxstyle": "square,pad=0.08", "fc": "white", "ec": "none", "alpha": 0.85},
    )  # fmt: skip


def _draw_needed(ax: Axes, needed: float) -> None:
    ax.axvline(needed, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=3)
    ax.annotate(
        f"needed {percent(needed)}", (needed, 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
        textcoords="offset points", ha="center", va="bottom", fontsize=8, color=QUIET, annotation_clip=False,
    )  # fmt: skip


def _percent_axis(ax: Axes, label: str) -> None:
    ax.set_xlim(0, 1.0)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    ax.set_xlabel(label, parse_math=False)
    plain_axes(ax)


# -- what a feature alone can do ---------------------------------------------------------------------------------------


def levers(result: Counterfactuals, row: Any = None, *, position: int | None = None, ax: Axes | None = None) -> Axes:
    """How far a single feature moves the model for one row while everything else stays as it is.

    Each bar reaches from the lowest to the highest confidence over the values that the constraints permit; beside it
    stands the value that reaches furthest. Features that alone are enough come first. The confidence is the
    surrogate's, and whether a value is plausible for this row is not looked at; counterfactuals are.

    Parameters
    ----------
    result : Counterfactuals
        What `explain` returned.
    row : label, optional
        The row's index label; by default the first row.
    position : int, optional
        The row's place, where labels repeat.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from dicoflex import load, plots
    >>> from dicoflex.examples import EXAMPLES, rows_like
    >>> explainer = load(EXAMPLES[2])
    >>> cfs = explainer.explain(rows_like(explainer.schema_, 3), target="other", n=3, random_state=0)
    >>> ax = plots.levers(cfs, row=1)
    """
    place = result._place(row, position)
    what_if = result.what_if(place)
    table = what_if.levers(result, place)
    card = make_cards(result, only=[place])[0]
    top = table.head(MOST_LEVERS)
    ax = axes_of(ax, 7.2, 1.5 + 0.34 * max(1, len(top)))
    for y, (name, best) in enumerate(top["best"].items()):
        low, high = float(top["low"].iloc[y]), float(top["high"].iloc[y])
        enough = high >= what_if.needed
        ax.barh(y, high - low, left=low, height=0.56, color=BAR if enough else LINE)
        _write_end(ax, high, y, short(shown(best, result.schema[name])), bold=enough)
    ax.plot([what_if.now] * 2, [-0.6, len(top) - 0.4], color=COLOURS["down"], linewidth=1.6, zorder=3)
    ax.annotate(
        f"now {percent(what_if.now)}", (what_if.now, 1), xycoords=("data", "axes fraction"), xytext=(0, 2), va="bottom",
        textcoords="offset points", ha="center", fontsize=8, color=COLOURS["down"], annotation_clip=False,
    )  # fmt: skip
    _draw_needed(ax, what_if.needed)
    ax.set_yticks(range(len(top)), [short(str(name)) for name in top.index], parse_math=False)
    ax.set_ylim(max(1, len(top)) - 0.4, -0.6)
    _percent_axis(ax, f"confidence of the model in {card['target']} with this one value changed, plausible or not")
    titled(ax, _levers_title(card, table, what_if.needed), above=True)
    return ax


def _levers_title(card: Card, table: Any, needed: float) -> str:
    enough = [str(name) for name in table.index[table["high"] >= needed]]
    if not enough:
        return f"Row {card['heading']}: no single feature is enough for {card['target']}"
    if len(enough) > 3:
        return f"Row {card['heading']}: each of {len(enough)} features alone is enough, {enough[0]} most of all"
    alone = "alone is" if len(enough) == 1 else "are each"
    return f"Row {card['heading']}: {joined(enough)} {alone} enough for {card['target']}"
