"""The way from the command line to experiments and benchmarks, which live beside the package in a source checkout."""

from __future__ import annotations

__all__ = ["SCRIPTS", "folder", "run"]

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from dicoflex.errors import UserError

MARK = Path("experiments") / "__init__.py"


SCRIPTS = ("quality", "constraints", "speed", "scale")
"""Benchmarks that are no experiment of the paper's; each has its own options."""


def run(names: Sequence[str], argv: Sequence[str] = ()) -> None:
    """Run the experiments called `names` ("all" for every one), or one of `SCRIPTS`, with the options `argv`."""
    place = str(folder())
    if place not in sys.path:
        sys.path.insert(0, place)
    first, *others = [*names, *argv] or ["--help"]
    if first in SCRIPTS:
        import_module(first).main(others)
    else:
        import_module("experiments").main([first, *others])


def folder(package: Path | None = None) -> Path:
    """The folder `benchmarks` of the checkout that `package` (None: this one) stands in.

    An installed package has none; that is a `UserError`.
    """
    root = (package or Path(__file__).resolve().parents[1]).parents[1]
    place = root / "benchmarks"
    if not (place / MARK).is_file():
        raise UserError(
            f"the experiments are not part of the installed package, and {root} is no source checkout; "
            'clone the repository, install it with pip install --editable ".[bench]", and run dicoflex bench from there'
        )
    return place
