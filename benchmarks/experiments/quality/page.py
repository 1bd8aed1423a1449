"""The page of quality: one table per table of data, methods and seeds side by side."""

from __future__ import annotations

__all__ = ["ROWS", "TITLE", "figures", "page"]

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure

from benchmarks.cells import Result, measured
from benchmarks.experiments.quality.measuring import METHODS
from benchmarks.pages import head, number, table
from benchmarks.tables import TABLES

TITLE = "Quality of the draws"
TEXT = (
    "For every table and seed: a black box is trained, 100 test rows per predicted class are the queries, and each "
    "method draws 100 rows per query for the other class, with no black box at hand."
)
ROWS: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
    ("raw validity, p = 2, default confidence", lambda r: number(r["validity"], 4)),
    ("  without the surrogate's filter", lambda r: number(r["validity_unfiltered"], 4)),
    ("raw validity at confidence 0.9 or the highest supported", lambda r: number(r.get("validity_high"), 4)),
    ("  confidence asked for, by target", lambda r: _asked(r.get("high_confidence"))),
    ("raw validity, three features frozen", lambda r: number(r["validity_frozen"], 4)),
    ("  frozen cells that moved", lambda r: str(r["violations"])),
    ("raw validity, p = 0.01", lambda r: number(r["validity_sparse"], 4)),
    ("share of categories changed, p = 2", lambda r: number(r["categories_changed"])),
    ("share of numbers changed, p = 0.01", lambda r: number(r["numbers_changed_sparse"])),
    ("features changed at p = 2 / 1 / 0.25 / 0.08 / 0.01", lambda r: _path(r["changed"])),
    ("  fall from p = 2 to 0.01", lambda r: f"{1 - r['changed']['0.01'] / r['changed']['2.0']:.0%}"),
    ("log LOF of 10 kept draws, p = 2", lambda r: number(r["lof"])),
    ("  of real test rows / of the 16 nearest rows", lambda r: f"{r['lof_test_rows']:.3f} / {r['lof_neighbours']:.3f}"),
    ("mean pairwise Gower distance of 10 kept draws", lambda r: number(r["gower"])),
    ("  of the 16 nearest rows", lambda r: number(r["gower_neighbours"])),
    ("copies of training rows among draws / test rows", lambda r: f"{r['copies']:.3f} / {r['copies_test_rows']:.3f}"),
    ("fit, seconds", lambda r: f"{r['fit_seconds']:.0f}"),
    ("rows shown to the black box in fit", lambda r: f"{r['black_box_rows'] or 0:,}"),
    ("surrogate and its agreement", lambda r: _surrogate(r)),
]  # fmt: skip


def _path(changed: dict[str, float]) -> str:
    return " / ".join(f"{value:.2f}" for value in changed.values())


def _surrogate(figures: dict[str, Any]) -> str:
    return f"{figures.get('surrogate') or ''} {number(figures.get('surrogate_agreement'))}".strip()


def _asked(levels: dict[str, float] | None) -> str:
    return ", ".join(f"{k}: {v:g}" for k, v in levels.items()) if levels else "–"


def page(results: Sequence[Result], command: str) -> str:
    """One table per table of data, methods and seeds side by side."""
    lines = [head(TITLE, TEXT, results, command, budget=False)]
    found = sorted(measured(results), key=lambda r: (METHODS.index(r.cell.method), r.cell.seed))
    for name in TABLES:
        mine = [r for r in found if r.cell.table == name]
        if mine:
            header = ["", *(f"{r.cell.method}, seed {r.cell.seed}" for r in mine)]
            rows = [[title, *(show(r.figures) for r in mine)] for title, show in ROWS]
            lines += [f"\n## {name}\n", table(header, rows)]
    return "".join(lines)


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
