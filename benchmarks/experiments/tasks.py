"""What every method is asked: a table, its black box, the queries of both directions, and how answers are scored."""

from __future__ import annotations

__all__ = ["BOTH", "Task", "choose", "prepare", "score_answers"]

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baselines import Answers, Problem
from black_boxes import perceptron
from dicoflex import datasets, metrics
from dicoflex.datasets import Dataset
from dicoflex.errors import DataError
from experiments.cells import Cell, Size

BOTH = "both"


@dataclass(frozen=True, eq=False)
class Task:
    """A table with its black box and its queries; targets take turns, so that a budget cuts both directions alike."""

    data: Dataset
    black_box: Any
    queries: pd.DataFrame
    targets: NDArray[Any]

    @cached_property
    def reference(self) -> metrics.Reference:
        """What answers are held against."""
        return metrics.Reference(self.data.X_train, self.data.schema)

    @cached_property
    def problem(self) -> Problem:
        """The task as baselines see it."""
        return Problem.of(self.black_box, self.data.X_train, self.data.schema)

    def targets_of(self, frame: pd.DataFrame) -> NDArray[Any]:
        """The target of each answer."""
        return self.targets[self.queries.index.get_indexer(frame.index.get_level_values("row"))]

    def is_valid(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """For each answer, whether the black box gives the target."""
        if len(frame) == 0:
            return np.zeros(0, dtype=bool)
        return np.asarray(self.black_box.predict(frame) == self.targets_of(frame))


def prepare(cell: Cell) -> Task:
    """The task of a cell; the last ones stay in memory, since many cells share one."""
    return _prepare(cell.table, cell.seed, cell.size)


@lru_cache(maxsize=2)
def _prepare(table: str, seed: int, size: Size) -> Task:
    data = _cut(_load(table), size)
    black_box = perceptron(data, seed)
    predicted = np.asarray(black_box.predict(data.X_test))
    classes = np.asarray(black_box.classes_)
    rng = np.random.default_rng(seed)
    picked = [_pick(rng, np.flatnonzero(predicted == label), size.queries) for label in classes]
    turns = [index[i] for i in range(size.queries) for index in picked if i < len(index)]
    targets = classes[(np.searchsorted(classes, predicted[turns]) + 1) % len(classes)]
    return Task(data, black_box, data.X_test.iloc[turns].reset_index(drop=True), targets)


def _load(table: str) -> Dataset:
    """The authors' split of a table; Adult without their files, and German, come as they ship."""
    if table == "two-moons":
        return datasets.two_moons()
    try:
        return datasets.load(table, split="paper")
    except DataError:
        return datasets.load(table)


def _cut(data: Dataset, size: Size) -> Dataset:
    if size.rows is None:
        return data
    return replace(data, X_train=data.X_train.head(size.rows), y_train=data.y_train.head(size.rows))


def _pick(rng: np.random.Generator, index: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    return rng.choice(index, min(n, len(index)), replace=False)


# -- scores -----------------------------------------------------------------------------------------------------------


def score_answers(
    task: Task, answers: Answers, *, size: Size, many: bool = True, seed: int = 0, frozen: tuple[Any, ...] = ()
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
        queries = task.queries[here]
        if len(queries):
            ours, raw = _of(kept, queries), _of(answers.frame, queries)
            figures = _score(task, queries, ours, raw_valid=valid[_within(answers.frame, queries)], frozen=frozen)
            figures["changed"] = _share_changed(task, queries, raw)
            scores[BOTH if name == BOTH else f"to {name}"] = figures
    return scores


def choose(frame: pd.DataFrame, valid: NDArray[np.bool_], kept: int, seed: int) -> pd.DataFrame:
    """Up to `kept` valid answers of each query, at random."""
    rng = np.random.default_rng(seed)
    good = frame[valid]
    order = good.iloc[rng.permutation(len(good))]
    return order[order.groupby(level="row").cumcount().to_numpy() < kept].sort_index()


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
