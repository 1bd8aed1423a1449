"""The benchmark's quick mode runs from end to end, writes its page, and goes on from its cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quality


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
