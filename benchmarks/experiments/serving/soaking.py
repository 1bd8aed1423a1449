"""A soak: minutes at half of what the server can do, and what its memory does meanwhile."""

from __future__ import annotations

__all__ = ["soak"]

import threading
import time
from typing import Any

import numpy as np

from benchmarks.experiments.serving.ground import CONNECTIONS, Ground
from benchmarks.experiments.serving.load import ask_all, ask_paced
from benchmarks.experiments.serving.processes import memory, served

KEPT = 200
WARM_UP = 0.1
"""The first share of the time, after which memory should stay as it is; as long at the end is compared with it."""


def soak(ground: Ground) -> dict[str, Any]:
    """Requests, failures, waits, and memory after the warm-up and at the end."""
    bodies, seconds = ground.bodies(KEPT), ground.amount.seconds
    with served(ground.models) as server:
        url = f"{server.url}/v1/models/m/explain"
        most = ask_all(url, ground.bodies(ground.amount.requests), connections=CONNECTIONS).figures()["rate"]
        seen: list[tuple[float, float]] = []
        over = threading.Event()
        watching = threading.Thread(target=_watch, args=(server.process.pid, seen, over))
        watching.start()
        found = ask_paced(url, bodies, connections=CONNECTIONS, rate=most / 2, seconds=seconds)
        over.set()
        watching.join()
    times, sizes = np.array(seen).T
    part = WARM_UP * times[-1]
    after, end = sizes[(times >= part) & (times <= 2 * part)], sizes[times >= times[-1] - part]
    return {
        **found.figures(), "seconds": seconds, "asked_rate": most / 2, "after_warm_up": float(after.mean()),
        "at_end": float(end.mean()),
    }  # fmt: skip


def _watch(pid: int, seen: list[tuple[float, float]], over: threading.Event) -> None:
    started = time.perf_counter()
    while True:
        seen.append((time.perf_counter() - started, memory(pid)))
        if over.wait(0.25):
            return
