"""How long a person waits for one row."""

from __future__ import annotations

__all__ = ["measure"]

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Cell
from benchmarks.experiments.speed.ground import ANSWERS, Amount, mixed_file, one_query
from benchmarks.tasks import prepare
from dicoflex import load


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """Percentiles over many calls in one process, after one."""
    task, calls = prepare(cell), Amount.of(cell).calls
    explainer = load(mixed_file(cell, task, models))
    rows = [one_query(task, turn) for turn in range(len(task.queries))]

    def explain(row: pd.DataFrame, target: np.ndarray, seed: int) -> Any:
        return explainer.explain(row, target=target, n=ANSWERS, random_state=seed)

    def sample(row: pd.DataFrame, target: np.ndarray, seed: int) -> Any:
        return explainer.sample(row, target=target, n=cell.size.candidates, random_state=seed)

    asked = {f"explain, {ANSWERS} answers": explain, f"sample, {cell.size.candidates} draws": sample}
    return {"calls": calls, "milliseconds": {k: _waits(ask, rows, calls) for k, ask in asked.items()}}


def _waits(ask: Callable[..., Any], rows: Sequence[tuple[Any, Any]], calls: int) -> dict[str, float]:
    ask(*rows[-1], 0)
    waits = []
    for i in range(calls):
        started = time.perf_counter()
        ask(*rows[i % len(rows)], i)
        waits.append(1000 * (time.perf_counter() - started))
    return {"p50": float(np.percentile(waits, 50)), "p99": float(np.percentile(waits, 99)), "max": max(waits)}
