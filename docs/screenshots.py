"""Take the documentation's pictures of the explorer anew, from a real server and a real browser.

    python docs/screenshots.py          needs the extras `serve` and `fit`, playwright and Chromium

The server is `dicoflex explore` on the table that ships, so that everybody's pictures are about the same people.
"""

from __future__ import annotations

__all__ = ["PICTURES", "main"]

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).resolve().parent / "images"
EXPLORE = "import sys; from dicoflex.cli import main; sys.exit(main(['explore', '--port', '0']))"
SILENT = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PERSON = "113"
LOCKED = "freeze=purpose,housing,personal_status_sex,property,job,telephone,present_emp_since,present_res_since"


class Picture(NamedTuple):
    """A picture: its width and height, light or dark, the link, and what is done before it is taken."""

    width: int
    height: int
    scheme: str
    link: str
    act: Callable[[Page], Any] = lambda _: None


def _by_hand(page: Page) -> None:
    page.locator('[data-feature="duration_in_month"] .hand-value').fill("9")
    page.get_by_role("button", name="Finish it for me").click()
    page.locator(".grid").evaluate("(grid) => { grid.scrollTo(0, 0); scrollTo(0, 0); }")


def _open_costs(page: Page) -> None:
    page.locator(".handle").first.click()
    page.locator(".drawer").scroll_into_view_if_needed()


def _scroll_to_cards(page: Page) -> None:
    page.locator(".cards").evaluate("(cards) => cards.scrollIntoView({block: 'end'})")


START = f"#v=1&person={PERSON}&most=3&seed=0"
PICTURES = {
    "explorer": Picture(1280, 900, "light", START),
    "explorer-dark": Picture(1280, 900, "dark", START, _by_hand),
    "explorer-wide": Picture(1920, 1080, "light", START),
    "explorer-tablet": Picture(768, 1024, "light", START),
    "explorer-phone": Picture(360, 780, "light", START, _scroll_to_cards),
    "explorer-nothing-fits": Picture(1280, 700, "light", f"#v=1&person={PERSON}&most=1&{LOCKED}&sure=0.9&seed=0"),
    "explorer-costs": Picture(1280, 900, "light", f"#v=1&person={PERSON}&most=2&{LOCKED}&seed=0", _open_costs),
}


def main() -> None:
    """Write every picture, or those named on the command line."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise SystemExit("pictures need Chromium; install it, or set CHROMIUM to its path")
    with _explored() as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=SILENT)
        for name in sys.argv[1:] or PICTURES:
            _take(browser, address, name, PICTURES[name])
        browser.close()


@contextmanager
def _explored() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", EXPLORE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60)


def _take(browser: Browser, address: str, name: str, picture: Picture) -> None:
    size = {"width": picture.width, "height": picture.height}
    context = browser.new_context(viewport=size, color_scheme=picture.scheme, locale="en-GB", reduced_motion="reduce")
    page = context.new_page()
    page.goto(address + picture.link)
    _settle(page)
    picture.act(page)
    _settle(page)
    page.screenshot(path=IMAGES / f"{name}.png")
    print(f"{name}.png", flush=True)
    context.close()


def _settle(page: Page) -> None:
    """Wait until what is shown is checked, and nothing moves."""
    page.wait_for_timeout(500)
    page.locator(".status[data-stage=settled]").wait_for()
    page.wait_for_timeout(500)


if __name__ == "__main__":
    main()
