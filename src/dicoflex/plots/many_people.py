"""Pictures of all rows of a result: what changes how often, at what price, and for whom it is more."""

from __future__ import annotations

__all__ = ["burden", "importance", "matrix", "tradeoff"]

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dicoflex.errors import QueryError, named
from dicoflex.plots.canvas import (
    BAR,
    COLOURS,
    INK,
    QUIET,
    SOFT,
    TEXT_SIZE,
    axes_of,
    ink_on,
    plain_axes,
    short,
    tinted,
    titled,
)  # fmt: skip
from dicoflex.runtime.printable import counted
from dicoflex.views.cards import step_of
from dicoflex.views.words import SIGNS, joined, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dicoflex.answers.counterfactuals import Counterfactuals

MOST_FEATURES = 15
MOST_ROWS = 30
MARKERS = "osD^vP"
DISTANCE = "Gower distance from the row"
LEAST_SPAN = 0.12
"""How much confidence the axis of `tradeoff` shows at least."""


def importance(result: Counterfactuals, row: Any = None, *, ax: Axes | None = None) -> Axes:
    """How often each feature changes in the counterfactuals.

    Parameters
    ----------
    result : Counterfactuals
        What `explain` returned.
    row : label, optional
        The index label of one row; by default all rows together, each with the same weight.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The lines are intervals at 95 %.

    See Also
    --------
    Counterfactuals.importance : The table that is drawn.

    Examples
    --------
    >>> from dicoflex import load, plots
    >>> from dicoflex.examples import EXAMPLES, rows_like
    >>> explainer = load(EXAMPLES[2])
    >>> cfs = explainer.explain(rows_like(explainer.schema_, 3), target="other", n=3, random_state=0)
    >>> ax = plots.importance(cfs)
    """
    table = result.importance(row)
    top = table.head(MOST_FEATURES)
    places = range(len(top))
    ax = axes_of(ax, 6.8, 1.2 + 0.31 * max(1, len(top)))
    ax.barh(places, top["share"], height=0.62, color=BAR)
    for y, (share, low, high) in enumerate(top[["share", "low", "high"]].to_numpy(dtype=float).tolist()):
        if share > 0:
            ax.plot([low, high], [y, y], color=INK, linewidth=1.2, solid_capstyle="butt")
        ax.annotate(
            percent(share), (1.0, y), xycoords=("axes fraction", "data"), xytext=(6, 0), fontsize=TEXT_SIZE,
            textcoords="offset points", va="center_baseline", color=INK if share else QUIET, annotation_clip=False,
        )  # fmt: skip
    ax.set_yticks(list(places), [short(str(name)) for name in top.index], parse_math=False)
    ax.set_ylim(max(1, len(top)) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    ax.set_xlabel("share of counterfactuals that change the feature")
    plain_axes(ax)
    titled(ax, _importance_title(result, row, table))
    return ax


def _importance_title(result: Counterfactuals, row: Any, table: pd.DataFrame) -> str:
    changed = table[table["share"] > 0]
    if changed.empty:
        return "No counterfactual changes anything"
    of = f"of {counted(len(result.queries), 'row')}" if row is None else f"of row {row}"
    name, share = changed.index[0], float(changed["share"].iloc[0])
    return f"{name} changes in {percent(share)} of the counterfactuals {of}"


def matrix(result: Counterfactuals, *, most: int = MOST_ROWS, ax: Axes | None = None) -> Axes:
    """Which row changes which feature, and in which direction.

    A line per row, a column per feature; the darker a tile, the more of the row's counterfactuals change the feature.
    The sign is the direction that most of them have. Rows that change the same stand together.

    Parameters
    ----------
    result : Counterfactuals
        What `explain` returned.
    most : int
        How many rows to draw.
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
    >>> ax = plots.matrix(cfs)
    """
    shares = _shares(result)
    answered = np.unique(result.positions)
    columns = [int(j) for j in np.argsort(-shares.sum(axis=0), kind="stable") if shares[:, j].any()][:MOST_FEATURES]
    order = sorted(range(len(result.queries)), key=lambda i: [-round(shares[i, j], 2) for j in columns])
    lines = order[:most]
    names = [short(str(result.queries.index[i]), 14) for i in lines]
    features = [short(str(result.schema.names[j]), 18) for j in columns]
    ax = axes_of(
        ax, max(5.6, 1.2 + 0.62 * len(columns) + 0.1 * max(map(len, names), default=0)), 2.3 + 0.24 * len(lines)
    )
    for y, i in enumerate(lines):
        for x, j in enumerate(columns):
            _draw_tile(ax, x, y, float(shares[i, j]), _direction(result, i, j) if shares[i, j] else None)
        if i not in answered:
            ax.text(len(columns) / 2, y + 0.5, "no counterfactual", ha="center", va="center", fontsize=8, color=QUIET)
    ax.set_xlim(0, max(1, len(columns)))
    ax.set_ylim(max(1, len(lines)), 0)
    ax.set_xticks([x + 0.5 for x in range(len(columns))], features, rotation=38, ha="right", parse_math=False)
    ax.set_yticks([y + 0.5 for y in range(len(lines))], names, parse_math=False)
    plain_axes(ax, bottom=False)
    note = f"first {len(lines)} of {len(order)} rows; " if len(lines) < len(order) else ""
    titled(ax, _matrix_title(result, shares, columns), f"{note}▲ higher   ▼ lower   ● another value")
    return ax


def _shares(result: Counterfactuals) -> np.ndarray:
    """The share of each row's counterfactuals that change each feature."""
    count = np.bincount(result.positions, minlength=len(result.queries))
    sums = np.zeros((len(result.queries), len(result.schema)))
    np.add.at(sums, result.positions, result.changed_cells)
    shares: np.ndarray = sums / np.maximum(count, 1)[:, None]
    return shares


def _direction(result: Counterfactuals, i: int, j: int) -> str:
    """Where most of a row's counterfactuals move a feature."""
    which = np.flatnonzero((result.positions == i) & result.changed_cells[:, j])
    before, feature = result.queries.iloc[i, j], result.schema.features[j]
    signs = [step_of(before, result.frame.iloc[int(k), j], feature)[0] for k in which]
    return max(dict.fromkeys(signs), key=signs.count)


def _draw_tile(ax: Axes, x: int, y: int, share: float, direction: str | None) -> None:
    from matplotlib.patches import Rectangle

    colour = tinted(direction, share) if direction else None
    ax.add_patch(Rectangle((x + 0.03, y + 0.06), 0.94, 0.88, fc=colour or SOFT, ec="none"))
    if direction and colour:
        ax.text(
            x + 0.5, y + 0.5, SIGNS[direction], ha="center", va="center", fontsize=8, color=ink_on(colour), clip_on=True
        )


def _matrix_title(result: Counterfactuals, shares: np.ndarray, columns: Sequence[int]) -> str:
    count = len(np.unique(result.positions))
    if not columns:
        return f"No counterfactual for {counted(len(result.queries), 'row')}"
    best = max(columns, key=lambda j: int((shares[:, j] > 0).sum()))
    hits = int((shares[:, best] > 0).sum())
    return f"{result.schema.names[best]} changes for {hits} of {counted(count, 'row')} that have a counterfactual"


def tradeoff(result: Counterfactuals, row: Any = None, *, position: int | None = None, ax: Axes | None = None) -> Axes:
    """What more confidence costs in distance.

    A mark per counterfactual; its shape and colour say how many features change. The line joins those to which no other
    is both nearer and surer. Distance is Gower's: the mean over all features of the step, as a share of the range.

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
    >>> ax = plots.tradeoff(cfs, row=1)
    """
    place = result._place(row, position)
    if "probability" not in result.info:
        raise QueryError("this picture needs the column 'probability' of info, and the result has none")
    which = np.flatnonzero(result.positions == place)
    info = result.info.iloc[which]
    far, sure = _distances(result)[which], info["probability"].to_numpy(dtype=float)
    front = _front(far, sure)
    ax = axes_of(ax, 6.6, 4.2)
    ax.plot(far[front], sure[front], color=QUIET, linewidth=1.0, zorder=1, drawstyle="steps-post")
    for k, count in enumerate(sorted(set(info["n_changed"]))):
        here = (info["n_changed"] == count).to_numpy()
        shade = tinted("up", (k + 1) / max(1, info["n_changed"].nunique()))
        ax.scatter(
            far[here], sure[here], s=64, marker=MARKERS[k % len(MARKERS)], color=shade, edgecolor=INK, linewidth=0.7,
            label=counted(int(count), "change"), zorder=3,
        )  # fmt: skip
    numbers = info.index.get_level_values("cf")
    ends = list(dict.fromkeys([*front[:1], *front[-1:]]))
    for i, words, offset in zip(ends, ("nearest", "surest"), ((8, -11), (8, 6)), strict=False):
        ax.annotate(
            f"{words}: {numbers[i]}",
            (far[i], sure[i]),
            xytext=offset,
            textcoords="offset points",
            fontsize=8,
            color=INK,
        )
    if result.origin is not None:
        needed = result.what_if(place).needed
        ax.axhline(needed, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
        ax.annotate(
            f"needed {percent(needed)}", (0, needed), xycoords=("axes fraction", "data"), xytext=(4, 3), ha="left",
            textcoords="offset points", fontsize=8, color=QUIET,
        )  # fmt: skip
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}".replace("%", " %"))
    ax.set_xlim(left=0.0)
    ax.margins(y=0.12)
    low, high = ax.get_ylim()
    room = max(0.0, LEAST_SPAN - (high - low)) / 2  # a point or two of difference must not look large
    ax.set_ylim(low - room, high + room)
    ax.set_xlabel(DISTANCE)
    ax.set_ylabel("confidence of the model")
    plain_axes(ax, left=True)
    ax.tick_params(axis="y", labelcolor=QUIET)
    if len(info):
        ax.legend(loc="best", frameon=False, fontsize=TEXT_SIZE)
    titled(ax, _tradeoff_title(result.queries.index[place], far, sure, front))
    return ax


def _front(far: np.ndarray, sure: np.ndarray) -> list[int]:
    """The answers to which no other is both nearer and surer, the nearest first."""
    found: list[int] = []
    for i in np.lexsort((-sure, far)):
        if not found or sure[i] > sure[found[-1]]:
            found.append(int(i))
    return found


def _tradeoff_title(label: Any, far: np.ndarray, sure: np.ndarray, front: Sequence[int]) -> str:
    if not front:
        return f"Row {label}: no counterfactual"
    first, last = front[0], front[-1]
    if first == last:
        return f"Row {label}: the nearest counterfactual is also the surest, {percent(float(sure[first]))}"
    times = far[last] / far[first] if far[first] > 0 else float("inf")
    more = f"{times:.1f} times as far" if np.isfinite(times) else "farther"
    if percent(float(sure[last])) == percent(float(sure[first])):
        return f"Row {label}: no counterfactual is clearly surer than the nearest, {percent(float(sure[first]))}"
    return f"Row {label}: {percent(float(sure[last]))} instead of {percent(float(sure[first]))} is {more}"


def burden(result: Counterfactuals, groups: Any, *, ax: Axes | None = None) -> Axes:
    """Whether the nearest counterfactual is farther away for some groups of rows than for others.

    A dot per row at the Gower distance of its nearest counterfactual, and a line at the group's median. The distance is
    the mean over all features of the step, as a share of the feature's range; another category counts 1. Rows without
    any counterfactual have no distance; how many there are stands on the right, as a group can look lucky only because
    its hard cases are missing. A difference between groups is a question to ask, and not a proof of unfairness.

    Parameters
    ----------
    result : Counterfactuals
        What `explain` returned.
    groups : feature, Series or list
        The name of a feature whose values are the groups, or the group of each row.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    QueryError
        If the groups are not one per row.

    Examples
    --------
    >>> from dicoflex import load, plots
    >>> from dicoflex.examples import EXAMPLES, rows_like
    >>> explainer = load(EXAMPLES[2])
    >>> cfs = explainer.explain(rows_like(explainer.schema_, 4), target="other", n=3, random_state=0)
    >>> ax = plots.burden(cfs, ["new", "new", "old", "old"])
    """
    nearest = _nearest(result)
    members = _members(result, groups)
    medians = {
        name: float(np.nanmedian(nearest[at])) if np.isfinite(nearest[at]).any() else np.inf
        for name, at in members.items()
    }
    order = sorted(members, key=lambda name: -medians[name])
    ax = axes_of(ax, 7.0, 1.4 + 0.62 * len(order))
    for y, name in enumerate(order):
        far = np.sort(nearest[members[name]][np.isfinite(nearest[members[name]])])
        ax.scatter(far, y + _spread(far), s=20, color=COLOURS["up"], alpha=0.55, edgecolor="none", zorder=2)
        if len(far):
            ax.plot([medians[name]] * 2, [y - 0.34, y + 0.34], color=INK, linewidth=2.2, zorder=3)
            ax.annotate(
                f"{medians[name]:.2g}", (medians[name], y - 0.34), xytext=(0, 1), textcoords="offset points",
                ha="center", va="bottom", fontsize=8, color=INK, annotation_clip=False,
            )  # fmt: skip
        _draw_found(ax, y, len(far), len(members[name]))
    ax.set_yticks(range(len(order)), [short(str(name)) for name in order], parse_math=False)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(left=0.0)
    ax.set_xlabel(f"{DISTANCE}: nearest counterfactual, line at the median")
    plain_axes(ax)
    titled(ax, _burden_title(order, medians))
    return ax


def _distances(result: Counterfactuals) -> np.ndarray:
    """The Gower distance of each counterfactual: the mean over all features of the step as a share of the range."""
    steps = np.zeros(result.changed_cells.shape)
    for k, j in zip(*np.nonzero(result.changed_cells), strict=True):
        before, after = result.queries.iloc[int(result.positions[k]), int(j)], result.frame.iloc[int(k), int(j)]
        steps[k, j] = step_of(before, after, result.schema.features[j])[1]
    distances: np.ndarray = steps.mean(axis=1) if len(steps) else np.zeros(0)
    return distances


def _nearest(result: Counterfactuals) -> np.ndarray:
    """The distance of each row's nearest counterfactual; NaN where it has none."""
    found = np.full(len(result.queries), np.inf)
    np.minimum.at(found, result.positions, _distances(result))
    return np.where(np.isfinite(found), found, np.nan)


def _members(result: Counterfactuals, groups: Any) -> Mapping[Hashable, np.ndarray]:
    """The positions of each group's rows."""
    if isinstance(groups, Hashable) and not isinstance(groups, tuple):
        if groups not in result.queries:
            raise QueryError(named("feature", groups, result.queries.columns))
        groups = result.queries[groups]
    if isinstance(groups, pd.Series) and not groups.index.equals(result.queries.index):
        groups = groups.reindex(result.queries.index) if groups.index.is_unique else groups
    labels = list(groups)
    if len(labels) != len(result.queries):
        raise QueryError(f"there are {len(result.queries)} rows and {len(labels)} groups; give one group per row")
    named_ = ["missing" if pd.isna(label) else label for label in labels]
    return {name: np.flatnonzero([one == name for one in named_]) for name in dict.fromkeys(named_)}


def _spread(far: np.ndarray) -> np.ndarray:
    """Places above and below a line, so that dots of nearly the same distance do not cover each other."""
    places: np.ndarray = 0.22 * np.sin(np.arange(len(far)) * 2.4)
    return places


def _draw_found(ax: Axes, y: int, found: int, total: int) -> None:
    ax.annotate(
        f"{found} of {total} rows\nhave one", (1.0, y), xycoords=("axes fraction", "data"), xytext=(8, 0), fontsize=8,
        textcoords="offset points", va="center", color=QUIET if found == total else INK, annotation_clip=False,
    )  # fmt: skip


def _burden_title(order: Sequence[Any], medians: Mapping[Any, float]) -> str:
    known = [name for name in order if np.isfinite(medians[name])]
    if len(known) < 2:
        return "Distance of the nearest counterfactual, by group"
    most, least = medians[known[0]], medians[known[-1]]
    if least <= 0 or most / least < 1.05:
        return f"The nearest counterfactual is about as far for {joined([str(name) for name in known[:4]])}"
    return f"{known[0]}: the nearest counterfactual is {most / least:.1f} times as far as for {known[-1]}"
