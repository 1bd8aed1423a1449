"""The parts: load, equal answers, changes under load, a stream, hostile bodies, the audit log, the start."""

from __future__ import annotations

__all__ = ["PARTS", "cells", "measure"]

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pandas as pd

from benchmarks.cells import Cell, Size
from benchmarks.experiments.serving.hostile import bodies_of
from benchmarks.experiments.serving.load import ask_all
from benchmarks.experiments.serving.processes import SOURCE, black_box_server, memory, served
from benchmarks.methods import model_file
from benchmarks.options import Options
from benchmarks.tables import GERMAN
from benchmarks.tasks import Task, prepare
from dicoflex import load
from dicoflex.serving.audit import verify_folder
from dicoflex.serving.replay import replay
from dicoflex.values import is_missing, plain

CONNECTIONS = 32
FULL = Size(learning=20.0)
QUICK = Size(rows=600, queries=6, learning=None, quick=True)
# Few steps: how long an answer takes, not how good it is, is what is measured.
SHORT: dict[str, Any] = {"training": {"epochs": 1, "min_steps": 60}, "fit_config": {"passes": 1, "rounds": 0}}


@dataclass(frozen=True)
class Amount:
    """How many requests, answers to compare, rows of a stream, requests while something changes, and to replay."""

    requests: int = 1_500
    compared: int = 10_000
    streamed: int = 100_000
    changing: int = 5_000
    replayed: int = 1_000


MUCH, LITTLE = Amount(), Amount(requests=64, compared=40, streamed=300, changing=60, replayed=20)


class Ground:
    """A folder with a model, the bodies of questions about its table's rows, and how much to do."""

    def __init__(self, cell: Cell, models: Path) -> None:
        self.task: Task = prepare(cell)
        self.amount = LITTLE if cell.size.quick else MUCH
        settings = {**SHORT, "coherence": True, "max_seconds": None} if cell.size.quick else {"coherence": True}
        self.model = model_file(cell, self.task, models, "mixed", variant="serving", **settings)
        self.folder = Path(tempfile.mkdtemp(prefix="dicoflex-serving-"))
        self.models = self.folder / "models"
        self.models.mkdir()
        shutil.copy(self.model, self.models / "m.dicoflex")

    def rows(self, count: int) -> list[dict[str, Any]]:
        """Test rows, again and again, as they are sent."""
        frame = self.task.data.X_test
        cells = frame.astype(object).to_numpy().tolist()
        names = [str(name) for name in frame.columns]
        own = [dict(zip(names, (None if is_missing(v) else plain(v) for v in row), strict=True)) for row in cells]
        return [{"values": own[i % len(own)]} for i in range(count)]

    def bodies(self, count: int, **settings: Any) -> list[bytes]:
        """Questions about one row each."""
        target = plain(self.task.data.positive)
        return [orjson.dumps({"rows": [row], "target": target, "n": 5, **settings}) for row in self.rows(count)]


def _load(ground: Ground) -> dict[str, Any]:
    """Requests per second: gathered, not gathered, and of a server that calls the black box; refined and as drawn."""
    found: dict[str, Any] = {}
    ways = {"refined": {"refine": True}, "as drawn": {"refine": False}}
    for name, options in {"gathered": (), "one at a time": ("--no-gather",)}.items():
        with served(ground.models, *options) as server:
            for way, settings in ways.items():
                bodies = ground.bodies(ground.amount.requests, **settings)
                url = f"{server.url}/v1/models/m/explain"
                ask_all(url, bodies[:CONNECTIONS], connections=CONNECTIONS)
                found[f"{way}, {name}"] = ask_all(url, bodies, connections=CONNECTIONS).figures()
    with black_box_server(ground.task.black_box, ground.folder) as server:
        bodies = ground.bodies(ground.amount.requests)
        ask_all(f"{server.url}/predict", bodies[:CONNECTIONS], connections=CONNECTIONS)
        found["predict_proba"] = ask_all(f"{server.url}/predict", bodies, connections=CONNECTIONS).figures()
    return {"loads": found}


def _equal(ground: Ground) -> dict[str, Any]:
    """How many answers under load are those of direct calls."""
    count = ground.amount.compared
    bodies = ground.bodies(count, refine=False, include=[])
    with served(ground.models) as server:
        found = ask_all(f"{server.url}/v1/models/m/explain", bodies, connections=CONNECTIONS, keep=True)
    explainer, target = load(ground.model), ground.task.data.positive
    frame = ground.task.data.X_test
    rows = pd.concat([frame] * (1 + count // len(frame))).head(count).reset_index(drop=True)
    direct = explainer.explain(rows, target=target, n=5, refine=False, random_state=0)
    values = [[] for _ in range(count)]
    cells = direct.frame.astype(object).to_numpy().tolist()
    for place, row in zip(direct.positions.tolist(), cells, strict=True):
        values[place].append([None if is_missing(v) else plain(v) for v in row])
    same = 0
    for number, text in found.bodies.items():
        told = orjson.loads(text)["results"][0]["counterfactuals"]
        same += [list(one["values"].values()) for one in told] == values[number]
    return {"compared": count, "same": same}


def _changes(ground: Ground) -> dict[str, Any]:
    """Requests that failed while workers were replaced, a model was replaced, and the server was told to end."""
    bodies = ground.bodies(ground.amount.changing, refine=False, include=[])
    found: dict[str, Any] = {}
    with served(ground.models, workers=2) as server:
        _later(0.3, lambda: server.process.send_signal(signal.SIGHUP))
        found["workers replaced (SIGHUP)"] = _asked(server.url, bodies)
    with served(ground.models, "--poll-seconds", "0.2") as server:
        _later(0.3, lambda: os.utime(ground.models / "m.dicoflex"))
        found["model replaced"] = _asked(server.url, bodies)
    with served(ground.models) as server:
        # What is sent before the server stops listening is answered; who comes later is told so by the system.
        server.process.send_signal(signal.SIGTERM)
        found["told to end (SIGTERM)"] = _asked(server.url, bodies[: max(8, len(bodies) // 100)])
    return {"changes": found}


def _asked(url: str, bodies: list[bytes]) -> dict[str, Any]:
    return ask_all(f"{url}/v1/models/m/explain", bodies, connections=16).figures()


def _later(seconds: float, work: Callable[[], Any]) -> None:
    threading.Timer(seconds, work).start()


def _stream(ground: Ground) -> dict[str, Any]:
    """Many rows in one request: rows per second, and how much the server's memory grew."""
    count = ground.amount.streamed
    target = plain(ground.task.data.positive)
    settings = {"target": target, "n": 1, "refine": False, "include": []}
    few = b"\n".join(map(orjson.dumps, [settings, *ground.rows(500)]))
    many = b"\n".join(map(orjson.dumps, [settings, *ground.rows(count)]))
    with served(ground.models) as server, httpx.Client(timeout=600, trust_env=False) as http:
        url, lines = f"{server.url}/v1/models/m/explain-lines", {"Content-Type": "application/jsonl"}
        http.post(url, content=few, headers=lines)
        before, most, rows = memory(server.process.pid), 0.0, 0
        started = time.perf_counter()
        with http.stream("POST", url, content=many, headers=lines) as answer:
            for i, line in enumerate(answer.iter_lines()):
                rows += '"status"' in line
                if i % 500 == 0:
                    most = max(most, memory(server.process.pid))
        ended = '"end":true' in line
        seconds = time.perf_counter() - started
    grown, size = most - before, len(many) / 1e6
    return {"rows": rows, "rate": rows / seconds, "grown": grown, "body": size, "ended": ended}


def _hostile(ground: Ground) -> dict[str, Any]:
    """What bodies that are meant to do harm get, and how long the longest of them takes."""
    found: dict[str, int] = {}
    longest = 0.0
    with served(ground.models) as server, httpx.Client(timeout=60, trust_env=False) as http:
        url = f"{server.url}/v1/models/m/explain"
        bodies = bodies_of(orjson.loads(ground.bodies(1)[0]))
        for body in bodies:
            started = time.perf_counter()
            answer = http.post(url, content=body, headers={"Content-Type": "application/json"})
            longest = max(longest, time.perf_counter() - started)
            found[str(answer.status_code)] = found.get(str(answer.status_code), 0) + 1
        alive = http.post(url, content=ground.bodies(1)[0], headers={"Content-Type": "application/json"}).status_code
    return {"bodies": len(bodies), "statuses": found, "longest": longest, "alive": alive == 200}


def _audit(ground: Ground) -> dict[str, Any]:
    """What the audit log costs, and whether its answers can be given again."""
    bodies = ground.bodies(ground.amount.replayed, refine=False)
    log, found = ground.folder / "audit", {}
    for name, options in {"without": (), "with": ("--audit", str(log), "--audit-values")}.items():
        with served(ground.models, *options) as server:
            url = f"{server.url}/v1/models/m/explain"
            ask_all(url, bodies[:CONNECTIONS], connections=1)
            found[name] = ask_all(url, bodies, connections=1).figures()
    count, findings = verify_folder(log)
    again = replay(log, [ground.model])
    return {
        "milliseconds": found["with"]["p50"] - found["without"]["p50"], "records": count, "findings": len(findings),
        "identical": again.identical, "different": len(again.different),
    }  # fmt: skip


ANSWERING = """
import sys
from dicoflex import load
import pandas as pd
explainer = load(sys.argv[1])
explainer.explain(pd.read_pickle(sys.argv[2]), target=explainer.classes_[-1], n=5, random_state=0)
with open("/proc/self/status") as file:
    print(next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024)
"""
LEARNING = "import torch, zuko, sklearn.ensemble, matplotlib.figure" + ANSWERING


def _start(ground: Ground) -> dict[str, Any]:
    """Seconds and memory of a fresh process that loads a model and answers, without and with what learning imports."""
    rows = ground.folder / "rows.pickle"
    ground.task.data.X_test.head(1).to_pickle(rows)
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    found: dict[str, Any] = {}
    for _ in range(3):
        for name, code in {"answering": ANSWERING, "with what learning imports": LEARNING}.items():
            started = time.perf_counter()
            command = [sys.executable, "-c", code, str(ground.model), str(rows)]
            ran = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            taken = time.perf_counter() - started
            seconds = min(taken, found.get(name, {}).get("seconds", taken))
            found[name] = {"seconds": seconds, "memory": float(ran.stdout)}
    return {"starts": found}


PARTS: dict[str, Callable[[Ground], dict[str, Any]]] = {
    "load": _load,
    "equal": _equal,
    "changes": _changes,
    "stream": _stream,
    "hostile": _hostile,
    "audit": _audit,
    "start": _start,
}


def cells(options: Options) -> list[Cell]:
    """A cell per part, all on one table."""
    parts = options.pick_methods(tuple(PARTS), quick=tuple(PARTS))
    tables = options.pick_tables((GERMAN,), quick=(GERMAN,))
    size = options.size(FULL, QUICK)
    return [Cell("serving", table, part, options.pick_seeds()[0], size) for table in tables for part in parts]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """The figures of a part."""
    ground = Ground(cell, models)
    try:
        return PARTS[cell.method](ground)
    finally:
        shutil.rmtree(ground.folder, ignore_errors=True)
