"""Near, and for how long: what a quick run finds, and how distances at equal survival are read off."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.cells import Cell, Result, measured
from benchmarks.experiments import nearer
from benchmarks.experiments.nearer.page import at_survival
from benchmarks.options import Options
from benchmarks.tables import ADULT, BANK, GERMAN, GMC

pytest.importorskip("xgboost")


def test_every_point_has_its_measures(stored: Any) -> None:
    found = {result.cell.method: result for result in measured(stored("nearer"))}
    assert set(nearer.METHODS[:3]) <= set(found)
    for result in found.values():
        for point in result.figures["points"].values():
            if point["answered"]:
                assert 0 <= point["survival"] <= 1
                assert point["l1"] > 0
                assert point["changed"] >= 1
                assert point["nearest"] >= 0
    # The model itself, or a copy of it, confirms every answer.
    for method in ("learned, check", "exact"):
        assert all(point["valid"] == 1.0 for point in found[method].figures["points"].values() if point["answered"])


def test_the_page_has_points_and_distances_at_equal_survival(page: Any) -> None:
    text = page("nearer")
    assert "| method | asked for | answered | L1 |" in text
    assert "| exact | just |" in text
    assert "| method | 0.6 | 0.75 | 0.9 |" in text
    assert "What `fit` estimated:" in text


def test_the_usual_tables_and_others_by_option() -> None:
    cells = nearer.cells(Options())
    assert {cell.table for cell in cells} == {ADULT, BANK, GERMAN}
    assert {cell.table for cell in nearer.cells(Options(tables=(GMC,)))} == {GMC}
    # An exact solver of trees has nothing to say of a perceptron.
    assert not [cell for cell in cells if cell.method == "treecf" and cell.setting("model") == "perceptron"]


def test_distances_at_equal_survival_lie_on_the_frontier() -> None:
    points = {"a": (0.5, 1.0), "b": (0.7, 2.0), "beaten": (0.6, 3.0), "c": (0.9, 4.0)}
    figures = {name: {"survival": kept, "l1": apart} for name, (kept, apart) in points.items()}
    result = Result(Cell("nearer", GERMAN, "exact"), {"points": figures | {"none": {"answered": 0.0}}})
    assert at_survival(result, 0.6) == pytest.approx(1.5)
    assert at_survival(result, 0.3) == pytest.approx(1.0)
    assert at_survival(result, 0.8) == pytest.approx(3.0)
    assert at_survival(result, 0.95) is None


def test_the_confidence_that_our_answers_reach_is_drawn() -> None:
    point = {"survival": 0.6, "l1": 1.0, "confidence": 0.72, "confidence_low": 0.7}
    setting = (("model", "xgboost"),)
    ours = Result(Cell("nearer", GERMAN, "exact", settings=setting), {"points": {"just": point, "0.7": point}})
    theirs = Result(Cell("nearer", GERMAN, "nice-sparsity", settings=setting), {"points": {"decision": point}})
    drawn = nearer.figures([ours, theirs])["nearer-confidence.png"].axes[0]
    # What is meant, the median and the quantile; a level by name is no number, and NICE can't be asked for one.
    assert [line.get_xydata().tolist() for line in drawn.lines[1:]] == [[[0.7, 0.72]], [[0.7, 0.7]]]
