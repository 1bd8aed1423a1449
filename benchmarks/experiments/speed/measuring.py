"""Which parts are timed on which tables."""

from __future__ import annotations

__all__ = ["PARTS", "cells", "measure"]

from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell, Measure, Size
from benchmarks.experiments.speed import latency, sampling, search, startup, throughput
from benchmarks.experiments.speed.ground import Amount
from benchmarks.machine import cores, versions
from benchmarks.options import Options
from benchmarks.tables import MAIN

PARTS: dict[str, Measure] = {
    "search": search.measure,
    "sampling": sampling.measure,
    "latency": latency.measure,
    "throughput": throughput.measure,
    "startup": startup.measure,
}
STARTUP = "startup"
TABLES = MAIN[:3]
PACKAGES = ("dicoflex", "numpy", "pandas", "torch", "zuko", "nflows", "dice-ml")
FULL = Size(learning=None)
QUICK = Size(rows=1500, queries=10, candidates=20, learning=None, quick=True)
MUCH, LITTLE = Amount(), Amount(repeats=2, anchors=40, calls=30, dice_queries=2, many=200)


def cells(options: Options) -> list[Cell]:
    """Table by table; start-up needs none. On other cores or with other versions it is another cell."""
    size = options.size(FULL, QUICK)
    given = {name: getattr(options, name) for name in ("repeats", "calls") if getattr(options, name) is not None}
    amount = replace(LITTLE if options.quick else MUCH, **given)
    settings = (amount.setting, ("on", (f"{cores()} cores", *versions(PACKAGES))))
    parts = [part for part in PARTS if options.parts is None or part in options.parts]
    tables = options.tables or (TABLES[:1] if options.quick else TABLES)
    return [
        Cell("speed", table, part, options.pick_seeds()[0], size, settings)
        for table in (*tables, "")
        for part in parts
        if (part == STARTUP) == (table == "")
    ]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """The figures of a part on a table."""
    return PARTS[cell.method](cell, models)
