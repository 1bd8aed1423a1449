"""The folder of compiled kernels, named by the state of every file that has a part in them.

Kernels call each other across files and carry constants of other files inside, while numba's cache looks at one file
only: with a folder per state no edit ever meets old code. `python tests/kernels.py` makes the folder and prints it, for
the Makefile; the tests' `conftest.py` calls `folder`.
"""

from __future__ import annotations

__all__ = ["digest", "folder", "sources"]

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
COMPILED = ROOT / ".compiled"
KEPT = 2
IMPORTS = re.compile(r"^\s*from ([\w.]+) import (\([^)]*\)|[^\n]*)", flags=re.MULTILINE)


def folder(source: Path = SOURCE, compiled: Path = COMPILED) -> Path:
    """The folder for the present state; when it is new, all others but the one last used are removed."""
    found = compiled / digest(source)
    is_new = not found.is_dir()
    found.mkdir(parents=True, exist_ok=True)
    os.utime(found)
    if is_new:
        states = [path for path in compiled.iterdir() if path.is_dir()]
        states.sort(key=lambda path: path.stat().st_mtime_ns)
        for old in states[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    return found


def digest(source: Path = SOURCE) -> str:
    """Twelve digits for the names and contents of the files that kernels are made of."""
    state = hashlib.sha256()
    for path in sources(source):
        state.update(f"{path.relative_to(source).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return state.hexdigest()[:12]


def sources(source: Path = SOURCE) -> list[Path]:
    """The files with compiled code, those whose constants they import, and so on."""
    texts = {path: path.read_bytes() for path in source.rglob("*.py")}
    waiting = [path for path, text in texts.items() if b"numba" in text or b"runtime.compiled" in text]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _constants_from(path, source)
    return sorted(found)


def _constants_from(path: Path, source: Path) -> Iterator[Path]:
    """The files below `source` from which `path` imports names in capitals."""
    for module, names in IMPORTS.findall(path.read_text(encoding="utf-8")):
        if any(name.isupper() for name in re.findall(r"\w+", names)):
            place = source.joinpath(*module.split("."))
            yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())


if __name__ == "__main__":
    print(folder())
