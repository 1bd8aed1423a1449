"""What constraints cost: violations, validity and answers under them on Adult, and the time that they add.

A perceptron is trained on Adult and explained by the default generator. For 100 test rows of each predicted class, 100
rows each are drawn under a tight set of constraints (two changes at most, age, race and sex frozen, education only
upwards) at confidence 0.7, or the highest that both classes support, and `verify` checks them. A draw counts as
possible if it is distinct and the surrogate for the perceptron is as sure as asked for; where constraints leave a query
fewer such rows, `sample` fills up with others. Times are medians of interleaved, warm repeats in one run.

    dicoflex bench constraints                        the table in full, a few minutes
    dicoflex bench constraints --quick                a slice in a few seconds
"""

from __future__ import annotations

__all__ = ["ROWS", "TITLE", "cells", "figures", "measure", "page"]

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.cells import QUICK, Cell, Result, Size, measured
from benchmarks.methods import explainer, supported
from benchmarks.options import Options
from benchmarks.pages import head, number, table
from benchmarks.tables import ADULT, TABLES
from benchmarks.tasks import Task, prepare
from benchmarks.timing import Work, in_turns
from dicoflex import Constraints, Counterfactuals, DiCoFlex, relative
from dicoflex.answers.verification import verify

TITLE = "Draws under constraints"
FULL = Size(learning=None)
CONFIDENCE = 0.7
ANSWERS, ENOUGH = 10, 5
REPEATS, QUICK_REPEATS = 7, 3
PEOPLE = list(TABLES[ADULT].frozen)
TIGHT = Constraints(frozen=PEOPLE, increase=["education"], max_changes=2)
FIVE = Constraints(
    frozen=PEOPLE,
    increase=["education"],
    ranges={"hours_per_week": relative(-0.25, 0.25)},
    forbidden={"workclass": ["Self-emp-inc"]},
    max_changes=4,
)


def cells(options: Options) -> list[Cell]:
    """The default generator on Adult."""
    settings = (("repeats", QUICK_REPEATS if options.quick else REPEATS),)
    size = options.size(FULL, QUICK)
    return [Cell("constraints", ADULT, "mixed", seed, size, settings) for seed in options.pick_seeds()]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """All figures of a cell."""
    task = prepare(cell)
    model = explainer(cell, task, models, "mixed")
    sure = min(supported(model, CONFIDENCE).values())
    asked = {"target": task.targets, "constraints": TIGHT, "confidence": sure, "random_state": cell.seed}
    frame = model.sample(task.queries, n=cell.size.candidates, **asked)
    answers = model.explain(task.queries, n=ANSWERS, **asked)
    return {
        "queries": len(task.queries),
        "draws": cell.size.candidates,
        "model": model.fingerprint_,
        "constraints": {"tight": TIGHT.model_dump(), "five": FIVE.model_dump()},
        "confidence": sure,
        **_of_draws(model, task, frame, sure),
        **_of_answers(task, answers),
        "seconds": {
            "as drawn": _times(cell, task, model, filter=False),
            "doubtful draws replaced": _times(cell, task, model, filter=True),
        },
    }


def _of_draws(model: DiCoFlex, task: Task, frame: pd.DataFrame, sure: float) -> dict[str, Any]:
    """Violations and validity of raw draws."""
    row = _rows_of(frame)
    verdicts = verify(task.queries, frame, row, TIGHT, model.schema_)
    possible = _is_possible(model, task, frame, sure)
    return {
        "checks": len(verdicts),
        "violations": int((~verdicts["holds"]).sum()),
        "validity_possible": task.validity(frame[possible]),
        "validity_all": task.validity(frame),
        "possible": float(possible.mean()),
        "queries_without_possible": len(task.queries) - len(np.unique(row[possible])),
    }


def _is_possible(model: DiCoFlex, task: Task, frame: pd.DataFrame, sure: float) -> np.ndarray:
    """Which draws are distinct among their query's and as sure as asked for, as the surrogate sees it."""
    row = _rows_of(frame)
    number = {label: i for i, label in enumerate(model.classes_.tolist())}
    target = np.array([number[label] for label in task.targets[row].tolist()])
    chance = model.model_.surrogate.probabilities(model.model_.encoding.encode(frame))[np.arange(len(frame)), target]
    repeated = frame.reset_index(level="row").duplicated().to_numpy()
    return (chance >= sure) & ~repeated


def _of_answers(task: Task, found: Counterfactuals) -> dict[str, Any]:
    """Violations and validity of selected answers, and how many queries got enough."""
    counts = np.bincount(found.positions, minlength=len(task.queries))
    return {
        "answer_violations": int((~found.verify()["holds"]).sum()),
        "answer_validity": task.validity(found.frame),
        "answers": len(found),
        "share_enough": float((counts >= ENOUGH).mean()),
        "share_all": float((counts >= ANSWERS).mean()),
    }


def _rows_of(frame: pd.DataFrame) -> np.ndarray:
    """The position of each draw's query; the queries of a task are numbered from 0."""
    return frame.index.get_level_values("row").to_numpy()


def _times(cell: Cell, task: Task, model: DiCoFlex, *, filter: bool) -> dict[str, Any]:
    """Seconds of one `sample` of all queries, free and under five constraints, and the ratio of their medians."""

    def work(constraints: Constraints | None) -> Work:
        return lambda _turn: len(
            model.sample(
                task.queries, target=task.targets, n=cell.size.candidates, p=2.0, constraints=constraints,
                filter=filter, random_state=cell.seed,
            )
        )  # fmt: skip

    times = in_turns({"free": work(None), "five constraints": work(FIVE)}, cell.setting("repeats"))
    medians = {name: found["seconds"] for name, found in times.items()}
    ratio = medians["five constraints"] / medians["free"]
    return {"medians": medians, "ratio": ratio, "repeats": {name: found["repeats"] for name, found in times.items()}}


# -- the page --------------------------------------------------------------------------------------------------------

Show = Callable[[dict[str, Any]], str]
ROWS: list[tuple[str, Show]] = [
    ("queries, draws of each", lambda r: f"{r['queries']}, {r['draws']}"),
    ("checks of draws by verify, violations", lambda r: f"{r['checks']:,}, {r['violations']}"),
    ("raw validity of the possible draws", lambda r: number(r["validity_possible"], 4)),
    ("  share of draws that are possible", lambda r: f"{r['possible']:.3f}"),
    ("  queries without a possible draw", lambda r: str(r["queries_without_possible"])),
    ("raw validity of all draws", lambda r: number(r["validity_all"], 4)),
    (f"queries with at least {ENOUGH} answers of {ANSWERS} asked for", lambda r: f"{r['share_enough']:.3f}"),
    (f"  with all {ANSWERS}", lambda r: f"{r['share_all']:.3f}"),
    (
        "answers, their validity, violations",
        lambda r: f"{r['answers']:,}, {number(r['answer_validity'], 4)}, {r['answer_violations']}",
    ),
]


def page(results: Sequence[Result], command: str) -> str:
    """The figures, a section for each seed."""
    lines = [head(TITLE, (__doc__ or "").split("\n\n")[1], results, command, budget=False)]
    for result in measured(results):
        figures = result.figures
        lines += ["\n## Seed " + str(result.cell.seed) + "\n"] * (len(results) > 1)
        lines.append(table(["", result.cell.table], [[title, show(figures)] for title, show in ROWS]))
        count = figures["queries"] * figures["draws"]
        lines.append(f"\nTime of {count:,} draws, free and under five constraints:\n\n")
        lines += [f"- {sentence}\n" for _, _, sentence in FIVE.describe()]
        lines.append(table(["", "free, s", "five constraints, s", "ratio"], _time_rows(figures["seconds"])))
    return "".join(lines)


def _time_rows(seconds: dict[str, Any]) -> list[list[str]]:
    return [
        [name, *(f"{median:.3f}" for median in seen["medians"].values()), f"{seen['ratio']:.2f}"]
        for name, seen in seconds.items()
    ]


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
