"""A real `dicoflex explore` process."""

from __future__ import annotations

__all__ = ["Running", "explored"]

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dicoflex

SOURCE = Path(dicoflex.__file__).parents[1]
COMMAND = "import sys; from dicoflex.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass
class Running:
    """Where it listens, what it printed before it did, and the process itself."""

    url: str
    process: subprocess.Popen[str] | None
    log: Path


@contextmanager
def explored(files: dict[str, Path], *options: str, port: int = 0) -> Iterator[Running]:
    """The explorer of a model and its people, until the block ends."""
    named = ["--texts", str(files["texts"])] if "texts" in files else []
    command = [sys.executable, "-c", COMMAND, "explore", str(files["model"]), str(files["people"])]
    log = files["model"].with_suffix(".log")
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [*command, "--id", "person", "--port", str(port), *named, *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
        )
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            assert url.startswith("http"), log.read_text(encoding="utf-8")
            yield Running(url, process, log)
        finally:
            process.terminate()
            process.wait(20)
