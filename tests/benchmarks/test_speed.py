"""Speed: every part finds what it should, and times can be compared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.cells import Result
from benchmarks.experiments.speed import sampling, search, startup
from benchmarks.timing import BestThreads, Work, in_turns
from dicoflex.datasets.downloads import FOLDER_VARIABLE
from dicoflex.neighbours import Neighbours


@pytest.fixture(scope="module")
def part(stored: Callable[..., list[Result]]) -> Callable[[str], dict[str, Any]]:
    """The figures of a part, from the quick run."""
    return lambda name: next(r.figures for r in stored("speed") if r.cell.method == name)


def test_every_part_of_speed_is_on_its_page(page: Any) -> None:
    titles = [line for line in page("speed").splitlines() if line.startswith("## ")]
    assert titles == ["## Neighbour search", "## Sampling", "## One row", "## 1,000 draws", "## Start-up"]
    assert "Measured on " in page("speed")
    assert f"numpy {np.__version__}" in page("speed")


def test_the_timed_search_finds_what_brute_force_finds(part: Any) -> None:
    found = part("search")
    assert list(found["exponents"]) == ["2", "0.01"]
    for each in found["exponents"].values():
        assert each["disagreements"] == 0
        median = np.median(each["times"][search.NUMPY]["repeats"])
        assert each["seconds"][search.NUMPY] == pytest.approx(median * each["scale"], rel=1e-5)
        ratio = each["seconds"][search.NUMPY] / each["seconds"][search.OURS]
        assert each["ratios"][search.NUMPY] == pytest.approx(ratio, rel=1e-5)


def test_all_samplers_draw_the_same_number(part: Any) -> None:
    found = part("sampling")
    drawn = {name: found["times"][name]["answers"] for name in sampling.DRAWERS if name not in found["left_out"]}
    assert set(drawn.values()) == {12 * 20}
    assert {sampling.SAMPLE, sampling.MAF, sampling.ZUKO} <= set(drawn)
    ours, theirs = (found["times"][name]["seconds"] for name in (sampling.SAMPLE, sampling.ZUKO))
    assert found["ratios"][f"{sampling.ZUKO} / {sampling.SAMPLE}"] == pytest.approx(theirs / ours, rel=1e-5)


def test_waits_and_memory_are_sane(part: Any) -> None:
    for waits in part("latency")["milliseconds"].values():
        assert 0 < waits["p50"] <= waits["p99"] <= waits["max"]
    many = part("throughput")
    assert many["draws"] == 50 * 20
    assert len(many["runs"]) == 1
    assert many["above_mb"] > -10
    assert many["before_mb"] > 100


def test_start_up_is_held_against_what_everyone_imports(part: Any) -> None:
    found = part("startup")
    assert set(found["ratios"]) == {startup.IMPORT, startup.ADDED, startup.CLASS}
    for name, ratio in found["ratios"].items():
        assert ratio == pytest.approx(found["seconds"][name] / found["seconds"][startup.STACK], rel=1e-4)


def test_start_up_is_of_fresh_processes_that_end_well() -> None:
    assert startup.fresh([sys.executable, "-c", "pass"])(0) == 1
    with pytest.raises(subprocess.CalledProcessError):
        startup.fresh([sys.executable, "-c", "raise SystemExit(3)"])(0)


def test_other_amounts_are_measured_again(rerun: Any, stored: Any, tmp_path: Path) -> None:
    rerun("speed", "--parts", "latency", "--calls", "7", out=tmp_path)
    (result,) = stored("speed", tmp_path)
    assert result.figures["calls"] == 7


def test_a_missing_package_leaves_its_row_out_with_the_reason(
    rerun: Any, stored: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "nflows.distributions", None)
    monkeypatch.setitem(sys.modules, "dice_ml", None)
    rerun("speed", "--parts", "sampling", "--repeats", "2", out=tmp_path)
    found = stored("speed", tmp_path)[0].figures
    assert list(found["left_out"]) == [sampling.NFLOWS, sampling.DICE]
    assert "nflows.distributions" in found["left_out"][sampling.NFLOWS]
    assert not {sampling.NFLOWS, sampling.DICE} & set(found["times"])
    assert all(len(each["repeats"]) == 2 for each in found["times"].values())
    assert "Left out:\n\n- adult, nflows' MAF: ModuleNotFoundError" in (tmp_path / "speed.md").read_text()


def test_a_missing_table_is_left_out_with_the_reason(
    rerun: Any, stored: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    rerun("speed", "--tables", "bank", "--parts", "search", "latency", out=tmp_path)
    assert [result.figures for result in stored("speed", tmp_path)] == [{}, {}]
    assert (
        "- speed: bank, search, seed 0: DataError: dataset 'bank' needs the file" in (tmp_path / "speed.md").read_text()
    )


# -- timing -----------------------------------------------------------------------------------------------------------


def test_works_take_turns_after_a_warm_up() -> None:
    called: list[tuple[str, int]] = []

    def work(name: str, answers: int) -> Work:
        return lambda turn: called.append((name, turn)) or answers  # type: ignore[func-returns-value]

    times = in_turns({"a": work("a", 4), "b": work("b", 0)}, 2)
    assert called == [("a", 0), ("b", 0), ("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert times["a"]["per_answer"] == times["a"]["seconds"] / 4
    assert times["b"]["per_answer"] is None


def test_a_reference_runs_on_the_threads_that_its_first_call_found_fastest() -> None:
    before, seen = torch.get_num_threads(), []

    def work(turn: int) -> int:
        seen.append(torch.get_num_threads())
        return turn

    # One thread takes two seconds of this clock, two threads take one.
    best = BestThreads(work, (1, 2), now=lambda: sum(2.0 / n for n in seen))
    assert (best(3), best(4), best.n) == (3, 4, 2)
    assert seen == [1, 2, 2, 2]
    assert torch.get_num_threads() == before


# -- brute force -----------------------------------------------------------------------------------------------------


def test_shortcuts_of_brute_force_measure_the_same_distance() -> None:
    rng = np.random.default_rng(0)
    anchors, pool = rng.normal(size=(7, 5)), rng.normal(size=(11, 5))
    direct = ((anchors[:, None] - pool) ** 2).sum(axis=2)
    for distances in (search.by_difference(2.0), search.by_squares, search.by_product):
        np.testing.assert_allclose(distances(anchors, pool), direct)
    sparse = search.by_difference(0.01)(anchors, pool)
    np.testing.assert_allclose(sparse, (np.abs(anchors[:, None] - pool) ** 0.01).sum(axis=2))


def test_a_wrong_neighbour_is_a_disagreement_and_a_tie_is_not() -> None:
    brute = Neighbours(np.array([[0, 1, 2]] * 3), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [1.0, 2.0, 3.0]]))
    right = Neighbours(np.array([[1, 0], [0, 2], [0, 1]]), np.array([[1.0, 2.0]] * 3))
    wrong = Neighbours(np.array([[0, 2], [0, 1], [0, 1]]), np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]]))
    assert search.disagreements(right, brute) == 0
    assert search.disagreements(wrong, brute) == 2
