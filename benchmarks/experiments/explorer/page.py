"""The page of the explorer."""

from __future__ import annotations

__all__ = ["SECTIONS", "TITLE", "figures", "page"]

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure

from benchmarks.cells import Result, measured
from benchmarks.pages import head, number, table

TITLE = "The explorer in a browser"
TEXT = (
    "A real Chromium without a screen opens the page of a real `dicoflex explore`, on the same machine, and drags the "
    "upper limit of a number to its middle and back. A wait runs from the first event that is not yet shown to the "
    "frame that shows new plans."
)


def page(results: Sequence[Result], command: str) -> str:
    """A section per part."""
    text = head(TITLE, TEXT, results, command, budget=False)
    for result in measured(results):
        text += "".join(SECTIONS[result.cell.method](result.figures))
    return text


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}


def _drag(found: dict[str, Any]) -> Iterator[str]:
    yield f"\n## A drag\n\n{found['drags']} drags of {found['moves']} moves in {found['seconds']:.1f} s: "
    yield f"{found['requests']:.0f} requests and {found['repaints']:.0f} repaints in each, on average.\n"
    rows = [
        ["from the event to the frame", *(number(found["paint"][key], 1) for key in ("p50", "p95"))],
        ["the server alone, same questions", *(number(found["server"][key], 1) for key in ("p50", "p95"))],
    ]
    yield table(["", "p50, ms", "p95, ms"], rows)


def _first(found: dict[str, Any]) -> Iterator[str]:
    yield f"\n## The first plans\n\nFrom opening a link, {found['openings']} times: "
    yield f"p50 {found['first']['p50']:,.0f} ms, p95 {found['first']['p95']:,.0f} ms.\n"


def _size(found: dict[str, Any]) -> Iterator[str]:
    yield "\n## What is loaded\n"
    rows = [[name, f"{whole:,}", f"{small:,}"] for name, (whole, small) in found["files"].items()]
    at_once = [pair for name, pair in found["files"].items() if name.startswith(("explorer.", "index."))]
    totals = [f"{sum(pair[i] for pair in at_once):,}" for i in (0, 1)]
    yield table(["file", "bytes", "gzip"], [*rows, ["before the first plans", *totals]])
    yield "\n`later.js` follows when the plans are there; another language's words come where it is spoken.\n"


SECTIONS = {"drag": _drag, "first": _first, "size": _size}
