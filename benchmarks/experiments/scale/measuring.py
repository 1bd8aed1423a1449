"""What is measured of one fit: seconds, memory, the draws' validity, and what a sample does to neighbours."""

from __future__ import annotations

__all__ = ["cells", "measure"]

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Cell, Size
from benchmarks.experiments.scale.rows import synthetic_adult
from benchmarks.machine import apart, peak_mb
from benchmarks.methods import QUICK_MIXED
from benchmarks.options import Options
from benchmarks.tables import ADULT
from benchmarks.tasks import Task, cut, pose
from dicoflex import DiCoFlex, datasets, metrics
from dicoflex.learning.config import FitConfig
from dicoflex.neighbours import Neighbours, Pool, nearest
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.survey import take_rows

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_ROWS = (500, 2000)
FULL = Size(learning=None)
QUICK = Size(queries=5, candidates=20, learning=None, quick=True)
SETTINGS = (("box_rows", 30_000), ("most_rows", FitConfig().most_rows))
QUICK_SETTINGS = (("box_rows", 2000), ("most_rows", 600))
EXPONENTS = (2.0, 0.01)
NEIGHBOURS = 16
CHUNK = 50_000


def cells(options: Options) -> list[Cell]:
    """A fit per size, seed by seed, so that a run that was stopped has all sizes early."""
    size = options.size(FULL, QUICK)
    rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
    settings = QUICK_SETTINGS if options.quick else SETTINGS
    return [
        Cell("scale", ADULT, "mixed", seed, size, (("rows", n), *settings))
        for seed in options.pick_seeds()
        for n in rows
    ]


def measure(cell: Cell, models: Path) -> dict[str, Any]:  # noqa: ARG001
    """All figures of a cell, in a process of its own: memory has a peak that is never forgotten."""
    return apart(measure_here, asdict(cell))


def measure_here(stored: dict[str, Any]) -> dict[str, Any]:
    """The figures of a cell that was stored as a dict."""
    cell = Cell.of(stored)
    task = pose(cut(datasets.load(ADULT), cell.setting("box_rows")), cell.size.queries, seed=cell.seed)
    X = synthetic_adult(cell.setting("rows"), cell.seed)
    y = _labels(task.black_box, X)
    before = peak_mb()
    model = DiCoFlex(schema=task.data.schema, random_state=cell.seed, verbose=False, **_settings(cell))
    started = time.perf_counter()
    model.fit(X, y, predict_proba=task.black_box.predict_proba)
    figures: dict[str, Any] = {"fit_seconds": time.perf_counter() - started, "peak_mb": peak_mb(), "before_mb": before}
    figures |= {name: model.report_[name] for name in ("rows_used", "black_box_rows", "surrogate_agreement")}
    return figures | _of_draws(cell, task, model) | _exactness(cell, task, X, y)


def _settings(cell: Cell) -> dict[str, Any]:
    given = QUICK_MIXED if cell.size.quick else {}
    return given | {"fit_config": given.get("fit_config", {}) | {"most_rows": cell.setting("most_rows")}}


def _labels(black_box: Any, X: pd.DataFrame) -> np.ndarray:
    """The black box's labels, asked for in chunks: its one-hot table of a million rows would fill the memory."""
    return np.concatenate([black_box.predict(X.iloc[low : low + CHUNK]) for low in range(0, len(X), CHUNK)])


def _of_draws(cell: Cell, task: Task, model: DiCoFlex) -> dict[str, float]:
    asked: dict[str, Any] = {"target": task.targets, "n": cell.size.candidates, "random_state": cell.seed}
    figures = {}
    for p in EXPONENTS:
        draws = model.sample(task.queries, p=p, **asked)
        figures[f"validity_{p:g}"] = task.validity(draws)
        figures[f"changed_{p:g}"] = float(metrics.changed(task.queries, draws, task.data.schema).sum(axis=1).mean())
    figures["validity_unfiltered"] = task.validity(model.sample(task.queries, filter=False, **asked))
    return figures


def _exactness(cell: Cell, task: Task, X: pd.DataFrame, y: np.ndarray) -> dict[str, float]:
    """How near the neighbours in the sample that `fit` takes come to those in the whole table, at two exponents.

    overlap: the share of the sample's neighbours that are no farther than the whole table's last, so that of equal rows
    any will do. ratio: their mean distance, as a multiple of that of the whole table's.
    """
    classes, labels = np.unique(y, return_inverse=True)
    rows = take_rows(X, task.data.schema, labels, most=cell.setting("most_rows"), seed=cell.seed)
    anchors, wanted = rows.encoding.encode(task.queries), np.searchsorted(classes, task.targets)
    sampled = Pool.group(rows.encoding.parts(rows.values), rows.labels, len(classes))
    whole = Pool.group(rows.encoding.parts(rows.encoding.encode(X)), labels, len(classes))
    figures = {}
    for p in EXPONENTS:
        near, nearer = (_nearest(rows.encoding, anchors, pool, wanted, p) for pool in (sampled, whole))
        as_near = near.distances <= nearer.distances[:, -1:] * (1 + 1e-5)
        figures[f"overlap_{p:g}"] = float(as_near.mean())
        figures[f"ratio_{p:g}"] = float(near.distances.mean() / nearer.distances.mean())
    return figures


def _nearest(encoding: Encoding, anchors: Values, pool: Pool, target: np.ndarray, p: float) -> Neighbours:
    return nearest(
        encoding.parts(anchors), pool, target=target, p=np.full(len(anchors), p),
        mask=np.zeros(anchors.shape, dtype=bool), k=NEIGHBOURS,
    )  # fmt: skip
