"""A server of models as a process of its own, on a free port of this machine, ended with the test that started it."""

from __future__ import annotations

__all__ = ["COMMAND", "Running", "question", "started"]

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import dicoflex
from dicoflex.examples import rows_like
from dicoflex.explainer import Explainer
from dicoflex.values import is_missing, plain

SOURCE = Path(dicoflex.__file__).parents[1]
PATIENCE = 400  # kernels that are not there yet are made before a server is ready
COMMAND = "import sys; from dicoflex.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass
class Running:
    """A server process: where it listens, and what it logged."""

    process: subprocess.Popen[str]
    log: list[dict[str, Any]] = field(default_factory=list)
    lines: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    url: str = ""

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, **more)

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def logged(self, event: str, *, within: float = PATIENCE) -> dict[str, Any]:
        """The next line of the log that tells of an event."""
        deadline = time.monotonic() + within
        while True:
            line = json.loads(self.lines.get(timeout=max(0.01, deadline - time.monotonic())))
            self.log.append(line)
            if line["event"] == event:
                return line

    def end(self) -> int:
        """Tell the server to end; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def started(models: Path, *options: str, workers: int = 1, command: str = COMMAND) -> Iterator[Running]:
    """A server that is ready. command: the Python code that starts it."""
    env = os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"}
    arguments = ["serve", str(models), "--port", "0", "--workers", str(workers), "--drain-seconds", "0.3", *options]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments], env=env, stdout=subprocess.PIPE, stderr=None, text=True
    )
    found = Running(process)
    threading.Thread(target=found.read, daemon=True).start()
    try:
        found.url = found.logged("listening", within=60)["url"]
        for _ in range(workers):
            found.logged("ready")
        yield found
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def question(explainer: Explainer, n_rows: int = 1, *, of: int = 0, **settings: Any) -> dict[str, Any]:
    """A question to a model about rows of any values that it knows. of: another number makes other rows."""
    rows = rows_like(explainer.schema_, n_rows, seed=of)
    cells = rows.astype(object).to_numpy().tolist()
    names = [str(name) for name in rows.columns]
    values = [dict(zip(names, (None if is_missing(v) else plain(v) for v in row), strict=True)) for row in cells]
    return {"rows": [{"values": own} for own in values], "target": "yes", "n": 2, **settings}
