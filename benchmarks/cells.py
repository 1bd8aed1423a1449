"""Cells: one measurement each, named by its settings and source, kept in a cache so that a stopped run goes on."""

from __future__ import annotations

__all__ = ["FULL", "QUICK", "Cell", "Measure", "Result", "Size", "measured", "merged", "run", "tidy"]

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sources import UNKNOWN, commit, source_of
from dicoflex.runtime.progress import Progress
from dicoflex.runtime.whole_files import write_text

DIGITS = 7
MODELS = "models"


@dataclass(frozen=True)
class Size:
    """How much work a cell may do.

    rows: training rows, None for all. queries: test rows of each predicted class. candidates: answers asked for;
    kept: of the valid ones, so many are scored. learning, answering: the seconds that a method gets for each, None for
    as long as it takes. quick: whether trainings are cut to a few steps as well.
    """

    rows: int | None = None
    queries: int = 100
    candidates: int = 100
    kept: int = 10
    learning: float | None = 120.0
    answering: float | None = 45.0
    quick: bool = False


FULL = Size()
QUICK = Size(rows=1500, queries=6, candidates=20, kept=5, learning=0.5, answering=0.5, quick=True)


@dataclass(frozen=True)
class Cell:
    """One measurement: what is measured, on which table, of which method, with which seed and settings.

    settings: what else tells cells of this kind apart; single values are shown, tuples of them are not.
    """

    kind: str
    table: str
    method: str
    seed: int = 0
    size: Size = FULL
    settings: tuple[tuple[str, Any], ...] = ()

    def key(self, source: str) -> str:
        """The cell's name in the cache; with another state of the source that it depends on it is another cell."""
        text = json.dumps(asdict(self) | {"source": source}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        more = [f"{name} {value}" for name, value in self.settings if not isinstance(value, tuple)]
        return f"{self.kind}: {', '.join(filter(None, [self.table, self.method, *more]))}, seed {self.seed}"

    def setting(self, name: str) -> Any:
        """One of the settings."""
        return dict(self.settings)[name]

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Cell:
        """The cell that was stored as a dict."""
        return cls(**stored | {"size": Size(**stored["size"]), "settings": _as_tuples(stored["settings"])})


def _as_tuples(value: Any) -> Any:
    """JSON has lists alone; a cell is hashable."""
    return tuple(_as_tuples(part) for part in value) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Result:
    """What came of a cell: its figures, or why there are none; and the commit that it was measured at."""

    cell: Cell
    figures: dict[str, Any] = field(default_factory=dict)
    failed: str = ""
    commit: str = UNKNOWN

    def stored(self) -> dict[str, Any]:
        """The result as plain data."""
        return asdict(self)

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Result:
        """The result that was stored as plain data."""
        return cls(**stored | {"cell": Cell.of(stored["cell"])})


Measure = Callable[[Cell, Path], dict[str, Any]]
"""From a cell and the folder of fitted models to the cell's figures."""


def run(cells: Sequence[Cell], measure: Measure, cache: Path) -> list[Result]:
    """The results of all cells, from the cache where they are there.

    A cell that fails is left out with its reason and is not cached: one method can't stop the others.
    """
    cache.mkdir(parents=True, exist_ok=True)
    paths = [cache / f"{cell.key(source_of(cell.method, measure))}.json" for cell in cells]
    results = []
    with Progress().stage("bench", len(cells)) as advance:
        for cell, path in zip(cells, paths, strict=True):
            results.append(_result(cell, measure, path))
            advance(1, str(cell))
    return results


def _result(cell: Cell, measure: Measure, path: Path) -> Result:
    if path.exists():
        return Result.of(json.loads(path.read_text(encoding="utf-8")))
    print(f"{cell} …", flush=True)
    started = time.perf_counter()
    try:
        result = Result(cell, tidy(measure(cell, path.parent / MODELS)), commit=commit())
    except Exception as error:
        print(f"  left out: {type(error).__name__}: {error}", flush=True)
        return Result(cell, failed=f"{type(error).__name__}: {error}")
    write_text(path, json.dumps(result.stored(), indent=1) + "\n")
    print(f"  {time.perf_counter() - started:.1f} s", flush=True)
    return result


def tidy(value: Any) -> Any:
    """Plain data for JSON: rounded numbers, and None for what is no number.

    >>> tidy({"a": np.float64(0.1) + 0.2, "b": [float("nan"), np.int64(3)]})
    {'a': 0.3, 'b': [None, 3]}
    """
    if isinstance(value, dict):
        return {str(name): tidy(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [tidy(part) for part in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def measured(results: Sequence[Result]) -> list[Result]:
    """The results that have figures."""
    return [result for result in results if not result.failed]


def merged(results: Sequence[Result]) -> list[Result]:
    """One result per setting: figures that are numbers averaged over the seeds, failed cells left out."""
    groups: dict[Cell, list[Result]] = {}
    for result in measured(results):
        groups.setdefault(replace(result.cell, seed=0), []).append(result)
    return [Result(cell, _average([r.figures for r in group])) for cell, group in groups.items()]


def _average(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, dict):
        return {name: _average([value.get(name) for value in values if value is not None]) for name in first}
    if isinstance(first, bool):
        return any(values)
    numbers = [value for value in values if isinstance(value, int | float)]
    return sum(numbers) / len(numbers) if numbers else first
