"""No edit of a file with compiled code meets kernels that were compiled before it."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kernels

FILES = [path.relative_to(kernels.SOURCE).as_posix() for path in kernels.sources()]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, to be edited."""
    ignored = shutil.ignore_patterns("data", "__pycache__", "*.egg-info")
    return Path(shutil.copytree(kernels.SOURCE, tmp_path_factory.mktemp("copy") / "src", ignore=ignored))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Kernels that take a constant by way of a package; a fourth file is none of theirs."""
    room = tmp_path / "src" / "house"
    room.mkdir(parents=True)
    (room / "__init__.py").write_text("from house.numbers import SLACK\n")
    (room / "numbers.py").write_text("SLACK = 1e-9\n")
    (room / "fast.py").write_text("import numba\nfrom house import SLACK\nfrom house.words import say\n")
    (room / "words.py").write_text("def say(): ...\n")
    return tmp_path / "src"


@pytest.mark.parametrize("name", FILES)
def test_an_edit_of_a_file_with_kernels_changes_the_name(name: str, source: Path) -> None:
    before = kernels.digest(source)
    (source / name).write_bytes((source / name).read_bytes() + b"# edited\n")
    assert kernels.digest(source) != before


def test_every_file_that_compiles_counts() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in kernels.SOURCE.rglob("*.py")}
    compiling = {path for path, text in texts.items() if "njit" in text or "\n@compiled" in text}
    assert compiling
    assert compiling <= set(kernels.sources())


def test_what_counts_is_found_through_packages(small: Path) -> None:
    assert [path.name for path in kernels.sources(small)] == ["__init__.py", "fast.py", "numbers.py"]
    before = kernels.digest(small)
    (small / "house" / "words.py").write_text("def say(): return 1\n")
    assert kernels.digest(small) == before
    (small / "house" / "numbers.py").write_text("SLACK = 1e-6\n")
    assert kernels.digest(small) != before


def test_a_file_that_moves_changes_the_name(small: Path) -> None:
    before = kernels.digest(small)
    (small / "house" / "fast.py").rename(small / "house" / "quick.py")
    assert kernels.digest(small) != before


@pytest.mark.parametrize("name", FILES)
def test_values_that_kernels_import_are_in_capitals(name: str) -> None:
    """Constants are told by their spelling, so a number under another name would go unnoticed."""
    for node in ast.walk(ast.parse((kernels.SOURCE / name).read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dicoflex"):
            module = importlib.import_module(str(node.module))
            for imported in node.names:
                assert imported.name.isupper() or not isinstance(getattr(module, imported.name), int | float | tuple)


def test_old_folders_go_when_a_new_one_is_made(small: Path, tmp_path: Path) -> None:
    compiled = tmp_path / ".compiled"
    made = []
    for i in range(4):
        (small / "house" / "numbers.py").write_text(f"SLACK = {i}\n")
        made.append(kernels.folder(small, compiled))
        os.utime(made[-1], (i, i))
    assert sorted(compiled.iterdir()) == sorted(made[-2:])
    (made[-1] / "kernel.nbi").touch()
    assert kernels.folder(small, compiled) == made[-1]
    assert (made[-1] / "kernel.nbi").is_file()


def test_the_folder_last_used_stays(small: Path, tmp_path: Path) -> None:
    numbers, compiled = small / "house" / "numbers.py", tmp_path / ".compiled"
    states = ["SLACK = 1\n", "SLACK = 2\n", "SLACK = 1\n", "SLACK = 3\n"]
    made = []
    for state in states:
        numbers.write_text(state)
        made.append(kernels.folder(small, compiled))
    assert set(compiled.iterdir()) == {made[2], made[3]}


def test_make_and_pytest_use_the_same_folder() -> None:
    printed = subprocess.run(
        [sys.executable, kernels.__file__], cwd=kernels.ROOT, capture_output=True, text=True, check=True
    )
    assert printed.stdout == f"{kernels.folder()}\n"
    makefile = (kernels.ROOT / "Makefile").read_text(encoding="utf-8")
    assert "export NUMBA_CACHE_DIR := $(shell $(PYTHON) tests/kernels.py)\n" in makefile
