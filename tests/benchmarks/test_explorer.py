"""The benchmark of the explorer: what a quick run finds, and what its page says."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.experiments.explorer.browsing import chromium
from benchmarks.experiments.explorer.page import SECTIONS


def figures(stored: Any, part: str) -> dict[str, Any]:
    found: dict[str, Any] = next(result.figures for result in stored("explorer") if result.cell.method == part)
    return found


def test_what_is_loaded(stored: Any, page: Any) -> None:
    files = figures(stored, "size")["files"]
    assert {"explorer.js", "explorer.css", "index.html"} <= set(files)
    assert all(0 < small < whole for whole, small in files.values())
    assert "## What is loaded" in page("explorer")


@pytest.mark.skipif(chromium() is None, reason="there is no Chromium")
def test_a_drag_and_the_first_plans(stored: Any, page: Any) -> None:
    drag = figures(stored, "drag")
    assert drag["drags"] == 1
    assert 0 < drag["requests"] <= drag["moves"]
    assert 0 < drag["repaints"] <= drag["requests"]
    assert 0 < drag["paint"]["p50"] <= drag["paint"]["p95"]
    assert 0 < drag["server"]["p50"] <= drag["server"]["p95"]
    assert figures(stored, "first")["first"]["p50"] > 0
    assert "the server alone, same questions" in page("explorer")


def test_sections_say_what_was_found() -> None:
    waits = {"p50": 20.0, "p95": 41.25}
    text = "".join(
        SECTIONS["drag"](
            {
                "drags": 5,
                "moves": 120,
                "seconds": 3.0,
                "requests": 49.0,
                "repaints": 48.2,
                "paint": waits,
                "server": waits,
            }
        )
    )
    assert "49 requests and 48 repaints" in text
    assert "41.2" in text
