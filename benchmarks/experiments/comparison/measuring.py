"""Every method on every table: its scores in both directions, and its times."""

from __future__ import annotations

__all__ = ["QUICK_METHODS", "TIMED", "cells", "measure"]

from pathlib import Path
from typing import Any

from benchmarks.cells import Cell
from benchmarks.methods import METHODS, MULTI, fit
from benchmarks.options import Options
from benchmarks.tables import MAIN
from benchmarks.tasks import prepare, score_answers

QUICK_METHODS = ("mixed (p=2.0)", "mixed, sure (p=2.0)", "maf (p=2.0)", "cchvae", "wachter")
TIMED = 100


def cells(options: Options) -> list[Cell]:
    """Table by table, so that a table's black box is trained once."""
    methods = options.pick_methods(METHODS, quick=QUICK_METHODS)
    tables = options.pick_tables(MAIN, quick=MAIN[:1])
    return [cell for name in tables for cell in options.cells("comparison", name, methods)]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """All scores of a method on a table, in both directions, and its times."""
    task = prepare(cell)
    ask, facts = fit(cell, task, models)
    many = cell.method in MULTI
    found = ask(task.queries, task.targets, n=cell.size.candidates if many else 1, seconds=cell.size.answering)
    few, short = slice(0, TIMED), cell.size.answering and cell.size.answering / 4
    one = ask(task.queries[few], task.targets[few], n=1, seconds=short)
    return {
        **facts,
        "seconds": found.seconds,
        "done": float(found.done.mean()),
        "out_of_time": bool(facts["fit_cut"] or not found.done.all()),
        "seconds_for_one": one.seconds * TIMED / one.done.sum() if one.done.any() else None,
        "seconds_given": short,
        "one_is_estimated": not one.done.all() or len(one.done) < TIMED,
        "scores": score_answers(task, found, size=cell.size, many=many, seed=cell.seed),
    }
