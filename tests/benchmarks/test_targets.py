"""The benchmark of targets that are no label: intervals and classes are asked for, and the page has both."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import targets


def test_intervals_and_classes_are_asked_for(stored: Any) -> None:
    scores, classes = stored("targets")
    assert scores.cell.table == targets.FRIEDMAN
    assert classes.cell.table == targets.THREE
    for p in ("2", "0.01"):
        asked = [scores.figures[kind][p] for kind in ("between", "open")]
        assert sum(one["intervals"] for one in asked) == targets.QUICK_INTERVALS
        assert all(0 <= one["inside"] <= 1 for one in asked if one["answers"])
        one = classes.figures["other"][p]
        assert one["other"] > 0.8 if one["answers"] else one["full"] == 0
    assert scores.figures["empty_refused"]


def test_the_page_has_a_line_for_each(page: Any) -> None:
    text = page("targets")
    assert text.count("\n| Friedman's function, 0 |") == 4
    assert text.count("\n| three, 0 |") == 2
    assert "empty ones refused" in text
