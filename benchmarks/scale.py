"""What a fit costs as tables grow, and what it loses by learning from a sample of a large one.

Tables of 10,000 to 1,000,000 rows follow Adult's joint distribution: rows of the shipped table, drawn with replacement,
their numbers moved a little. Each is fitted in a process of its own, with a perceptron as black box, on at most
`FitConfig.most_rows` rows. Measured are seconds, peak memory, and the raw validity of draws for the same held-out
queries; and what the sample does to neighbours: the share of each query's 16 nearest rows in the sample that are no
farther than the 16th of the whole table, and how many times as far they are on average. Results of a size are kept in a
cache named by its settings, so a run that was stopped goes on where it was.

    python benchmarks/scale.py                        all sizes (about half an hour)
    python benchmarks/scale.py --quick                two tiny ones, in a minute
    python benchmarks/scale.py --rows 10000 100000 --seeds 0 1 2 3 4
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from black_boxes import perceptron
from dicoflex import DiCoFlex, __version__, datasets, metrics
from dicoflex.datasets import Dataset
from dicoflex.learning.config import FitConfig
from dicoflex.neighbours import Neighbours, Pool, nearest
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.schema import Schema
from dicoflex.table.survey import take_rows

HERE = Path(__file__).parent
ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
EXPONENTS = (2.0, 0.01)
NEIGHBOURS = 16
PLACES = 3
POINT_MASS = 0.1
CHUNK = 50_000


@dataclass(frozen=True)
class Cell:
    """One fit: how many rows and which seed, and how much work it may do."""

    rows: int
    seed: int
    queries: int = 100
    draws: int = 100
    box_rows: int = 30_000
    most_rows: int = FitConfig().most_rows
    quick: bool = False

    @property
    def key(self) -> str:
        """The cell's name in the cache; another version of the package is another cell."""
        text = json.dumps(asdict(self) | {"version": __version__}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def settings(self) -> dict[str, Any]:
        """The explainer's settings."""
        config = {"most_rows": self.most_rows}
        if not self.quick:
            return {"fit_config": config}
        return {
            "fit_config": config | {"passes": 2, "own_draws": 2000},
            "training": {"epochs": 2, "min_steps": 100},
        }


# -- the table --------------------------------------------------------------------------------------------------------


def synthetic_adult(n: int, seed: int) -> pd.DataFrame:
    """`n` rows that follow Adult's joint distribution, with its columns, dtypes, levels and limits.

    Rows of the shipped table, with replacement; a number moves by up to three places in the list of its column's
    values, unless it is one that more than a tenth of the rows share, such as no capital gain.

    >>> rows = synthetic_adult(50_000, seed=0)
    >>> len(rows), rows.dtypes.equals(datasets.load("adult").X_train.dtypes)
    (50000, True)
    """
    data = datasets.load("adult")
    rng = np.random.default_rng(seed)
    rows = data.X_train.take(rng.integers(len(data.X_train), size=n)).reset_index(drop=True)
    for feature in data.schema.features:
        if feature.is_number:
            rows[feature.name] = _moved(rows[feature.name].to_numpy(), data.X_train[feature.name].to_numpy(), rng)
    return rows


def _moved(values: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    grid, counts = np.unique(known, return_counts=True)
    place = np.searchsorted(grid, values)
    stays = counts[place] > POINT_MASS * len(known)
    moved = np.clip(place + rng.integers(-PLACES, PLACES + 1, len(values)), 0, len(grid) - 1)
    return grid[np.where(stays, place, moved)]


# -- measures ---------------------------------------------------------------------------------------------------------


def measure(cell: Cell) -> dict[str, Any]:
    """All figures of a cell; to be called in a process that has done nothing else, or its peak memory is not this."""
    data = datasets.load("adult")
    black_box = perceptron(_head(data, cell.box_rows), cell.seed)
    X = synthetic_adult(cell.rows, cell.seed)
    y = _labels(black_box, X)
    queries, targets = _queries(data, black_box, cell)
    before = peak_mb()
    explainer = DiCoFlex(schema=data.schema, random_state=cell.seed, verbose=False, **cell.settings)
    started = time.perf_counter()
    explainer.fit(X, y, predict_proba=black_box.predict_proba)
    figures: dict[str, Any] = {"fit_seconds": time.perf_counter() - started, "peak_mb": peak_mb(), "before_mb": before}
    figures |= {name: explainer.report_[name] for name in ("rows_used", "black_box_rows", "stand_in_agreement")}
    for p in EXPONENTS:
        draws = explainer.sample(queries, target=targets, n=cell.draws, p=p, random_state=cell.seed)
        figures[f"validity_{p:g}"] = _validity(black_box, draws, targets)
        figures[f"changed_{p:g}"] = float(metrics.changed(queries, draws, data.schema).sum(axis=1).mean())
    draws = explainer.sample(queries, target=targets, n=cell.draws, filter=False, random_state=cell.seed)
    figures["validity_unfiltered"] = _validity(black_box, draws, targets)
    return figures | exactness(X, y, data.schema, queries, targets, most_rows=cell.most_rows, seed=cell.seed)


def _validity(black_box: Any, draws: pd.DataFrame, targets: np.ndarray) -> float:
    row = draws.index.get_level_values("row").to_numpy()
    return metrics.validity(black_box.predict(draws), targets[row])


def _head(data: Dataset, n: int) -> Dataset:
    return Dataset(
        data.name, data.X_train.head(n), data.y_train.head(n), data.X_test, data.y_test, data.schema, data.label,
        data.positive,
    )  # fmt: skip


def _labels(black_box: Any, X: pd.DataFrame) -> np.ndarray:
    """The black box's labels, asked for in chunks: its one-hot table of a million rows would fill the memory."""
    return np.concatenate([black_box.predict(X.iloc[low : low + CHUNK]) for low in range(0, len(X), CHUNK)])


def _queries(data: Dataset, black_box: Any, cell: Cell) -> tuple[pd.DataFrame, np.ndarray]:
    """Test rows of each predicted class, which no table was made from, and the other class as target."""
    predicted = np.asarray(black_box.predict(data.X_test))
    rng = np.random.default_rng(cell.seed)
    classes = np.unique(predicted)
    picked = [rng.permutation(np.flatnonzero(predicted == label))[: cell.queries] for label in classes]
    index = np.concatenate(picked)
    targets = np.where(predicted[index] == classes[0], classes[1], classes[0])
    return data.X_test.iloc[index].reset_index(drop=True), targets


def peak_mb() -> float:
    """The most memory that this process has held so far, in megabytes.

    Linux hands a parent's peak on to a process that it starts, except in this file.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def exactness(
    X: pd.DataFrame,
    y: np.ndarray,
    schema: Schema,
    queries: pd.DataFrame,
    targets: np.ndarray,
    *,
    most_rows: int,
    seed: int,
) -> dict[str, float]:
    """How near the neighbours in the sample that `fit` takes come to those in the whole table, at two exponents.

    overlap: the share of the sample's neighbours that are no farther than the whole table's last, so that of equal rows
    any will do. ratio: their mean distance, as a multiple of that of the whole table's.
    """
    classes, labels = np.unique(y, return_inverse=True)
    rows = take_rows(X, schema, labels, most=most_rows, seed=seed)
    anchors, wanted = rows.encoding.encode(queries), np.searchsorted(classes, targets)
    sampled = Pool.group(rows.encoding.parts(rows.values), rows.labels, len(classes))
    whole = Pool.group(rows.encoding.parts(rows.encoding.encode(X)), labels, len(classes))
    figures = {}
    for p in EXPONENTS:
        near, nearer = (_nearest(rows.encoding, anchors, pool, wanted, p) for pool in (sampled, whole))
        as_near = near.distances <= nearer.distances[:, -1:] * (1 + 1e-5)
        figures[f"overlap_{p:g}"] = float(as_near.mean())
        figures[f"ratio_{p:g}"] = float(near.distances.mean() / nearer.distances.mean())
    return figures


def _nearest(encoding: Encoding, anchors: Values, pool: Pool, target: np.ndarray, p: float) -> Neighbours:
    return nearest(
        encoding.parts(anchors), pool, target=target, p=np.full(len(anchors), p),
        mask=np.zeros(anchors.shape, dtype=bool), k=NEIGHBOURS,
    )  # fmt: skip


# -- running ----------------------------------------------------------------------------------------------------------


def run(cells: Sequence[Cell], cache: Path) -> list[dict[str, Any]]:
    """The figures of all cells, from the cache where they are there."""
    cache.mkdir(parents=True, exist_ok=True)
    results = []
    for cell in cells:
        path = cache / f"{cell.key}.json"
        if not path.exists():
            print(f"{cell.rows:,} rows, seed {cell.seed} …", flush=True)
            figures = apart(cell)
            _write(path, json.dumps(asdict(cell) | figures, indent=1))
            print(f"  fit {figures['fit_seconds']:.0f} s, peak {figures['peak_mb']:,.0f} MB", flush=True)
        results.append(json.loads(path.read_text()))
    return results


def apart(cell: Cell) -> dict[str, Any]:
    """The figures of a cell, measured in a fresh process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--cell", json.dumps(asdict(cell))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_text(text)
    os.replace(temporary, path)


# -- the page ---------------------------------------------------------------------------------------------------------

LINES: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
    ("rows that the fit used", lambda r: f"{r['rows_used']:,.0f}"),
    ("fit, seconds", lambda r: f"{r['fit_seconds']:.1f}"),
    ("peak memory of the process, MB", lambda r: f"{r['peak_mb']:,.0f}"),
    ("  of it before the fit (table and black box)", lambda r: f"{r['before_mb']:,.0f}"),
    ("rows shown to the black box in fit", lambda r: f"{r['black_box_rows']:,.0f}"),
    ("agreement of the stand-in", lambda r: f"{r['stand_in_agreement']:.3f}"),
    ("raw validity, p = 2", lambda r: f"{r['validity_2']:.4f}"),
    ("raw validity, p = 2, without the stand-in's filter", lambda r: f"{r['validity_unfiltered']:.4f}"),
    ("raw validity, p = 0.01", lambda r: f"{r['validity_0.01']:.4f}"),
    ("features changed, p = 2 / 0.01", lambda r: f"{r['changed_2']:.2f} / {r['changed_0.01']:.2f}"),
    ("neighbours as near as the whole's, p = 2 / 0.01", lambda r: f"{r['overlap_2']:.3f} / {r['overlap_0.01']:.3f}"),
    ("mean distance, times the whole table's", lambda r: f"{r['ratio_2']:.3f} / {r['ratio_0.01']:.3f}"),
]  # fmt: skip


def medians(results: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    """One entry per size: the medians over the seeds."""
    by_rows = sorted(results, key=lambda r: r["rows"])
    groups = [list(group) for _, group in groupby(by_rows, key=lambda r: r["rows"])]
    names = [name for name, value in results[0].items() if not isinstance(value, bool)]
    return [{name: float(np.median([r[name] for r in group])) for name in names} for group in groups]


def slope(sizes: Sequence[dict[str, float]]) -> float:
    """How the log of the seconds grows with the log of the rows: 1 is proportional, 0 is not at all."""
    rows, seconds = ([size[name] for size in sizes] for name in ("rows", "fit_seconds"))
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def page(sizes: Sequence[dict[str, float]], seeds: int, command: str) -> str:
    """The results as Markdown: a column per size."""
    last = sizes[-1]
    hundred = next((size for size in sizes if size["rows"] == 100_000), sizes[0])
    gains = [100 * (last[name] - hundred[name]) for name in ("validity_2", "validity_unfiltered")]
    lines = [
        "# Cost of a fit against rows",
        "",
        f"Generated by `{command}` (dicoflex {__version__}); medians of {seeds} seed{'s' * (seeds > 1)}.",
        "",
        __doc__.split("\n\n")[1],
        "",
        f"Seconds grow as rows to the power of {slope(sizes):.2f}. {last['rows']:,.0f} rows take "
        f"{last['fit_seconds'] / hundred['fit_seconds']:.2f} times as long as {hundred['rows']:,.0f}; raw validity at "
        f"p = 2 differs by {gains[0]:+.2f} points, without the stand-in's filter by {gains[1]:+.2f}.",
        "",
        "![Seconds, memory, neighbours and validity against rows](scale.png)",
        "",
        "| rows | " + " | ".join(f"{size['rows']:,.0f}" for size in sizes) + " |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    lines += [f"| {title} | " + " | ".join(show(size) for size in sizes) + " |" for title, show in LINES]
    return "\n".join(lines) + "\n"


PANELS: list[tuple[str, dict[str, str]]] = [
    ("fit, seconds", {"fit_seconds": "fit"}),
    ("memory, MB", {"peak_mb": "peak", "before_mb": "before the fit"}),
    ("distance of neighbours, times the whole's", {"ratio_2": "p = 2", "ratio_0.01": "p = 0.01"}),
    ("raw validity, p = 2", {"validity_2": "as drawn", "validity_unfiltered": "without the stand-in's filter"}),
]


def draw(sizes: Sequence[dict[str, float]], most_rows: int, path: Path) -> None:
    """The figure: four panels over rows, each from 0 up, with a line where sampling begins."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    rows = [size["rows"] for size in sizes]
    for axes, (title, curves) in zip(figure.subplots(2, 2).ravel(), PANELS, strict=True):
        for name, text in curves.items():
            axes.plot(rows, [size[name] for size in sizes], marker="o", label=text)
        axes.axvline(most_rows, color="0.6", linestyle=":", label="sampled beyond")
        axes.set(xscale="log", xlabel="rows", title=title)
        axes.set_xticks(rows, [f"{n:,.0f}" for n in rows], fontsize=8)
        axes.minorticks_off()
        axes.set_ylim(0, 1.1 * max(size[name] for size in sizes for name in curves))
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    temporary = path.with_suffix(".part")
    figure.savefig(temporary, format="png", dpi=150)
    os.replace(temporary, path)


def cells(options: argparse.Namespace) -> list[Cell]:
    """The cells that the options ask for, seed by seed, so that a run that was stopped has all sizes early."""
    if options.quick:
        quick = {"queries": 5, "draws": 20, "box_rows": 2000, "most_rows": 600, "quick": True}
        return [Cell(rows, 0, **quick) for rows in (500, 2000)]
    return [Cell(rows, seed) for seed in options.seeds for rows in options.rows]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what the options ask for and write `scale.md`, `scale.json` and `scale.png`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--quick", action="store_true", help="two tiny tables, in a minute")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--cache", type=Path, default=Path(".benchmarks") / "scale")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.cell:
        print(json.dumps(measure(Cell(**json.loads(options.cell)))))
        return
    wanted = cells(options)
    results = run(wanted, options.cache)
    sizes = medians(results)
    options.out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "benchmarks/scale.py", *(sys.argv[1:] if argv is None else argv)])
    _write(options.out / "scale.json", json.dumps({"slope": slope(sizes), "cells": results}, indent=1) + "\n")
    draw(sizes, wanted[0].most_rows, options.out / "scale.png")
    _write(options.out / "scale.md", page(sizes, len({cell.seed for cell in wanted}), command))
    print(f"written: {options.out / 'scale.md'}")


if __name__ == "__main__":
    main()
