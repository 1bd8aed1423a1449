"""The paper's settings of its flow, changed one at a time on Adult."""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page"]

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.cells import Cell, Result, merged
from benchmarks.experiments.masks import MASKS
from benchmarks.methods import explainer, is_cut, soft_draws
from benchmarks.options import Options
from benchmarks.pages import SCORES, Finding, head, number, table
from benchmarks.tables import ADULT
from benchmarks.tasks import prepare, score_draws
from dicoflex import metrics

TITLE = "Hyperparameters"
BASE: dict[str, int] = {"K": 16, "alpha": 10, "hidden features": 32, "layers": 5}
TRIED: dict[str, tuple[int, ...]] = {
    "K": (8, 16, 32),
    "alpha": (1, 10, 1000),
    "hidden features": (16, 32, 64),
    "layers": (2, 5),
}
P = 2.0


def cells(options: Options) -> list[Cell]:
    """The paper's choice, and all that differ from it in one setting."""
    tried = [BASE, *(BASE | {name: v} for name, values in TRIED.items() for v in values if v != BASE[name])]
    # Eight trainings that are compared with one another alone: half of the usual time for each.
    size = options.size()
    size = replace(size, learning=size.learning and size.learning / 2)
    return [
        Cell("hyperparameters", ADULT, "maf", seed, size, tuple(settings.items()))
        for seed in options.pick_seeds()
        for settings in (tried[:2] if options.quick else tried)
    ]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """The scores of the flow's draws, and how often age changes when the flow is told to keep it."""
    task = prepare(cell)
    given = dict(cell.settings)
    model = explainer(
        cell, task, models, "maf", k=given["K"], alpha=float(given["alpha"]),
        generator_config={"hidden_features": given["hidden features"], "layers": given["layers"]},
    )  # fmt: skip
    settings: dict[str, Any] = {"n": cell.size.candidates, "p": P}
    frame = model.sample(task.queries, target=task.targets, random_state=cell.seed, filter=False, **settings)
    mask = list(MASKS["mask 2"])
    soft = soft_draws(model, task.queries, task.targets, frozen=mask, seed=cell.seed, **settings)
    return {
        "out_of_time": is_cut(model),
        "held_out_loss": model.report_["held_out_loss"],
        "frozen_changed": metrics.violations(task.queries, soft, mask) / len(soft),
        "scores": score_draws(cell, task, frame),
    }


def page(results: Sequence[Result], command: str) -> str:
    """One line per setting."""
    text = (
        "`maf` on Adult. The paper tries these values and says that the flow is stable across them; it prints no "
        "figures. The first line is its choice. *Age changed* is how often the flow, told to keep age, changes it."
    )
    rows = [
        [
            _name(r.cell) + (" \\*" if r.figures["out_of_time"] else ""),
            number(r.figures["held_out_loss"], 2),
            *(number(r.figures["scores"].get(name)) for name in ("validity_raw", *(s.name for s in SCORES))),
            number(r.figures["frozen_changed"]),
        ]
        for r in merged(results)
    ]
    header = ["setting", "held-out NLL ↓", "raw validity ↑", *(s.title for s in SCORES), "age changed ↓"]
    return head(TITLE, text, results, command) + table(header, rows)


def _name(cell: Cell) -> str:
    changed = [f"{name} = {value}" for name, value in cell.settings if value != BASE[name]]
    return changed[0] if changed else "the paper's choice"


def findings(results: Sequence[Result]) -> list[Finding]:
    """How much the raw validity and the plausibility move across the settings."""
    found = merged(results)
    texts = []
    for name, title, much in (("validity_raw", "raw validity", 0.05), ("log_lof", "log LOF", 0.25)):
        values = [v for r in found if (v := r.figures["scores"].get(name)) is not None]
        if len(values) > 1:
            low, high = min(values), max(values)
            verdict = "agree" if high - low <= much else "differ"
            text = f"Hyperparameters: {title} lies between {low:.3f} and {high:.3f} over {len(values)} settings"
            texts.append(Finding(verdict, f"{text}; the paper calls its flow stable, taken here as within {much:g}."))
    return texts


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
