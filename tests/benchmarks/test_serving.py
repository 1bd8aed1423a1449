"""The benchmark of the server: what a quick run of some parts finds, and what its page says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.experiments.serving.load import Load
from benchmarks.experiments.serving.page import SECTIONS


@pytest.fixture
def part(stored: Any) -> Callable[[str], dict[str, Any]]:
    """The figures of a part of the quick run."""
    return lambda name: next(result.figures for result in stored("serving") if result.cell.method == name)


def test_answers_under_load_are_those_of_direct_calls(part: Any) -> None:
    figures = part("equal")
    assert figures["same"] == figures["compared"] == 40


def test_one_row_is_compared_with_a_call_of_the_black_box(part: Any, page: Any) -> None:
    figures = part("row")
    assert figures["waits"]["predict_proba"]["share"] == 1
    assert all(one["p50"] > 0 for one in figures["waits"].values())
    assert "plain, refined, five kinds of constraints" in figures["waits"]
    assert "## One row of German Credit" in page("serving")


def test_a_request_is_compared_with_explain(part: Any, page: Any) -> None:
    figures = part("request")
    assert figures["failed"] == 0
    assert min(figures[name] for name in ("request", "explain", "plain")) > 0
    assert f"{figures['request'] / figures['explain']:.2f} times that of `explain`" in page("serving")


def test_what_was_logged_is_given_again(part: Any, page: Any) -> None:
    figures = part("audit")
    assert figures["findings"] == figures["different"] == 0
    # Asked to warm up, one by one, and all at once; and one record that begins the log.
    assert figures["records"] == figures["identical"] + 1 == 20 + 10 + 20 + 1
    assert f"one sync of this disk takes {figures['disk']:.2f} ms" in page("serving")


def test_a_soak_fails_nothing(part: Any, page: Any) -> None:
    figures = part("soak")
    assert figures["failed"] == 0
    assert figures["requests"] > 0
    assert figures["at_end"] > 50
    assert "## A soak" in page("serving")


def test_hostile_bodies_are_refused(part: Any, page: Any) -> None:
    figures = part("hostile")
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
