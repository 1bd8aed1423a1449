"""What is measured of the answers of one method on one table."""

from __future__ import annotations

__all__ = [
    "ANSWERS", "ASKED", "EXPLAIN", "METHODS", "ONE", "SEEDS", "SHORT", "SHOWN", "TABLES", "Standard", "cells",
    "measure",
]  # fmt: skip

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.baselines import BASELINES
from benchmarks.baselines.base import Answers
from benchmarks.baselines.oracle import Oracle
from benchmarks.cells import QUICK, Cell, Size
from benchmarks.experiments.answers import certified, dependencies
from benchmarks.methods import ANSWERS, EXPLAINED, Ask, fit, model_file
from benchmarks.options import Options
from benchmarks.tables import GERMAN, MAIN
from benchmarks.tasks import Task, prepare
from dicoflex import DiCoFlex, metrics
from dicoflex import load as load_model

# What `explain` is asked for, by the name of the method.
EXPLAIN: dict[str, dict[str, Any]] = {
    **{name: {"p": p} for name, p in EXPLAINED.items()},
    "explain, unrefined (p=2.0)": {"p": 2.0, "refine": False},
    "explain, unrefined (p=0.01)": {"p": 0.01, "refine": False},
}
# Methods that answer query by query, for seconds each: they get the first few queries.
SLOW = ("dice-random", "dice-genetic", "dice-kdtree")
# The nearest of those training rows alone of which the black box is as sure as is asked of answers.
SURE_ROWS = "oracle, sure"
ASKED = (*EXPLAIN, "oracle", SURE_ROWS, *SLOW, "cchvae", "tabcf")
ONE = tuple(name for name in ASKED if name in BASELINES and not BASELINES[name].many)
METHODS = (*ASKED, certified.NAME, *dependencies.METHODS)
QUICK_METHODS = ("explain (p=2.0)", "explain, unrefined (p=2.0)", "oracle", SURE_ROWS)
TABLES = (*MAIN, GERMAN)
# Settings were chosen with seeds 7 and 11.
SEEDS = (1, 2)
FULL = Size(learning=None, answering=None)
ENOUGH = 5
# As many answers as a person is shown first.
SHOWN = 3
FEW_QUERIES = 20
# A change is needless if the target is surer by so much without it; an answer may be so much less sure than asked for.
MARGIN, SHORT = 0.05, 0.02
REAL_ROWS, FLOOR_ROWS, LOF_ROWS = 6000, 3000, 2000


def cells(options: Options) -> list[Cell]:
    """Table by table and seed by seed, so that black box, judge and local densities are made once for all methods.

    What is promised of all answers is counted after them, with the first seed.
    """
    tables, seeds = options.pick_tables(TABLES, quick=TABLES[:1]), options.pick_seeds(SEEDS)
    methods = options.pick_methods(METHODS, quick=(*QUICK_METHODS, certified.NAME, *dependencies.METHODS))
    size = options.size(FULL, QUICK)
    asked = [
        Cell("answers", name, method, seed, size)
        for name in tables
        for seed in seeds
        for method in methods
        if method in ASKED
    ]
    counted = [*certified.cells(options, seed=seeds[0]), *dependencies.cells(options, seed=seeds[0])]
    return [*asked, *(cell for cell in counted if cell.method in methods)]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """All figures of a cell."""
    if cell.method == certified.NAME:
        return certified.measure(cell)
    if cell.method in dependencies.METHODS:
        return dependencies.measure(cell, models)
    task = prepare(cell)
    found, facts = _explained(cell, task, models) if cell.method in EXPLAIN else _answered(cell, task, models)
    queries = task.queries.head(len(found.done))[found.done]
    standard = Standard(task, facts["asked"])
    return {
        **facts,
        "queries": len(queries),
        "answers": len(found.frame),
        "ms": 1e3 * found.seconds / max(len(queries), 1),
        "out_of_time": not found.done.all(),
        **_of_answers(standard, queries, found.frame),
        **_of_changes(standard, queries, found.frame),
        "real": _real(task).figures,
    }


# -- asking -----------------------------------------------------------------------------------------------------------


def _explained(cell: Cell, task: Task, models: Path) -> tuple[Answers, dict[str, Any]]:
    """What `explain` answers, and facts about its model: seconds of the fit, size of the file, confidence asked for."""
    path = model_file(cell, task, models, "mixed")
    model = load_model(path)
    usual = _usual(task)
    sure = {"confidence": min(min(usual.values()), *model.model_.confidence.highest.tolist())}
    asked = {"n": ANSWERS, "random_state": cell.seed, **sure, **EXPLAIN[cell.method]}
    model.explain(task.queries.head(2), target=task.targets[:2], **asked)
    started = time.perf_counter()
    found = model.explain(task.queries, target=task.targets, **asked)
    answers = Answers(found.frame, time.perf_counter() - started, np.ones(len(task.queries), dtype=bool))
    return answers, {
        "fit_seconds": model.report_["seconds"],
        "file_mb": path.stat().st_size / 1e6,
        "asked": usual,
        "incoherent": _incoherent(model, task),
    }


def _answered(cell: Cell, task: Task, models: Path) -> tuple[Answers, dict[str, Any]]:
    """What a baseline answers; the confidence is what `explain` would have asked for, of which it knows nothing."""
    usual = _usual(task)
    ask, facts = _sure_rows(task, usual) if cell.method == SURE_ROWS else fit(cell, task, models)
    few = slice(0, FEW_QUERIES if cell.method in SLOW else len(task.queries))
    found = ask(task.queries[few], task.targets[few], n=ANSWERS, seconds=cell.size.answering)
    return found, {"fit_seconds": facts["fit_seconds"], "file_mb": None, "asked": usual}


def _sure_rows(task: Task, asked: dict[Any, float]) -> tuple[Ask, dict[str, Any]]:
    """The nearest training rows of the target class, of which the black box is as sure as asked for."""
    problem, chances = task.problem, task.black_box.predict_proba(task.data.X_train).max(axis=1)
    sure = chances >= np.array([asked[label] for label in problem.labels.tolist()])
    few = replace(problem, train=problem.train[sure], labels=problem.labels[sure])
    return Oracle().fit(few).answer, {"fit_seconds": 0.0}


def _incoherent(model: DiCoFlex, task: Task) -> float | None:
    """The share of real test rows that the model would call incoherent."""
    known = model.model_.coherence
    return None if known is None else _mean(known.pairs.broken(model.model_.encoding.encode(task.data.X_test)))


def _usual(task: Task) -> dict[Any, float]:
    """How sure answers must be, by target: 0.7, or what half of a class's training rows reach where fewer than 100
    reach it; of all classes the least."""
    classes = task.black_box.classes_.tolist()
    chances = task.black_box.predict_proba(task.data.X_train)
    usual = {}
    for c, label in enumerate(classes):
        sure = np.sort(chances[chances.argmax(axis=1) == c, c])[::-1]
        highest = sure[min(100, max(1, len(sure) // 2)) - 1]
        usual[label] = 0.7 if highest >= 0.7 else float(min(highest, sure[len(sure) // 2]))
    return dict.fromkeys(usual, min(usual.values()))


# -- judging ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Standard:
    """What answers are held against: the black box, pairs of values that occur, and how likely real rows are."""

    task: Task
    asked: dict[Any, float]

    def wanted(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """How sure the black box should be of each answer."""
        return np.array([self.asked[label] for label in self.task.targets_of(frame).tolist()])

    def is_rare(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Which answers are less likely than 95 % of real rows of their target."""
        if len(frame) == 0:
            return np.zeros(0, dtype=bool)
        return _real(self.task).floor.below(self.task.judge.log_density(frame), self.task.targets_of(frame))

    def fine(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Which rows would do with a margin: surer than was asked for, no unseen pair, not rare."""
        tests: list[Callable[[pd.DataFrame], NDArray[np.bool_]]] = [
            lambda rows: self.task.sureness(rows) >= self.wanted(rows) + MARGIN,
            lambda rows: ~self.task.pairs.unseen(rows, self.task.queries),
            lambda rows: ~self.is_rare(rows),
        ]
        left = np.arange(len(frame))
        for test in tests:  # the dearest last, and on what is left alone
            left = left[test(frame.iloc[left])]
        return np.isin(np.arange(len(frame)), left)


@dataclass(frozen=True, eq=False)
class _Real:
    """Some real test rows, for what answers are compared with."""

    task: Task
    rows: pd.DataFrame

    @cached_property
    def floor(self) -> metrics.RareFloor:
        """How likely rows of each predicted class are, but for the least likely 5 %; of up to 3,000 rows each."""
        first = pd.Series(self._labels).groupby(self._labels).cumcount().to_numpy() < FLOOR_ROWS
        return metrics.RareFloor(self._scores[first], self._labels[first])

    @cached_property
    def figures(self) -> dict[str, float]:
        """What the measures say of real rows."""
        lof = self.task.reference.lof.score(self.task.data.X_test.head(LOF_ROWS))
        return {
            "unseen": float(self.task.pairs.unseen(self.rows).mean()),
            "rare": float(self.floor.below(self._scores, self._labels).mean()),
            "lof": float(lof.mean()),
        }

    @cached_property
    def _labels(self) -> NDArray[Any]:
        return np.asarray(self.task.black_box.predict(self.rows))

    @cached_property
    def _scores(self) -> NDArray[np.float64]:
        return self.task.judge.log_density(self.rows)


@lru_cache(maxsize=4)
def _real(task: Task) -> _Real:
    rows = task.data.X_test
    return _Real(task, rows.sample(min(REAL_ROWS, len(rows)), random_state=0))


def _of_answers(standard: Standard, queries: pd.DataFrame, frame: pd.DataFrame) -> dict[str, Any]:
    """What each answer is by itself, and how many a query has."""
    task = standard.task
    data = task.data
    got = frame.groupby(level="row").size().reindex(queries.index, fill_value=0)
    sure = task.sureness(frame) >= standard.wanted(frame) - SHORT
    shift = metrics.percentile_shift(queries, frame, data.schema, data.X_train)
    return {
        "validity": task.validity(frame),
        "sure": _mean(sure),
        "enough": _mean(got.to_numpy() >= ENOUGH),
        "none": _mean(got.to_numpy() == 0),
        "unseen": metrics.unseen(queries, frame, task.pairs),
        "rare": _mean(standard.is_rare(frame)),
        "l1": _mean(metrics.proximity(queries, frame, data.schema, task.reference.scale)["l1"].to_numpy()),
        "lof": _mean(task.reference.lof.score(frame)),
        "shift_total": _mean(shift["total"].to_numpy()),
        "shift_largest": _mean(shift["largest"].to_numpy()),
    }


def _of_changes(standard: Standard, queries: pd.DataFrame, frame: pd.DataFrame) -> dict[str, Any]:
    """What answers change, and whether they had to."""
    data = standard.task.data
    undone = metrics.undoable(queries, frame, data.schema, standard.fine)
    halved = metrics.halvable(queries, frame, data.schema, standard.fine, data.X_train)
    return {
        "needless": metrics.needless(undone),
        "reducible": metrics.reducible(undone),
        "closer": metrics.closer(halved),
        "changed": _mean(undone.notna().sum(axis=1).to_numpy()),
        "routes": metrics.routes(queries, frame, data.schema),
        "additions": metrics.additions(queries, frame.groupby(level="row", sort=False).head(SHOWN), data.schema),
    }


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")
