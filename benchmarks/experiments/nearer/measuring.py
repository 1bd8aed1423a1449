"""What is measured of the answers of one method to one model of one table."""

from __future__ import annotations

__all__ = ["METHODS", "cells", "measure"]

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from benchmarks.black_boxes import BLACK_BOXES
from benchmarks.cells import Cell, Size
from benchmarks.experiments.nearer.rivals import RIVALS, Asked
from benchmarks.methods import QUICK_MIXED
from benchmarks.options import Options
from benchmarks.tables import ADULT, BANK, DEFAULT, GERMAN, GMC, LENDING_CLUB
from benchmarks.tasks import Task, load
from dicoflex import DiCoFlex

Floats = NDArray[np.float64]
TABLES = (ADULT, BANK, GERMAN, DEFAULT, GMC, LENDING_CLUB)
USUAL = (ADULT, BANK, GERMAN)
BOXES = ("perceptron", "lightgbm", "xgboost")
OWN = ("learned", "learned, check", "exact")
METHODS = (*OWN, *RIVALS)
LEVELS = ("just", "safe", "sure")
NUMBERS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SEEDS = (3, 4)
FULL = Size(queries=100, learning=None, answering=600.0)
QUICK = Size(rows=800, queries=6, learning=0.5, answering=20.0, quick=True)
REFITS, QUICK_REFITS = 20, 3
QUICK_SECONDS = 20.0
NEAREST = 5


def cells(options: Options) -> list[Cell]:
    """Every method on every table and model; in a quick run on German and boosted trees."""
    tables = options.pick_tables(TABLES, quick=(GERMAN,))
    if options.tables is None and not options.quick:
        tables = list(USUAL)
    boxes = ("xgboost",) if options.quick else BOXES
    size = options.size(FULL, QUICK)
    return [
        Cell("nearer", name, method, seed, size, settings=(("model", box),))
        for seed in options.pick_seeds(SEEDS)
        for name in tables
        for box in boxes
        for method in options.pick_methods(METHODS, quick=METHODS)
        if method != "treecf" or box != "perceptron"
    ]


def measure(cell: Cell, models: Path) -> dict[str, Any]:  # noqa: ARG001
    """The figures of all that a method is asked for."""
    posed = _posed(cell.table, cell.seed, cell.size, cell.setting("model"))
    asked, facts = _asked(cell, posed.task)
    return {**facts, "points": {name: posed.figures(frame) for name, frame in asked.items()}}


def _asked(cell: Cell, task: Task) -> tuple[Asked, dict[str, Any]]:
    if cell.method in RIVALS:
        return RIVALS[cell.method](task, cell.seed, NUMBERS, cell.size.answering), {}
    exact = cell.method == "exact"
    model = _fitted(cell.table, cell.seed, cell.size, cell.setting("model"), exact)
    check = task.black_box.predict_proba if "check" in cell.method else None
    highest = float(model.model_.confidence.highest[1])
    numbers = [sure for sure in NUMBERS if sure <= highest]
    found = {
        str(sure): model.explain(
            task.queries, target=1, n=1, confidence=sure, check=check, random_state=cell.seed
        ).frame
        for sure in (*LEVELS, *numbers)
    }  # fmt: skip
    told = model.report_
    facts = {
        "levels": told["confidence"]["1"],
        "surrogate": told["surrogate"],
        "agreement": told["surrogate_agreement"],
        "margin": float(model.model_.certificate.margin[1, 0]) if model.model_.certificate else None,
        "fit_seconds": told["seconds"],
        "model_rows": told["black_box_rows"],
    }
    return found, facts


@lru_cache(maxsize=2)
def _fitted(table: str, seed: int, size: Size, box: str, exact: bool) -> DiCoFlex:
    """Our model; the one without a copy serves with a check and without."""
    task = _posed(table, seed, size, box).task
    quick = (
        {**QUICK_MIXED, "coherence": True, "max_seconds": QUICK_SECONDS}
        if size.quick
        else {"max_seconds": size.learning}
    )
    explainer = DiCoFlex(random_state=seed, schema=task.data.schema, **quick)
    return explainer.fit(task.data.X_train, model=task.black_box, surrogate="exact" if exact else None)


class _Posed:
    """A table with its model, the refused rows, refits of the model, and rows that it accepts."""

    def __init__(self, task: Task, refits: list[Any]) -> None:
        self.task, self.refits = task, refits
        accepted = task.data.X_train[task.labels == 1]
        self.nearest = NearestNeighbors(n_neighbors=min(NEAREST, len(accepted))).fit(self._points(accepted))

    def figures(self, frame: pd.DataFrame) -> dict[str, Any]:
        """What is measured of one answer per row."""
        if len(frame) == 0:
            return {"answered": 0.0}
        task = self.task
        own = task.queries.loc[frame.index.get_level_values("row")]
        apart, changed = self._apart(own, frame)
        rows = frame.reset_index(drop=True)
        sure = task.sureness(frame)
        kept = np.mean([np.asarray(one.predict(rows)) == 1 for one in self.refits], axis=0)
        return {
            "answered": len(frame) / len(task.queries),
            "l1": float(apart.mean()),
            "changed": float(changed.mean()),
            "nearest": float(self.nearest.kneighbors(self._points(rows))[0].mean()),
            "survival": float(kept.mean()),
            "confidence": float(np.median(sure)),
            "confidence_low": float(np.quantile(sure, 0.05)),
            "valid": float(task.is_valid(frame).mean()),
            "whole": self._whole(rows),
        }

    def _apart(self, own: pd.DataFrame, frame: pd.DataFrame) -> tuple[Floats, Floats]:
        """How far answers are from their rows, and how many features differ."""
        encoding = self.task.problem.encoding
        before, after = encoding.encode(own), encoding.encode(frame)
        number = np.array([feature.is_number for feature in encoding.schema.features])
        moved = ~((before == after) | (np.isnan(before) & np.isnan(after)))
        size = np.where(number, np.abs(after - before) / encoding.scale, 1.0)
        # What goes from or to a missing value moves by one.
        size = np.where(np.isnan(size), 1.0, size) * moved
        return size.sum(axis=1), moved.sum(axis=1).astype(float)

    def _points(self, frame: pd.DataFrame) -> Floats:
        encoding = self.task.problem.encoding
        reals: Floats = np.asarray(encoding.to_reals(encoding.encode(frame)), dtype=np.float64)
        number = np.zeros(reals.shape[1], dtype=bool)
        for j, feature in enumerate(encoding.schema.features):
            if feature.is_number:
                number[encoding.blocks[j]] = True
        return np.where(number, reals, reals * np.sqrt(0.5))

    def _whole(self, frame: pd.DataFrame) -> float:
        """The share of answers in which numbers that are whole in training are whole."""
        columns = [f.name for f in self.task.data.schema.features if f.is_number and f.is_whole]
        cells = frame[columns].to_numpy(dtype=float, na_value=0.0)
        return float((cells == np.round(cells)).all(axis=1).mean())


@lru_cache(maxsize=2)
def _posed(table: str, seed: int, size: Size, box: str) -> _Posed:
    data = load(table, size.rows)
    data = replace(data, y_train=_numbered(data.y_train, data.positive), y_test=_numbered(data.y_test, data.positive))
    judge = BLACK_BOXES[box](data, seed)
    rng = np.random.default_rng(seed)
    refused = np.flatnonzero(np.asarray(judge.predict(data.X_test)) == 0)
    picked = np.sort(rng.choice(refused, min(size.queries, len(refused)), replace=False))
    queries = data.X_test.iloc[picked].reset_index(drop=True)
    task = Task(data, judge, queries, np.ones(len(queries), dtype=np.int64))
    return _Posed(task, [_refit(judge, task, rng) for _ in range(QUICK_REFITS if size.quick else REFITS)])


def _numbered(labels: pd.Series, positive: Any) -> pd.Series:
    return (labels == positive).astype(np.int64)


def _refit(judge: Any, task: Task, rng: np.random.Generator) -> Any:
    """The model trained again, on rows drawn with replacement and with a seed of its own."""
    rows = rng.integers(len(task.data.X_train), size=len(task.data.X_train))
    again = clone(judge)
    last: Callable[..., Any] = again[-1].set_params
    last(random_state=int(rng.integers(2**31)))
    return again.fit(task.data.X_train.iloc[rows], task.data.y_train.iloc[rows])
