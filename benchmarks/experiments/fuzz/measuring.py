"""A cell per base: its forged files, tried one after the other in a process that is replaced when it dies."""

from __future__ import annotations

__all__ = ["MOST_MEGABYTES", "MOST_SECONDS", "cells", "measure"]

import json
import os
import select
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from benchmarks.cells import Cell
from benchmarks.experiments.fuzz import trying
from benchmarks.experiments.fuzz.bases import BASES, base
from benchmarks.experiments.fuzz.forging import forge, written
from benchmarks.experiments.fuzz.trying import FAILED, Outcome
from benchmarks.machine import ROOT
from benchmarks.options import Options

MOST_SECONDS, MOST_MEGABYTES = 1.0, 300.0
FILES, QUICK_FILES = 500, 50
QUICK_BASES = ("mixed, trees, coherence and dependencies", "maf", "kde, remembered rows")
# Compiling with bounds checks takes minutes; a file that takes as long as this will not end.
WARMING, PATIENCE = 1800.0, 30.0
TOLD = 20
COMMAND = (sys.executable, "-m", trying.__name__)


def cells(options: Options) -> list[Cell]:
    """Every base; in a quick run some, with few files and without bounds checks."""
    files = QUICK_FILES if options.quick else FILES
    names = options.pick_methods(tuple(BASES), quick=QUICK_BASES)
    settings = (("files", files), ("bounds", not options.quick))
    return [replace(cell, settings=settings) for cell in options.cells("fuzz", "", names)]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """What came of the forged files of one base: how many of each outcome, the most that one took, and failures."""
    outcomes: list[Outcome] = []
    failures: list[dict[str, Any]] = []
    first, n = cell.seed * cell.setting("files"), cell.setting("files")
    with tempfile.TemporaryDirectory() as folder, Trials(cell.method, Path(folder), _surroundings(cell, models)) as of:
        for number in range(first, first + n):
            data, altered = forge(cell.method, number)
            outcome = of.outcome(data)
            outcomes.append(outcome)
            if outcome.outcome == FAILED:
                failures.append({"number": number, "altered": altered, "why": outcome.why})
    return {
        "outcomes": dict(Counter(outcome.outcome for outcome in outcomes)),
        "seconds": max(outcome.seconds for outcome in outcomes),
        "megabytes": max(outcome.megabytes for outcome in outcomes),
        "failures": failures[:TOLD],
    }


def _surroundings(cell: Cell, models: Path) -> dict[str, str]:
    """The environment of a process; code with bounds checks is kept apart from other code."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    checked = {"NUMBA_BOUNDSCHECK": "1", "DICOFLEX_COMPILED": str(models.absolute() / "bounds")}
    return {**os.environ, "PYTHONPATH": path, **(checked if cell.setting("bounds") else {})}


class Trials:
    """A process that tries files of one base, made warm by the base itself, and made anew when it has died."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str]) -> None:
        self.path = folder / "forged.dicoflex"
        self.sound = folder / "sound.dicoflex"
        self.sound.write_bytes(written(base(name)))
        self.environment = environment
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._end()

    def outcome(self, data: bytes) -> Outcome:
        """What comes of a file; one that takes too long is tried again, since code may have been made meanwhile."""
        self.path.write_bytes(data)
        found = self._tried()
        if found.outcome != FAILED and found.seconds > MOST_SECONDS:
            found = self._tried()
        if found.outcome != FAILED and (found.seconds > MOST_SECONDS or found.megabytes > MOST_MEGABYTES):
            took = f"it took {found.seconds:.1f} s and {found.megabytes:.0f} MB"
            return replace(found, outcome=FAILED, why=took)
        return found

    def _tried(self) -> Outcome:
        if self.process is None:
            self._start()
        return self._answer(self.path, PATIENCE)

    def _start(self) -> None:
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )
        sound = self._answer(self.sound, WARMING)
        if sound.outcome != trying.USED:
            raise RuntimeError(f"a file that was not forged can't be used: {sound}")

    def _answer(self, path: Path, patience: float) -> Outcome:
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return Outcome(**json.loads(line))
        ended = self._end()
        return Outcome(FAILED, f"the process died ({ended})" if ready else f"no end after {patience:g} s")

    def _end(self) -> int | None:
        """End the process, if there is one; its code, negative for a signal."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        assert process.stdin is not None
        try:
            process.stdin.close()
            code = process.wait(timeout=2.0)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            code = process.wait()
        return code
