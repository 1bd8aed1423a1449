"""Many draws for many queries, each time in a fresh process: seconds, and the memory that they take."""

from __future__ import annotations

__all__ = ["draw_many", "measure"]

import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import Cell
from benchmarks.experiments.speed.ground import Amount, mixed_file
from benchmarks.machine import apart, held_mb, peak_mb
from benchmarks.tasks import load as table_of
from benchmarks.tasks import prepare
from dicoflex import load


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """Medians over fresh processes."""
    model, amount = mixed_file(cell, prepare(cell), models), Amount.of(cell)
    runs = [apart(draw_many, asdict(cell), str(model)) for _ in range(amount.repeats)]
    medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return medians | {"draws": amount.many * cell.size.candidates, "runs": runs}


def draw_many(stored: dict[str, Any], model: str) -> dict[str, float]:
    """Seconds and memory of one `sample`; to be called in a process that has done nothing else.

    above_mb: the peak, less what the process held with the model and the queries loaded. It includes what compiled code
    takes, which the first call loads; seconds do not, they are a second call's.
    """
    cell = Cell.of(stored)
    test = table_of(cell.table).X_test
    rows = test.take(np.resize(np.arange(len(test)), Amount.of(cell).many)).reset_index(drop=True)
    started = time.perf_counter()
    explainer = load(model)
    loading = time.perf_counter() - started
    before = held_mb()
    explainer.sample(rows.head(1), n=cell.size.candidates, random_state=cell.seed)
    started = time.perf_counter()
    explainer.sample(rows, n=cell.size.candidates, random_state=cell.seed)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "above_mb": peak_mb() - before, "before_mb": before, "load_seconds": loading}
