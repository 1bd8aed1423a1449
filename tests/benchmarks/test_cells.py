"""Cells: what tells them apart, how a run goes on where it was, and what is made of their figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cells
from benchmarks.cells import QUICK, Cell, Result, merged, run
from benchmarks.experiments import comparison
from benchmarks.machine import apart, held_mb, peak_mb, versions
from benchmarks.options import Options
from dicoflex.errors import DataError

CELL = Cell("comparison", "adult", "cchvae", size=QUICK)


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    three = [replace(CELL, seed=seed) for seed in range(3)]
    measured = []

    def measure(cell: Cell, models: Path) -> dict[str, Any]:
        measured.append(cell.seed)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return {"seed": cell.seed}

    with pytest.raises(KeyboardInterrupt):
        run(three, measure, tmp_path)
    results = run(three, measure, tmp_path)
    assert measured == [0, 1, 1, 2]
    assert [r.figures["seed"] for r in results] == [0, 1, 2]
    assert [r.cell for r in results] == three


def test_a_failing_cell_is_told_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def measure(cell: Cell, models: Path) -> dict[str, Any]:
        raise DataError("no such table")

    (result,) = run([CELL], measure, tmp_path)
    assert result.failed == "DataError: no such table"
    assert "left out: DataError: no such table" in capsys.readouterr().out
    page = comparison.page([result], "dicoflex bench comparison")
    assert f"- {CELL}: DataError: no such table" in page
    (again,) = run([CELL], lambda *_: {"fine": 1}, tmp_path)
    assert again.figures == {"fine": 1}


@pytest.mark.parametrize(
    "other",
    [
        replace(CELL, seed=1),
        replace(CELL, table="bank"),
        replace(CELL, size=replace(QUICK, learning=3.0)),
        replace(CELL, settings=(("K", 8),)),
    ],
)
def test_other_settings_are_another_cell(other: Cell) -> None:
    assert other.key("state") != CELL.key("state")


def test_another_state_of_the_source_is_another_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def measure(cell: Cell, models: Path) -> dict[str, Any]:
        measured.append(cell)
        return {}

    for state in ("old", "new", "old"):
        monkeypatch.setattr(cells, "source_of", lambda *_, state=state: state)
        run([CELL], measure, tmp_path)
    assert len(measured) == 2


def test_a_result_keeps_the_commit_that_it_was_measured_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("1a2b3c4", "5d6e7f8 with changes"):
        monkeypatch.setattr(cells, "commit", lambda name=name: name)
        (result,) = run([CELL], lambda *_: {}, tmp_path)
        assert result.commit == "1a2b3c4"


def test_a_cell_survives_storage_with_its_key() -> None:
    cell = replace(CELL, settings=(("K", 8), ("alpha", 10)))
    back = Result.of(json.loads(json.dumps(Result(cell, {"a": 1}).stored())))
    assert back.cell == cell
    assert back.cell.key("state") == cell.key("state")


def test_seeds_are_averaged() -> None:
    some = [Result(replace(CELL, seed=s), {"scores": {"a": float(s)}, "out_of_time": s == 1}) for s in (0, 1)]
    (mean,) = merged([*some, Result(replace(CELL, seed=2), failed="lost")])
    assert mean.figures == {"scores": {"a": 0.5}, "out_of_time": True}


def test_settings_that_are_many_things_are_not_shown() -> None:
    cell = Cell("speed", "", "startup", settings=(("repeats", 3), ("on", ("2 cores", "numpy 2"))))
    assert str(cell) == "speed: startup, repeats 3, seed 0"
    assert Cell.of(json.loads(json.dumps(Result(cell).stored()))["cell"]) == cell


# -- options ----------------------------------------------------------------------------------------------------------


def test_tables_methods_and_seeds_can_be_chosen() -> None:
    chosen = comparison.cells(Options(tables=("bank",), methods=("oracle",), seeds=(0, 1)))
    assert [(c.table, c.method, c.seed) for c in chosen] == [("bank", "oracle", 0), ("bank", "oracle", 1)]


def test_a_quick_run_takes_a_slice_unless_it_is_told_which() -> None:
    assert {c.table for c in comparison.cells(Options(quick=True))} == {"adult"}
    (cell,) = comparison.cells(Options(quick=True, tables=("gmc",), methods=("oracle",), queries=3))
    assert (cell.table, cell.method) == ("gmc", "oracle")
    assert cell.size == replace(QUICK, queries=3)


# -- a fresh process --------------------------------------------------------------------------------------------------


def test_a_function_can_be_called_in_a_fresh_process() -> None:
    assert apart(versions, ["numpy", "no-such-package"]) == versions(["numpy", "no-such-package"])


def test_memory_is_told_in_megabytes() -> None:
    # The system counts in steps, and a peak may lag behind a little.
    assert 20 < held_mb() < peak_mb() + 10 < 100_000
