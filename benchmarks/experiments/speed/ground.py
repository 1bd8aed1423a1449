"""What the parts stand on: how much they do, the queries in turn, and the models that they ask."""

from __future__ import annotations

__all__ = ["ANSWERS", "Amount", "maf_file", "mixed_file", "one_query", "tried_threads"]

from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Cell
from benchmarks.machine import cores
from benchmarks.methods import model_file
from benchmarks.tasks import Task

ANSWERS = 10
MAF_SECONDS, QUICK_MAF_SECONDS = 60.0, 0.5
# Few steps, but the network of the default generator: how long an answer takes is what is measured.
QUICK_MIXED: dict[str, Any] = {
    "training": {"epochs": 2, "min_steps": 150},
    "fit_config": {"passes": 2, "own_draws": 8000},
    "generator_config": {},
    "max_seconds": None,
}


@dataclass(frozen=True)
class Amount:
    """How much is done: rounds of which the median is taken, rows of brute force, calls for one row, queries that DiCE
    answers in a batch, and queries of the large run."""

    repeats: int = 5
    anchors: int = 400
    calls: int = 1000
    dice_queries: int = 10
    many: int = 10_000

    @property
    def setting(self) -> tuple[str, tuple[int, ...]]:
        """As one of a cell's settings."""
        return ("amount", astuple(self))

    @classmethod
    def of(cls, cell: Cell) -> Amount:
        """What the settings of a cell say."""
        return cls(*cell.setting("amount"))


def mixed_file(cell: Cell, task: Task, models: Path) -> Path:
    """The file of the default generator, which is fitted unless it is there."""
    return model_file(cell, task, models, "mixed", **(QUICK_MIXED if cell.size.quick else {}))


def maf_file(cell: Cell, task: Task, models: Path) -> Path:
    """The file of the paper's flow, trained for a short time: it draws as fast as a good one."""
    short = replace(cell.size, learning=QUICK_MAF_SECONDS if cell.size.quick else MAF_SECONDS)
    return model_file(replace(cell, size=short), task, models, "maf")


def one_query(task: Task, turn: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Another query each turn, with its target; the classes take turns."""
    at = turn % len(task.queries)
    return task.queries.iloc[[at]], task.targets[[at]]


def tried_threads(cell: Cell) -> tuple[int, ...]:
    """How many threads torch and matrix products are tried on; a busy machine makes several very slow."""
    return (1,) if cell.size.quick else (1, cores())
