"""What is measured, part by part."""

from __future__ import annotations

__all__ = ["DRAWS", "METHODS", "PARTS", "PEOPLE_OF_DICE", "cells", "measure"]

from pathlib import Path
from typing import Any

from benchmarks.cells import QUICK, Cell, Size
from benchmarks.experiments.recourse import adult, audit, linked
from benchmarks.experiments.recourse.dice import RANGED
from benchmarks.experiments.recourse.people import FOLDS, JUDGES, TABLE
from benchmarks.options import Options
from benchmarks.tables import ADULT, GERMAN

AUDIT, LADDER, SUFFICIENCY, LINKED = "audit", "ladder", "sufficiency", "linked"
PARTS = {
    AUDIT: audit.measure,
    LADDER: adult.measure_ladder,
    SUFFICIENCY: adult.measure_sufficiency,
    LINKED: linked.measure,
}
METHODS = audit.METHODS
# DiCE gets so many seconds for the people of all folds together.
FULL = Size(queries=200, learning=None, answering=150.0)
PEOPLE_OF_DICE = 50
DRAWS = 100_000
# Of a quick run: people of the audit, of DiCE, and draws under linked rules.
QUICK_PEOPLE, QUICK_DICE, QUICK_DRAWS = 6, 2, 400


def cells(options: Options) -> list[Cell]:
    """The audit judge by judge, then Adult, then draws under linked rules; DiCE last, as it takes longest."""
    methods = options.pick_methods(METHODS, quick=(*audit.ASKED, *list(RANGED)[:1]))
    judges = list(JUDGES)[:1] if options.quick else list(JUDGES)
    seeds, size = options.pick_seeds(), options.size(FULL, QUICK)
    asked = [(seed, judge, method) for seed in seeds for judge in judges for method in methods]
    audits = [_audit(options, method, judge, seed, size) for seed, judge, method in asked]
    if options.tables is not None and TABLE not in options.tables:
        audits = []
    others = [] if options.methods else [cell for seed in seeds for cell in _others(options, seed, size)]
    ours = [cell for cell in audits if cell.method not in RANGED]
    return [*ours, *others, *(cell for cell in audits if cell.method in RANGED)]


def _audit(options: Options, method: str, judge: str, seed: int, size: Size) -> Cell:
    people = QUICK_PEOPLE if options.quick else None
    if method in RANGED:
        people = QUICK_DICE if options.quick else PEOPLE_OF_DICE
    folds = 1 if options.quick else FOLDS
    settings = (("part", AUDIT), ("judge", judge), ("folds", folds), ("people", people))
    return Cell("recourse", TABLE, method, seed, size, settings)


def _others(options: Options, seed: int, size: Size) -> list[Cell]:
    tables = options.pick_tables((ADULT, GERMAN), quick=(GERMAN,))
    adult_too = [ADULT] if options.quick or ADULT in tables else []
    on_adult = [
        Cell("recourse", table, "explain", seed, size, (("part", part),))
        for table in adult_too
        for part in (LADDER, SUFFICIENCY)
    ]
    draws = QUICK_DRAWS if options.quick else DRAWS
    amounts = (("draws", draws), ("people", 2 if options.quick else 20), ("each", 50))
    return [*on_adult, *(Cell("recourse", t, "sample", seed, size, (("part", LINKED), *amounts)) for t in tables)]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """All figures of a cell."""
    return PARTS[cell.setting("part")](cell, models)
