"""NICE and treecf, live: the packages themselves, shown our tables and models."""

from __future__ import annotations

__all__ = ["RIVALS", "Rival", "dice", "nice", "tree_solver"]

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.baselines import BASELINES
from benchmarks.tasks import Task
from dicoflex.errors import DataError
from dicoflex.table.encoding import Values

Asked = dict[str, pd.DataFrame]
"""By what was asked for, one answer per row, under a MultiIndex (row, cf)."""
Rival = Callable[[Task, int, tuple[float, ...], float | None], Asked]
"""From a task, a seed, the confidences to ask for and the seconds for all rows to answers."""
DECISION = "decision"
PARTS = 0.95
"""The share of the variance that the linear autoencoder of NICE's plausibility keeps."""
MARGIN = 1e-6


def nice(task: Task, seed: int, _sure: tuple[float, ...], seconds: float | None, *, reward: str) -> Asked:  # noqa: ARG001
    """NICE (Brughmans, Leyman and Martens 2023): from the row towards its nearest accepted neighbour.

    reward: what it looks for. Its plausibility wants an autoencoder; a linear one, by principal components, is given.
    """
    try:
        from nice import NICE
    except ImportError as error:
        raise DataError(f"NICE needs the package NICEx, and it can't be imported ({error}); install it") from error
    problem = task.problem
    values = problem.values
    if np.isnan(values).any():
        raise DataError("NICE takes no missing values, and this table has some; leave it out")
    levels = [j for j, feature in enumerate(task.data.schema.features) if not feature.is_number]
    coder = _autoencoder(task) if reward == "plausibility" else None
    solver = NICE(
        lambda rows: problem.judge(np.asarray(rows, dtype=float)), values.copy(), levels,
        y_train=np.searchsorted(problem.classes, problem.labels), optimization=reward, auto_encoder=coder,
        num_normalization="std",
    )  # fmt: skip
    own = problem.encoding.encode(task.queries)
    found = {i: np.asarray(solver.explain(own[[i]].copy()), dtype=float)[0] for i in range(len(own))}
    return {DECISION: _framed(task, found)}


def _autoencoder(task: Task) -> Callable[[Values], NDArray[np.float64]]:
    from sklearn.decomposition import PCA

    encoding = task.problem.encoding
    coder = PCA(PARTS).fit(encoding.to_reals(task.problem.values))

    def error(rows: Values) -> NDArray[np.float64]:
        reals = encoding.to_reals(np.asarray(rows, dtype=float))
        lost: NDArray[np.float64] = ((coder.inverse_transform(coder.transform(reals)) - reals) ** 2).mean(axis=1)
        return lost

    return error


def tree_solver(task: Task, seed: int, sure: tuple[float, ...], seconds: float | None) -> Asked:
    """treecf: the least change by the trees themselves, for a probability of at least each of `sure`."""
    try:
        from treecf import Explainer, Target
    except ImportError as error:
        raise DataError(f"treecf can't be imported ({error}); install the package treecf") from error
    if not {"booster_", "get_booster"} & set(dir(task.black_box[-1])):
        raise DataError("treecf takes ensembles of trees alone; give LightGBM or XGBoost")
    prepare, trees = task.black_box[:-1], task.black_box[-1]
    names = _columns(task)
    shown = np.asarray(prepare.transform(task.data.X_train), dtype=float)
    whole = {
        f"f{j}": "integer"
        for j, name in enumerate(names)
        if not (feature := task.data.schema[name]).is_number or feature.is_whole
    }
    solver = Explainer(_model(trees), background=shown, value_policy=_policies(trees, whole, len(names)))
    own = np.asarray(prepare.transform(task.queries), dtype=float)
    each = 10.0 if seconds is None else max(0.05, seconds / (len(own) * len(sure)))
    asked = {}
    for least in sure:
        found = {}
        for i, row in enumerate(own):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = solver.explain(
                    row, target=Target.probability(range=(least + MARGIN, 1.0)), time_budget_s=each, seed=seed
                )
            if hasattr(answer, "x_cf"):
                found[i] = _back(task, i, names, np.asarray(answer.x_cf), row)
        asked[f"{least:g}"] = _framed(task, found)
    return asked


def _model(trees: Any) -> Any:
    return trees.get_booster() if hasattr(trees, "get_booster") else trees.booster_


def _policies(trees: Any, whole: dict[str, str], n: int) -> dict[str, str]:
    """Which columns are whole numbers, by the names that the trees have for them."""
    own = getattr(_model(trees), "feature_names", None) or [f"f{j}" for j in range(n)]
    own = own if isinstance(own, list) else own()
    return {own[int(name[1:])]: policy for name, policy in whole.items()}


def _columns(task: Task) -> list[Any]:
    """The features in the order in which the trees see them: numbers, then levels."""
    features = task.data.schema.features
    return [f.name for f in features if f.is_number] + [f.name for f in features if not f.is_number]


def _back(task: Task, i: int, names: list[Any], made: NDArray[Any], before: NDArray[Any]) -> Values:
    """A row of the trees' matrix as a row of the encoding: what did not change is the query's own."""
    encoding = task.problem.encoding
    own = encoding.encode(task.queries.iloc[[i]])[0]
    coder = task.black_box[0].named_transformers_.get("ordinalencoder")
    levels = [name for name in names if not task.data.schema[name].is_number]
    for j, name in enumerate(names):
        at = task.data.schema.position(name)
        if made[j] == before[j] or (np.isnan(made[j]) and np.isnan(before[j])):
            continue
        if task.data.schema[name].is_number:
            own[at] = made[j]
        else:
            level = coder.categories_[levels.index(name)][int(made[j])]
            known = task.data.schema[name].levels
            own[at] = known.index(level) if level in known else own[at]
    return own


def dice(task: Task, seed: int, _sure: tuple[float, ...], seconds: float | None) -> Asked:
    """DiCE's random search, one answer per row."""
    method = BASELINES["dice-random"]().fit(task.problem, seed=seed, seconds=seconds)
    return {DECISION: method.answer(task.queries, task.targets, n=1, seconds=seconds).frame}


def _framed(task: Task, found: dict[int, Values]) -> pd.DataFrame:
    """Answers by the place of their row as a frame of the training dtypes."""
    encoding = task.problem.encoding
    width = len(task.data.schema)
    values = encoding.snap(np.array([found[i] for i in found]).reshape(-1, width))
    index = pd.MultiIndex.from_arrays([task.queries.index[list(found)], [0] * len(found)], names=["row", "cf"])
    return encoding.decode(values, index)


RIVALS: dict[str, Rival] = {
    "nice-sparsity": partial(nice, reward="sparsity"),
    "nice-plausibility": partial(nice, reward="plausibility"),
    "treecf": tree_solver,
    "dice-random": dice,
}
