"""The explorer in a cell of JupyterLab, driven in Chromium, with the same kernel asked from outside."""

from __future__ import annotations

import ast
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jupyter_client import BlockingKernelClient
from playwright.sync_api import FrameLocator, Page, sync_playwright

from explorer.browser.conftest import REMEDY, SILENT
from widget.notebook import Lab, lab_of

pytestmark = pytest.mark.slow

AXE = Path(__file__).resolve().parents[2] / "front" / "node_modules" / "axe-core" / "axe.min.js"
CODE = """\
from dicoflex import load
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(next(path for path in EXAMPLES if path.stem == "perceptron"))
rows = rows_like(explainer.schema_, 400, seed=4)
rows = rows[explainer.probability(rows)["yes"].between(0.05, 0.5)].head(20).reset_index(drop=True)
w = explainer.explore(rows, target="yes")
w"""
WITHIN = 60_000


@dataclass
class Cell:
    """The notebook in a browser, the widget's frame in it, every request made, and the kernel."""

    page: Page
    requests: list[str]
    lab: Lab
    client: BlockingKernelClient

    @property
    def frame(self) -> FrameLocator:
        """The widget's own document."""
        return self.page.frame_locator("iframe.dicoflex-explorer")

    def python(self, expression: str) -> Any:
        """What an expression is worth in the notebook's kernel."""
        reply = self.client.execute("", user_expressions={"it": f"repr({expression})"}, reply=True, timeout=30)
        found = reply["content"]["user_expressions"]["it"]
        assert found["status"] == "ok", found
        return ast.literal_eval(ast.literal_eval(found["data"]["text/plain"]))

    def run(self, code: str) -> None:
        """Run a statement in the notebook's kernel."""
        assert self.client.execute(code, reply=True, timeout=30)["content"]["status"] == "ok"

    def until(self, expression: str, holds: Callable[[Any], bool]) -> Any:
        """The value of an expression as soon as it is right."""
        end = time.monotonic() + 20
        while not holds(found := self.python(expression)) and time.monotonic() < end:
            time.sleep(0.2)
        assert holds(found), found
        return found

    def settled(self) -> None:
        """Wait until the newest question is answered and checked."""
        self.frame.locator('.status[data-stage="settled"]').wait_for(timeout=WITHIN)


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(REMEDY)
    folder = tmp_path_factory.mktemp("lab") / "own"
    with lab_of(folder, CODE) as lab, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SILENT)
        page = browser.new_page(viewport={"width": 1500, "height": 1000}, locale="en-GB")
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(lab.url)
        page.locator(".jp-CodeCell").first.click(timeout=WITHIN)
        page.get_by_text("| Idle").wait_for(timeout=WITHIN)
        page.keyboard.press("Control+Enter")
        page.frame_locator("iframe.dicoflex-explorer").locator(".page").wait_for(timeout=WITHIN)
        client = BlockingKernelClient(connection_file=str(next((folder / "runtime").glob("kernel-*.json"))))
        client.load_connection_file()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        yield Cell(page, requests, lab, client)
        client.stop_channels()
        browser.close()


def test_python_chooses_the_person_and_the_page_has_plans(cell: Cell) -> None:
    cell.run("w.person = '0'")
    cell.settled()
    assert cell.frame.locator("th.plan").count() + cell.frame.locator("thead .plan").count() > 0
    cell.until("w.request is not None", bool)
    assert cell.python("w.request.target") == "yes"


def test_a_drag_answers_and_the_request_is_what_was_set(cell: Cell) -> None:
    most = cell.frame.get_by_label("At most so many changes")
    most.fill("2")
    most.press("Enter")
    cell.settled()
    assert cell.until("w.request.constraints.max_changes", lambda most: most == 2) == 2
    slider = cell.frame.locator("tr[data-feature] input[type=range]").first
    feature = slider.locator("xpath=ancestor::tr").get_attribute("data-feature")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    cell.page.mouse.move(box["x"] + 12, y)
    cell.page.mouse.down()
    for step in range(1, 12):
        cell.page.mouse.move(box["x"] + 12 + step * box["width"] / 40, y)
    cell.page.mouse.up()
    cell.settled()
    ends = cell.until(f"w.body_of(w.request)['constraints'].get('ranges', {{}}).get({feature!r})", bool)
    assert ends[0] is not None or ends[1] is not None


def test_the_page_follows_python(cell: Cell) -> None:
    cell.run("from dicoflex import Constraints, Request")
    cell.run("w.request = Request(target='yes', n=3, constraints=Constraints(max_changes=1, frozen=['job']), seed=0)")
    cell.settled()
    assert cell.frame.locator('tr[data-feature="job"].locked').count() == 1
    assert cell.python("(w.request.n, w.request.constraints.max_changes, list(w.request.constraints.frozen))") == (
        3, 1, ["job"],
    )  # fmt: skip
    assert cell.python("w.result.frame.shape[0] <= 3")


def test_arrow_keys_stay_inside(cell: Cell) -> None:
    active = cell.page.locator(".jp-Cell.jp-mod-active")
    before = active.first.get_attribute("data-windowed-list-index")
    slider = cell.frame.locator("tr[data-feature] input[type=range]").first
    value = slider.input_value()
    slider.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowRight"):
        cell.page.keyboard.press(key)
    assert active.first.get_attribute("data-windowed-list-index") == before
    assert slider.input_value() != value
    cell.settled()


def test_the_colours_are_the_notebook_s(cell: Cell) -> None:
    def colour() -> str:
        return cell.frame.locator("body").evaluate("one => getComputedStyle(one).backgroundColor")

    light = colour()
    cell.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', `<style>* { background: #111 !important }</style>`)"
    )
    cell.page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    cell.page.wait_for_timeout(400)
    assert colour() != light


def test_axe_finds_nothing_and_nothing_was_fetched_from_elsewhere(cell: Cell) -> None:
    if not AXE.is_file():
        say = "axe-core is missing: `make ui` installs it where npm is present"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(say)
    frame = next(one for one in cell.page.frames if one.parent_frame and one.locator("#explorer").count())
    frame.evaluate(AXE.read_text(encoding="utf-8"))
    found = frame.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})")
    assert [one["id"] for one in found["violations"]] == []
    hosts = {url.split("/")[2] for url in cell.requests if url.startswith(("http", "ws"))}
    assert hosts == {cell.lab.origin.split("/")[2]}


def test_a_restarted_kernel_is_said(cell: Cell) -> None:
    cell.page.locator('[data-jp-item-name="restart"]').locator("jp-button, button").first.click()
    cell.page.locator(".jp-Dialog .jp-mod-accept").click(timeout=WITHIN)
    cell.frame.get_by_text("kernel was restarted. Run the cell again").first.wait_for(timeout=WITHIN)
