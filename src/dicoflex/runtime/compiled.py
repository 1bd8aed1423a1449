"""Compiled code and where it is kept: one folder for one state of all kernels, so that no edit ever meets old code.

Kernels call each other across files, and what numba keeps of a function is bound to the function's own file. Here all
of them are bound to a digest of every source of the package: another version, or an edit, compiles anew. The folder
lies beside the package if it can be written to, else among the user's caches; a read-only folder that holds compiled
code is used as it is, and without any place code is compiled in every process, with one warning.
"""

from __future__ import annotations

__all__ = ["FOLDER_VARIABLE", "compiled", "folder", "lean"]

import contextlib
import hashlib
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from dicoflex.runtime.progress import is_watched

FOLDER_VARIABLE = "DICOFLEX_COMPILED"
KEPT_FOLDERS = 3
log = logging.getLogger("dicoflex")


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function when it is first called, and keeps the code for other processes.

    options: those of `numba.njit`.

    >>> @compiled()
    ... def twice(x):
    ...     return 2 * x
    >>> twice(4)
    8
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if folder() is not None and Path(function.__code__.co_filename).is_file():
            dispatcher._cache = _Kept(function)
        return dispatcher

    return decorate


def lean(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`compiled`, for steps that make no array and return none: no references are counted in them.

    A step that is given a hundred arrays would count each one at every call, which takes longer than its work.

    >>> @lean()
    ... def first(x):
    ...     return x[0]
    >>> import numpy as np
    >>> int(first(np.arange(3)))
    0
    """
    return compiled(_nrt=False, **options)


@cache
def folder() -> Path | None:
    """Where compiled code is kept; None where there is no such place."""
    name = f"compiled-{_digest()}"
    for place in _places():
        here = place / name
        if here.is_dir() or _made(here):
            return here
    warnings.warn(
        f"dicoflex finds no folder to keep compiled code in, so every process compiles anew, about a minute each; set "
        f"{FOLDER_VARIABLE} to a folder that can be written to, or run 'dicoflex warm' where the package can be",
        stacklevel=2,
    )
    return None


def _places() -> list[Path]:
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return [Path(given)]
    shared = os.environ.get("NUMBA_CACHE_DIR")
    package = Path(__file__).resolve().parents[1]
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return [*([Path(shared) / "dicoflex"] if shared else []), package / "__pycache__", user / "dicoflex"]


def _digest() -> str:
    """A name for the present state of all sources."""
    sources = sorted(Path(__file__).resolve().parents[1].rglob("*.py"))
    whole = hashlib.sha256()
    for source in sources:
        text = source.read_bytes()
        if b"compiled" in text:
            whole.update(str(source.name).encode() + text)
    return whole.hexdigest()[:12]


def _made(path: Path) -> bool:
    """Whether the folder could be made; those of older states are removed but for the newest."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    older = sorted(path.parent.glob("compiled-*"), key=lambda other: other.stat().st_mtime, reverse=True)
    for other in older[KEPT_FOLDERS:]:
        shutil.rmtree(other, ignore_errors=True)
    return True


class _Place(_CacheLocator):
    """Tells numba the folder; the folder's name stands for the state of the sources."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Place:  # noqa: ARG003
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str(folder())

    def ensure_cache_path(self) -> None:
        """Nothing to do: the folder is there, and if it can't be written to it is read."""

    def get_source_stamp(self) -> str:
        return str(folder())

    def get_disambiguator(self) -> str:
        """Two files may have functions of one name."""
        module = self.function.__module__.replace(".", "-")
        return f"{module}-{self.function.__code__.co_firstlineno}"


class _PlaceImpl(CompileResultCacheImpl):
    _locator_classes = (_Place,)


class _Kept(FunctionCache):
    """What is kept of one function's compiled code."""

    _impl_class = _PlaceImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # What can't be read was written by something else; it is compiled anew.
        found = None
        with contextlib.suppress(OSError, EOFError, AttributeError, ImportError, ValueError, KeyError):
            found = super().load_overload(sig, target_context)
        if found is None:
            _announce()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


@cache
def _announce() -> None:
    """Say once per process that compilation takes its time."""
    text = "compiling for this machine; this takes up to a minute, once per installation"
    log.info(text)
    if is_watched():
        sys.stderr.write(f"dicoflex: {text}\n")
