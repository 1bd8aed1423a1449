"""On Adult: a rule that ties education to age, and whether importance agrees with a sweep through the classifier."""

from __future__ import annotations

__all__ = ["LADDER", "measure_ladder", "measure_sufficiency"]

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks.cells import Cell
from benchmarks.methods import explainer
from benchmarks.tasks import Task, prepare
from dicoflex import Constraints

ANSWERS = 10
YEARS = 2
LADDER = Constraints(rules=[f"age - was.age >= {YEARS} * (education - was.education)", "age >= was.age"])


def measure_ladder(cell: Cell, models: Path) -> dict[str, Any]:
    """Education up by a level takes two years at least, and nobody grows younger: validity, and who obeys."""
    task = prepare(cell)
    model = explainer(cell, task, models, "mixed")
    rows = _refused(task)
    asked = {"target": task.data.positive, "n": ANSWERS, "constraints": LADDER, "random_state": cell.seed}
    found = model.explain(rows, **asked)
    free = model.explain(rows, **asked | {"constraints": None})
    return {
        "people": len(rows),
        "answers": len(found),
        "answered": len(np.unique(found.positions)),
        "validity": task_validity(task, found.frame),
        "violations_verify": int((~found.verify()["holds"]).sum()),
        "violations_plain": int((~_obeys(task, rows, found.frame, found.positions)).sum()),
        "studying": float(_climbs(task, rows, found.frame, found.positions).mean()),
        "free_obeys": float(_obeys(task, rows, free.frame, free.positions).mean()),
    }


def task_validity(task: Task, frame: pd.DataFrame) -> float:
    """The share of answers to which the black box gives the label that people hope for."""
    return float(np.mean(task.black_box.predict(frame) == task.data.positive))


def _refused(task: Task) -> pd.DataFrame:
    """The queries that the black box refuses."""
    return task.queries[task.targets == task.data.positive].reset_index(drop=True)


def _levels(task: Task, education: pd.Series) -> NDArray[np.int64]:
    order = list(task.data.schema["education"].levels)
    return np.array([order.index(level) for level in education])


def _obeys(task: Task, rows: pd.DataFrame, frame: pd.DataFrame, owner: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which answers obey, by plain arithmetic on the frames."""
    before = rows.iloc[owner]
    older = frame["age"].to_numpy() - before["age"].to_numpy()
    higher = _levels(task, frame["education"]) - _levels(task, before["education"])
    return np.asarray((older >= YEARS * higher) & (older >= 0))


def _climbs(task: Task, rows: pd.DataFrame, frame: pd.DataFrame, owner: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which answers have a higher education, so that the rule binds."""
    return _levels(task, frame["education"]) > _levels(task, rows.iloc[owner]["education"])


# -- importance -------------------------------------------------------------------------------------------------------


def measure_sufficiency(cell: Cell, models: Path) -> dict[str, Any]:
    """Per feature the share of people for whom it is enough: as `sufficiency` says, and as the classifier says."""
    task = prepare(cell)
    model = explainer(cell, task, models, "mixed")
    rows, target = _refused(task), task.data.positive
    started = time.perf_counter()
    ours = model.sufficiency(rows, target=target)["share"]
    seconds = time.perf_counter() - started
    usual = model.sufficiency(rows, target=target, usual=True)["share"]
    swept = _swept(task, rows)
    return {
        "people": len(rows),
        "seconds": seconds,
        "shares": {name: [float(ours[name]), float(swept[name]), float(usual[name])] for name in swept},
        "spearman": _rank_correlation(ours, swept),
        "spearman_usual": _rank_correlation(usual, swept),
    }


def _rank_correlation(shares: pd.Series, swept: dict[Any, float]) -> float:
    return float(spearmanr([shares[name] for name in swept], list(swept.values())).statistic)


def _swept(task: Task, rows: pd.DataFrame) -> dict[Any, float]:
    """The plain sweep: every value that the table has of a feature, with everything else as it is."""
    table = pd.concat([task.data.X_train, task.data.X_test])
    shares = {}
    for name in table.columns:
        values = table[name].drop_duplicates()
        tried = rows.loc[rows.index.repeat(len(values))].reset_index(drop=True)
        tried[name] = pd.concat([values] * len(rows), ignore_index=True).astype(table[name].dtype)
        said = np.asarray(task.black_box.predict(tried) == task.data.positive)
        shares[name] = float(said.reshape(len(rows), len(values)).any(axis=1).mean())
    return shares
