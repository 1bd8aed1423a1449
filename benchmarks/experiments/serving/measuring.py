"""The parts: one row, load, equal answers, changes under load, a stream, hostile bodies, the audit log, and others."""

from __future__ import annotations

__all__ = ["PARTS", "cells", "measure"]

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson
import pandas as pd

from benchmarks.cells import Cell, Size
from benchmarks.experiments.serving.contract import contract
from benchmarks.experiments.serving.ground import CONNECTIONS, Ground
from benchmarks.experiments.serving.hostile import bodies_of
from benchmarks.experiments.serving.installs import adapter, install, start
from benchmarks.experiments.serving.load import ask_all, ask_in_turns
from benchmarks.experiments.serving.one_row import one_row, over_http
from benchmarks.experiments.serving.processes import black_box_server, memory, served
from benchmarks.experiments.serving.soaking import soak
from benchmarks.options import Options
from benchmarks.tables import ADULT, GERMAN
from dicoflex import load
from dicoflex.serving.audit import verify_folder
from dicoflex.serving.replay import replay
from dicoflex.table.plain_rows import plain_row

FULL = Size(learning=20.0)
SYNCS = 50
QUICK = Size(rows=600, queries=6, learning=None, quick=True)


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
    explainer, target = load(ground.model), ground.target
    frame = ground.task.data.X_test
    rows = pd.concat([frame] * (1 + count // len(frame))).head(count).reset_index(drop=True)
    direct = explainer.explain(rows, target=target, n=5, refine=False, random_state=0)
    values = [[] for _ in range(count)]
    cells = direct.frame.astype(object).to_numpy().tolist()
    for place, row in zip(direct.positions.tolist(), cells, strict=True):
        values[place].append(plain_row(row))
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
    with served(ground.models) as server, served(ground.models) as other:
        # As behind a balancer: who is told by the first that it ends goes to the second.
        _later(0.3, lambda: server.process.send_signal(signal.SIGTERM))
        found["one of two told to end (SIGTERM)"] = _asked(server.url, bodies, other.url)
        found["one of two told to end (SIGTERM)"]["ended"] = server.process.wait(60)
    return {"changes": found}


def _asked(url: str, bodies: list[bytes], *others: str) -> dict[str, Any]:
    first, *more = (f"{one}/v1/models/m/explain" for one in (url, *others))
    return ask_all(first, bodies, connections=16, others=more).figures()


def _later(seconds: float, work: Callable[[], Any]) -> None:
    threading.Timer(seconds, work).start()


def _stream(ground: Ground) -> dict[str, Any]:
    """Many rows in one request: rows per second, and how much the server's memory grew."""
    count = ground.amount.streamed
    target = ground.target
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
    """What the audit log costs, by turns with and without and under load, and whether its answers can be given again.

    What a request waits for alone is mostly the disk, whose own time is told beside it.
    """
    bodies = ground.bodies(ground.amount.replayed, refine=False)
    log = ground.folder / "audit"
    with served(ground.models) as bare, served(ground.models, "--audit", str(log), "--audit-values") as logging:
        urls = [f"{server.url}/v1/models/m/explain" for server in (bare, logging)]
        ask_in_turns(urls, bodies[:CONNECTIONS])
        without, with_log = ask_in_turns(urls, bodies[: ground.amount.alone])
        rates = [ask_all(url, bodies, connections=CONNECTIONS).figures()["rate"] for url in urls]
    count, findings = verify_folder(log)
    again = replay(log, [ground.model])
    return {
        "alone": 1000 * float(np.median(np.subtract(with_log, without))), "disk": 1000 * _sync_seconds(ground.folder),
        "loaded": 1000 / rates[1] - 1000 / rates[0], "records": count, "findings": len(findings),
        "identical": again.identical, "different": len(again.different),
    }  # fmt: skip


def _sync_seconds(folder: Path) -> float:
    """The median seconds in which the disk takes a record's worth of bytes for good."""
    found = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            started = time.perf_counter()
            os.fsync(file.fileno())
            found.append(time.perf_counter() - started)
    return float(np.median(found))


PARTS: dict[str, Callable[[Ground], dict[str, Any]]] = {
    "row": one_row,
    "request": over_http,
    "load": _load,
    "equal": _equal,
    "changes": _changes,
    "stream": _stream,
    "hostile": _hostile,
    "contract": contract,
    "audit": _audit,
    "start": start,
    "soak": soak,
    "adapter": adapter,
    "install": install,
}
INSTALLING = ("adapter", "install")
"""Parts that make an environment of their own, for which packages are fetched."""


def cells(options: Options) -> list[Cell]:
    """A cell per part, all on one table; how long one row takes is measured on a second one too."""
    usual = [part for part in PARTS if not options.quick or part not in INSTALLING]
    parts = [part for part in PARTS if part in (usual if options.parts is None else options.parts)]
    tables = options.pick_tables((ADULT, GERMAN), quick=(GERMAN,))
    size, seed = options.size(FULL, QUICK), options.pick_seeds()[0]
    wanted = [(table, part) for part in parts for table in tables if part == "row" or table != ADULT]
    return [Cell("serving", table, part, seed, size) for table, part in wanted]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """The figures of a part."""
    ground = Ground(cell, models)
    try:
        return PARTS[cell.method](ground)
    finally:
        ground.close()
