"""How good the draws are: raw validity, sparsity, plausibility and variety on the benchmark tables.

For every table and seed: a black box is trained, 100 test rows per predicted class are the queries, and each method
draws 100 rows per query for the other class, with no black box at hand. Results of a cell are kept in a cache named
by its settings, so a run that was stopped goes on where it was.

    python benchmarks/quality.py                      all tables found, two seeds, all methods (hours)
    python benchmarks/quality.py --quick              a slice in a minute or two
    python benchmarks/quality.py --methods mixed oracle --tables adult
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from black_boxes import BLACK_BOXES
from dicoflex import DiCoFlex, __version__, datasets, metrics
from dicoflex.datasets import Dataset
from dicoflex.errors import DataError
from dicoflex.neighbours import Pool, nearest
from dicoflex.table.encoding import Encoding

HERE = Path(__file__).parent
TABLES = ("adult", "bank", "default", "gmc", "lending-club")
METHODS = (
    "mixed",
    "mixed, labels alone",
    "mixed, boosted black box",
    "mixed, three classes",
    "oracle, three classes",
    "oracle",
    "maf",
)
EXPONENTS = (2.0, 1.0, 0.25, 0.08, 0.01)
FROZEN = {
    "adult": ["age", "race", "sex"],
    "bank": ["age", "job", "marital"],
    "default": ["SEX", "MARRIAGE", "AGE"],
    "gmc": ["age", "NumberOfDependents", "NumberRealEstateLoansOrLines"],
    "lending-club": ["emp_length", "home_ownership", "annual_inc"],
}
ADULT_ONLY = tuple(method for method in METHODS if "," in method)
HIGH = 0.9


@dataclass(frozen=True)
class Cell:
    """One measurement: which table, method and seed, and how much work it may do."""

    table: str
    method: str
    seed: int
    queries: int = 100
    draws: int = 100
    rows: int | None = None
    maf_seconds: float = 600.0
    quick: bool = False

    @property
    def key(self) -> str:
        """The cell's name in the cache; another version of the package is another cell."""
        text = json.dumps(asdict(self) | {"version": __version__}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class Task:
    """A table with its black box and its queries."""

    data: Dataset
    black_box: Any
    queries: pd.DataFrame
    targets: np.ndarray
    lof: metrics.LogLof

    @property
    def labels(self) -> np.ndarray:
        return np.asarray(self.black_box.predict(self.data.X_train))


Sampler = Callable[..., pd.DataFrame]


def prepare(cell: Cell, kind: str) -> Task:
    """The table, its black box, and `queries` test rows of each predicted class with another class as target."""
    data = load(cell)
    if "three classes" in cell.method:
        data = graded(data, cell.seed)
    black_box = BLACK_BOXES[kind](data, cell.seed)
    predicted = np.asarray(black_box.predict(data.X_test))
    rng = np.random.default_rng(cell.seed)
    classes = np.unique(predicted)
    few = [_pick(rng, np.flatnonzero(predicted == label), cell.queries) for label in classes]
    index = np.concatenate(few)
    further = rng.integers(1, len(classes), len(index))
    targets = classes[(np.searchsorted(classes, predicted[index]) + further) % len(classes)]
    return Task(
        data,
        black_box,
        data.X_test.iloc[index].reset_index(drop=True),
        targets,
        metrics.LogLof(data.X_train, data.schema),
    )


def load(cell: Cell) -> Dataset:
    """The authors' split of a table, cut to `rows` for a quick look; Adult without their files is the shipped one."""
    try:
        data = datasets.load(cell.table, split="paper")
    except DataError:
        data = datasets.load(cell.table)
    if cell.rows is None:
        return data
    return replace(data, X_train=data.X_train.head(cell.rows), y_train=data.y_train.head(cell.rows))


def graded(data: Dataset, seed: int) -> Dataset:
    """The table with three grades as its label: how likely boosted trees find the positive class."""

    def grades(frame: pd.DataFrame) -> pd.Series:
        likely = judge.predict_proba(frame)[:, list(judge.classes_).index(data.positive)]
        return pd.Series(np.select([likely < 0.1, likely < 0.5], ["low", "middle"], "high"), frame.index)

    judge = BLACK_BOXES["boosting"](data, seed)
    return replace(data, y_train=grades(data.X_train), y_test=grades(data.X_test))


def _pick(rng: np.random.Generator, index: np.ndarray, n: int) -> np.ndarray:
    return rng.choice(index, min(n, len(index)), replace=False)


# -- methods -----------------------------------------------------------------------------------------------------


def fit(cell: Cell, task: Task) -> tuple[Sampler, dict[str, Any], dict[Any, float]]:
    """A method's sampler, facts about its fit, and the highest confidence of each class that it supports."""
    if cell.method.startswith("oracle"):
        return oracle(task), {"seconds": 0.0}, {}
    explainer = build(cell, task.data)
    judge = None if cell.method in ("maf", "mixed, labels alone") else task.black_box.predict_proba
    explainer.fit(task.data.X_train, task.labels, predict_proba=judge)
    # The paper's flow is measured as it draws; the stand-in's filter is not part of it.
    usual = cell.method != "maf"

    def sampler(queries: pd.DataFrame, targets: np.ndarray, *, filter: bool = usual, **conditions: Any) -> pd.DataFrame:
        return explainer.sample(queries, target=targets, random_state=cell.seed, filter=filter, **conditions)

    highest = dict(zip(explainer.classes_.tolist(), explainer.conditions_.highest.tolist(), strict=True))
    return sampler, explainer.report_, highest if explainer.model_.has_confidence else {}


def build(cell: Cell, data: Dataset) -> DiCoFlex:
    """The unfitted explainer of a cell."""
    common: dict[str, Any] = {"schema": data.schema, "random_state": cell.seed, "verbose": False}
    if cell.method == "maf":
        return DiCoFlex.paper(max_seconds=cell.maf_seconds, **common)
    if cell.quick:
        common |= {"training": {"epochs": 2}, "fit_config": {"passes": 2, "own_draws": 8000}}
    return DiCoFlex(**common)


def oracle(task: Task) -> Sampler:
    """The paper's q-hat itself: the nearest training rows of the target class, as they are."""
    encoding = Encoding.fit(task.data.X_train, task.data.schema)
    values = encoding.encode(task.data.X_train)
    classes, labels = np.unique(task.labels, return_inverse=True)
    pool = Pool.group(encoding.parts(values), labels, len(classes))

    def sampler(
        queries: pd.DataFrame, targets: np.ndarray, *, n: int, p: float, frozen: Sequence[str] = (), **_: Any
    ) -> pd.DataFrame:
        mask = np.tile(data_mask(task.data, frozen), (len(queries), 1))
        found = nearest(
            encoding.parts(encoding.encode(queries)), pool, target=np.searchsorted(classes, targets),
            p=np.full(len(queries), p), mask=mask, k=min(n, 16),
        )  # fmt: skip
        row, rank = np.nonzero(found.rows >= 0)
        frame = task.data.X_train.iloc[found.rows[row, rank]]
        return frame.set_axis(pd.MultiIndex.from_arrays([queries.index[row], rank], names=["row", "cf"]))

    return sampler


def data_mask(data: Dataset, frozen: Sequence[str]) -> np.ndarray:
    """The features that are frozen, as a vector."""
    return data.schema.mask(list(frozen))


# -- measures ----------------------------------------------------------------------------------------------------


def measure(cell: Cell) -> dict[str, Any]:
    """All figures of a cell."""
    kind = "boosting" if "boosted" in cell.method else "perceptron"
    task = prepare(cell, kind)
    started = time.perf_counter()
    sampler, facts, highest = fit(cell, task)
    seconds = time.perf_counter() - started
    figures: dict[str, Any] = {"fit_seconds": seconds, "black_box_rows": facts.get("black_box_rows", 0)}
    figures |= {"stand_in": facts.get("stand_in"), "stand_in_agreement": facts.get("stand_in_agreement")}
    usual = draw(cell, task, sampler, p=2.0)
    figures |= at_usual(task, usual)
    figures["changed"] = {}
    for p in EXPONENTS:
        frame = usual if p == 2.0 else draw(cell, task, sampler, p=p)
        figures["changed"][str(p)] = float(metrics.changed(task.queries, frame, task.data.schema).sum(axis=1).mean())
        if p == 0.01:
            figures["numbers_changed_sparse"] = metrics.share_numbers_changed(task.queries, frame, task.data.schema)
            figures["validity_sparse"] = validity(task, frame)
    figures["validity_unfiltered"] = validity(task, draw(cell, task, sampler, p=2.0, filter=False))
    figures |= with_frozen(cell, task, sampler)
    if highest:
        figures |= at_high(cell, task, sampler, highest)
    return figures


def draw(cell: Cell, task: Task, sampler: Sampler, **conditions: Any) -> pd.DataFrame:
    """All queries' draws under `conditions`."""
    return sampler(task.queries, task.targets, n=cell.draws, **conditions)


def validity(task: Task, frame: pd.DataFrame) -> float:
    """The share of draws to which the black box gives the target."""
    row = frame.index.get_level_values("row").to_numpy()
    return metrics.validity(task.black_box.predict(frame), task.targets[row])


def at_usual(task: Task, frame: pd.DataFrame) -> dict[str, Any]:
    """What is measured at p = 2 and the default confidence."""
    schema, train = task.data.schema, task.data.X_train
    kept = frame[frame.index.get_level_values("cf") < 10]
    twins = draw_oracle(task)
    return {
        "validity": validity(task, frame),
        "categories_changed": metrics.share_categories_changed(task.queries, frame, schema),
        "lof": float(task.lof.score(kept).mean()),
        "lof_test_rows": float(task.lof.score(task.data.X_test.head(2000)).mean()),
        "lof_neighbours": float(task.lof.score(twins).mean()),
        "gower": metrics.mean_pairwise_gower(kept, schema),
        "gower_neighbours": metrics.mean_pairwise_gower(twins, schema),
        "copies": metrics.share_of_copies(frame, train, schema),
        "copies_test_rows": metrics.share_of_copies(task.data.X_test, train, schema),
    }


def draw_oracle(task: Task) -> pd.DataFrame:
    """The 16 nearest target-class training rows of every query."""
    return oracle(task)(task.queries, task.targets, n=16, p=2.0)


def with_frozen(cell: Cell, task: Task, sampler: Sampler) -> dict[str, Any]:
    """Validity, and cells that moved, with three features frozen."""
    frozen = FROZEN[cell.table]
    frame = draw(cell, task, sampler, p=2.0, frozen=frozen)
    return {
        "validity_frozen": validity(task, frame),
        "violations": metrics.violations(task.queries, frame, frozen),
    }


def at_high(cell: Cell, task: Task, sampler: Sampler, highest: dict[Any, float]) -> dict[str, Any]:
    """Validity at confidence 0.9, or the highest that a class supports where that is less."""
    parts, asked = [], {}
    for label in np.unique(task.targets):
        here = task.targets == label
        asked[str(label)] = float(np.floor(min(HIGH, highest[label]) * 1e4) / 1e4)
        part = sampler(task.queries[here], task.targets[here], n=cell.draws, p=2.0, confidence=asked[str(label)])
        parts.append(part)
    return {"validity_high": validity(task, pd.concat(parts)), "high_confidence": asked}


# -- running and writing -----------------------------------------------------------------------------------------


def run(cells: Sequence[Cell], cache: Path) -> list[dict[str, Any]]:
    """The figures of all cells, from the cache where they are there."""
    cache.mkdir(parents=True, exist_ok=True)
    results = []
    for cell in cells:
        path = cache / f"{cell.key}.json"
        if not path.exists():
            print(f"{cell.table}, {cell.method}, seed {cell.seed} …", flush=True)
            try:
                figures = measure(cell)
            except DataError as error:
                print(f"  left out: {error}")
                continue
            _write(path, json.dumps(asdict(cell) | figures, indent=1))
            print(f"  validity {figures['validity']:.4f}, fit {figures['fit_seconds']:.0f} s", flush=True)
        results.append(json.loads(path.read_text()))
    return results


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_text(text)
    os.replace(temporary, path)


ROWS: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
    ("raw validity, p = 2, default confidence", lambda r: _number(r["validity"], 4)),
    ("  without the stand-in's filter", lambda r: _number(r["validity_unfiltered"], 4)),
    ("raw validity at confidence 0.9 or the highest supported", lambda r: _number(r.get("validity_high"), 4)),
    ("  confidence asked for, by target", lambda r: _asked(r.get("high_confidence"))),
    ("raw validity, three features frozen", lambda r: _number(r["validity_frozen"], 4)),
    ("  frozen cells that moved", lambda r: str(r["violations"])),
    ("raw validity, p = 0.01", lambda r: _number(r["validity_sparse"], 4)),
    ("share of categories changed, p = 2", lambda r: _number(r["categories_changed"])),
    ("share of numbers changed, p = 0.01", lambda r: _number(r["numbers_changed_sparse"])),
    ("features changed at p = 2 / 1 / 0.25 / 0.08 / 0.01", lambda r: _path(r["changed"])),
    ("  fall from p = 2 to 0.01", lambda r: f"{1 - r['changed']['0.01'] / r['changed']['2.0']:.0%}"),
    ("log LOF of 10 kept draws, p = 2", lambda r: _number(r["lof"])),
    ("  of real test rows / of the 16 nearest rows", lambda r: f"{r['lof_test_rows']:.3f} / {r['lof_neighbours']:.3f}"),
    ("mean pairwise Gower distance of 10 kept draws", lambda r: _number(r["gower"])),
    ("  of the 16 nearest rows", lambda r: _number(r["gower_neighbours"])),
    ("copies of training rows among draws / test rows", lambda r: f"{r['copies']:.3f} / {r['copies_test_rows']:.3f}"),
    ("fit, seconds", lambda r: f"{r['fit_seconds']:.0f}"),
    ("rows shown to the black box in fit", lambda r: f"{r['black_box_rows']:,}"),
    ("stand-in and its agreement", lambda r: f"{r['stand_in'] or ''} {_number(r['stand_in_agreement'])}".strip()),
]  # fmt: skip


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _path(changed: dict[str, float]) -> str:
    return " / ".join(f"{value:.2f}" for value in changed.values())


def _asked(levels: dict[str, float] | None) -> str:
    return ", ".join(f"{k}: {v:g}" for k, v in levels.items()) if levels else "–"


def page(results: Sequence[dict[str, Any]], command: str) -> str:
    """The results as Markdown: one table per benchmark table, methods and seeds side by side."""
    lines = [
        "# Quality of the draws",
        "",
        f"Generated by `{command}` (dicoflex {__version__}).",
        "",
        __doc__.split("\n\n")[1],
    ]
    for name in dict.fromkeys(r["table"] for r in results):
        mine = [r for r in results if r["table"] == name]
        lines += ["", f"## {name}", "", "| | " + " | ".join(f"{r['method']}, seed {r['seed']}" for r in mine) + " |"]
        lines.append("|---" * (len(mine) + 1) + "|")
        lines += [f"| {title} | " + " | ".join(show(r) for r in mine) + " |" for title, show in ROWS]
    return "\n".join(lines) + "\n"


def cells(options: argparse.Namespace) -> list[Cell]:
    """The cells that the options ask for; some methods are run on the first table or with the first seed only."""
    if options.quick:
        quick = {"queries": 10, "draws": 20, "rows": 1500, "maf_seconds": 5.0, "quick": True}
        return [Cell("adult", method, 0, **quick) for method in options.methods or ("mixed", "oracle", "maf")]
    tables = dict.fromkeys(ADULT_ONLY, options.tables[:1]) | {"maf": options.maf_tables or options.tables}
    return [
        Cell(table, method, seed, maf_seconds=options.maf_seconds)
        for method in options.methods or METHODS
        for seed in (options.seeds[:1] if method in tables else options.seeds)
        for table in tables.get(method, options.tables)
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what the options ask for and write `quality.md` and `quality.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--maf-tables", nargs="+", choices=TABLES, help="where maf is trained; default: all tables")
    parser.add_argument("--maf-seconds", type=float, default=600.0)
    parser.add_argument("--quick", action="store_true", help="a small slice of Adult, in a minute or two")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--cache", type=Path, default=Path(".benchmarks") / "quality")
    options = parser.parse_args(argv)
    results = run(cells(options), options.cache)
    results.sort(key=lambda r: (r["table"], METHODS.index(r["method"]), r["seed"]))
    options.out.mkdir(parents=True, exist_ok=True)
    _write(options.out / "quality.json", json.dumps(results, indent=1) + "\n")
    _write(
        options.out / "quality.md",
        page(results, shlex.join(["python", "benchmarks/quality.py", *(sys.argv[1:] if argv is None else argv)])),
    )
    print(f"written: {options.out / 'quality.md'}")


if __name__ == "__main__":
    main()
