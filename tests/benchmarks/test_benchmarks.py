"""The benchmark's quick mode runs from end to end, writes its page, and goes on from its cache."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import constraints
import quality
import scale
import speed
from dicoflex import datasets
from dicoflex.neighbours import Neighbours
from dicoflex.table.schema import Schema


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quality")
    quality.main(["--quick", "--methods", "mixed", "oracle", "--out", str(folder), "--cache", str(folder / "cache")])
    return folder


def test_the_page_has_a_column_per_method(ran: Path) -> None:
    page = (ran / "quality.md").read_text()
    assert "| | mixed, seed 0 | oracle, seed 0 |" in page
    assert page.count("\n|") == len(quality.ROWS) + 2


def test_the_figures_are_sane(ran: Path) -> None:
    mixed, oracle = json.loads((ran / "quality.json").read_text())
    assert oracle["validity"] == 1.0
    assert oracle["copies"] == 1.0
    assert mixed["validity"] > 0.9
    assert mixed["violations"] == 0
    assert mixed["copies"] < 0.5
    assert oracle["violations"] > 0


def test_a_second_run_takes_everything_from_the_cache(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(cell: quality.Cell) -> dict[str, float]:
        raise AssertionError(f"{cell} was measured again")

    monkeypatch.setattr(quality, "measure", measure)
    before = (ran / "quality.json").read_text()
    quality.main(["--quick", "--methods", "mixed", "oracle", "--out", str(ran), "--cache", str(ran / "cache")])
    assert (ran / "quality.json").read_text() == before


# -- scale ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scale")
    scale.main(["--quick", "--out", str(folder), "--cache", str(folder / "cache")])
    return folder


def test_scale_measures_every_size(scaled: Path) -> None:
    found = json.loads((scaled / "scale.json").read_text())
    small, large = found["cells"]
    assert (small["rows_used"], large["rows_used"]) == (500, 600)
    assert small["overlap_2"] == small["ratio_2"] == 1.0
    assert 0 < large["overlap_2"] < 1 < large["ratio_2"] < 2
    for cell in (small, large):
        assert cell["fit_seconds"] > 0
        assert 100 < cell["before_mb"] <= cell["peak_mb"] < 4000
        assert cell["validity_2"] > 0.7
    assert found["slope"] == pytest.approx(np.log(large["fit_seconds"] / small["fit_seconds"]) / np.log(4))


def test_scale_writes_its_page_and_its_figure(scaled: Path) -> None:
    page = (scaled / "scale.md").read_text()
    assert "| rows | 500 | 2,000 |" in page
    assert page.count("\n|") == len(scale.LINES) + 2
    assert (scaled / "scale.png").read_bytes().startswith(b"\x89PNG")


def test_a_stopped_run_of_scale_goes_on_where_it_was(scaled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = json.loads((scaled / "scale.json").read_text())["cells"]
    cell = scale.Cell(**{name: before[1][name] for name in scale.Cell.__dataclass_fields__})
    (scaled / "cache" / f"{cell.key}.json").unlink()
    measured = []

    def apart(cell: scale.Cell) -> dict[str, float]:
        measured.append(cell)
        return {k: v for k, v in before[1].items() if k not in scale.Cell.__dataclass_fields__}

    monkeypatch.setattr(scale, "apart", apart)
    scale.main(["--quick", "--out", str(scaled), "--cache", str(scaled / "cache")])
    assert measured == [cell]
    assert json.loads((scaled / "scale.json").read_text())["cells"] == before


def test_synthetic_rows_follow_adult() -> None:
    real = datasets.load("adult").X_train
    rows = scale.synthetic_adult(60_000, seed=0)
    assert rows.dtypes.equals(real.dtypes)
    for feature in Schema.infer(real).features:
        ours, theirs = (frame[feature.name] for frame in (rows, real))
        assert set(ours.dropna()) <= set(theirs.dropna())
        if feature.is_number:
            assert ours.mean() == pytest.approx(theirs.mean(), rel=0.1)
            assert (ours == theirs.mode()[0]).mean() == pytest.approx((theirs == theirs.mode()[0]).mean(), abs=0.05)
        else:
            shares = [frame.value_counts(normalize=True) for frame in (ours, theirs)]
            assert (shares[0] - shares[1]).abs().max() < 0.01
    assert not rows.head(1000).equals(scale.synthetic_adult(60_000, seed=1).head(1000))
    assert 0.1 < rows.duplicated().mean() < 0.5


def test_slope_of_proportional_cost_is_one() -> None:
    sizes = [{"rows": n, "fit_seconds": 3e-4 * n} for n in (10, 100, 1000)]
    assert scale.slope(sizes) == pytest.approx(1.0)
    assert scale.slope([size | {"fit_seconds": 5.0} for size in sizes]) == pytest.approx(0.0)


def test_medians_are_taken_over_the_seeds() -> None:
    results = [{"rows": n, "seed": s, "fit_seconds": n + s, "quick": False} for s in (0, 5, 1) for n in (20, 10)]
    assert [(size["rows"], size["fit_seconds"]) for size in scale.medians(results)] == [(10, 11), (20, 21)]


# -- constraints ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("constraints")
    constraints.main(["--quick", "--out", str(folder), "--cache", str(folder / "cache")])
    return folder


def test_draws_under_constraints_break_none_and_stay_valid(bound: Path) -> None:
    found = json.loads((bound / "constraints.json").read_text())
    assert found["checks"] == 20 * 20 * 6  # queries, draws, and five constraints with the schema
    assert found["violations"] == found["answer_violations"] == 0
    assert found["validity_possible"] > 0.9
    assert found["validity_possible"] >= found["validity_all"] > 0.5
    assert 0.5 < found["possible"] <= 1
    assert found["share_all"] <= found["share_enough"] <= 1


def test_times_are_medians_of_all_repeats(bound: Path) -> None:
    for seen in json.loads((bound / "constraints.json").read_text())["seconds"].values():
        free, five = seen["repeats"]["free"], seen["repeats"]["five constraints"]
        assert len(free) == len(five) == 3
        assert seen["ratio"] == pytest.approx(np.median(five) / np.median(free))


def test_the_page_of_constraints_names_what_bound_the_draws(bound: Path) -> None:
    page = (bound / "constraints.md").read_text()
    assert "- education may only increase\n" in page
    assert page.count("\n|") == len(constraints.ROWS) + 2 + 4


def test_a_second_run_under_constraints_takes_the_model_from_the_cache(
    bound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(cell: quality.Cell, data: datasets.Dataset) -> None:
        raise AssertionError(f"{cell} was fitted again")

    monkeypatch.setattr(quality, "build", build)
    before = json.loads((bound / "constraints.json").read_text())
    constraints.main(["--quick", "--out", str(bound), "--cache", str(bound / "cache")])
    after = json.loads((bound / "constraints.json").read_text())
    assert {**after, "seconds": 0} == {**before, "seconds": 0}


# -- speed ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speed")
    speed.main(["--quick", "--out", str(folder), "--cache", str(folder / "cache")])
    return folder


def figures(folder: Path, part: str) -> dict[str, Any]:
    found = json.loads((folder / "speed.json").read_text())
    (cell,) = [cell for cell in found["cells"] if cell["part"] == part]
    return cell


def test_every_part_of_speed_is_on_its_page(timed: Path) -> None:
    page = (timed / "speed.md").read_text()
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    assert titles == ["## Neighbour search", "## Sampling", "## One row", "## 4,000 draws", "## Start-up"]
    assert f"dicoflex {speed.versions()['dicoflex']}, numpy {np.__version__}" in page
    assert (timed / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert not list(timed.rglob("*.part"))


def test_the_timed_search_finds_what_brute_force_finds(timed: Path) -> None:
    found = figures(timed, "neighbours")
    assert list(found["exponents"]) == ["2", "0.01"]
    for each in found["exponents"].values():
        assert each["disagreements"] == 0
        median = np.median(each["times"][speed.NUMPY]["repeats"])
        assert each["seconds"][speed.NUMPY] == pytest.approx(median * each["scale"])
        assert each["ratios"][speed.NUMPY] == pytest.approx(
            each["seconds"][speed.NUMPY] / each["seconds"][speed.OURS], rel=1e-9
        )
        assert each["ratios"][speed.NUMPY] > 1


def test_all_samplers_draw_the_same_number(timed: Path) -> None:
    found = figures(timed, "sampling")
    drawn = {name: found["times"][name]["answers"] for name in speed.DRAWERS if name not in found["left_out"]}
    assert set(drawn.values()) == {20 * 20}
    assert {speed.SAMPLE, speed.MAF, speed.ZUKO} <= set(drawn)
    assert found["ratios"][f"{speed.ZUKO} / {speed.SAMPLE}"] == pytest.approx(
        found["times"][speed.ZUKO]["seconds"] / found["times"][speed.SAMPLE]["seconds"]
    )
    assert all(len(each["repeats"]) == 2 for each in found["times"].values())


def test_waits_memory_and_starts_are_sane(timed: Path) -> None:
    for waits in figures(timed, "latency")["milliseconds"].values():
        assert 0 < waits["p50"] <= waits["p99"] <= waits["max"] < 5000
    many = figures(timed, "million")
    assert many["draws"] == 200 * 20
    assert len(many["runs"]) == 2
    assert 0 < many["above_mb"] < 1000 < 10 * many["before_mb"]
    started = figures(timed, "startup")["seconds"]
    assert started["pass"] < started[speed.IMPORT] < started[speed.STACK] < started[speed.CLASS]


def test_a_stopped_run_of_speed_goes_on_where_it_was(timed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = json.loads((timed / "speed.json").read_text())["cells"]
    (timed / "cache" / "latency-adult.json").unlink()
    measured = []

    def measure(cell: speed.Cell, _ground: speed.Ground) -> dict[str, Any]:
        measured.append(cell.part)
        return {name: value for name, value in before[2].items() if name in ("calls", "milliseconds")}

    monkeypatch.setattr(speed, "MEASURES", dict.fromkeys(speed.MEASURES, measure))
    speed.main(["--quick", "--out", str(timed), "--cache", str(timed / "cache")])
    assert measured == ["latency"]
    assert json.loads((timed / "speed.json").read_text())["cells"] == before


def test_other_settings_are_measured_again(timed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = figures(timed, "latency")["milliseconds"]
    monkeypatch.setitem(speed.MEASURES, "latency", lambda cell, _: {"calls": cell.size.calls, "milliseconds": found})
    given = ["--quick", "--parts", "latency", "--out", str(tmp_path), "--cache", str(timed / "cache")]
    speed.main([*given, "--calls", "7"])
    assert figures(tmp_path, "latency")["calls"] == 7


def test_a_missing_package_leaves_its_row_out_with_the_reason(
    timed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "nflows.distributions", None)
    monkeypatch.setitem(sys.modules, "dice_ml", None)
    given = ["--quick", "--parts", "sampling", "--repeats", "1", "--out", str(tmp_path)]
    speed.main([*given, "--cache", str(timed / "cache")])
    found = figures(tmp_path, "sampling")
    assert list(found["left_out"]) == [speed.NFLOWS, speed.DICE]
    assert "nflows.distributions" in found["left_out"][speed.NFLOWS]
    assert not {speed.NFLOWS, speed.DICE} & set(found["times"])
    assert "Left out:\n\n- adult, nflows' MAF: ModuleNotFoundError" in (tmp_path / "speed.md").read_text()


def test_a_missing_table_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    speed.main(["--quick", "--tables", "bank", "--parts", "neighbours", "latency", "--cache", str(tmp_path)])
    found = json.loads((tmp_path / "speed.json").read_text())
    assert found["cells"] == []
    assert "needs the file" in found["left_out"]["bank"]


def test_works_take_turns_after_a_warm_up() -> None:
    called: list[tuple[str, int]] = []

    def work(name: str, answers: int) -> speed.Work:
        return lambda turn: called.append((name, turn)) or answers  # type: ignore[func-returns-value]

    times = speed.in_turns({"a": work("a", 4), "b": work("b", 0)}, 2)
    assert called == [("a", 0), ("b", 0), ("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert times["a"]["per_answer"] == times["a"]["seconds"] / 4
    assert times["b"]["per_answer"] is None


def test_a_reference_runs_on_the_threads_that_its_first_call_found_fastest() -> None:
    before, seen = torch.get_num_threads(), []

    def work(turn: int) -> int:
        seen.append(torch.get_num_threads())
        time.sleep(0.05 * (torch.get_num_threads() == 1))
        return turn

    best = speed.BestThreads(work, (1, 2))
    assert (best(3), best(4), best.n) == (3, 4, 2)
    assert seen == [1, 2, 2, 2]
    assert torch.get_num_threads() == before


def test_shortcuts_of_brute_force_measure_the_same_distance() -> None:
    rng = np.random.default_rng(0)
    anchors, pool = rng.normal(size=(7, 5)), rng.normal(size=(11, 5))
    direct = ((anchors[:, None] - pool) ** 2).sum(axis=2)
    for distances in (speed.by_difference(2.0), speed.by_squares, speed.by_product):
        np.testing.assert_allclose(distances(anchors, pool), direct)
    sparse = speed.by_difference(0.01)(anchors, pool)
    np.testing.assert_allclose(sparse, (np.abs(anchors[:, None] - pool) ** 0.01).sum(axis=2))


def test_a_wrong_neighbour_is_a_disagreement_and_a_tie_is_not() -> None:
    brute = Neighbours(np.array([[0, 1, 2]] * 3), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [1.0, 2.0, 3.0]]))
    right = Neighbours(np.array([[1, 0], [0, 2], [0, 1]]), np.array([[1.0, 2.0]] * 3))
    wrong = Neighbours(np.array([[0, 2], [0, 1], [0, 1]]), np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]]))
    assert speed.disagreements(right, brute) == 0
    assert speed.disagreements(wrong, brute) == 2
