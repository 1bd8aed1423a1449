"""The benchmark's quick mode runs from end to end, writes its page, and goes on from its cache."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import constraints
import quality
import scale
from dicoflex import datasets
from dicoflex.schema import Schema


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
