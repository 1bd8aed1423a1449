"""The way from the command line to the paper's experiments, which live beside the package in a source checkout."""

from __future__ import annotations

__all__ = ["folder", "run"]

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from dicoflex.errors import UserError

MARK = Path("experiments") / "__init__.py"


def run(names: Sequence[str], argv: Sequence[str] = ()) -> None:
    """Run the experiments called `names` ("all" for every one) with the options `argv`, as `--quick`."""
    place = str(folder())
    if place not in sys.path:
        sys.path.insert(0, place)
    import_module("experiments").main([*names, *argv])


def folder(package: Path | None = None) -> Path:
    """The folder `benchmarks` of the checkout that `package` (None: this one) stands in.

    An installed package has none; that is a `UserError`.
    """
    root = (package or Path(__file__).resolve().parent).parents[1]
    place = root / "benchmarks"
    if not (place / MARK).is_file():
        raise UserError(
            f"the experiments are not part of the installed package, and {root} is no source checkout; "
            'clone the repository, install it with pip install --editable ".[bench]", and run dicoflex bench from there'
        )
    return place
