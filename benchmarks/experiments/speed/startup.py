"""How long fresh processes take to start."""

from __future__ import annotations

__all__ = ["CLASS", "IMPORT", "STACK", "fresh", "measure"]

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell
from benchmarks.experiments.speed.ground import Amount
from benchmarks.timing import Work, in_turns

HELP, IMPORT, STACK = "dicoflex --help", "import dicoflex", "import torch, pandas"
ADDED, CLASS = "import torch, pandas, dicoflex", "import torch, pandas; from dicoflex import DiCoFlex"
SCRIPTS = ("pass", IMPORT, STACK, ADDED, CLASS)


def measure(cell: Cell, models: Path) -> dict[str, Any]:  # noqa: ARG001
    """Seconds of each, and how many times as long as what everyone imports."""
    commands = {HELP: [*_entry(), "--help"]}
    commands |= {script: [sys.executable, "-c", script] for script in SCRIPTS}
    times = in_turns({name: fresh(command) for name, command in commands.items()}, Amount.of(cell).repeats)
    seconds = {name: found["seconds"] for name, found in times.items()}
    ratios = {name: seconds[name] / seconds[STACK] for name in (IMPORT, ADDED, CLASS)}
    return {"seconds": seconds, "ratios": ratios, "times": times}


def _entry() -> list[str]:
    """The installed command, or what it runs where it is not beside the interpreter."""
    found = shutil.which("dicoflex", path=str(Path(sys.executable).parent))
    return [found] if found else [sys.executable, "-c", "from dicoflex.cli import main; main()"]


def fresh(command: Sequence[str]) -> Work:
    """A command in a process of its own; one that fails is an error."""

    def work(_turn: int) -> int:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return 1

    return work
