"""Which source a cell depends on, and which commit it is from."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import sources
from benchmarks.baselines import BASELINES
from benchmarks.cells import Cell, Result
from benchmarks.experiments import comparison, german, speed
from benchmarks.pages import foot

FILES = {
    "benchmarks/__init__.py": "",
    "benchmarks/tasks.py": "from dicoflex import metrics",
    "benchmarks/methods.py": "import dicoflex.explainer",
    "benchmarks/pages.py": "WORDS = 1",
    "benchmarks/baselines/__init__.py": "from benchmarks.baselines import wachter, dice",
    "benchmarks/baselines/wachter.py": "def fit():\n    from benchmarks.baselines.descent import run",
    "benchmarks/baselines/descent.py": "from dicoflex.table.encoding import Encoding",
    "benchmarks/baselines/dice.py": "",
    "benchmarks/experiments/measuring.py": "from benchmarks import methods, pages, tasks",
    "benchmarks/experiments/page.py": "",
    "dicoflex/__init__.py": "if TYPE_CHECKING:\n    from dicoflex.explainer import DiCoFlex",
    "dicoflex/explainer.py": "",
    "dicoflex/metrics/__init__.py": "",
    "dicoflex/table/encoding.py": "import dicoflex.table.schema",
    "dicoflex/table/schema.py": "",
    "dicoflex/views.py": "",
    "dicoflex/datasets/data/adult.csv": "1,2",
}


def forget() -> None:
    for function in (sources.digest, sources._files, sources._imports):
        function.cache_clear()


@pytest.fixture
def changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], str]], set[str]]]:
    """The files of a small checkout of which a digest depends."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sources, "FOLDERS", {name: tmp_path / name for name in ("benchmarks", "dicoflex")})

    def found(digest: Callable[[], str]) -> set[str]:
        forget()
        usual, touched = digest(), set()
        for name, text in FILES.items():
            (tmp_path / name).write_text(text + "\n# another state")
            forget()
            touched |= {name} if digest() != usual else set()
            (tmp_path / name).write_text(text)
        return touched

    yield found
    forget()


def measure() -> None:
    """A measure that stands where the checkout has one."""


measure.__module__ = "benchmarks.experiments.measuring"
OURS = {name for name in FILES if name.startswith("dicoflex/")}


def test_a_cell_depends_on_the_package_and_on_what_its_measure_imports(changes: Callable[..., set[str]]) -> None:
    assert changes(lambda: sources.source_of("mixed", measure)) == OURS | {
        "benchmarks/experiments/measuring.py",
        "benchmarks/methods.py",
        "benchmarks/tasks.py",
    }


def test_a_baselines_cell_depends_on_the_baseline_and_the_tasks(
    changes: Callable[..., set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BASELINES["wachter"], "__module__", "benchmarks.baselines.wachter")
    assert changes(lambda: sources.source_of("wachter", measure)) == {
        "benchmarks/baselines/descent.py",
        "benchmarks/baselines/wachter.py",
        "benchmarks/experiments/measuring.py",
        "benchmarks/methods.py",
        "benchmarks/tasks.py",
        "dicoflex/datasets/data/adult.csv",
        "dicoflex/metrics/__init__.py",
        "dicoflex/table/encoding.py",
        "dicoflex/table/schema.py",
    }


def test_views_of_the_same_cells_share_them() -> None:
    assert sources.source_of("mixed", comparison.measure) == sources.source_of("mixed", german.measure)
    assert sources.source_of("mixed", comparison.measure) != sources.source_of("mixed", speed.measure)
    assert sources.source_of("wachter", comparison.measure) != sources.source_of("tabcf", comparison.measure)


def test_what_tells_of_cells_has_no_part_in_them() -> None:
    for experiment in (comparison, speed):
        reached = sources._reached((experiment.measure.__module__,))
        assert experiment.measure.__module__ in reached
        assert not {name for name in reached if name.endswith((".page", ".pages", ".picture", ".standing"))}


# -- commits ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, which is the one that git talks of even where a hook runs the tests."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "checkout"
    (root / "benchmarks" / "results").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src" / "module.py").write_text("one")
    git = ["git", "-C", str(root), "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "--no-verify", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(sources, "ROOT", root)
    return root


def test_a_clean_checkout_is_told_by_its_commit(checkout: Path) -> None:
    short = subprocess.check_output(["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"], text=True).strip()
    (checkout / "benchmarks" / "results" / "page.md").write_text("written by a run")
    (checkout / "notes.txt").write_text("no source")
    assert sources.commit.__wrapped__() == short
    (checkout / "src" / "module.py").write_text("two")
    assert sources.commit.__wrapped__() == f"{short} with changes"


def test_new_modules_are_changes(checkout: Path) -> None:
    (checkout / "benchmarks" / "new.py").write_text("")
    assert sources.commit.__wrapped__().endswith(" with changes")


def test_outside_a_checkout_the_commit_is_unknown(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = checkout / "src"
    for place in (inside, checkout.parent, checkout / "nowhere"):
        monkeypatch.setattr(sources, "ROOT", place)
        assert sources.commit.__wrapped__() == "unknown"


def test_without_git_the_commit_is_unknown(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert sources.commit.__wrapped__() == "unknown"


def test_the_foot_counts_cells_by_commit() -> None:
    cell = Cell("masks", "adult", "mixed")
    commits = ("x", "y with changes", "x")
    results = [Result(replace(cell, seed=i), {"a": 1}, commit=name) for i, name in enumerate(commits)]
    results += [Result(replace(cell, seed=3), {"a": 1}), Result(replace(cell, seed=4), failed="lost")]
    told = "2 from commit x, 1 from commit y with changes and 1 from an unknown commit"
    assert foot([*results, results[0]]) == f"\nCells: {told}.\n"
    assert foot(results[-1:]) == ""
