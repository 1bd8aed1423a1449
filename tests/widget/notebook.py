"""JupyterLab on loopback, with settings and folders of its own, and a notebook of one cell."""

from __future__ import annotations

__all__ = ["Lab", "lab_of"]

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anywidget

TOKEN = "for-this-test-alone"
NOTEBOOK = "explore.ipynb"
PREPARED = {
    "labconfig/page_config.json": {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
}
START_WITHIN = 60.0


@dataclass(frozen=True)
class Lab:
    """A server that runs; `url` opens the notebook."""

    url: str
    origin: str


def _notebook(code: str) -> str:
    cell = {"cell_type": "code", "execution_count": None, "id": "one", "metadata": {}, "outputs": []}
    after = {**cell, "id": "two", "source": "1 + 1"}
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    whole = {"cells": [{**cell, "source": code}, after], "metadata": spec, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole)


@contextmanager
def lab_of(folder: Path, code: str) -> Iterator[Lab]:
    """JupyterLab with a notebook whose first cell is `code`; it is stopped in the end, kernels and all."""
    config, work = folder / "config", folder / "work"
    work.mkdir(parents=True)
    (work / NOTEBOOK).write_text(_notebook(code), encoding="utf-8")
    for name, content in PREPARED.items():
        (config / name).parent.mkdir(parents=True)
        (config / name).write_text(json.dumps(content), encoding="utf-8")
    # Where anywidget's half for the browser was installed; a virtual environment may borrow its packages.
    share = Path(anywidget.__file__).parents[4] / "share" / "jupyter"
    places = {"CONFIG_DIR": config, "DATA_DIR": folder / "data", "RUNTIME_DIR": folder / "runtime", "PATH": share}
    environment = {**os.environ, **{f"JUPYTER_{name}": str(at) for name, at in places.items()}}
    environment |= {"IPYTHONDIR": str(folder / "ipython"), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={work}",
        f"--LabApp.app_dir={share / 'lab'}", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            origin = _origin(server, folder)
            yield Lab(f"{origin}/lab/tree/{NOTEBOOK}?token={TOKEN}&reset", origin)
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _origin(server: subprocess.Popen[bytes], folder: Path) -> str:
    """The address that the server chose."""
    end = time.monotonic() + START_WITHIN
    while time.monotonic() < end and server.poll() is None:
        for found in (folder / "runtime").glob("jpserver-*.json"):
            text = found.read_text(encoding="utf-8")
            if text.strip():
                return f"http://127.0.0.1:{json.loads(text)['port']}"
        time.sleep(0.1)
    raise RuntimeError((folder / "log").read_text(encoding="utf-8")[-3000:])
