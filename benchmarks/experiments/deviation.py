"""How much the answers to one query differ in each score: a view of the comparison's cells."""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page"]

from collections.abc import Sequence

from matplotlib.figure import Figure

from benchmarks import paper
from benchmarks.cells import Result, merged
from benchmarks.experiments.comparison import cells, measure
from benchmarks.methods import MULTI
from benchmarks.pages import SCORES, Finding, beside, head, joined, table
from benchmarks.tasks import BOTH

TITLE = "Standard deviations"
LABEL = "tab:comparison_std"
# The hypervolume belongs to a whole set and has no deviation.
MEASURED = SCORES[:-1]


def page(results: Sequence[Result], command: str) -> str:
    """The mean over queries of the standard deviation inside a query's answers, beside the paper's."""
    text = (
        f"The mean over queries of the standard deviation among a query's answers; the paper's in brackets ({LABEL}). "
        "Answers are chosen for being valid, so validity has none."
    )
    lines = [head(TITLE, text, results, command)]
    found = [r for r in merged(results) if r.cell.method in MULTI]
    for name in dict.fromkeys(r.cell.table for r in found):
        rows = [_row(r) for r in found if r.cell.table == name]
        lines.append(f"\n## {name}\n" + table(["method", *(s.plain for s in MEASURED)], rows))
    return "".join(lines)


def _row(result: Result) -> list[str]:
    scores, cell = result.figures["scores"].get(BOTH, {}), result.cell
    model = paper.MODELS.get(cell.method, "")
    cut = " \\*" if result.figures["out_of_time"] else ""
    printed = [beside(scores.get(f"{s.name}_std"), paper.figure(LABEL, cell.table, model, s.name)) for s in MEASURED]
    return [cell.method + cut, *printed]


def findings(results: Sequence[Result]) -> list[Finding]:
    """Whether DiCE's answers differ most in proximity, as the paper prints it."""
    found = merged(results)
    held, broken = [], []
    for name in dict.fromkeys(r.cell.table for r in found):
        spread = {
            r.cell.method: r.figures["scores"].get(BOTH, {}).get("proximity_std") for r in found if r.cell.table == name
        }
        dice = [v for method, v in spread.items() if method.startswith("dice") and v is not None]
        others = [v for method, v in spread.items() if method.startswith(("maf", "cchvae")) and v is not None]
        if dice and others:
            (held if max(dice) > max(others) else broken).append(name)
    if not held and not broken:
        return []
    text = "DiCE's answers to a query differ more in proximity than those of CCHVAE and the paper's flow"
    if not broken:
        return [Finding("agree", f"{text}: so here, on {joined(held)}.")]
    return [Finding("differ", f"{text}: here on {joined(held) or 'no table'}, not on {joined(broken)}.")]


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
