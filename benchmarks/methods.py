"""All methods behind one call: ours at several conditions, each fitted once and kept as a model file, and baselines."""

from __future__ import annotations

__all__ = [
    "ANSWERS",
    "EXPLAINED",
    "EXPONENTS",
    "METHODS",
    "MULTI",
    "OURS",
    "QUICK_MIXED",
    "Ask",
    "confident",
    "explainer",
    "fit",
    "is_cut",
    "model_file",
    "soft_draws",
    "supported",
]

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from benchmarks.baselines import BASELINES
from benchmarks.baselines.base import Answers, Clock
from benchmarks.cells import Cell
from benchmarks.sources import digest
from benchmarks.tasks import Task
from dicoflex import DiCoFlex
from dicoflex import load as load_model
from dicoflex.generators import GENERATORS

Ask = Callable[..., Answers]
"""From queries, targets, n and seconds to answers."""

EXPONENTS = (0.01, 0.08, 0.25, 1.0, 2.0)
# Name of the method: generator, exponent, and the confidence that is asked for, None for the usual one.
OURS: dict[str, tuple[str, float, float | None]] = {
    "mixed (p=2.0)": ("mixed", 2.0, None),
    "mixed (p=0.01)": ("mixed", 0.01, None),
    "mixed, unsure (p=2.0)": ("mixed", 2.0, 0.5),
    "mixed, sure (p=2.0)": ("mixed", 2.0, 0.9),
    "mixed, surest (p=2.0)": ("mixed", 2.0, 0.99),
    "maf (p=2.0)": ("maf", 2.0, None),
    "maf (p=0.01)": ("maf", 0.01, None),
}
# What `explain` answers, refined, by the name of the method: the exponent that is asked for.
EXPLAINED = {"explain (p=2.0)": 2.0, "explain (p=0.01)": 0.01}
ANSWERS = 10
MULTI = (*OURS, *EXPLAINED, *(name for name, method in BASELINES.items() if method.many))
METHODS = (*MULTI, *(name for name, method in BASELINES.items() if not method.many))
# A few steps, however long they take: what comes of them is the same on every machine.
QUICK_MIXED: dict[str, Any] = {
    "training": {"epochs": 1, "min_steps": 60},
    "fit_config": {"passes": 1, "rounds": 0},
    "generator_config": {"hidden": 48, "head": 16},
    "max_seconds": None,
}


def fit(cell: Cell, task: Task, models: Path) -> tuple[Ask, dict[str, Any]]:
    """A method ready to be asked, and facts about its fit: seconds, and whether time ran out."""
    if cell.method in OURS:
        generator, p, sure = OURS[cell.method]
        model = explainer(cell, task, models, generator)
        return _ours(model, p=p, seed=cell.seed, sure=sure), {
            "fit_seconds": model.report_["seconds"],
            "fit_cut": is_cut(model),
        }
    if cell.method in EXPLAINED:
        model = explainer(cell, task, models, "mixed")
        ask = _explained(model, p=EXPLAINED[cell.method], seed=cell.seed)
        return ask, {"fit_seconds": model.report_["seconds"], "fit_cut": is_cut(model)}
    clock = Clock(cell.size.learning, task.now)
    method = BASELINES[cell.method]().fit(task.problem, seed=cell.seed, seconds=cell.size.learning)
    return method.answer, {"fit_seconds": clock.elapsed, "fit_cut": clock.is_out}


def explainer(cell: Cell, task: Task, models: Path, generator: str, **given: Any) -> DiCoFlex:
    """The fitted explainer of a cell; see `model_file`."""
    return load_model(model_file(cell, task, models, generator, **given))


def model_file(
    cell: Cell,
    task: Task,
    models: Path,
    generator: str,
    *,
    variant: str = "",
    judged: bool | None = None,
    **overrides: Any,
) -> Path:
    """The file of the fitted explainer of a cell, which is made in the folder `models` unless it is there.

    variant: a name for what is special about the task. judged: whether `fit` may ask the black box; None is for the
    default generator, and not for the paper's, which learn from labels alone. overrides: settings of `DiCoFlex`.
    """
    judged = generator == "mixed" if judged is None else judged
    facts = {"table": cell.table, "seed": cell.seed, "rows": cell.size.rows, "quick": cell.size.quick}
    facts |= {"learning": cell.size.learning, "generator": generator, "variant": variant, "judged": judged}
    text = json.dumps(facts | {"source": digest((__name__,), whole=True), "overrides": overrides}, sort_keys=True)
    path = models / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.dicoflex"
    if not path.exists():
        model = _build(cell, task, generator, overrides)
        model.fit(
            task.data.X_train,
            task.labels,
            predict_proba=task.black_box.predict_proba if judged else None,
            remember_rows=GENERATORS[model.generator].keeps_rows,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
    return path


def is_cut(model: DiCoFlex) -> bool:
    """Whether the training ended because its time was up."""
    return "used up" in model.report_["training_ended"]


def _build(cell: Cell, task: Task, generator: str, overrides: dict[str, Any]) -> DiCoFlex:
    common: dict[str, Any] = {"schema": task.data.schema, "random_state": cell.seed, "verbose": False}
    common |= {"max_seconds": cell.size.learning}
    if generator != "mixed":
        quick = {"fit_config": {"passes": 1}} if cell.size.quick else {}
        return DiCoFlex.paper(**common | {"generator": generator} | quick | overrides)
    return DiCoFlex(**common | (QUICK_MIXED if cell.size.quick else {}) | overrides)


def _ours(model: DiCoFlex, *, p: float, seed: int, sure: float | None) -> Ask:
    # The paper's flow is measured as it draws; the surrogate's filter is not part of it.
    settings: dict[str, Any] = {"p": p, "random_state": seed, "filter": model.model_.generator.name == "mixed"}

    def ask(queries: pd.DataFrame, targets: Any, *, n: int = 1, seconds: float | None = None) -> Answers:  # noqa: ARG001
        started = time.perf_counter()
        if sure is not None:
            frame = confident(model, queries, np.asarray(targets), sure, n=n, **settings)
        else:
            frame = model.sample(queries, target=targets, n=n, **settings)
        return Answers(frame, time.perf_counter() - started, np.ones(len(queries), dtype=bool))

    return ask


def _explained(model: DiCoFlex, *, p: float, seed: int) -> Ask:
    def ask(queries: pd.DataFrame, targets: Any, *, n: int = 1, seconds: float | None = None) -> Answers:  # noqa: ARG001
        started = time.perf_counter()
        # Nobody asks for a hundred answers: these are chosen, not draws to choose from.
        found = model.explain(queries, target=targets, n=min(n, ANSWERS), p=p, random_state=seed)
        return Answers(found.frame, time.perf_counter() - started, np.ones(len(queries), dtype=bool))

    return ask


def confident(
    model: DiCoFlex, queries: pd.DataFrame, targets: NDArray[Any], sure: float, **settings: Any
) -> pd.DataFrame:
    """Draws at confidence `sure`, or the highest that the target's training rows support where that is less."""
    asked = supported(model, sure)
    parts = [
        model.sample(queries[targets == label], target=label, confidence=asked[label], **settings)
        for label in np.unique(targets)
    ]
    return pd.concat(parts).sort_index()


def supported(model: DiCoFlex, sure: float) -> dict[Any, float]:
    """Per class, `sure` or the highest confidence that its training rows support where that is less."""
    highest = zip(model.classes_.tolist(), model.model_.confidence.highest.tolist(), strict=True)
    return {label: float(np.floor(min(sure, most) * 1e4) / 1e4) for label, most in highest}


def soft_draws(
    model: DiCoFlex, queries: pd.DataFrame, targets: Any, *, n: int, p: float, frozen: list[Any], seed: int
) -> pd.DataFrame:
    """Draws of one of the paper's flows as the flow gives them: told of the mask, but free to break it.

    The library copies frozen features from the query after each draw; here nothing is copied, as in the paper. The
    context is the paper's c = [x, y', p, m].
    """
    encoding = model.model_.encoding
    values = encoding.encode(queries)
    mask = encoding.real_mask(np.tile(model.schema_.mask(frozen), (len(queries), 1)))
    wanted = np.eye(len(model.classes_))[np.searchsorted(model.classes_, targets)]
    context = np.hstack([encoding.to_reals(values), wanted, np.full((len(queries), 1), p), mask]).astype(np.float32)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        reals = model.model_.generator.flow(torch.from_numpy(context)).sample((n,)).numpy()
    reals = np.clip(np.nan_to_num(reals), -1e6, 1e6).swapaxes(0, 1).reshape(len(queries) * n, -1)
    index = pd.MultiIndex.from_product([queries.index, range(n)], names=["row", "cf"])
    return encoding.decode(encoding.snap(encoding.from_reals(reals)), index)
