"""Whether the certified rate holds: small refits, each on rows of its own, asked for answers to fresh queries."""

from __future__ import annotations

__all__ = ["NAME", "REFITS", "cells", "measure"]

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.cells import Cell, Size
from benchmarks.methods import QUICK_MIXED
from benchmarks.options import Options
from benchmarks.tables import ADULT, TABLES
from benchmarks.tasks import Task, load, pose
from dicoflex import Counterfactuals, DiCoFlex
from dicoflex.datasets import Dataset

NAME = "certified rate"
REFITS, QUICK_REFITS = 100, 1
FULL = Size(rows=3000, learning=None)
QUICK = Size(rows=1500, queries=10, learning=None, quick=True)
ANSWERS = 10
# What is asked, by the sort of question that a rate is certified for.
QUESTIONS: dict[str, dict[str, Any]] = {
    "free": {"p": 2.0},
    "few": {"p": 0.01},
    "frozen": {"p": 2.0, "frozen": TABLES[ADULT].frozen},
}


def cells(options: Options, *, seed: int) -> list[Cell]:
    """A cell for each refit, so that a stopped run goes on where it was."""
    size = options.size(FULL, QUICK)
    count = QUICK_REFITS if options.quick else REFITS
    tables = options.pick_tables([ADULT], quick=[ADULT])
    return [Cell("answers", name, NAME, seed, size, (("refit", k),)) for name in tables for k in range(count)]


def measure(cell: Cell) -> dict[str, Any]:
    """For each sort of question and target: the rate that answers are told, and the share of them that are valid."""
    refit = cell.setting("refit")
    task = pose(_some(load(cell.table), cell.size.rows, (cell.seed, refit)), cell.size.queries, seed=refit)
    model = DiCoFlex(schema=task.data.schema, random_state=refit, verbose=False, **QUICK_MIXED)
    model.fit(task.data.X_train, task.labels, predict_proba=task.black_box.predict_proba)
    rates = []
    for sort, asked in QUESTIONS.items():
        found = model.explain(task.queries, target=task.targets, n=ANSWERS, random_state=refit, **asked)
        rates += [{"sort": sort, **rate} for rate in _rates(task, found)]
    return {"fit_seconds": model.report_["seconds"], "rates": rates}


def _some(data: Dataset, rows: int | None, seed: tuple[int, int]) -> Dataset:
    """The table with some of its training rows, at random."""
    count = len(data.X_train)
    at = np.random.default_rng(seed).choice(count, min(rows or count, count), replace=False)
    return replace(data, X_train=data.X_train.iloc[at], y_train=data.y_train.iloc[at])


def _rates(task: Task, found: Counterfactuals) -> list[dict[str, Any]]:
    """By target: answers, the share of them that is valid, and the rate that they are told."""
    targets, valid = task.targets_of(found.frame), task.is_valid(found.frame)
    told = found.info["valid_at_least"].to_numpy(dtype=float)
    return [
        {
            "target": str(label),
            "answers": int((targets == label).sum()),
            "certified": float(told[targets == label].max()),
            "valid": float(valid[targets == label].mean()),
        }
        for label in np.unique(targets)
    ]
