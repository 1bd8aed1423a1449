"""The paper's first figure: answers to one row of two moons, free, sparse and with a frozen feature."""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page"]

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.cells import Cell, Result, measured
from benchmarks.methods import explainer, is_cut
from benchmarks.options import Options
from benchmarks.pages import Finding, canvas, colour, head, number, table
from benchmarks.tables import TWO_MOONS
from benchmarks.tasks import prepare
from dicoflex import metrics

TITLE = "Teaser"
PANELS: dict[str, dict[str, Any]] = {
    "unconstrained": {"p": 2.0},
    "sparse (p = 0.01)": {"p": 0.01},
    "masked (x2 frozen)": {"p": 2.0, "frozen": ["x2"]},
}
SHOWN, CLOUD = 60, 300


def cells(options: Options) -> list[Cell]:
    """Both generators on two moons."""
    methods = options.pick_methods(("mixed", "maf"), quick=("mixed", "maf"))
    # Few queries do: one is shown.
    size = options.size()
    size = replace(size, queries=min(size.queries, 20))
    return [Cell("teaser", TWO_MOONS, method, options.pick_seeds()[0], size) for method in methods]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """The points of every panel, and what share of them is valid and of features changed."""
    task = prepare(cell)
    model = explainer(cell, task, models, cell.method)
    # The row whose other moon is within reach of both axes: the one nearest to the middle.
    middle = task.data.X_train.mean()
    at = [int(((task.queries - middle) ** 2).sum(axis=1).to_numpy().argmin())]
    query, target = task.queries.iloc[at], task.targets[at]
    panels = {}
    for name, conditions in PANELS.items():
        frame = model.sample(
            query, target=target, n=SHOWN, random_state=cell.seed, filter=cell.method == "mixed", **conditions
        )
        changed = metrics.changed(query, frame, task.data.schema)
        panels[name] = {
            "points": frame.to_numpy(),
            "validity": task.is_valid(frame).mean(),
            "changed": changed.to_numpy().mean(),
            "frozen_changed": metrics.violations(query, frame, conditions.get("frozen", [])),
        }
    cloud = task.data.X_train.head(CLOUD)
    return {
        "query": query.to_numpy()[0],
        "cloud": cloud.to_numpy(),
        "is_target": np.asarray(task.black_box.predict(cloud) == target[0]),
        "panels": panels,
        "out_of_time": is_cut(model),
    }


def page(results: Sequence[Result], command: str) -> str:
    """The figures, and in numbers what they show."""
    text = (
        "Answers to one row of two moons (fig:teaser of the paper): without conditions, with few changes asked for, "
        "and with one feature frozen. The same fitted model answers all three. Pale points are training rows."
    )
    lines = [head(TITLE, text, results, command)]
    for r in measured(results):
        rows = [
            [name, number(found["validity"]), number(found["changed"]), str(found["frozen_changed"])]
            for name, found in r.figures["panels"].items()
        ]
        lines.append(f"\n## {r.cell.method}\n\n![{r.cell.method}](teaser_{r.cell.method}.png)\n")
        lines.append(table(["panel", "raw validity", "share of features changed", "frozen values changed"], rows))
    return "".join(lines)


def findings(results: Sequence[Result]) -> list[Finding]:
    """Whether the three panels show what the paper's do."""
    texts = []
    for r in measured(results):
        free, sparse, masked = r.figures["panels"].values()
        fine = sparse["changed"] < free["changed"] and masked["frozen_changed"] == 0
        shares = f"{sparse['changed']:.2f} of the features change when few should, {free['changed']:.2f} otherwise"
        text = f"Two moons, {r.cell.method}: {shares}; the frozen one changes in {masked['frozen_changed']} answers."
        texts.append(Finding("agree" if fine else "differ", text))
    return texts


def figures(results: Sequence[Result]) -> dict[str, Figure]:
    """Three panels for each generator."""
    drawn = {}
    for r in measured(results):
        figure, axes = canvas(len(PANELS))
        cloud, goal = np.array(r.figures["cloud"]), np.array(r.figures["is_target"])
        for ax, (name, found) in zip(axes, r.figures["panels"].items(), strict=True):
            ax.scatter(*cloud[goal].T, s=9, color="#cfe3da", label="training rows of the target")
            ax.scatter(*cloud[~goal].T, s=9, color="#e6e0ee", label="of the other class")
            ax.scatter(*np.array(found["points"]).T, s=16, color=colour(r.cell.method), label="answers")
            ax.scatter(*r.figures["query"], s=130, marker="*", color="#b3261e", label="query", zorder=3)
            ax.set_title(name, loc="left", fontsize=10)
            ax.set_xlabel("x1")
        axes[0].set_ylabel("x2")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=4, frameon=False)
        drawn[f"teaser_{r.cell.method}.png"] = figure
    return drawn
