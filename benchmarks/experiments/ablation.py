"""Which density: the negative log likelihood of held-out neighbours on Adult, for each generator."""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page"]

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks import paper
from benchmarks.baselines.base import Problem
from benchmarks.baselines.oracle import Oracle
from benchmarks.cells import Cell, Result, merged
from benchmarks.methods import explainer, is_cut
from benchmarks.options import Options
from benchmarks.pages import Finding, beside, head, number, table
from benchmarks.tables import ADULT
from benchmarks.tasks import Task, prepare, score_draws

TITLE = "Ablation"
LABEL = "tab:ablation_nll"
BARE = "maf, no noise"
METHODS = ("maf", BARE, "nice", "realnvp", "kde", "mixed")
NEIGHBOURS = 16
P = 2.0


def cells(options: Options) -> list[Cell]:
    """Every generator on Adult."""
    methods = options.pick_methods(METHODS, quick=("maf", "kde", "mixed"))
    return options.cells("ablation", ADULT, methods)


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """The likelihood of test rows' nearest neighbours, and how the draws score."""
    task = prepare(cell)
    bare = {"generator_config": {"noise": 0.0, "number_noise": 0.0}} if cell.method == BARE else {}
    generator = cell.method.split(",")[0]
    model = explainer(cell, task, models, generator, **bare)
    near = _held_out(task)
    rows = task.queries.loc[near.index.get_level_values("row")]
    nll = -model.log_density(rows, near.reset_index(drop=True), target=task.targets_of(near), p=P)
    frame = model.sample(
        task.queries, target=task.targets, n=cell.size.candidates, p=P, random_state=cell.seed, filter=False
    )
    possible = np.isfinite(nll)
    return {
        "nll": nll[possible].mean() if possible.any() else np.inf,
        "nll_median": float(np.median(nll)),
        "impossible": 1.0 - possible.mean(),
        "out_of_time": is_cut(model),
        "scores": score_draws(cell, task, frame),
    }


def _held_out(task: Task) -> pd.DataFrame:
    """Each query's nearest test rows of the target class: answers that no density has seen.

    Training rows would be the very centres of `kde`'s kernels. There are as many as lie where 16 training rows do.
    """
    data = task.data
    most = round(NEIGHBOURS * len(data.X_test) / len(data.X_train))
    unseen = Problem.of(task.black_box, data.X_test, data.schema)
    n = min(NEIGHBOURS, max(1, most))
    return Oracle().fit(unseen).answer(task.queries, task.targets, n=n).frame


def page(results: Sequence[Result], command: str) -> str:
    """One line per generator."""
    text = (
        "The negative log likelihood of the nearest test rows of the target class, for test rows, "
        f"in nats per row; the paper's in brackets ({LABEL}). The flows and `kde` share a scale: standardised numbers "
        "and one-hot columns. `mixed` gives probabilities to levels and whole numbers instead of densities to "
        "columns, so its figure can't be held against theirs; the draws can, and they stand beside it, unfiltered. A "
        "density at a point mass, such as a capital gain of 0 or a one-hot column, has no upper bound: without the "
        f"noise that our flows add in training (`{BARE}`) the figure may fall for as long as one trains, "
        "which is one way for the paper's maf to come to a negative one. *Impossible* is the share of neighbours with "
        "probability zero."
    )
    rows = [
        [r.cell.method + (" \\*" if r.figures["out_of_time"] else "")]
        + [beside(r.figures["nll"], paper.figure(LABEL, r.cell.method), 2), number(r.figures["nll_median"], 2)]
        + [number(r.figures["impossible"])]
        + [number(r.figures["scores"].get(name)) for name in ("validity_raw", "log_lof", "changed", "gower")]
        for r in merged(results)
    ]
    header = [
        "generator",
        "NLL ↓",
        "median ↓",
        "impossible ↓",
        "raw validity ↑",
        "log LOF ↓",
        "features changed",
        "Gower",
    ]
    return head(TITLE, text, results, command) + table(header, rows)


def findings(results: Sequence[Result]) -> list[Finding]:
    """Whether maf is the likeliest of the paper's densities."""
    figures_ = {r.cell.method: r.figures["nll"] for r in merged(results)}
    others = {name: v for name, v in figures_.items() if name in ("nice", "realnvp", "kde") and v is not None}
    if figures_.get("maf") is None or not others:
        return []
    best = min(others, key=lambda name: others[name])
    ours = figures_["maf"]
    text = f"Ablation: the NLL of maf is {ours:.1f}, of the paper's others {best} is best with {others[best]:.1f}"
    return [Finding("agree" if ours < others[best] else "differ", f"{text}; in the paper maf is ahead.")]


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
