"""The comparison on German Credit: a small table of 1,000 rows."""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page"]

from collections.abc import Sequence

from matplotlib.figure import Figure

from experiments import comparison
from experiments.cells import Cell, Options, Result, merged
from experiments.comparison import RAW, measure, score_table
from experiments.methods import METHODS
from experiments.pages import Finding, head

TITLE = "German Credit"
LABEL = "tab:german"
QUICK_METHODS = ("mixed (p=2.0)", "oracle")


def cells(options: Options) -> list[Cell]:
    """The comparison's cells, on this table."""
    methods = options.pick_methods(METHODS, quick=QUICK_METHODS)
    return [Cell("comparison", "german", method, seed, options.size) for seed in options.seeds for method in methods]


def page(results: Sequence[Result], command: str) -> str:
    """One line per method, beside the paper's."""
    text = (
        f"The paper's figure is in brackets ({LABEL}). Its log hypervolumes are negative here and positive on the "
        "larger tables, which suggests that it scaled the numbers "
        "of this one; ours are in the features' own units everywhere. "
        f"{RAW.plain.capitalize()} is of all candidates."
    )
    return head(TITLE, text, results, command) + score_table(merged(results), LABEL)


def findings(results: Sequence[Result]) -> list[Finding]:
    """The comparison's, on this table."""
    return [Finding(finding.verdict, f"{TITLE}: {finding.text}") for finding in comparison.findings(results)]


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
