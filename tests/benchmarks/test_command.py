"""The command: what it is asked, what it refuses, and what it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from benchmarks import command
from benchmarks.cells import Cell, Measure, Result
from benchmarks.options import Options
from benchmarks.pages import foot
from benchmarks.registry import EXPERIMENTS, PAPER
from benchmarks.sources import commit
from dicoflex.cli import commands as bench
from dicoflex.errors import UserError

PICTURES = {
    *("comparison.png", "runtime.png", "sparsity.png", "theory.png", "teaser_mixed.png", "teaser_maf.png"),
    *("speed.png", "scale.png", "nearer.png", "nearer-confidence.png"),
}


# -- what a quick run writes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_quick_run_and_a_page(name: str, stored: Any, page: Any) -> None:
    results = stored(name)
    assert results
    assert [result.failed for result in results] == [""] * len(results)
    assert all(result.cell.size.quick for result in results)
    assert page(name).startswith(f"# {EXPERIMENTS[name].TITLE}\n")


@pytest.mark.parametrize("name", [*EXPERIMENTS, "paper"])
def test_pages_say_how_they_were_made(name: str, ran: Path, page: Any) -> None:
    assert f"`dicoflex bench {' '.join(EXPERIMENTS)} --quick`" in page(name)
    assert "Seeds: 0." in page(name)
    assert "torch " in page(name)
    assert str(ran) not in page(name)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_pages_say_which_commit_their_cells_are_from(name: str, stored: Any, page: Any) -> None:
    results = stored(name)
    assert {result.commit for result in results} == {commit()}
    assert page(name).splitlines()[-1] == foot(results).strip()
    assert f"{len(results)} from " in foot(results)


def test_the_summary_counts_a_cell_of_several_pages_once(stored: Any, page: Any) -> None:
    cells = {result.cell for name in PAPER for result in stored(name)}
    assert page("paper").splitlines()[-1].startswith(f"Cells: {len(cells)} from ")


def test_every_picture_is_on_a_page(ran: Path) -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ran / "out").glob("*.md"))
    found = list((ran / "out").glob("*.png"))
    assert {path.name for path in found} == PICTURES
    for path in found:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"]({path.name})" in pages


def test_a_second_run_takes_everything_from_the_cache(
    ran: Path, rerun: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refusing(measure: Measure) -> Measure:
        @wraps(measure)
        def refuse(cell: Cell, models: Path) -> None:
            raise AssertionError(f"{cell} was measured again")

        return refuse

    for experiment in EXPERIMENTS.values():
        monkeypatch.setattr(experiment, "measure", refusing(experiment.measure))
    rerun(*EXPERIMENTS, out=tmp_path)
    for name in EXPERIMENTS:
        assert (tmp_path / f"{name}.json").read_text() == (ran / "out" / f"{name}.json").read_text()


# -- asking -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["comparisn"], "experiment 'comparisn' is unknown; did you mean 'comparison'"),
        (["comparison", "--answering", "0"], "--answering must be more than 0, got 0"),
        (["speed", "--repeats", "0"], "--repeats must be more than 0, got 0"),
        (["scale", "--rows", "100", "-5"], "--rows must be more than 0, got -5"),
        (["comparison", "--tables", "adlt"], "table 'adlt' is unknown; did you mean 'adult'"),
        (["comparison", "--methods", "dice"], "method 'dice' is unknown"),
        (["speed", "--parts", "latencies"], "part 'latencies' is unknown; did you mean 'latency'"),
        (["quality", "--calls", "3"], "--calls is an option of speed; leave it out, or name speed"),
        (["masks", "--methods", "wachter"], "masks: nothing to measure with these tables and methods"),
    ],
)
def test_wrong_calls_are_told_before_any_work(argv: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        bench.run([*argv, "--quick", "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")])
    assert list(tmp_path.iterdir()) == []


def test_all_are_the_papers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []
    monkeypatch.setattr(command, "run", lambda cells, *_: asked.append(cells[0].kind) or [])
    monkeypatch.setattr(command, "_write", lambda *_: None)
    bench.run(["all", "scale", "--quick", "--out", str(tmp_path), "--cache", str(tmp_path)])
    assert len(asked) == len(PAPER) + 1
    assert asked[-1] == "scale"


def test_the_package_is_found_from_the_checkout_alone() -> None:
    assert bench.module("command") is command
    assert bench.folder() == Path(command.__file__).parent


def test_an_installed_package_says_where_the_experiments_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="clone the repository"):
        bench.folder(tmp_path / "lib" / "dicoflex")


# -- pages of several runs --------------------------------------------------------------------------------------------


def test_a_run_that_keeps_leaves_other_cells_as_they_are(tmp_path: Path) -> None:
    """A page of one method measured anew says so, and still has the others, each from its own commit."""
    whole = EXPERIMENTS["comparison"].cells(Options(tables=("adult", "bank"), methods=("mixed (p=2.0)", "oracle")))
    again, *others = [Result(cell, {"x": 1}, commit="old") for cell in whole]
    path = tmp_path / "c.json"
    path.write_text(
        json.dumps({"command": "a; b", "results": [r.stored() for r in (*others, again)]}), encoding="utf-8"
    )
    fresh = Result(again.cell, {"x": 2}, commit="new")
    results, text = command._with_kept("comparison", [fresh], "b", path)
    assert results == [fresh, *others]
    assert text == "a; b"
    assert command._with_kept("comparison", [fresh], "b", tmp_path / "none.json") == ([fresh], "b")
