"""The exponent p on Adult: how fewer features change as it falls."""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page"]

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks import paper
from benchmarks.cells import Cell, Result, merged
from benchmarks.methods import EXPONENTS, explainer, is_cut
from benchmarks.options import Options
from benchmarks.pages import SCORES, Finding, beside, canvas, colour, head, number, table
from benchmarks.tables import ADULT
from benchmarks.tasks import prepare, score_draws

TITLE = "Sparsity"
LABEL = "tab:our-perturb"
CURVES = (
    ("sparsity_numbers", "numbers changed at all"),
    ("epsilon_sparsity", "numbers changed by over 5 % of the range"),
    ("sparsity_categories", "categories changed"),
)


def cells(options: Options) -> list[Cell]:
    """Both generators on Adult; one model each answers at every p."""
    methods = options.pick_methods(("mixed", "maf"), quick=("mixed", "maf"))
    return options.cells("sparsity", ADULT, methods)


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """The scores at every exponent."""
    task = prepare(cell)
    model = explainer(cell, task, models, cell.method)
    found: dict[str, Any] = {"out_of_time": is_cut(model), "at": {}}
    for p in EXPONENTS:
        frame = model.sample(
            task.queries, target=task.targets, n=cell.size.candidates, p=p, random_state=cell.seed,
            filter=cell.method == "mixed",
        )  # fmt: skip
        found["at"][str(p)] = score_draws(cell, task, frame)
    return found


def page(results: Sequence[Result], command: str) -> str:
    """One line per generator and p."""
    text = (
        f"One model of each generator, asked at five values of p; the paper's figure in brackets ({LABEL}). "
        f"{_quarrel()} Exact sparsity counts every number that differs, however little."
    )
    rows = [
        [f"{r.cell.method} (p={p})", number(scores.get("validity_raw")), number(scores.get("sparsity_numbers"))]
        + [beside(scores.get(s.name), paper.figure(LABEL, f"DiCoFlex (p={p})", s.name)) for s in SCORES]
        for r in merged(results)
        for p, scores in r.figures["at"].items()
    ]
    header = ["model", "raw validity ↑", "exact sparsity cont. ↓", *(s.title for s in SCORES)]
    return head(TITLE, text, results, command) + "\n![sparsity against p](sparsity.png)\n" + table(header, rows)


def _quarrel() -> str:
    """What the paper prints for the same model in its two tables, where they differ."""
    pairs = [
        (
            s.plain,
            paper.figure(LABEL, model, s.name),
            paper.figure("tab:comparison", ADULT, model, s.name),
            model,
        )
        for model in ("DiCoFlex (p=0.01)", "DiCoFlex (p=2.0)")
        for s in SCORES[1:]
    ]
    apart = [f"{title} of {model} is {a:g} here and {b:g} there" for title, a, b, model in pairs if a and b and a != b]
    return f"This table of the paper differs from its main one: {'; '.join(apart)}." if apart else ""


def findings(results: Sequence[Result]) -> list[Finding]:
    """Whether fewer numbers change the smaller p is, as the paper has it."""
    texts = []
    for result in merged(results):
        shares = [result.figures["at"][str(p)].get("sparsity_numbers") or 0.0 for p in EXPONENTS]
        steady = all(a <= b for a, b in pairwise(shares))
        path = " → ".join(f"{share:.3f}" for share in reversed(shares))
        falls = f"as p falls from {EXPONENTS[-1]} to {EXPONENTS[0]}"
        text = f"Sparsity, {result.cell.method}: numbers changed go {path} {falls}"
        texts.append(Finding("agree" if steady else "differ", f"{text}, {'' if steady else 'not '}steadily."))
    return texts


def figures(results: Sequence[Result]) -> dict[str, Figure]:
    """Shares changed against p, ours and the paper's."""
    figure, axes = canvas(len(CURVES))
    for ax, (name, title) in zip(axes, CURVES, strict=True):
        for result in merged(results):
            ours = [result.figures["at"][str(p)].get(name) for p in EXPONENTS]
            ax.plot(EXPONENTS, _gaps(ours), "o-", color=colour(result.cell.method), label=result.cell.method)
        printed = [paper.figure(LABEL, f"DiCoFlex (p={p})", name) for p in EXPONENTS]
        if any(printed):
            ax.plot(EXPONENTS, _gaps(printed), "s--", color="#6b7583", label="paper")
        ax.set_xscale("log")
        ax.set_ylim(0, 1)
        ax.set_xlabel("p")
        ax.set_title(title, loc="left", fontsize=9)
        ax.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("share of features")
    return {"sparsity.png": figure}


def _gaps(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
