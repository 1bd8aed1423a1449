"""Which source a cell depends on, as a digest, and which commit it was measured at.

A cell depends on all of `src/dicoflex`, on the module that measures it, and on what that imports of this package. A
baseline's cell depends on the baseline's module, on `tasks`, and on what these two import, in `src/dicoflex` too; of
the module that measures it and of `methods` on their own text alone, since they also know how to ask our generators.
Tables that ship count for every cell. Not followed are modules that have no part in a figure (`QUIET`): those that say
which cells there are or what is told of them, and the registry of baselines, which a cell of another method never asks.
"""

from __future__ import annotations

__all__ = ["UNKNOWN", "commit", "digest", "source_of"]

import ast
import hashlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import dicoflex
from benchmarks.baselines import BASELINES

ROOT = Path(__file__).resolve().parents[1]
OURS = "dicoflex"
FOLDERS = {"benchmarks": ROOT / "benchmarks", OURS: Path(dicoflex.__file__).resolve().parent}
DATA = Path("datasets") / "data"
QUIET = {f"benchmarks.{name}" for name in ("baselines", "options", "pages", "paper", "sources")}
SOURCE = ("src", "benchmarks", ":(exclude)benchmarks/results")
UNKNOWN = "unknown"


def source_of(method: str, measure: Callable[..., Any]) -> str:
    """The digest of what a cell of `method` depends on, if `measure` measures it."""
    if method in BASELINES:
        followed = (BASELINES[method].__module__, "benchmarks.tasks")
        return digest(followed, alone=(measure.__module__, "benchmarks.methods"))
    return digest((measure.__module__,), whole=True)


@cache
def digest(followed: Sequence[str], *, alone: Sequence[str] = (), whole: bool = False) -> str:
    """The digest of some modules with all that they import, and of others without.

    whole: whether all of `src/dicoflex` counts, whatever is imported.
    """
    files = _files()
    names = {*_reached(followed), *alone} & set(files)
    names |= {name for name in files if name.startswith(f"{OURS}:") or (whole and _top(name) == OURS)}
    text = hashlib.sha256()
    for name in sorted(names):
        text.update(name.encode() + b"\0" + files[name] + b"\0")
    return text.hexdigest()[:16]


@cache
def _files() -> dict[str, bytes]:
    """The text of every module of both packages by its name, and the tables that ship, as the run began."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            found[".".join((package, *parts[1:])).removesuffix(".__init__")] = path.read_bytes()
    shipped = sorted((FOLDERS[OURS] / DATA).glob("*"))
    return found | {f"{OURS}:{path.name}": path.read_bytes() for path in shipped if path.is_file()}


def _reached(names: Sequence[str]) -> set[str]:
    """The modules that are imported on the way from some, those included."""
    found, waiting = set(names), list(names)
    while waiting:
        further = _imports(waiting.pop()) - found - QUIET
        found |= further
        waiting += further
    return found


@cache
def _imports(name: str) -> set[str]:
    """The modules of both packages that a module imports, wherever in its text."""
    files = _files()
    return {other for other in _imported(ast.parse(files.get(name, b""))) if other in files}


def _imported(tree: ast.AST) -> Iterator[str]:
    """The names of what is imported below a node; what is imported for types alone is not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            # What is no module of a package is one of its names.
            yield from (name if name in _files() else node.module for name in inside)
        elif not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
            yield from _imported(node)


def _top(name: str) -> str:
    return name.split(".")[0]


@cache
def commit() -> str:
    """The commit of this checkout, with a word if its source has changes; outside a checkout it is unknown.

    Pages that a run writes are no changes: they have no part in what is measured next.
    """
    try:
        top, short = _git("rev-parse", "--show-toplevel", "--short", "HEAD").splitlines()
        changed = _git("status", "--porcelain", "--", *SOURCE)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return UNKNOWN
    if Path(top).resolve() != ROOT:
        return UNKNOWN
    return f"{short} with changes" if changed else short


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
