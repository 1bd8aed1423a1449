"""What a measurement runs on: versions, cores, memory, and a fresh process."""

from __future__ import annotations

__all__ = ["apart", "cores", "held_mb", "peak_mb", "versions"]

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STATUS = Path("/proc/self/status")


def versions(packages: Sequence[str]) -> list[str]:
    """Of Python and the packages; of one that is not installed, that there is none."""
    found = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return found


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_mb() -> float:
    """The most memory that this process has held so far, in megabytes.

    Linux hands a parent's peak on to a process that it starts, except in the file that is read here.
    """
    if STATUS.exists():
        return _status("VmHWM")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def held_mb() -> float:
    """The memory that this process holds, in megabytes; where that is not told, the most that it has held."""
    return _status("VmRSS") if STATUS.exists() else peak_mb()


def _status(name: str) -> float:
    line = next(line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


def apart(function: Callable[..., Any], *given: Any) -> Any:
    """What a function from plain data to plain data gives, called in a process that has done nothing else."""
    command = [sys.executable, "-m", __name__, function.__module__, function.__name__, json.dumps(given)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    module, name, given = sys.argv[1:]
    print(json.dumps(getattr(import_module(module), name)(*json.loads(given))))
