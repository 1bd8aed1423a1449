"""The page of nearer: every method's distance and survival, and the distance at equal survival."""

from __future__ import annotations

__all__ = ["TITLE", "at_survival", "figures", "page"]

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks import pages
from benchmarks.cells import Result, measured, merged
from benchmarks.machine import versions
from benchmarks.pages import MARKERS, canvas, head, number, table
from benchmarks.tables import TABLES

TITLE = "Near, and for how long"
PACKAGES = ("xgboost", "lightgbm", "NICEx", "treecf")
OWN = ("learned", "learned, check", "exact")
LEVELS = ("just", "safe", "sure")
SURVIVALS = (0.6, 0.75, 0.9)
HEADER = [
    "method", "asked for", "answered", "L1", "changed", "5 nearest rows", "survival", "confidence, median",
    "5 % below", "valid", "whole",
]  # fmt: skip


def page(results: Sequence[Result], command: str) -> str:
    """For each table and model all points, and the distances at equal survival; then how calibrated ours are."""
    from benchmarks.experiments import nearer

    text = "\n\n".join((nearer.__doc__ or "").split("\n\n")[1:2])
    lines = [head(TITLE, text, results, command, budget=False), f"\nAlso: {', '.join(versions(PACKAGES)[1:])}.\n"]
    for name, box, here in _groups(results):
        lines.append(f"\n## {TABLES[name].title}, {box}\n")
        lines.append(table(HEADER, [_row(one, asked, point) for one in here for asked, point in _points(one)]))
        lines.append("\nL1 at equal survival, between what was asked for interpolated; – where it is not reached:\n")
        rows = [[one.cell.method, *(number(at_survival(one, share)) for share in SURVIVALS)] for one in here]
        lines.append(table(["method", *(f"{share:g}" for share in SURVIVALS)], rows))
        lines.append(_surrogates(here))
    lines.append("\n![distance against survival](nearer.png)\n")
    lines.append("\nThe model's own confidence in answers asked for by a number; dotted, of all but a twentieth:\n")
    lines.append("\n![confidence asked for and reached](nearer-confidence.png)\n")
    return "".join(lines)


def _groups(results: Sequence[Result]) -> Iterator[tuple[str, str, list[Result]]]:
    found = merged(measured(results))
    for name, box in dict.fromkeys((one.cell.table, one.cell.setting("model")) for one in found):
        yield name, box, [one for one in found if (one.cell.table, one.cell.setting("model")) == (name, box)]


def _points(result: Result) -> list[tuple[str, dict[str, Any]]]:
    return [(asked, point) for asked, point in result.figures["points"].items() if point.get("l1") is not None]


def _row(result: Result, asked: str, point: dict[str, Any]) -> list[str]:
    names = ("answered", "l1", "changed", "nearest", "survival", "confidence", "confidence_low", "valid", "whole")
    return [result.cell.method, asked, *(number(point[name]) for name in names)]


def at_survival(result: Result, share: float) -> float | None:
    """The least L1 that a method has at a survival of at least `share`: on the lines between its points.

    Points that others beat in both, survival and L1, don't count.
    """
    pairs = sorted((point["survival"], point["l1"]) for _, point in _points(result))
    best: list[tuple[float, float]] = []
    for kept, apart in reversed(pairs):
        if not best or apart < best[-1][1]:
            best.append((kept, apart))
    best.reverse()
    if not best or best[-1][0] < share:
        return None
    return float(np.interp(share, [kept for kept, _ in best], [apart for _, apart in best]))


def _surrogates(here: Sequence[Result]) -> str:
    rows = []
    for one in here:
        facts = one.figures
        if "levels" not in facts:
            continue
        levels = [facts["levels"][name] for name in LEVELS]
        told = [f"{level['confidence']:.2f} ({level['survival']:.2f})" for level in levels]
        known = [str(facts["surrogate"]), number(facts["agreement"]), number(facts["margin"])]
        rows.append([one.cell.method, *known, *told])
    if not rows:
        return ""
    header = ["method", "surrogate", "agreement", "margin", *(f"{name}: confidence (survival)" for name in LEVELS)]
    return "\nWhat `fit` estimated:\n" + table(header, rows)


def figures(results: Sequence[Result]) -> dict[str, Figure]:
    """L1 against survival, and confidence against what was asked for, a panel per table and model."""
    groups = list(_groups(results))
    if not groups:
        return {}
    figure, axes = canvas(len(groups))
    methods = list(dict.fromkeys(one.cell.method for _, _, here in groups for one in here))
    for ax, (name, box, here) in zip(axes, groups, strict=True):
        for one in here:
            pairs = sorted((point["survival"], point["l1"]) for _, point in _points(one))
            shade = pages.colour("mixed" if one.cell.method in OWN else one.cell.method)
            ax.plot(*zip(*pairs, strict=True), marker=MARKERS[methods.index(one.cell.method)], color=shade,
                    label=one.cell.method, linewidth=1)  # fmt: skip
        ax.set(title=f"{TABLES[name].title}, {box}", xlabel="survival", ylabel="L1")
    axes[0].legend(fontsize=7)
    return {"nearer.png": figure, "nearer-confidence.png": _calibration(groups)}


def _calibration(groups: Sequence[tuple[str, str, list[Result]]]) -> Figure:
    """The confidence that our answers reach against the one asked for, a panel per table and model."""
    figure, axes = canvas(len(groups))
    for ax, (name, box, here) in zip(axes, groups, strict=True):
        ax.plot((0.5, 1.0), (0.5, 1.0), color="grey", linewidth=0.7)
        for one in here:
            pairs = [(float(asked), point) for asked, point in _points(one) if asked not in (*LEVELS, "decision")]
            if one.cell.method not in OWN or not pairs:
                continue
            asked, points = zip(*pairs, strict=True)
            shade = f"C{OWN.index(one.cell.method)}"
            ax.plot(asked, [point["confidence"] for point in points], color=shade, label=one.cell.method, linewidth=1)
            ax.plot(asked, [point["confidence_low"] for point in points], color=shade, linestyle=":", linewidth=1)
        ax.set(title=f"{TABLES[name].title}, {box}", xlabel="asked for", ylabel="the model's confidence")
    axes[0].legend(fontsize=7)
    return figure
