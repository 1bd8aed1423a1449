"""Frozen features on Adult: how often they change without the mask, with the paper's soft mask, and with ours."""

from __future__ import annotations

__all__ = ["MASKS", "TITLE", "cells", "figures", "findings", "measure", "page"]

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks import paper
from benchmarks.cells import Cell, Result, merged
from benchmarks.methods import explainer, is_cut, soft_draws
from benchmarks.options import Options
from benchmarks.pages import SCORES, Finding, beside, head, table
from benchmarks.tables import ADULT
from benchmarks.tasks import Task, prepare, score_draws
from dicoflex import DiCoFlex, Schema, metrics

TITLE = "Masks"
MASKS = {
    "mask 1": ("capital_gain", "capital_loss"),
    "mask 2": ("age",),
    "mask 3": ("race",),
    "mask 4": ("sex", "native_country"),
}
FEATURES = [(mask, feature) for mask, features in MASKS.items() for feature in features]
NONE, SOFT, EXACT = "unmasked", "soft", "exact"
P = 2.0
LABELS = {NONE: "Standard DiCoFlex", SOFT: "Masked-DiCoFlex", EXACT: "Masked-DiCoFlex"}


def cells(options: Options) -> list[Cell]:
    """Both generators on Adult."""
    methods = options.pick_methods(("mixed", "maf"), quick=("mixed", "maf"))
    return options.cells("masks", ADULT, methods)


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """Per mask and manner: how often each masked feature changed, and the scores."""
    task = prepare(cell)
    # The paper's flow is trained for these masks; the default generator for any.
    masks = {"masks": [[], *(list(mask) for mask in MASKS.values())]} if cell.method == "maf" else {}
    model = explainer(cell, task, models, cell.method, **masks)
    free = _look(cell, task, _draw(cell, task, model, ()))
    found: dict[str, Any] = {NONE: {"scores": free["scores"], "features": {}}, EXACT: {}}
    found["out_of_time"] = is_cut(model)
    for name, mask in MASKS.items():
        found[NONE]["features"] |= {feature: free["features"][feature] for feature in mask}
        found[EXACT][name] = _look(cell, task, _draw(cell, task, model, mask), mask)
        if cell.method == "maf":
            frame = soft_draws(
                model, task.queries, task.targets, n=cell.size.candidates, p=P, frozen=list(mask), seed=cell.seed
            )
            found.setdefault(SOFT, {})[name] = _look(cell, task, frame, mask)
    return found


def _draw(cell: Cell, task: Task, model: DiCoFlex, mask: tuple[str, ...]) -> pd.DataFrame:
    return model.sample(
        task.queries, target=task.targets, n=cell.size.candidates, p=P, frozen=mask, random_state=cell.seed,
        filter=cell.method == "mixed",
    )  # fmt: skip


def _look(cell: Cell, task: Task, frame: pd.DataFrame, mask: tuple[str, ...] = ()) -> dict[str, Any]:
    """The scores of some draws, and for each masked feature how often it changed among the valid ones."""
    valid = frame[task.is_valid(frame)]
    return {
        "scores": score_draws(cell, task, frame, frozen=mask),
        "features": {name: _changes(task, valid, name) for name in (mask or [f for _, f in FEATURES])},
    }


def _changes(task: Task, frame: pd.DataFrame, name: str) -> dict[str, float]:
    """How often a feature changed at all, and as the paper counts it: a number by more than 5 % of its range."""
    feature = task.data.schema[name]
    alone = Schema(features=(feature,))
    changed = float(metrics.changed(task.queries, frame, alone).to_numpy().mean()) if len(frame) else float("nan")
    moved = metrics.epsilon_sparsity(task.queries, frame, alone) if feature.is_number else changed
    return {"changed": changed, "moved": moved}


def page(results: Sequence[Result], command: str) -> str:
    """The paper's two tables."""
    found = merged(results)
    text = (
        "Shares of valid draws in which a masked feature changed: a number by more than 5 % of its range, a category "
        "at all; the paper's figure in brackets (tab:mask_orig_comp). *Unmasked* is without a mask. *Soft* is the "
        "flow as it draws when told of the mask, which is what the paper reports. *Exact* is what the library "
        "returns: frozen features are the query's own. The paper's text calls mask 3 the one of age; its table "
        "says mask 2, and that is followed here."
    )
    shares = [row for r in found for row in _share_rows(r)]
    scores = [row for r in found for row in _score_rows(r)]
    header = ["draws", *(f"{mask}: {feature}" for mask, feature in FEATURES)]
    return "".join([
        head(TITLE, text, results, command),
        "\n## How often masked features change\n",
        table(header, shares),
        "\n## What a mask does to the scores\n\nThe paper's in brackets (tab:moremask).\n",
        table(["draws", *(s.title for s in SCORES)], scores),
    ])  # fmt: skip


def _share_rows(result: Result) -> list[list[str]]:
    rows = []
    for manner in (m for m in LABELS if m in result.figures):
        cells_ = [
            beside(_share(result, manner, mask, feature), paper.figure("tab:mask_orig_comp", LABELS[manner], feature))
            for mask, feature in FEATURES
        ]
        rows.append([f"{result.cell.method}, {manner}", *cells_])
    return rows


def _share(result: Result, manner: str, mask: str, feature: str, kind: str = "moved") -> float | None:
    found = result.figures[manner]
    return (found if manner == NONE else found[mask])["features"][feature][kind]


def _score_rows(result: Result) -> list[list[str]]:
    rows = [_scores(f"{result.cell.method}, {NONE}", result.figures[NONE]["scores"], "unconstrained")]
    for manner in (m for m in (SOFT, EXACT) if m in result.figures):
        for mask, found in result.figures[manner].items():
            rows.append(_scores(f"{result.cell.method}, {manner}, {mask}", found["scores"], mask))
    return rows


def _scores(name: str, scores: dict[str, float | None], label: str) -> list[str]:
    return [name, *(beside(scores.get(s.name), paper.figure("tab:moremask", label, s.name)) for s in SCORES)]


def findings(results: Sequence[Result]) -> list[Finding]:
    """Whether frozen features stay, in the default generator's answers and in the flow's own draws."""
    texts = []
    printed = [paper.figure("tab:mask_orig_comp", LABELS[SOFT], feature) or 0.0 for _, feature in FEATURES]
    for result in merged(results):
        exact = max(_share(result, EXACT, mask, feature, "changed") or 0.0 for mask, feature in FEATURES)
        verdict = "better" if exact == 0 else "not"
        bounds = f"{min(printed):.3f} to {max(printed):.3f}"
        how = "after the exact copy" if SOFT in result.figures else "which gives them no chance to change"
        text = (
            f"Masks, {result.cell.method}, {how}: frozen features change in {exact:.3f} of the answers, by construction"
        )
        texts.append(Finding(verdict, f"{text}; the paper's mask is soft and leaves {bounds}."))
        if SOFT in result.figures:
            texts.append(_softly(result))
    return texts


def _softly(result: Result) -> Finding:
    fell = [
        (_share(result, SOFT, mask, feature) or 0.0) < (_share(result, NONE, mask, feature) or 0.0)
        for mask, feature in FEATURES
    ]
    text = f"Masks, {result.cell.method} as it draws: the soft mask lowers the share of changes for {sum(fell)} of "
    return Finding("agree" if all(fell) else "differ", f"{text}{len(fell)} features; in the paper for all.")


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
