"""The benchmark of the server: what a quick run of some parts finds, and what its page says."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments.serving.load import Load
from benchmarks.experiments.serving.page import SECTIONS


def test_answers_under_load_are_those_of_direct_calls(stored: Any) -> None:
    figures = next(result.figures for result in stored("serving") if result.cell.method == "equal")
    assert figures["same"] == figures["compared"] == 40


def test_hostile_bodies_are_refused(stored: Any, page: Any) -> None:
    figures = next(result.figures for result in stored("serving") if result.cell.method == "hostile")
    assert figures["bodies"] >= 50
    assert figures["alive"]
    assert {status[0] for status in figures["statuses"]} == {"4"}
    assert "## Hostile bodies" in page("serving")


def test_figures_of_a_load() -> None:
    load = Load(seconds=2.0, waits=[0.1] * 99 + [0.3])
    load.statuses.update({200: 99, 503: 1})
    found = load.figures()
    assert (found["requests"], found["failed"], found["rate"]) == (100, 1, 49.5)
    assert round(found["p50"]) == 100
    one = {"requests": 4, "rate": 2.0, "p50": 1.0, "p99": 2.0, "failed": 0}
    ways = [f"{way}, {how}" for way in ("refined", "as drawn") for how in ("gathered", "one at a time")]
    text = "".join(SECTIONS["load"]({"loads": dict.fromkeys([*ways, "predict_proba"], one)}))
    assert "Answers refined: 1.00 times the requests per second when gathered" in text
