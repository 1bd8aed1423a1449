"""What every method is asked: a table, its black box, the queries of both directions, and how answers are scored."""

from __future__ import annotations

__all__ = ["BOTH", "Task", "choose", "cut", "load", "pose", "prepare", "score_answers", "score_draws"]

import time
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.baselines.base import Answers, Now, Problem
from benchmarks.black_boxes import BLACK_BOXES
from benchmarks.cells import Cell, Size
from benchmarks.generated import generated
from benchmarks.row_judge import RowJudge
from benchmarks.tables import GENERATED, TWO_MOONS
from dicoflex import datasets, metrics
from dicoflex.datasets import Dataset
from dicoflex.errors import DataError

BOTH = "both"


@dataclass(frozen=True, eq=False)
class Task:
    """A table with its black box and its queries; targets take turns, so that a budget cuts both directions alike.

    now: the clock that budgets of time go by.
    """

    data: Dataset
    black_box: Any
    queries: pd.DataFrame
    targets: NDArray[Any]
    now: Now = time.monotonic

    @cached_property
    def labels(self) -> NDArray[Any]:
        """What the black box says of the training rows."""
        return np.asarray(self.black_box.predict(self.data.X_train))

    @cached_property
    def reference(self) -> metrics.Reference:
        """What answers are held against."""
        return metrics.Reference(self.data.X_train, self.data.schema)

    @cached_property
    def pairs(self) -> metrics.KnownPairs:
        """Which values go together in some training row."""
        return metrics.KnownPairs(self.data.X_train, self.data.schema)

    @cached_property
    def judge(self) -> RowJudge:
        """How likely rows are, by a density that no method learns from."""
        return RowJudge(self.data.X_train, self.data.schema)

    @cached_property
    def problem(self) -> Problem:
        """The task as baselines see it."""
        return Problem.of(self.black_box, self.data.X_train, self.data.schema, now=self.now)

    def targets_of(self, frame: pd.DataFrame) -> NDArray[Any]:
        """The target of each answer."""
        return self.targets[self.queries.index.get_indexer(frame.index.get_level_values("row"))]

    def is_valid(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """For each answer, whether the black box gives the target."""
        if len(frame) == 0:
            return np.zeros(0, dtype=bool)
        return np.asarray(self.black_box.predict(frame) == self.targets_of(frame))

    def sureness(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """For each answer, the black box's probability of the target."""
        if len(frame) == 0:
            return np.zeros(0)
        table, classes = self.black_box.predict_proba(frame), self.black_box.classes_.tolist()
        return metrics.target_probability(table, classes, self.targets_of(frame))

    def validity(self, frame: pd.DataFrame) -> float:
        """The share of answers to which the black box gives the target."""
        return float(self.is_valid(frame).mean()) if len(frame) else float("nan")


def prepare(cell: Cell, *, black_box: str = "perceptron", graded: bool = False) -> Task:
    """The task of a cell; the last ones stay in memory, since many cells share one.

    graded: whether the label is one of three grades, and so is the target.
    """
    return _prepare(cell.table, cell.seed, cell.size.rows, cell.size.queries, black_box, graded)


@lru_cache(maxsize=4)
def _prepare(table: str, seed: int, rows: int | None, queries: int, kind: str, graded: bool) -> Task:
    data = load(table, rows)
    return pose(_graded(data, seed) if graded else data, queries, seed=seed, black_box=kind)


def pose(data: Dataset, queries: int, *, seed: int, black_box: str = "perceptron") -> Task:
    """The task of a table: a black box that learned from it, and so many test rows of each class that it predicts."""
    judge = BLACK_BOXES[black_box](data, seed)
    predicted, classes = np.asarray(judge.predict(data.X_test)), np.asarray(judge.classes_)
    rng = np.random.default_rng(seed)
    picked = [_pick(rng, np.flatnonzero(predicted == label), queries) for label in classes]
    index = np.concatenate(picked)
    # With two classes the next one is the other; with more, any of the others.
    further = rng.integers(1, len(classes), len(index))
    targets = classes[(np.searchsorted(classes, predicted[index]) + further) % len(classes)]
    turns = np.argsort(np.concatenate([np.arange(len(part)) for part in picked]), kind="stable")
    return Task(data, judge, data.X_test.iloc[index[turns]].reset_index(drop=True), targets[turns])


def load(table: str, rows: int | None = None) -> Dataset:
    """The authors' split of a table, cut to `rows`; Adult without their files, and German, come as they ship."""
    if table == TWO_MOONS:
        data = datasets.two_moons()
    elif table == GENERATED:
        data = generated()
    else:
        try:
            data = datasets.load(table, split="paper")
        except DataError:
            data = datasets.load(table)
    return data if rows is None else cut(data, rows)


def cut(data: Dataset, rows: int) -> Dataset:
    """The table with its first training rows alone."""
    return replace(data, X_train=data.X_train.head(rows), y_train=data.y_train.head(rows))


def _graded(data: Dataset, seed: int) -> Dataset:
    """The table with three grades as its label: how likely boosted trees find the positive class."""

    def grades(frame: pd.DataFrame) -> pd.Series:
        likely = judge.predict_proba(frame)[:, list(judge.classes_).index(data.positive)]
        return pd.Series(np.select([likely < 0.1, likely < 0.5], ["low", "middle"], "high"), frame.index)

    judge = BLACK_BOXES["boosting"](data, seed)
    return replace(data, y_train=grades(data.X_train), y_test=grades(data.X_test))


def _pick(rng: np.random.Generator, index: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    return rng.choice(index, min(n, len(index)), replace=False)


# -- scores -----------------------------------------------------------------------------------------------------------


def score_answers(
    task: Task, answers: Answers, *, size: Size, many: bool = True, seed: int = 0
) -> dict[str, dict[str, float]]:
    """The scores of a method's answers to the queries that it got to: for both directions together, and for each.

    As in the paper, of a method that gives many answers `size.kept` valid ones are scored, chosen at random. A
    query without a valid answer counts as 0 in the validity. `validity_raw` and `changed`, the share of features that
    differ, are those of all candidates.
    """
    valid = task.is_valid(answers.frame)
    kept = choose(answers.frame, valid, size.kept, seed) if many else answers.frame
    scores = {}
    for name in (BOTH, *dict.fromkeys(task.targets.tolist())):
        here = answers.done & (True if name == BOTH else task.targets == name)
        if here.any():
            figures = _scores(task, task.queries[here], answers.frame, valid, kept)
            scores[BOTH if name == BOTH else f"to {name}"] = figures
    return scores


def score_draws(cell: Cell, task: Task, frame: pd.DataFrame, *, frozen: tuple[Any, ...] = ()) -> dict[str, float]:
    """The scores of a cell's draws for all queries, both directions together, as `score_answers` has them."""
    valid = task.is_valid(frame)
    kept = choose(frame, valid, cell.size.kept, cell.seed)
    return _scores(task, task.queries, frame, valid, kept, frozen=frozen)


def choose(frame: pd.DataFrame, valid: NDArray[np.bool_], kept: int, seed: int) -> pd.DataFrame:
    """Up to `kept` valid answers of each query, at random."""
    rng = np.random.default_rng(seed)
    good = frame[valid]
    order = good.iloc[rng.permutation(len(good))]
    return order[order.groupby(level="row").cumcount().to_numpy() < kept].sort_index()


def _scores(
    task: Task,
    queries: pd.DataFrame,
    frame: pd.DataFrame,
    valid: NDArray[np.bool_],
    kept: pd.DataFrame,
    *,
    frozen: tuple[Any, ...] = (),
) -> dict[str, float]:
    """The scores for some of the queries: of the kept answers, and of all candidates."""
    raw = _of(frame, queries)
    scores = _score(task, queries, _of(kept, queries), raw_valid=valid[_within(frame, queries)], frozen=frozen)
    return scores | {"changed": _share_changed(task, queries, raw)}


def _score(
    task: Task,
    queries: pd.DataFrame,
    frame: pd.DataFrame,
    *,
    raw_valid: NDArray[np.bool_],
    frozen: tuple[Any, ...],
) -> dict[str, float]:
    targets = task.targets_of(frame)
    classes = np.asarray(task.black_box.classes_)
    table = task.black_box.predict_proba(frame) if len(frame) else np.zeros((0, len(classes)))
    return metrics.score(
        queries,
        frame,
        task.reference,
        targets=task.targets[queries.index],
        predicted=classes[np.argmax(table, axis=1)] if len(frame) else [],
        probability=metrics.target_probability(table, classes.tolist(), targets),
        raw_valid=raw_valid,
        frozen=frozen,
    )


def _share_changed(task: Task, queries: pd.DataFrame, frame: pd.DataFrame) -> float:
    return float(metrics.changed(queries, frame, task.data.schema).to_numpy().mean()) if len(frame) else float("nan")


def _within(frame: pd.DataFrame, queries: pd.DataFrame) -> NDArray[np.bool_]:
    return np.asarray(frame.index.get_level_values("row").isin(queries.index))


def _of(frame: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    return frame[_within(frame, queries)]
