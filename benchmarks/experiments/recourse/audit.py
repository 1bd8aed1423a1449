"""Whom does a model refuse for good? What methods tell refused people, held against a plain list of all their rows."""

from __future__ import annotations

__all__ = ["ALL", "ANSWERS", "ASKED", "METHODS", "TRULY", "measure"]

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.cells import Cell
from benchmarks.experiments.recourse.dice import RANGED
from benchmarks.experiments.recourse.people import ACTIONS, AGE, EMPLOYED, GOOD, RESIDENCE, Fold, folds
from benchmarks.methods import QUICK_MIXED, explainer

ANSWERS = 10
TRULY, ALL = "truly and predictedly bad", "predictedly bad"
# What `explain` is asked for, by the name of the method; those that are checked ask the model itself.
ASKED: dict[str, dict[str, Any]] = {
    "explain": {"check": True, "coherent": False},
    "explain, usual answers alone": {"check": True},
    "explain, unchecked": {"confidence": 0.5, "coherent": False},
}
METHODS = (*ASKED, *RANGED)
# With few rows and few ways a density needs little training: what it misses is looked for.
LITTLE = {name: value for name, value in QUICK_MIXED.items() if name != "max_seconds"}


@dataclass(frozen=True)
class Told:
    """What a method told the people of a fold: answers, whose each is, a status each, how many rows it looked at.

    done: for whom there was time.
    """

    frame: pd.DataFrame
    owner: NDArray[np.int64]
    status: list[str]
    looked_at: dict[int, int]
    seconds: float
    done: NDArray[np.bool_]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """All figures of a cell: a method, on the people that one kind of model refuses."""
    parts = folds(cell.setting("judge"), cell.seed, cell.setting("folds"))
    most = cell.setting("people")
    parts = parts if most is None else [fold.first(-(-most // len(parts))) for fold in parts]
    told = [_told(cell, fold, models) for fold in parts]
    lines = pd.concat([_lines(fold, one) for fold, one in zip(parts, told, strict=True)], ignore_index=True)
    lines = lines[lines["done"]]
    return {
        "folds": len(parts),
        "answers": sum(len(one.frame) for one in told),
        "seconds": sum(one.seconds for one in told) / max(len(lines), 1),
        "out_of_time": not all(one.done.all() for one in told),
        "accuracy": float(np.mean([_accuracy(fold) for fold in parts])),
        "groups": {TRULY: _counted(lines[lines["truly"]]), ALL: _counted(lines)},
    }


def _accuracy(fold: Fold) -> float:
    return float(np.mean(fold.judge.predict(fold.data.X_test) == fold.data.y_test))


# -- asking -----------------------------------------------------------------------------------------------------------


def _told(cell: Cell, fold: Fold, models: Path) -> Told:
    return _explained(cell, fold, models) if cell.method in ASKED else _by_dice(cell, fold)


def _explained(cell: Cell, fold: Fold, models: Path) -> Told:
    variant = f"{cell.setting('judge')}, fold {fold.number}"
    model = explainer(cell, fold.task, models, "mixed", variant=variant, **LITTLE)
    asked = dict(ASKED[cell.method])
    if asked.get("check"):
        asked["check"] = fold.judge.predict
    asked |= {"target": GOOD, "n": ANSWERS, "frozen": fold.frozen, "constraints": ACTIONS, "random_state": cell.seed}
    # The first call compiles.
    model.explain(fold.people.head(1), **asked)
    started = time.perf_counter()
    found = model.explain(fold.people, **asked)
    seconds = time.perf_counter() - started
    looked_at = {i: one.looked_at for i, one in found.searches.items()}
    return Told(
        found.frame, found.positions, list(found.status), looked_at, seconds, np.ones(len(fold.people), dtype=bool)
    )


def _by_dice(cell: Cell, fold: Fold) -> Told:
    problem = replace(fold.task.problem, immutable=(*fold.frozen, AGE))
    method = RANGED[cell.method]().fit(problem, seed=cell.seed)
    budget = cell.size.answering
    found = method.answer(fold.people, GOOD, n=1, seconds=None if budget is None else budget / cell.setting("folds"))
    owner = found.frame.index.get_level_values("row").to_numpy()
    return Told(found.frame, owner, [""] * len(fold.people), {}, found.seconds, found.done)


# -- judging ----------------------------------------------------------------------------------------------------------


def _lines(fold: Fold, told: Told) -> pd.DataFrame:
    """A line per person: what is true, and what was told."""
    rows = [_line(fold, told, i) for i in range(len(fold.people))]
    return pd.DataFrame(rows).assign(truly=fold.truly, has_way=fold.has_way, status=told.status, done=told.done)


def _line(fold: Fold, told: Told, i: int) -> dict[str, Any]:
    said = _known(fold, i)
    answers = told.frame[told.owner == i]
    plain = [said.get(row) for row in _tuples(answers)]
    followed = [said.get(row) for row in _tuples(_aged(answers, fold.people.iloc[i]))]
    return {
        "answers": len(plain),
        "strays": plain.count(None),
        "refused": sum(one is not None and one != GOOD for one in plain),
        "strays_followed": sum(one != GOOD for one in followed),
        "rows": len(said),
        "looked_at": told.looked_at.get(i, -1),
    }


def _known(fold: Fold, i: int) -> dict[tuple[int, ...], int]:
    """What the model says of every row that a person may go to."""
    ways = fold.ways[i]
    return dict(zip(_tuples(ways[fold.people.columns]), ways["said"].tolist(), strict=True))


def _tuples(frame: pd.DataFrame) -> Iterable[tuple[int, ...]]:
    return list(map(tuple, frame.astype(int).to_numpy().tolist()))


def _aged(answers: pd.DataFrame, person: pd.Series) -> pd.DataFrame:
    """Answers with the age that follows from them, for a method that can't be told so."""
    more = (answers[RESIDENCE] - person[RESIDENCE]) + (answers[EMPLOYED] - person[EMPLOYED])
    return answers.assign(**{AGE: person[AGE] + more})


def _counted(lines: pd.DataFrame) -> dict[str, Any]:
    """How many people of a group have no way, and how many were told what is not so."""
    answered, proved = lines["answers"] > 0, lines["status"] == "infeasible"
    return {
        "people": len(lines),
        "without_way": int((~lines["has_way"]).sum()),
        "loopholes": int((lines["strays"] > 0).sum()),
        "loopholes_followed": int((lines["strays_followed"] > 0).sum()),
        "refused": int((lines["refused"] > 0).sum()),
        "blind": int((lines["has_way"] & ~answered).sum()),
        "proofs": int(proved.sum()),
        "wrong_proofs": int((proved & lines["has_way"]).sum()),
        "unproved": int((~lines["has_way"] & ~proved).sum()),
        "miscounted": int((proved & (lines["looked_at"] != lines["rows"])).sum()),
    }
