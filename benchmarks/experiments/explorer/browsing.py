"""A real explorer and a real browser: the page is opened and dragged as people do, and what comes of it is timed."""

from __future__ import annotations

__all__ = ["chromium", "drag", "explored", "first_plans", "paged"]

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.experiments.serving.processes import SERVE, SOURCE
from dicoflex.errors import SettingError

# The browser itself stays silent, and shows nothing.
SILENT = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# From the first event that is not yet shown to the frame after the table took up an answer.
WATCH = """
() => {
  window.waits = [];
  let moved = null;
  document.addEventListener("input", () => { moved ??= performance.now(); }, true);
  new MutationObserver(() => {
    if (moved === null) return;
    const since = moved;
    moved = null;
    requestAnimationFrame(() => setTimeout(() => window.waits.push(performance.now() - since)));
  }).observe(document.querySelector("table.plans"), {attributes: true, attributeFilter: ["data-seq"]});
}
"""


def chromium() -> str | None:
    """Where Chromium is; None where it is not."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def explored(model: Path, people: Path) -> Iterator[str]:
    """The address of an explorer that runs as a process of its own."""
    command = [sys.executable, "-c", SERVE, "explore", str(model), str(people), "--id", "person", "--port", "0"]
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def paged() -> Iterator[Any]:
    """A window of a browser, 1,280 by 900."""
    found = chromium()
    if found is None:
        raise SettingError("the browser's part needs Chromium; install it, or set CHROMIUM to its path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=SILENT)
        yield browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        browser.close()


def first_plans(page: Any, address: str) -> float:
    """Seconds from opening a link to the first plans."""
    page.goto("about:blank")
    started = time.perf_counter()
    page.goto(address)
    page.locator("th.plan").first.wait_for()
    return time.perf_counter() - started


def drag(page: Any, feature: str, *, moves: int, seconds: float) -> dict[str, Any]:
    """Pull the upper limit of a number down to its middle and back: what was sent, and each wait in milliseconds."""
    bodies: list[str] = []
    asked = lambda request: bodies.append(request.post_data) if request.url.endswith("/api/ask") else None  # noqa: E731
    page.on("request", asked)
    page.evaluate(WATCH)
    thumb = page.locator(f'[data-feature="{feature}"] input.thumb.high')
    thumb.evaluate("(thumb) => thumb.scrollIntoView({block: 'center'})")
    box = thumb.bounding_box()
    right, y = box["x"] + box["width"] - 12, box["y"] + box["height"] / 2
    page.mouse.move(right, y)
    page.mouse.down()
    started = time.perf_counter()
    for i in range(moves):
        share = 1 - abs(1 - 2 * (i + 1) / moves)
        page.mouse.move(right - 0.6 * box["width"] * share, y)
        time.sleep(max(0.0, started + seconds * (i + 1) / moves - time.perf_counter()))
    page.mouse.up()
    taken = time.perf_counter() - started
    page.wait_for_timeout(1500)
    page.remove_listener("request", asked)
    return {"moves": moves, "seconds": taken, "bodies": bodies, "waits": page.evaluate("window.waits")}
