"""Shares as bars, each with the interval that it lies in."""

from __future__ import annotations

__all__ = ["plot_shares"]

from typing import TYPE_CHECKING

import pandas as pd

from dicoflex.views.canvas import BAR, INK, QUIET, SOFT, new_figure, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE = 0.3
MOST = 20


def plot_shares(table: pd.DataFrame, *, title: str) -> Figure:
    """A bar per line of a table with share, low and high, the first `MOST` from the top."""
    shown = table.head(MOST)
    figure = new_figure(6.4, 0.9 + LINE * max(1, len(shown)))
    axes = figure.add_subplot()
    places = range(len(shown))
    names = [" + ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in shown.index]
    axes.barh(places, shown["share"], height=0.62, color=BAR)
    axes.hlines(places, shown["low"], shown["high"], color=INK, linewidth=1.2)
    axes.set_yticks(list(places), [short(name) for name in names], color=INK)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.0)
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.tick_params(length=0, labelsize=9, labelcolor=QUIET)
    axes.set_facecolor(SOFT)
    for side in axes.spines.values():
        side.set_visible(False)
    figure.tight_layout()
    return figure
