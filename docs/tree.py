"""Refresh what the architecture page says of the source: its modules with their first sentences, and the layers.

    python docs/tree.py                 needs nothing but Python itself

Sentences are those that the modules open with, layers those of the contract in `pyproject.toml`. The tests compare.
"""

from __future__ import annotations

__all__ = ["first_sentence", "layers", "modules", "refreshed"]

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PACKAGE = ROOT / "src" / "dicoflex"


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def refreshed(page: str) -> str:
    """The page with what stands between its marks replaced."""
    blocks = {"modules": "\n".join(modules()), "layers": "\n".join(["```", *layers(), "```"])}
    for name, block in blocks.items():
        whole = f"<!-- {name}:start -->\n{block}\n<!-- {name}:end -->"
        page, count = re.subn(
            rf"<!-- {name}:start -->.*<!-- {name}:end -->", lambda _, new=whole: new, page, flags=re.DOTALL
        )
        if count != 1:
            raise SystemExit(
                f"{PAGE.name} must have the marks {name}:start and {name}:end once, has them {count} times"
            )
    return page


def layers() -> list[str]:
    """The layers of the package, the highest first; rooms that stand in one line don't import each other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    found: list[str] = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return found


def modules() -> Iterator[str]:
    """A list of every module with its first sentence: what nothing depends on comes last."""
    yield _line(PACKAGE / "__init__.py", 0)
    for name in (name for layer in reversed(layers()) for name in layer.split(" | ")):
        yield from _room(PACKAGE / name, 0) if (PACKAGE / name).is_dir() else [_line(PACKAGE / f"{name}.py", 0)]


def _room(folder: Path, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}- **`{folder.name}/`** {first_sentence(folder / '__init__.py')}"
    for path in sorted(folder.glob("*.py")):
        if path.name != "__init__.py":
            yield _line(path, depth + 1)
    for path in sorted(folder.glob("*/__init__.py")):
        yield from _room(path.parent, depth + 1)


def _line(path: Path, depth: int) -> str:
    return f"{'  ' * depth}- `{path.name}` {first_sentence(path)}"


def first_sentence(path: Path) -> str:
    """The sentence that a module opens with; one without is an error."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    found = re.match(r"\S.*?\.(?=\s|$)", text, flags=re.DOTALL)
    if found is None:
        raise SystemExit(f"{path} must open with a sentence that says what is in it")
    return re.sub(r"\s+", " ", found.group())


if __name__ == "__main__":
    main()
