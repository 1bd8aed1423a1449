"""The architecture page says what the source is: its tree, its layers, and how many files an addition takes.

An addition is written down as blocks of code: ```` ```python PATH ```` is a new file, ```` ```diff PATH ```` an edit of
one, and ```` ```python try ```` a script that must run when all of them were made.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|diff) (\S+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
HOW_TO = "## How to add"


@pytest.fixture(scope="module")
def tree() -> ModuleType:
    """`docs/tree.py`."""
    spec = importlib.util.spec_from_file_location("tree", ROOT / "docs" / "tree.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- the tree ----------------------------------------------------------------------------------------------------


def test_the_page_shows_the_modules_and_layers_of_the_source(tree: ModuleType) -> None:
    assert tree.refreshed(TEXT) == TEXT, "the page is behind the source; run python docs/tree.py"


def test_no_module_is_left_out(tree: ModuleType) -> None:
    shown = [line.partition("`")[2].partition("`")[0].rstrip("/") for line in tree.modules()]
    package = ROOT / "src" / "dicoflex"
    rooms = [path.parent.name for path in package.glob("*/**/__init__.py")]
    files = [path.name for path in package.rglob("*.py") if path.name != "__init__.py"]
    assert sorted(shown) == sorted(["__init__.py", *rooms, *files])


def test_every_module_opens_with_a_sentence(tree: ModuleType) -> None:
    for path in (ROOT / "src").rglob("*.py"):
        sentence = tree.first_sentence(path)
        assert 10 < len(sentence) <= 160, f"{path}: {sentence}"


def test_a_module_without_a_sentence_is_an_error(tree: ModuleType, tmp_path: Path) -> None:
    for text in ("", '"""No full stop"""\n', "x = 1\n"):
        (tmp_path / "x.py").write_text(text)
        with pytest.raises(SystemExit, match="must open with a sentence"):
            tree.first_sentence(tmp_path / "x.py")


def test_paths_on_the_page_are_there() -> None:
    prose = re.sub(r"^```.*?^```$|^<!-- modules:start.*modules:end -->$", "", TEXT, flags=re.DOTALL | re.MULTILINE)
    paths = set(re.findall(r"`([\w/.-]+(?:/|\.py|\.md|\.toml))`", prose))
    package = ROOT / "src" / "dicoflex"
    alone = {path.name for path in package.rglob("*.py")}
    assert {"constraints/", "learning/config.py", "src/dicoflex/generators/base.py"} <= paths
    gone = [path for path in paths if not ((ROOT / path).exists() or (package / path).exists() or path in alone)]
    assert sorted(gone) == []


# -- how to add … ------------------------------------------------------------------------------------------------


def sections() -> dict[str, str]:
    """The text of every way of adding something, by its heading."""
    whole = TEXT.partition(HOW_TO)[2].partition("\n## ")[0]
    parts = re.split(r"^### (.*)$", whole, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def promised() -> dict[str, tuple[int, int]]:
    """How many source files and pages each addition takes, from the table."""
    rows = re.findall(r"^\| \[(.*?)\]\(#.*?\) \| (\d+) \| (\d+) \|", TEXT, flags=re.MULTILINE)
    return {name: (int(files), int(pages)) for name, files, pages in rows}


def edited(text: str, diff: str) -> str:
    """The text after an edit: parts that `@@` sets apart, each found once by the lines that stay or go."""
    for part in re.split(r"^@@.*\n", diff, flags=re.MULTILINE):
        lines = part.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        if lines:
            assert text.count(old) == 1, f"found {text.count(old)} times:\n{old}"
            text = text.replace(old, new)
    return text


def carried_out(section: str, folder: Path) -> tuple[dict[str, list[str]], str]:
    """The files of an addition, written below `folder`: source and pages that it touched, and the script to try it."""
    touched, script = defaultdict(list), ""
    for kind, path, code in BLOCK.findall(section):
        if path == "try":
            script = code
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == "diff":
            before = target if target.exists() else ROOT / path
            target.write_text(edited(before.read_text(encoding="utf-8"), code), encoding="utf-8")
        else:
            assert not (ROOT / path).exists(), f"{path} is there already"
            target.write_text(code, encoding="utf-8")
        touched["pages" if path.endswith(".md") else "source"].append(path)
    return touched, script


def test_every_addition_of_the_table_is_shown() -> None:
    assert list(sections()) == list(promised())
    counts = {name.split()[-1]: files for name, (files, _) in promised().items()}
    assert counts["constraint"] <= 4
    assert counts["generator"] <= 2
    assert counts["dataset"] <= 2
    assert counts["metric"] <= 1


@pytest.mark.parametrize("name", promised())
def test_an_addition_touches_as_many_files_as_promised(name: str, tmp_path: Path) -> None:
    touched, script = carried_out(sections()[name], tmp_path)
    assert (len(set(touched["source"])), len(set(touched["pages"]))) == promised()[name]
    assert script


@pytest.mark.slow
@pytest.mark.parametrize("name", promised())
def test_an_addition_works(name: str, tmp_path: Path) -> None:
    _, script = carried_out(sections()[name], tmp_path / "changed")
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    command = [sys.executable, str(ROOT / "tests" / "overlay.py"), "changed", "script.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
def test_what_an_addition_adds_is_in_the_house_style(tmp_path: Path) -> None:
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
    for name, section in sections().items():
        folder = tmp_path / name.replace(" ", "-")
        carried_out(section, folder)
        for command in (["check"], ["format", "--check"]):
            ours = 'lint.isort.known-first-party = ["dicoflex", "benchmarks"]'
            settings = ["--config", str(ROOT / "pyproject.toml"), "--config", ours, "--no-cache"]
            ran = subprocess.run([ruff, *command, *settings, str(folder)], capture_output=True, text=True)
            assert ran.returncode == 0, ran.stdout + ran.stderr
