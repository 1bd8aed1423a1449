"""How long one answer to each of 100 rows takes: a view of the comparison's cells."""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page"]

from collections.abc import Sequence

from matplotlib.figure import Figure

from benchmarks import paper
from benchmarks.cells import Result, merged
from benchmarks.experiments.comparison.measuring import TIMED, cells, measure
from benchmarks.pages import Finding, canvas, colour, head, number, table

TITLE = "Runtime"
OURS = ("mixed", "explain", "maf")


def page(results: Sequence[Result], command: str) -> str:
    """Seconds per method and table, with the paper's where its text has them."""
    text = (
        f"Seconds for one answer to each of {TIMED} queries, after learning, on one core. ~ stands before a time that "
        "was extrapolated from fewer queries; 'none' says that no query was done "
        "in that time. The paper (fig:time) prints "
        f"{paper.figure('fig:time', 'DiCoFlex')} ± {paper.figure('fig:time', 'deviation')} s for its method on a "
        "graphics card, and 'over' a bound for some others."
    )
    found = merged(results)
    names = list(dict.fromkeys(r.cell.table for r in found))
    rows = [_row(found, method, names) for method in dict.fromkeys(r.cell.method for r in found)]
    header = ["method", *names, *(f"{name}: learning" for name in names), "paper"]
    return head(TITLE, text, results, command) + "\n![runtime](runtime.png)\n" + table(header, rows)


def _row(results: Sequence[Result], method: str, names: Sequence[str]) -> list[str]:
    mine = {r.cell.table: r.figures for r in results if r.cell.method == method}
    answer = [_seconds(mine.get(name)) for name in names]
    learning = [number(mine[name]["fit_seconds"], 1) if name in mine else "–" for name in names]
    return [method, *answer, *learning, _printed(method)]


def _seconds(figures: dict[str, float] | None) -> str:
    if figures is None:
        return "–"
    if figures["seconds_for_one"] is None:
        return f"none in {figures['seconds_given']:g}"
    return ("~" if figures["one_is_estimated"] else "") + number(figures["seconds_for_one"])


def _printed(method: str) -> str:
    model = paper.MODELS.get(method, "")
    bound = paper.figure("fig:time", "over", model)
    if model.startswith("DiCoFlex"):
        return number(paper.figure("fig:time", "DiCoFlex"), 2)
    return "–" if bound is None else f"over {bound:g}"


def findings(results: Sequence[Result]) -> list[Finding]:
    """Whether each of our ways to answer is quicker than every method that searches."""
    found = _timed(results)
    texts = []
    for family in OURS:
        ours = [r.figures["seconds_for_one"] for r in found if r.cell.method.startswith(family)]
        others = [r.figures["seconds_for_one"] for r in found if not r.cell.method.startswith((*OURS, "oracle"))]
        if ours and others:
            slowest, soonest = max(ours), min(others)
            verdict = "agree" if slowest < soonest else "differ"
            few = any(r.figures["one_is_estimated"] for r in found)
            text = f"{family} takes at most {slowest:.2f} s for {TIMED} rows, the quickest search {soonest:.2f} s"
            note = "; some of the times are extrapolated" if few else ""
            texts.append(Finding(verdict, f"Runtime: {text}, over all tables{note}."))
    return texts


def _timed(results: Sequence[Result]) -> list[Result]:
    """The methods that answered at least one query in the time given."""
    return [r for r in merged(results) if r.figures["seconds_for_one"] is not None]


def figures(results: Sequence[Result]) -> dict[str, Figure]:
    """Bars on a logarithmic scale, a panel per table."""
    found = _timed(results)
    names = list(dict.fromkeys(r.cell.table for r in found))
    if not names:
        return {}
    figure, axes = canvas(len(names))
    for ax, name in zip(axes, names, strict=True):
        mine = sorted((r for r in found if r.cell.table == name), key=lambda r: -r.figures["seconds_for_one"])
        labels, seconds = [r.cell.method for r in mine], [r.figures["seconds_for_one"] for r in mine]
        ax.barh(labels, seconds, color=[colour(label) for label in labels])
        ax.set_xscale("log")
        ax.set_xlabel(f"seconds for {TIMED} rows")
        ax.tick_params(axis="y", labelsize=7)
        ax.set_title(name, loc="left")
    return {"runtime.png": figure}
