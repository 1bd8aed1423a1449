"""What constraints cost: violations, validity and answers under them on Adult, and the time that they add.

A perceptron is trained on Adult and explained by the default generator. For 100 test rows of each predicted class, 100
rows each are drawn under a tight set of constraints (two changes at most, age, race and sex frozen, education only
upwards) at confidence 0.7, and `verify` checks them. A draw counts as possible if it is distinct and the stand-in for
the perceptron is as sure as asked for; where constraints leave a query fewer such rows, `sample` fills up with others.
Times are medians of interleaved, warm repeats in one run. The fitted model is kept in a cache named by its settings.

    python benchmarks/constraints.py                  the table in full, a few minutes
    python benchmarks/constraints.py --quick          a slice in a minute
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import quality
from dicoflex import Constraints, Counterfactuals, DiCoFlex, __version__, load, relative
from dicoflex.answers.verification import verify
from dicoflex.runtime.whole_files import write_text
from quality import Cell, Task

HERE = Path(__file__).parent
CONFIDENCE = 0.7
ANSWERS, ENOUGH = 10, 5
REPEATS = 7
PEOPLE = ["age", "race", "sex"]
TIGHT = Constraints(frozen=PEOPLE, increase=["education"], max_changes=2)
FIVE = Constraints(
    frozen=PEOPLE,
    increase=["education"],
    ranges={"hours_per_week": relative(-0.25, 0.25)},
    forbidden={"workclass": ["Self-emp-inc"]},
    max_changes=4,
)


def fitted(cell: Cell, task: Task, cache: Path) -> DiCoFlex:
    """The explainer of a cell, from the cache where it is there."""
    path = cache / f"{cell.key}.dicoflex"
    if not path.exists():
        print("fit …", flush=True)
        explainer = quality.build(cell, task.data)
        if cell.quick:
            explainer.set_params(training={"epochs": 2, "min_steps": 150})
        explainer.fit(task.data.X_train, task.labels, predict_proba=task.black_box.predict_proba)
        cache.mkdir(parents=True, exist_ok=True)
        explainer.save(path)
    return load(path)


# -- measures ----------------------------------------------------------------------------------------------------


def measure(cell: Cell, cache: Path, repeats: int) -> dict[str, Any]:
    """All figures of a cell."""
    task = quality.prepare(cell, "perceptron")
    explainer = fitted(cell, task, cache)
    asked = {"target": task.targets, "constraints": TIGHT, "confidence": CONFIDENCE, "random_state": cell.seed}
    print("draws …", flush=True)
    frame = explainer.sample(task.queries, n=cell.draws, **asked)
    answers = explainer.explain(task.queries, n=ANSWERS, **asked)
    print("times …", flush=True)
    return {
        "queries": len(task.queries),
        "model": explainer.fingerprint_,
        "constraints": {"tight": TIGHT.model_dump(), "five": FIVE.model_dump()},
        **of_draws(explainer, task, frame),
        **of_answers(task, answers),
        "seconds": {
            "as drawn": times(explainer, task, cell, repeats, filter=False),
            "doubtful draws replaced": times(explainer, task, cell, repeats, filter=True),
        },
    }


def of_draws(explainer: DiCoFlex, task: Task, frame: pd.DataFrame) -> dict[str, Any]:
    """Violations and validity of raw draws."""
    row = rows_of(frame)
    verdicts = verify(task.queries, frame, row, TIGHT, explainer.schema_)
    possible = is_possible(explainer, task, frame)
    return {
        "checks": len(verdicts),
        "violations": int((~verdicts["holds"]).sum()),
        "validity_possible": quality.validity(task, frame[possible]),
        "validity_all": quality.validity(task, frame),
        "possible": float(possible.mean()),
        "queries_without_possible": len(task.queries) - len(np.unique(row[possible])),
    }


def is_possible(explainer: DiCoFlex, task: Task, frame: pd.DataFrame) -> np.ndarray:
    """Which draws are distinct among their query's and as sure as asked for, as the stand-in sees it."""
    row = rows_of(frame)
    number = {label: i for i, label in enumerate(explainer.classes_.tolist())}
    target = np.array([number[label] for label in task.targets[row].tolist()])
    sure = explainer.model_.stand_in.probabilities(explainer.model_.encoding.encode(frame))[
        np.arange(len(frame)), target
    ]
    repeated = frame.reset_index(level="row").duplicated().to_numpy()
    return (sure >= CONFIDENCE) & ~repeated


def of_answers(task: Task, found: Counterfactuals) -> dict[str, Any]:
    """Violations and validity of selected answers, and how many queries got enough."""
    counts = np.bincount(found.positions, minlength=len(task.queries))
    return {
        "answer_violations": int((~found.verify()["holds"]).sum()),
        "answer_validity": quality.validity(task, found.frame),
        "answers": len(found),
        "share_enough": float((counts >= ENOUGH).mean()),
        "share_all": float((counts >= ANSWERS).mean()),
    }


def rows_of(frame: pd.DataFrame) -> np.ndarray:
    """The position of each draw's query; the queries of a task are numbered from 0."""
    return frame.index.get_level_values("row").to_numpy()


def times(explainer: DiCoFlex, task: Task, cell: Cell, repeats: int, *, filter: bool) -> dict[str, Any]:
    """Seconds of one `sample` of all queries, free and under five constraints, and the ratio of their medians."""
    sets = {"free": None, "five constraints": FIVE}

    def once(constraints: Constraints | None) -> float:
        started = time.perf_counter()
        explainer.sample(
            task.queries, target=task.targets, n=cell.draws, p=2.0, constraints=constraints, filter=filter,
            random_state=cell.seed,
        )  # fmt: skip
        return time.perf_counter() - started

    for constraints in sets.values():
        once(constraints)
    seen: dict[str, list[float]] = {name: [] for name in sets}
    for _ in range(repeats):
        for name, constraints in sets.items():
            seen[name].append(once(constraints))
    medians = {name: statistics.median(each) for name, each in seen.items()}
    return {"medians": medians, "ratio": medians["five constraints"] / medians["free"], "repeats": seen}


# -- running and writing -----------------------------------------------------------------------------------------


Show = Callable[[dict[str, Any]], str]
ROWS: list[tuple[str, Show]] = [
    ("queries, draws of each", lambda r: f"{r['queries']}, {r['draws']}"),
    ("checks of draws by verify, violations", lambda r: f"{r['checks']:,}, {r['violations']}"),
    ("raw validity of the possible draws", lambda r: f"{r['validity_possible']:.4f}"),
    ("  share of draws that are possible", lambda r: f"{r['possible']:.3f}"),
    ("  queries without a possible draw", lambda r: str(r["queries_without_possible"])),
    ("raw validity of all draws", lambda r: f"{r['validity_all']:.4f}"),
    (f"queries with at least {ENOUGH} answers of {ANSWERS} asked for", lambda r: f"{r['share_enough']:.3f}"),
    (f"  with all {ANSWERS}", lambda r: f"{r['share_all']:.3f}"),
    (
        "answers, their validity, violations",
        lambda r: f"{r['answers']:,}, {r['answer_validity']:.4f}, {r['answer_violations']}",
    ),
]


def page(result: dict[str, Any], command: str) -> str:
    """The figures as Markdown."""
    lines = ["# Draws under constraints", "", f"Generated by `{command}` (dicoflex {__version__}).", ""]
    lines += [__doc__.split("\n\n")[1], "", "| | adult |", "|---|---|"]
    lines += [f"| {title} | {show(result)} |" for title, show in ROWS]
    count = result["queries"] * result["draws"]
    lines += ["", f"Time of {count:,} draws, free and under five constraints:", ""]
    lines += [f"- {sentence}" for _, _, sentence in FIVE.describe()]
    lines += ["", "| | free, s | five constraints, s | ratio |", "|---|---|---|---|"]
    for name, seen in result["seconds"].items():
        free, five = seen["medians"].values()
        lines.append(f"| {name} | {free:.3f} | {five:.3f} | {seen['ratio']:.2f} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and write `constraints.md` and `constraints.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few rows, queries and draws, a minute")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--cache", type=Path, default=Path(".benchmarks") / "constraints")
    options = parser.parse_args(argv)
    quick = {"queries": 10, "draws": 20, "rows": 1500, "quick": True} if options.quick else {}
    cell = Cell("adult", "mixed", options.seed, **quick)
    result = asdict(cell) | measure(cell, options.cache, repeats=3 if options.quick else REPEATS)
    options.out.mkdir(parents=True, exist_ok=True)
    given = sys.argv[1:] if argv is None else argv
    write_text(options.out / "constraints.json", json.dumps(result, indent=1) + "\n")
    write_text(
        options.out / "constraints.md", page(result, shlex.join(["python", "benchmarks/constraints.py", *given]))
    )
    print(f"written: {options.out / 'constraints.md'}")


if __name__ == "__main__":
    main()
