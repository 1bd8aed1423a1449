"""What is measured of the draws of one method on one table."""

from __future__ import annotations

__all__ = ["METHODS", "cells", "measure"]

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.baselines.oracle import Oracle
from benchmarks.cells import QUICK, Cell, Size
from benchmarks.methods import confident, explainer, supported
from benchmarks.options import Options
from benchmarks.tables import MAIN, TABLES
from benchmarks.tasks import Task, prepare
from dicoflex import DiCoFlex, metrics

LABELS, BOOSTED, THREE = "mixed, labels alone", "mixed, boosted black box", "mixed, three classes"
METHODS = ("mixed", LABELS, BOOSTED, THREE, "oracle, three classes", "oracle", "maf")
QUICK_METHODS = ("mixed", "oracle", "maf")
# Run on the first table alone.
VARIANTS = tuple(method for method in METHODS if "," in method)
SEEDS = (0, 1)
FULL = Size(learning=None)
MAF_SECONDS = 600.0
EXPONENTS = (2.0, 1.0, 0.25, 0.08, 0.01)
NEIGHBOURS = 16
KEPT = 10
TEST_ROWS = 2000
HIGH = 0.9


def cells(options: Options) -> list[Cell]:
    """Methods on tables; the variants are run on the first table alone, and they and `maf` with the first seed alone.

    The default generator learns for as long as it takes; the paper's flow would take hours.
    """
    tables = options.pick_tables(MAIN, quick=MAIN[:1])
    seeds, size = options.pick_seeds(SEEDS), options.size(FULL, QUICK)
    found = []
    for method in options.pick_methods(METHODS, quick=QUICK_METHODS):
        short = replace(size, learning=size.learning or MAF_SECONDS) if method == "maf" else size
        few = method in VARIANTS or method == "maf"
        found += [
            Cell("quality", table, method, seed, short)
            for seed in (seeds[:1] if few else seeds)
            for table in (tables[:1] if method in VARIANTS else tables)
        ]
    return found


Sampler = Callable[..., pd.DataFrame]
"""From conditions to the draws of all queries under them."""


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """All figures of a cell."""
    kind = "boosting" if cell.method == BOOSTED else "perceptron"
    task = prepare(cell, black_box=kind, graded="three classes" in cell.method)
    if cell.method.startswith("oracle"):
        return {"fit_seconds": 0.0, "black_box_rows": 0} | _of_draws(cell, task, _oracle(task))
    generator = cell.method.split(",")[0]
    model = explainer(
        cell, task, models, generator, variant=cell.method if cell.method in VARIANTS else "",
        judged=generator == "mixed" and cell.method != LABELS,
    )  # fmt: skip
    figures = {"fit_seconds": model.report_["seconds"]}
    figures |= {name: model.report_.get(name) for name in ("black_box_rows", "surrogate", "surrogate_agreement")}
    figures |= _of_draws(cell, task, _sampler(cell, task, model))
    return figures | (_at_high(cell, task, model) if model.model_.has_confidence else {})


def _sampler(cell: Cell, task: Task, model: DiCoFlex) -> Sampler:
    # The paper's flow is measured as it draws; the surrogate's filter is not part of it.
    usual = cell.method != "maf"

    def draw(*, filter: bool = usual, **conditions: Any) -> pd.DataFrame:
        return model.sample(
            task.queries, target=task.targets, n=cell.size.candidates, random_state=cell.seed, filter=filter,
            **conditions,
        )  # fmt: skip

    return draw


def _oracle(task: Task) -> Sampler:
    """The paper's q-hat itself, whose mask is soft."""

    def draw(*, p: float, frozen: Sequence[str] = (), **_: Any) -> pd.DataFrame:
        method = Oracle(p=p).fit(replace(task.problem, immutable=tuple(frozen)))
        return method.answer(task.queries, task.targets, n=NEIGHBOURS).frame

    return draw


# -- measures ----------------------------------------------------------------------------------------------------


def _of_draws(cell: Cell, task: Task, draw: Sampler) -> dict[str, Any]:
    """What is measured of every method."""
    frames = {p: draw(p=p) for p in EXPONENTS}
    usual, sparse = frames[2.0], frames[0.01]
    schema, frozen = task.data.schema, TABLES[cell.table].frozen
    held = draw(p=2.0, frozen=list(frozen))
    return {
        **_at_usual(task, usual),
        "changed": {str(p): _changed(task, frame) for p, frame in frames.items()},
        "numbers_changed_sparse": metrics.share_numbers_changed(task.queries, sparse, schema),
        "validity_sparse": task.validity(sparse),
        "validity_unfiltered": task.validity(draw(p=2.0, filter=False)),
        "validity_frozen": task.validity(held),
        "violations": metrics.violations(task.queries, held, frozen),
    }


def _changed(task: Task, frame: pd.DataFrame) -> float:
    """How many features differ, on average."""
    return float(metrics.changed(task.queries, frame, task.data.schema).sum(axis=1).mean())


def _at_usual(task: Task, frame: pd.DataFrame) -> dict[str, Any]:
    """What is measured at p = 2 and the default confidence."""
    schema, train, lof = task.data.schema, task.data.X_train, task.reference.lof
    kept = frame[frame.index.get_level_values("cf") < KEPT]
    twins = _oracle(task)(p=2.0)
    return {
        "validity": task.validity(frame),
        "categories_changed": metrics.share_categories_changed(task.queries, frame, schema),
        "lof": float(lof.score(kept).mean()),
        "lof_test_rows": float(lof.score(task.data.X_test.head(TEST_ROWS)).mean()),
        "lof_neighbours": float(lof.score(twins).mean()),
        "gower": metrics.mean_pairwise_gower(kept, schema),
        "gower_neighbours": metrics.mean_pairwise_gower(twins, schema),
        "copies": metrics.share_of_copies(frame, train, schema),
        "copies_test_rows": metrics.share_of_copies(task.data.X_test, train, schema),
    }


def _at_high(cell: Cell, task: Task, model: DiCoFlex) -> dict[str, Any]:
    """Validity at confidence 0.9, or the highest that a class supports where that is less."""
    frame = confident(
        model, task.queries, task.targets, HIGH, n=cell.size.candidates, p=2.0, random_state=cell.seed,
        filter=cell.method != "maf",
    )  # fmt: skip
    asked = {str(label): sure for label, sure in supported(model, HIGH).items()}
    return {"validity_high": task.validity(frame), "high_confidence": asked}
