"""The picture of speed: bars on logarithmic axes, a panel for each comparison."""

from __future__ import annotations

__all__ = ["figures", "panels"]

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.cells import Result, measured
from benchmarks.experiments.speed.sampling import DICE, DRAWERS, EXPLAIN, SAMPLE

Bars = dict[str, dict[str, float]]
COLOURS = ("#0060a9", "#d67300", "#2a7f72", "#aa90c5", "#6b7583", "#c6a700")


def panels(results: Sequence[Result]) -> dict[str, Bars]:
    """What the figure shows: per panel and group of bars, the bars' values."""
    drawn: dict[str, Bars] = {}
    for r in measured(results):
        at, part, found = r.cell.table, r.cell.method, r.figures
        if part == "search":
            for p, each in found["exponents"].items():
                drawn.setdefault(f"neighbour search, p = {p}, seconds", {})[at] = each["seconds"]
        if part == "sampling":
            times = found["times"]
            seconds = {name: times[name]["seconds"] for name in DRAWERS if name in times}
            answers = {
                name: s for name in (SAMPLE, EXPLAIN, DICE) if name in times and (s := times[name]["per_answer"])
            }
            drawn.setdefault(f"{r.cell.size.candidates} draws for all queries, seconds", {})[at] = seconds
            drawn.setdefault("seconds per answer", {})[at] = answers
        if part == "latency":
            waits = {f"{name}, {q}": each[q] for name, each in found["milliseconds"].items() for q in ("p50", "p99")}
            drawn.setdefault("one row, milliseconds", {})[at] = waits
        if part == "startup":
            drawn["start-up, seconds"] = {"": found["seconds"]}
    return drawn


def figures(results: Sequence[Result]) -> dict[str, Figure]:
    """One figure with all panels."""
    drawn = panels(results)
    rows = max(1, -(-len(drawn) // 2))
    figure = Figure(figsize=(11, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    for ax, (title, groups) in zip(axes, drawn.items(), strict=False):
        _bars(ax, groups)
        ax.set_title(title, loc="left", fontsize=9)
    for ax in axes[len(drawn) :]:
        ax.set_axis_off()
    return {"speed.png": figure}


def _bars(ax: Axes, groups: Bars) -> None:
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    height = 0.8 / len(names)
    for i, name in enumerate(names):
        has = [(at, group[name]) for at, group in enumerate(groups.values()) if name in group]
        places = [at + i * height for at, _ in has]
        bars = ax.barh(places, [value for _, value in has], height, label=name, color=COLOURS[i % len(COLOURS)])
        ax.bar_label(bars, fmt="%.3g", fontsize=6, padding=2)
    ax.set_yticks([at + 0.4 - height / 2 for at in range(len(groups))], list(groups))
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.tick_params(labelsize=8)
    ax.legend(fontsize=6, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
