"""The way from the command line to the benchmarks, which live beside the package in a source checkout."""

from __future__ import annotations

__all__ = ["folder", "module", "run"]

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from dicoflex.errors import UserError

NAME = "benchmarks"
MARK = "__init__.py"


def run(argv: Sequence[str]) -> None:
    """Run the command `benchmarks.command` with these names and options; without any, it shows its help."""
    module("command").main([*argv] or ["--help"])


def module(name: str) -> ModuleType:
    """A module of the checkout's package `benchmarks`, which stands on no path and is imported from its folder."""
    if NAME not in sys.modules:
        spec = spec_from_file_location(NAME, folder() / MARK)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[NAME] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])
    return import_module(f"{NAME}.{name}")


def folder(package: Path | None = None) -> Path:
    """The folder `benchmarks` of the checkout that `package` (None: this one) stands in.

    An installed package has none; that is a `UserError`.
    """
    root = (package or Path(__file__).resolve().parents[1]).parents[1]
    place = root / NAME
    if not (place / MARK).is_file():
        raise UserError(
            f"the experiments are not part of the installed package, and {root} is no source checkout; "
            'clone the repository, install it with pip install --editable ".[bench]", and run dicoflex bench from there'
        )
    return place
