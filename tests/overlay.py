"""Run a script with some modules replaced or added, while all others, compiled code included, stay where they are.

    python tests/overlay.py FOLDER SCRIPT

FOLDER is laid out as the repository is: FOLDER/src/dicoflex/errors.py is then `dicoflex.errors`.
"""

from __future__ import annotations

__all__ = ["Overlay", "main"]

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Overlay(MetaPathFinder):
    """Finds modules in a folder before they are looked for elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """The module of that name in the folder; None if it has none."""
        below = Path("src" if name.partition(".")[0] == "dicoflex" else "", *name.split("."))
        if (self.folder / below / "__init__.py").is_file():
            # What the folder does not have of a package is still found in the package itself.
            places = [str(self.folder / below), str(ROOT / below)]
            return spec_from_file_location(name, self.folder / below / "__init__.py", submodule_search_locations=places)
        file = self.folder / below.with_suffix(".py")
        return spec_from_file_location(name, file) if file.is_file() else None


def main(argv: Sequence[str]) -> None:
    """Run the script at `argv[1]` over the folder at `argv[0]`."""
    sys.meta_path.insert(0, Overlay(Path(argv[0]).resolve()))
    sys.path[0:1] = [str(ROOT), str(ROOT / "src")]
    runpy.run_path(argv[1], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
