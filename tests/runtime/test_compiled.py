"""Where compiled code is kept: one folder per state of all kernels, wherever there is a place for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dicoflex.runtime import compiled

PACKAGE = Path(compiled.__file__).resolve().parents[1]


@pytest.fixture
def fresh() -> None:
    """The folder is looked for anew, before and after."""
    compiled.folder.cache_clear()
    yield
    compiled.folder.cache_clear()


def test_an_edit_of_any_file_with_kernels_changes_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "dicoflex"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "data"))
    monkeypatch.setattr(compiled, "__file__", str(copy / "runtime" / "compiled.py"))
    before = compiled._digest()
    assert compiled._digest() == before
    for name in ("neighbours.py", "generators/mixed/lookahead.py", "limits/clauses.py"):
        path = copy / name
        if "compiled" in path.read_text(encoding="utf-8"):
            path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
            after = compiled._digest()
            assert after != before
            before = after


@pytest.mark.usefixtures("fresh")
def test_the_folder_that_is_named_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled.FOLDER_VARIABLE, str(tmp_path))
    found = compiled.folder()
    assert found is not None
    assert found.parent == tmp_path


@pytest.mark.usefixtures("fresh")
def test_without_a_place_there_is_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder", encoding="utf-8")
    monkeypatch.setenv(compiled.FOLDER_VARIABLE, str(blocked))
    with pytest.warns(UserWarning, match="every process compiles anew"):
        assert compiled.folder() is None
    assert compiled.folder() is None


@pytest.mark.usefixtures("fresh")
def test_older_folders_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(6):
        old = tmp_path / f"compiled-old{i}"
        old.mkdir()
        os.utime(old, (i, i))
    monkeypatch.setenv(compiled.FOLDER_VARIABLE, str(tmp_path))
    found = compiled.folder()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert found is not None
    assert found.name in left
    assert len(left) == compiled.KEPT_FOLDERS


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    """The second process finds what the first one kept, also where it may not write."""
    script = (
        "import numpy as np; from dicoflex.runtime import compiled, randomness; "
        "keys = randomness.row_keys(np.ones((3, 2)), 0); hits = randomness._hash_rows.stats; "
        "print(sum(hits.cache_hits.values()), sum(hits.cache_misses.values()), keys.tolist())"
    )
    environment = os.environ | {compiled.FOLDER_VARIABLE: str(tmp_path)}

    def run() -> list[str]:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split(" ", 2)

    first = run()
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    second = run()
    assert first[:2] == ["0", "1"]
    assert second[:2] == ["1", "0"]
    assert first[2] == second[2]
