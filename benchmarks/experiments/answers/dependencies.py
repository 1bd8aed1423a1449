"""Whether what follows from others in every training row does so in every answer."""

from __future__ import annotations

__all__ = ["METHODS", "cells", "measure", "odd_rows"]

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.cells import QUICK, Cell, Size
from benchmarks.methods import explainer
from benchmarks.options import Options
from benchmarks.tables import LENDING_CLUB
from benchmarks.tasks import prepare
from dicoflex import Counterfactuals, DiCoFlex
from dicoflex.coherence.dependencies import Dependency
from dicoflex.generators import GENERATORS

METHODS = {f"dependencies, {name}": name for name in GENERATORS}
# With three exponents and ten answers each, more than 100,000.
FULL = Size(queries=4000, learning=None)
# The others would take hours to learn well and to answer as much, and need not: counted is what answers may not do.
SHORT = replace(FULL, rows=5000, queries=100, learning=60.0)
ANSWERS = 10
EXPONENTS = (2.0, 0.25, 0.01)
TOLERANCE, RATE_TOLERANCE = 1e-6, 2e-3


def cells(options: Options, *, seed: int) -> list[Cell]:
    """Each generator on the one table that has dependencies; it does not ship, so that a quick run leaves it out."""
    tables = options.pick_tables([LENDING_CLUB], quick=[])
    sizes = {name: FULL if generator == "mixed" else SHORT for name, generator in METHODS.items()}
    return [
        Cell("answers", name, method, seed, options.size(sizes[method], QUICK))
        for name in tables
        for method in options.pick_methods(tuple(METHODS), quick=tuple(METHODS))
    ]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """How many answers there are, and how many break a dependency that all training rows keep."""
    task = prepare(cell)
    model = explainer(cell, task, models, METHODS[cell.method], coherence=True)
    found = [
        model.explain(task.queries, target=task.targets, n=ANSWERS, p=p, random_state=cell.seed) for p in EXPONENTS
    ]
    return {
        "dependencies": [one.describe(model.schema_) for one in _known(model)],
        "queries": len(task.queries),
        "answers": sum(len(cfs) for cfs in found),
        "broken": sum(int(_broken(model, cfs, task.data.X_train).sum()) for cfs in found),
    }


def _known(model: DiCoFlex) -> tuple[Dependency, ...]:
    coherence = model.model_.coherence
    return () if coherence is None else coherence.dependencies.found


def _broken(model: DiCoFlex, found: Counterfactuals, train: pd.DataFrame) -> NDArray[np.bool_]:
    """Which answers break a dependency that their query keeps, told from the shown values alone."""
    encode = model.model_.encoding.encode
    rows, queries, known = encode(found.frame), encode(found.queries)[found.positions], encode(train)
    breaks = np.zeros(len(rows), dtype=bool)
    for one in _known(model):
        breaks |= odd_rows(one, rows, known) & ~odd_rows(one, queries, known)
    return breaks


def odd_rows(one: Dependency, rows: NDArray[np.float64], train: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows break a dependency; what follows from a value must stand beside it in some training row."""
    if one.kind == "lookup":
        pair = [one.of[0], one.follows]
        seen = set(map(tuple, np.nan_to_num(train[:, pair], nan=-np.inf).tolist()))
        return np.array([tuple(row) not in seen for row in np.nan_to_num(rows[:, pair], nan=-np.inf).tolist()])
    if one.kind == "rate":
        return _off_rate(one, rows, train)
    sources = rows[:, list(one.of)]
    made = sources.prod(axis=1) if one.kind == "product" else sources @ np.array(one.weights) + one.constant
    off = np.abs(rows[:, one.follows] - np.round(made, one.decimals))
    return ~(off <= TOLERANCE * np.maximum(1.0, np.abs(made)))


def _off_rate(one: Dependency, rows: NDArray[np.float64], train: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows have another rate than training rows of their level have at, or on both sides of, their place."""
    odd = np.ones(len(rows), dtype=bool)
    amount, place = one.of[:2]
    group, known = (table[:, one.of[2]] if len(one.of) > 2 else np.zeros(len(table)) for table in (rows, train))
    for level in np.unique(known):
        mine, some = group == level, train[(known == level) & (train[:, amount] != 0)]
        rates = pd.Series(some[:, one.follows] / some[:, amount]).groupby(some[:, place]).median()
        made = rows[mine, amount] * np.interp(rows[mine, place], rates.index, rates)
        odd[mine] = ~(np.abs(rows[mine, one.follows] - made) <= RATE_TOLERANCE * np.abs(made))
    return odd
