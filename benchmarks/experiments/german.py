"""The comparison on German Credit: a small table of 1,000 rows."""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page"]

from collections.abc import Sequence

from matplotlib.figure import Figure

from benchmarks.cells import Cell, Result, merged
from benchmarks.experiments.comparison import findings as standings
from benchmarks.experiments.comparison import measure
from benchmarks.experiments.comparison.page import score_table
from benchmarks.experiments.comparison.standing import RAW
from benchmarks.methods import METHODS
from benchmarks.options import Options
from benchmarks.pages import Finding, head
from benchmarks.tables import GERMAN

TITLE = "German Credit"
LABEL = "tab:german"
QUICK_METHODS = ("mixed (p=2.0)", "oracle")


def cells(options: Options) -> list[Cell]:
    """The comparison's cells, on this table."""
    methods = options.pick_methods(METHODS, quick=QUICK_METHODS)
    return options.cells("comparison", GERMAN, methods)


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
    return [Finding(finding.verdict, f"{TITLE}: {finding.text}") for finding in standings(results)]


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
