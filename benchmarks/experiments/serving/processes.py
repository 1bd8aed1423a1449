"""Servers as processes of their own: ours, and one of the same kind that calls a black box."""

from __future__ import annotations

__all__ = ["SOURCE", "Server", "black_box_server", "memory", "processor_seconds", "served"]

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import dicoflex

PATIENCE = 400
SOURCE = Path(dicoflex.__file__).parents[1]
SERVE = "import sys; from dicoflex.cli import main; sys.exit(main(sys.argv[1:]))"
BLACK_BOX = """
import asyncio, pickle, sys, orjson, uvicorn, pandas as pd
from concurrent.futures import ThreadPoolExecutor
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

with open(sys.argv[1], "rb") as file:
    black_box = pickle.load(file)
one = ThreadPoolExecutor(1)

def predict(body):
    rows = pd.DataFrame([row["values"] for row in orjson.loads(body)["rows"]])
    return orjson.dumps({"probabilities": black_box.predict_proba(rows).tolist()})

async def ask(request):
    body = await request.body()
    answer = await asyncio.get_running_loop().run_in_executor(one, predict, body)
    return Response(answer, media_type="application/json")

app = Starlette(routes=[Route("/predict", ask, methods=["POST"])])
config = uvicorn.Config(app, log_config=None, access_log=False)
import socket
listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
listening.bind(("127.0.0.1", 0)); listening.listen(2048)
print(f'{{"event": "ready", "url": "http://127.0.0.1:{listening.getsockname()[1]}"}}', flush=True)
uvicorn.Server(config).run(sockets=[listening])
"""


@dataclass
class Server:
    """A process that listens; what it logs is read as it comes, since a full pipe would hold it up."""

    process: subprocess.Popen[str]
    url: str = ""
    lines: SimpleQueue[str] = field(default_factory=SimpleQueue)

    def read(self) -> None:
        """Read its log until it ends; lines of requests are passed over."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if '"event": "request"' not in line:
                self.lines.put(line)

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next line that tells of an event."""
        while True:
            told: dict[str, Any] = json.loads(self.lines.get(timeout=PATIENCE))
            self.url = told.get("url", self.url)
            if told["event"] == event:
                return told


@contextmanager
def served(models: Path, *options: str, workers: int = 1) -> Iterator[Server]:
    """Our server of a folder of models, ready and warm."""
    words = ["serve", str(models), "--port", "0", "--workers", str(workers), *options]
    with _process([sys.executable, "-c", SERVE, *words]) as server:
        for _ in range(workers):
            server.wait_for("ready")
        yield server


@contextmanager
def black_box_server(black_box: Any, folder: Path) -> Iterator[Server]:
    """A server of the same kind that answers with the probabilities of a black box, one row at a time."""
    path = folder / "black_box.pickle"
    path.write_bytes(pickle.dumps(black_box))
    with _process([sys.executable, "-c", BLACK_BOX, str(path)]) as server:
        server.wait_for("ready")
        yield server


@contextmanager
def _process(command: list[str]) -> Iterator[Server]:
    env = os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    server = Server(process)
    threading.Thread(target=server.read, daemon=True).start()
    try:
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def memory(pid: int) -> float:
    """The resident memory of a process in MB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def processor_seconds(pid: int) -> float:
    """The processor's time that a process has had so far, its own and the system's for it."""
    # The name of the program, in brackets, may hold spaces.
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
