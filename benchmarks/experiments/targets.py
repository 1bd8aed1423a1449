"""Targets that are no label: intervals of scores, and any class but the present one.

Scores: gradient boosting (scikit-learn) gives the score of diabetes (442 rows, shipped with scikit-learn) and of
Friedman's first function (3,000 rows, drawn), and the benchmark's own black box the probability of Adult. Held-out
rows ask for random intervals between two numbers, which hold 10 to 50 % of the training rows' scores, and for open
ones. Inside: the share of answers whose score, by the black box itself, lies in the interval. An interval that is
narrower than the model can tell scores apart is refused; so must be one that no training row lies in. Classes: drawn
tables of three and of ten, boosting as black box, `target="other"`.

    dicoflex bench targets                     in full, about half an hour
    dicoflex bench targets --quick             a slice in a minute
"""

from __future__ import annotations

__all__ = ["TABLES", "TITLE", "cells", "figures", "measure", "page"]

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes, make_classification, make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier

from benchmarks.cells import Cell, Result, Size, measured
from benchmarks.methods import QUICK_MIXED
from benchmarks.options import Options
from benchmarks.pages import head, number, table
from benchmarks.tables import ADULT
from benchmarks.tasks import prepare
from dicoflex import DiCoFlex, Explainer, at_least, at_most, between
from dicoflex.errors import QueryError
from dicoflex.metrics import validity

TITLE = "Targets that are no label"
DIABETES, FRIEDMAN, THREE, TEN = "diabetes", "friedman", "three-classes", "ten-classes"
SCORES, CLASSES = (DIABETES, FRIEDMAN, ADULT), {THREE: 3, TEN: 10}
TABLES = (*SCORES, *CLASSES)
NAMES = {
    DIABETES: "diabetes", FRIEDMAN: "Friedman's function", ADULT: "Adult, probability", THREE: "three", TEN: "ten",
}  # fmt: skip
FULL = Size(queries=20, learning=None)
QUICK = Size(rows=500, queries=4, learning=6.0, quick=True)
INTERVALS, QUICK_INTERVALS = 40, 3
N = 5
EXPONENTS = (2.0, 0.01)
WIDTHS = (0.1, 0.5)
COUNTED = ("answers", "inside", "rows", "full", "changed", "ms")
EVERY = 4
"""Every so many an interval has one end alone."""


@dataclass(frozen=True)
class Table:
    """Rows to learn from, rows to ask about, and what the black box says of rows."""

    train: pd.DataFrame
    asked: pd.DataFrame
    says: Callable[[pd.DataFrame], Any]


def cells(options: Options) -> list[Cell]:
    """Every table; in a quick run one of scores and one of classes."""
    picked = options.pick_tables(TABLES, quick=(FRIEDMAN, THREE))
    size, seeds = options.size(FULL, QUICK), options.pick_seeds((3, 4))
    return [Cell("targets", name, "mixed", seed, size) for name in picked for seed in seeds]


def measure(cell: Cell, models: Path) -> dict[str, Any]:  # noqa: ARG001
    """What answers to one table's held-out rows are worth."""
    rng = np.random.default_rng(cell.seed)
    return _classes(cell, rng) if cell.table in CLASSES else _scores(cell, rng)


def _explainer(cell: Cell) -> DiCoFlex:
    quick = QUICK_MIXED if cell.size.quick else {"max_seconds": cell.size.learning}
    return DiCoFlex(random_state=cell.seed, **quick)


# -- scores ------------------------------------------------------------------------------------------------------------


def _scores(cell: Cell, rng: np.random.Generator) -> dict[str, Any]:
    own = _score_table(cell)
    started = time.perf_counter()
    model = _explainer(cell).fit(own.train, predict=own.says)
    seconds = time.perf_counter() - started
    known = np.asarray(own.says(own.train))
    asked = list(_asked(cell, model, own, known, rng))
    return {
        "rows": len(own.train),
        "seconds": seconds,
        "narrowest": model.report_["score"]["narrowest"],
        "explained": model.report_["surrogate_agreement"],
        "between": _summary([one for one in asked if one["width"] is not None]),
        "open": _summary([one for one in asked if one["width"] is None]),
        "empty_refused": _refuses_empty(model, own, known),
    }


def _score_table(cell: Cell) -> Table:
    if cell.table == ADULT:
        task = prepare(cell)
        positive = task.data.positive
        column = task.black_box.classes_.tolist().index(positive)
        return Table(
            task.data.X_train, task.data.X_test.head(2000), lambda rows: task.black_box.predict_proba(rows)[:, column]
        )
    X, y = _diabetes() if cell.table == DIABETES else _friedman()
    order = np.random.default_rng(cell.seed).permutation(len(X))
    most = cell.size.rows or len(X)
    train, rest = order[: min(most, int(0.8 * len(X)))], order[int(0.8 * len(X)) :]
    boosting = GradientBoostingRegressor(random_state=cell.seed).fit(X.iloc[train], y[train])
    return Table(X.iloc[train], X.iloc[rest], boosting.predict)


def _diabetes() -> tuple[pd.DataFrame, np.ndarray]:
    found = load_diabetes(as_frame=True, scaled=False)
    whole = {name: found.data[name].astype(int) for name in ("age", "sex")}
    return found.data.assign(**whole), found.target.to_numpy()


def _friedman() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = make_friedman1(3000, n_features=8, noise=0.5, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    return frame.assign(x0=(frame["x0"] * 20).round().astype(int)), y


def _asked(
    cell: Cell, model: Explainer, own: Table, known: np.ndarray, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """What came of random intervals."""
    now = np.asarray(own.says(own.asked))
    for i in range(QUICK_INTERVALS if cell.size.quick else INTERVALS):
        goal, width = _interval(known, rng, is_open=i % EVERY == 0)
        outside = own.asked[~np.array([goal.holds(score) for score in now])].head(cell.size.queries)
        if len(outside) == 0:
            continue
        for p in EXPONENTS:
            yield {"width": width, "p": p, **_answered(model, own, outside, goal, p, seed=cell.seed)}


def _interval(known: np.ndarray, rng: np.random.Generator, *, is_open: bool) -> tuple[Any, float | None]:
    if is_open:
        edge = float(np.quantile(known, rng.uniform(0.2, 0.8)))
        return (at_least(edge) if rng.random() < 0.6 else at_most(edge)), None
    width = float(rng.uniform(*WIDTHS))
    low = rng.uniform(0, 1 - width)
    return between(*(float(np.quantile(known, share)) for share in (low, low + width))), width


def _answered(model: Explainer, own: Table, rows: pd.DataFrame, goal: Any, p: float, *, seed: int) -> dict[str, Any]:
    started = time.process_time()
    try:
        found = model.explain(rows, target=goal, n=N, p=p, random_state=seed)
    except QueryError:
        return {"refused": True}
    seconds = time.process_time() - started
    counts = np.bincount(found.positions, minlength=len(rows))
    return {
        "refused": False,
        "answers": len(found),
        "inside": validity(own.says(found.frame), goal) * len(found) if len(found) else 0.0,
        "rows": len(rows),
        "full": int((counts == N).sum()),
        "changed": float(found.info["n_changed"].sum()),
        "ms": 1000 * seconds,
    }


def _summary(asked: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All intervals of a kind, by how few features were to change."""
    told: dict[str, Any] = {}
    for p in EXPONENTS:
        mine = [one for one in asked if one["p"] == p]
        done = [one for one in mine if not one["refused"]]
        total = {
            name: sum(one[name] for one in done) for name in ("answers", "inside", "rows", "full", "changed", "ms")
        }
        told[f"{p:g}"] = {
            "intervals": len(mine),
            "refused": len(mine) - len(done),
            "answers": total["answers"],
            "inside": total["inside"] / total["answers"] if total["answers"] else None,
            "full": total["full"] / total["rows"] if total["rows"] else None,
            "changed": total["changed"] / total["answers"] if total["answers"] else None,
            "ms": total["ms"] / total["rows"] if total["rows"] else None,
        }
    return told


def _refuses_empty(model: Explainer, own: Table, known: np.ndarray) -> bool:
    """Whether intervals that no training row lies in are refused."""
    reach = float(known.max() - known.min())
    for goal in (
        at_least(known.max() + reach),
        at_most(known.min() - reach),
        between(known.max() + 1, known.max() + 2),
    ):
        try:
            model.explain(own.asked.head(1), target=goal)
        except QueryError:
            continue
        return False
    return True


# -- classes -----------------------------------------------------------------------------------------------------------


def _classes(cell: Cell, rng: np.random.Generator) -> dict[str, Any]:
    own, predict_proba, labels = _class_table(cell)
    started = time.perf_counter()
    model = _explainer(cell).fit(own.train, labels, predict_proba=predict_proba)
    seconds = time.perf_counter() - started
    rows = own.asked.sample(min(len(own.asked), 5 * cell.size.queries), random_state=int(rng.integers(2**31)))
    now, told = np.asarray(own.says(rows)), {}
    for p in EXPONENTS:
        found = model.explain(rows, target="other", n=N, p=p, random_state=cell.seed)
        said = np.asarray(own.says(found.frame)) if len(found) else now[:0]
        told[f"{p:g}"] = {
            "answers": len(found),
            "other": float(np.mean(said != now[found.positions])),
            "as_told": float(np.mean(said == found.info["target"].to_numpy())),
            "full": float(np.mean(np.bincount(found.positions, minlength=len(rows)) == N)),
            "labels": float(np.mean(found.info["target"].groupby(found.positions).nunique())),
        }
    return {"rows": len(own.train), "seconds": seconds, "other": told}


def _class_table(cell: Cell) -> tuple[Table, Callable[[pd.DataFrame], Any], np.ndarray]:
    count = CLASSES[cell.table]
    X, y = make_classification(
        5000, n_features=10, n_informative=8, n_redundant=0, n_classes=count, n_clusters_per_class=1, class_sep=1.5,
        random_state=0,
    )  # fmt: skip
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(10)])
    order = np.random.default_rng(cell.seed).permutation(len(X))
    train, rest = order[: min(cell.size.rows or len(X), 4000)], order[4000:]
    boosting = HistGradientBoostingClassifier(max_iter=60, random_state=cell.seed).fit(frame.iloc[train], y[train])
    labels = boosting.predict(frame.iloc[train])
    return Table(frame.iloc[train], frame.iloc[rest], boosting.predict), boosting.predict_proba, labels


# -- the page ----------------------------------------------------------------------------------------------------------


def page(results: Sequence[Result], command: str) -> str:
    """A table for scores and one for classes."""
    lines = [head(TITLE, "\n\n".join((__doc__ or "").split("\n\n")[1:2]), results, command, budget=False)]
    scores = [result for result in measured(results) if result.cell.table in SCORES]
    classes = [result for result in measured(results) if result.cell.table in CLASSES]
    if scores:
        lines.append("\n## Scores\n\n" + _score_rows(scores))
    if classes:
        lines.append('\n## Any other class\n\n`target="other"`, five answers per row.\n\n' + _class_rows(classes))
    return "".join(lines)


def _score_rows(results: Sequence[Result]) -> str:
    header = [
        "table, seed",
        "rows",
        "intervals",
        "p",
        "asked",
        "refused",
        "inside",
        "five answers",
        "changed",
        "ms a row",
    ]
    rows = []
    for result in results:
        found = result.figures
        for kind in ("between", "open"):
            for p, one in found[kind].items():
                name = f"{NAMES[result.cell.table]}, {result.cell.seed}"
                counts = [p, str(one["intervals"]), str(one["refused"])]
                told = [number(one["inside"]), number(one["full"]), number(one["changed"], 2), number(one["ms"], 1)]
                rows.append([name, f"{found['rows']:,}", kind, *counts, *told])
    narrow = "; ".join(
        f"{NAMES[r.cell.table]}, {r.cell.seed}: {r.figures['narrowest']:.0%}, empty ones "
        f"{'refused' if r.figures['empty_refused'] else 'ANSWERED'}"
        for r in results
    )
    return table(header, rows) + f"\nThe least share of the rows that an interval must hold about: {narrow}.\n"


def _class_rows(results: Sequence[Result]) -> str:
    header = [
        "classes, seed",
        "rows",
        "p",
        "answers",
        "another class",
        "the class told",
        "five answers",
        "classes a row",
    ]
    rows = [
        [
            f"{NAMES[result.cell.table]}, {result.cell.seed}", f"{result.figures['rows']:,}", p, str(one["answers"]),
            number(one["other"]), number(one["as_told"]), number(one["full"]), number(one["labels"], 1),
        ]
        for result in results
        for p, one in result.figures["other"].items()
    ]  # fmt: skip
    return table(header, rows)


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
