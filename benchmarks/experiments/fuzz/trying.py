"""Trying forged files: each is inspected, loaded and asked, and what came of it is told, with its time and memory.

As a program it is a process of its own: it reads paths, a line each, and writes what came of each as a line of JSON.
"""

from __future__ import annotations

__all__ = ["FAILED", "QUESTIONS", "REFUSED", "USED", "Outcome", "main", "tried"]

import contextlib
import io
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from benchmarks.machine import held_mb, peak_mb
from dicoflex import load, model_file
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.audit import reveals
from dicoflex.cli.messages import say_header
from dicoflex.errors import ModelFileError, UserError
from dicoflex.examples import rows_like
from dicoflex.explainer import Explainer

REFUSED, USED, FAILED = "refused", "used", "failed"
FORGET_PEAK = Path("/proc/self/clear_refs")
# Room beyond what a process has when all is warm; who asks for more gets a MemoryError, which is a failure.
ROOM = 2**31


@dataclass(frozen=True)
class Outcome:
    """What came of a file: it was refused, or used, or something failed that should not, and what that was."""

    outcome: str
    why: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0


def _explained(explainer: Explainer, rows: pd.DataFrame) -> Counterfactuals:
    return explainer.explain(rows, n=3, random_state=0)


def _sampled(explainer: Explainer, rows: pd.DataFrame) -> pd.DataFrame:
    return explainer.sample(rows, n=3, random_state=0)


def _weighed(explainer: Explainer, rows: pd.DataFrame) -> object:
    return explainer.log_density(rows.head(1), rows, target=explainer.model_.labels[0])


def _revealed(explainer: Explainer, rows: pd.DataFrame) -> object:  # noqa: ARG001
    return reveals(explainer.model_)


QUESTIONS: dict[str, Callable[[Explainer, pd.DataFrame], object]] = {
    "explain": _explained,
    "sample": _sampled,
    "log_density": _weighed,
    "reveals": _revealed,
}


def tried(path: Path) -> Outcome:
    """What comes of a file, with the processor's seconds and the memory beyond what was held before."""
    with contextlib.suppress(OSError):
        # The system's file takes a number, whereupon the most memory is counted anew.
        FORGET_PEAK.write_bytes(b"5")
    held, started = held_mb(), time.process_time()
    outcome, why = _came_of(path)
    return Outcome(outcome, why, time.process_time() - started, max(0.0, peak_mb() - held))


def _came_of(path: Path) -> tuple[str, str]:
    """Inspecting and loading may raise a `ModelFileError`, and questions any error of the user's; nothing else."""
    why: list[str] = []
    with _caught("inspect", ModelFileError, why):
        _inspected(path)
    refused = True
    with _caught("load", ModelFileError, why):
        explainer = load(path)
        refused = False
    if not refused and not why:
        for name, ask in QUESTIONS.items():
            with _caught(name, UserError, why):
                ask(explainer, rows_like(explainer.model_.schema, 2))
    return (FAILED, "; ".join(why)) if why else (REFUSED if refused else USED, "")


@contextlib.contextmanager
def _caught(step: str, meant: type[Exception], why: list[str]) -> Iterator[None]:
    """Take note of an error that is not meant, or has run out of memory behind one that is."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, meant) or _lacked_memory(error):
            why.append(f"{step}: {type(error).__name__}: {error}"[:300])


def _lacked_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _inspected(path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        say_header(model_file.read_header(path), path)


def main() -> None:
    """Serve: the first path is that of a sound file, which makes all kernels and is not limited."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for n, line in enumerate(sys.stdin):
        outcome = tried(Path(line.rstrip("\n")))
        answers.write(json.dumps(asdict(outcome)) + "\n")
        answers.flush()
        if n == 0:
            _limit_room()


def _limit_room() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM,) * 2)


if __name__ == "__main__":
    main()
