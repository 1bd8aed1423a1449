"""The parts: a drag, the first plans, and the size of what is loaded."""

from __future__ import annotations

__all__ = ["PARTS", "cells", "measure"]

import gzip
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import dicoflex
from benchmarks.cells import Cell, Size
from benchmarks.experiments.explorer.browsing import drag, explored, first_plans, paged
from benchmarks.methods import model_file
from benchmarks.options import Options
from benchmarks.tables import GERMAN
from benchmarks.tasks import prepare

FULL = Size(learning=20.0)
QUICK = Size(rows=600, queries=6, learning=None, quick=True)
# Few steps: how long an answer takes, not how good it is, is what is measured.
SHORT: dict[str, Any] = {"training": {"epochs": 1, "min_steps": 60}, "fit_config": {"passes": 1, "rounds": 0}}
STATIC = Path(dicoflex.__file__).parent / "explorer" / "static"
FEATURE = "credit_amount"


@dataclass(frozen=True)
class Amount:
    """How many people are dragged for, moves of a drag, its seconds, and how often the page is opened."""

    people: int = 5
    moves: int = 120
    seconds: float = 3.0
    openings: int = 10


MUCH, LITTLE = Amount(), Amount(people=1, moves=30, seconds=1.0, openings=2)


class Ground:
    """An explorer's model and its people."""

    def __init__(self, cell: Cell, models: Path) -> None:
        task = prepare(cell)
        self.amount = LITTLE if cell.size.quick else MUCH
        settings = {**SHORT, "max_seconds": None} if cell.size.quick else {}
        self.model = model_file(cell, task, models, "mixed", variant="explorer", **settings)
        self.people = Path(tempfile.mkdtemp(prefix="dicoflex-explorer-")) / "people.csv"
        task.data.X_test.head(200).to_csv(self.people, index_label="person")


def _links(address: str) -> list[str]:
    """The page about each of those who lack the wanted result, the nearest to it first."""
    with httpx.Client(trust_env=False, timeout=60) as http:
        wanted = http.post(f"{address}api/model", json={}).json()["wanted"]
        asked = {"search": "", "offset": 0, "most": 200, "order": "near"}
        people = http.post(f"{address}api/people", json=asked).json()["people"]
    return [f"{address}#v=1&person={one['id']}&most=any&seed=0" for one in people if one["result"] != wanted]


def _drag(ground: Ground) -> dict[str, Any]:
    """Waits from an event to its frame, requests and repaints, and how long the server takes for the same bodies."""
    drags: list[dict[str, Any]] = []
    with explored(ground.model, ground.people) as address:
        with paged() as page:
            for link in _links(address)[: ground.amount.people]:
                first_plans(page, link)
                page.wait_for_timeout(1000)
                drags.append(drag(page, FEATURE, moves=ground.amount.moves, seconds=ground.amount.seconds))
        server = _alone(address, [body for one in drags for body in one["bodies"]])
    waits = [wait for one in drags for wait in one["waits"]]
    return {
        "drags": len(drags),
        "moves": ground.amount.moves,
        "seconds": float(np.mean([one["seconds"] for one in drags])),
        "requests": float(np.mean([len(one["bodies"]) for one in drags])),
        "repaints": float(np.mean([len(one["waits"]) for one in drags])),
        "paint": _percentiles(waits),
        "server": _percentiles(server),
    }


def _alone(address: str, bodies: list[str]) -> list[float]:
    """Milliseconds of the same questions, asked one after the other without a browser."""
    waits = []
    with httpx.Client(trust_env=False, timeout=60, headers={"Content-Type": "application/json"}) as http:
        for body in bodies:
            started = time.perf_counter()
            http.post(f"{address}api/ask", content=body).raise_for_status()
            waits.append(1000 * (time.perf_counter() - started))
    return waits


def _percentiles(waits: list[float]) -> dict[str, float]:
    p50, p95 = np.percentile(waits or [np.nan], [50, 95])
    return {"p50": float(p50), "p95": float(p95)}


def _first(ground: Ground) -> dict[str, Any]:
    """Seconds from opening a link to the first plans."""
    with explored(ground.model, ground.people) as address, paged() as page:
        links = _links(address)
        seconds = [first_plans(page, links[i % len(links)]) for i in range(ground.amount.openings)]
    return {"openings": len(seconds), "first": _percentiles([1000 * one for one in seconds])}


def _size(_ground: Ground) -> dict[str, Any]:
    """Bytes of each file that is loaded, and compressed."""
    files = {path.name: path.read_bytes() for path in sorted(STATIC.iterdir())}
    return {"files": {name: [len(text), len(gzip.compress(text, 9))] for name, text in files.items()}}


PARTS: dict[str, Callable[[Ground], dict[str, Any]]] = {"drag": _drag, "first": _first, "size": _size}


def cells(options: Options) -> list[Cell]:
    """A cell per part, all on one table."""
    parts = options.pick_methods(tuple(PARTS), quick=tuple(PARTS))
    tables = options.pick_tables((GERMAN,), quick=(GERMAN,))
    size = options.size(FULL, QUICK)
    return [Cell("explorer", table, part, options.pick_seeds()[0], size) for table in tables for part in parts]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """The figures of a part."""
    ground = Ground(cell, models)
    try:
        return PARTS[cell.method](ground)
    finally:
        shutil.rmtree(ground.people.parent, ignore_errors=True)
