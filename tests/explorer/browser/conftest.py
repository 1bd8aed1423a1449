"""One real server for all browser tests, and one browser for each file of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from conftest import small_surrogate
from dicoflex.cli.explore_command import german
from explorer.browser.running import Running, explored
from explorer.browser.sight import Sight

# The browser itself stays silent: no request of its own leaves the machine.
SILENT = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
REMEDY = "the browser tests need Chromium: install Debian's package `chromium`, or set CHROMIUM to its path"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def chromium() -> str:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(REMEDY)
    return found


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small model of the German table, people that it was not learned from, and what things are called."""
    folder = tmp_path_factory.mktemp("german")
    with small_surrogate(steps=600):
        model, people, texts = german(seconds=None)
    model.save(folder / "german.dicoflex")
    people.to_csv(folder / "people.csv", index_label="person")
    (folder / "texts.json").write_text(texts.model_dump_json(), encoding="utf-8")
    return {"model": folder / "german.dicoflex", "people": folder / "people.csv", "texts": folder / "texts.json"}


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    """The server of all tests; EXPLORER names one that runs already, to save the fit while a test is written."""
    if url := os.environ.get("EXPLORER"):
        yield Running(url, None, Path(os.devnull))
        return
    with explored(request.getfixturevalue("files")) as running:
        yield running


# A browser for each file, not for all: its event loop would stand in the way of tests that run their own.
@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright, chromium: str) -> Iterator[Browser]:
    started = playwright.chromium.launch(executable_path=chromium, args=SILENT)
    yield started
    started.close()


@pytest.fixture
def sight(browser: Browser, server: Running) -> Iterator[Callable[..., Sight]]:
    """Opens the page in a context of its own: `sight(path, width=…, **context)`."""
    opened: list[Sight] = []

    def see(link: str = "", *, width: int = 1280, height: int = 900, url: str | None = None, **context: Any) -> Sight:
        settings = {"viewport": {"width": width, "height": height}, "locale": "en-GB", **context}
        found = Sight(browser.new_context(**settings), url or server.url)
        opened.append(found)
        found.open(link)
        return found

    yield see
    for one in opened:
        one.context.close()
