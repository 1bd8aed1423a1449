"""No violation of accessibility rules, in five states, light and dark, wide and narrow; and in forced colours."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from explorer.browser.sight import INFEASIBLE, Sight

AXE = Path(__file__).resolve().parents[3] / "front" / "node_modules" / "axe-core" / "axe.min.js"
TELLS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        say = "axe-core is not installed: `make ui` installs it where Node is present"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(say)
    return AXE.read_text(encoding="utf-8")


def violations(seen: Sight, axe: str) -> list[str]:
    seen.page.evaluate(axe)  # what devtools evaluate is not bound by the page's policy
    found: list[str] = seen.page.evaluate(TELLS)
    return found


def open_more(seen: Sight) -> None:
    if is_narrow(seen):
        seen.page.get_by_role("button", name="Change my limits").click()
    seen.page.locator(".wishes button[aria-controls=more]").click()
    seen.page.locator("#more").wait_for()


def is_narrow(seen: Sight) -> bool:
    return seen.page.viewport_size["width"] < 700


def open_drawer(seen: Sight) -> None:
    seen.page.keyboard.press("Escape")
    seen.page.locator(".handle").nth(0).click()
    seen.page.locator(".drawer").wait_for()


def make_infeasible(seen: Sight) -> None:
    seen.open(INFEASIBLE)
    seen.settle()
    seen.page.locator(".relaxations button").first.wait_for()


def go_offline(seen: Sight) -> None:
    seen.context.set_offline(True)
    if is_narrow(seen):
        seen.page.locator(".relaxations button").first.click()
    else:
        seen.page.get_by_role("button", name="Fewer plans").click()
    seen.page.locator(".status .gone").wait_for()


STATES: dict[str, Callable[[Sight], Any]] = {
    "start": lambda _: None,
    "more": open_more,
    "drawer": open_drawer,
    "infeasible": make_infeasible,
    "offline": go_offline,
}


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation(sight: Callable[..., Sight], axe: str, scheme: str, width: int) -> None:
    """Check 3. The states follow each other on one page, as they do for people."""
    seen = sight(width=width, color_scheme=scheme, reduced_motion="reduce")
    assert violations(seen, axe) == []
    seen.offered()
    for name, reach in STATES.items():
        reach(seen)
        assert violations(seen, axe) == [], name


@pytest.mark.parametrize("dialog", ["share", "help", "receipt", "limits"])
def test_no_violation_in_dialogs(sight: Callable[..., Sight], axe: str, dialog: str) -> None:
    seen = sight(width=360 if dialog == "limits" else 1280, reduced_motion="reduce")
    seen.offered()
    opener = {"share": "Share", "help": "Help", "receipt": "Receipt", "limits": "Change my limits"}[dialog]
    seen.page.get_by_role("button", name=opener, exact=True).first.click()
    seen.page.locator("dialog[open]").wait_for()
    seen.page.wait_for_timeout(300)
    assert violations(seen, axe) == []


def test_forced_colours_and_print(sight: Callable[..., Sight], axe: str) -> None:
    """Check 26: contrast holds with forced colours; print shows words and hides controls."""
    seen = sight(forced_colors="active", reduced_motion="reduce")
    seen.offered()
    assert violations(seen, axe) == []
    seen.page.emulate_media(media="print")
    assert not seen.page.locator(".wishes").is_visible()
    assert not seen.page.locator("table.plans").is_visible()
    paper = seen.page.locator(".only-print")
    assert paper.is_visible()
    assert "fingerprint" in paper.inner_text()
    assert "at most 3 changes" in paper.inner_text()
