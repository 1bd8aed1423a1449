"""Files of the benchmarks appear whole or not at all, and hold the same bytes on every platform."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import benchmarks
from benchmarks import command
from benchmarks.cells import Cell, Result, run
from dicoflex.errors import UserError

MODULES = sorted(Path(benchmarks.__file__).parent.rglob("*.py"))
CELL = Cell("masks", "adult", "mixed")


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """The calls in a module by the last word of what is called."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "attr", getattr(node.func, "id", "")), node


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_text_is_utf_8_and_written_by_whole_files_alone(path: Path) -> None:
    for name, call in calls(path):
        where = f"line {call.lineno}"
        # As a function `write_text` is ours; as a method it is a path's, and goes by the platform's encoding.
        assert not (name == "write_text" and isinstance(call.func, ast.Attribute)), where
        assert name not in ("open", "mkstemp", "rename"), where
        if name == "read_text":
            assert "encoding" in {word.arg for word in call.keywords}, where


def failing(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_cell_that_can_not_be_kept_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(UserError, match="can't be written: No space left on device"):
        run([CELL], lambda *_: {"a": 1}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_can_not_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "quality.md").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(UserError, match="can't be written"):
        command._write("quality", [Result(CELL, failed="lost")], "dicoflex bench quality", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["quality.md"]
    assert (tmp_path / "quality.md").read_bytes() == b"old"


def test_a_quick_run_leaves_no_drafts(ran: Path) -> None:
    assert list((ran / "out").glob("*.md"))
    assert [path for path in ran.rglob("*") if ".part" in path.name] == []
    for path in (*ran.rglob("*.md"), *ran.rglob("*.json")):
        assert b"\r" not in path.read_bytes()
        path.read_bytes().decode("utf-8")
