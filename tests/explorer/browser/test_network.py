"""A bad line: nothing is lost, order holds, and the page goes on by itself."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.browser.running import explored
from explorer.browser.sight import REFUSED, Sight

START = f"#v=1&person={REFUSED}&most=3&seed=0"


def test_offline_in_mid_drag_and_back(sight: Callable[..., Sight]) -> None:
    """Check 23: greyed plans, a sentence, limits that can be moved, and recovery without a reload."""
    seen = sight(START)
    seen.settle()
    seen.page.evaluate("window.mark = 1")
    thumb = seen.row("credit_amount").locator("input.thumb.high")
    thumb.focus()
    seen.page.keyboard.press("ArrowLeft")
    seen.context.set_offline(True)
    for _ in range(10):
        seen.page.keyboard.press("ArrowLeft")
    told = seen.page.locator(".status .gone")
    told.wait_for()
    assert "No answer from the server. What you see is from before your last change. Retrying" in told.inner_text()
    assert seen.page.locator(".board.gone").count() == 1
    high = float(seen.row("credit_amount").locator("input.end").nth(1).input_value())
    seen.context.set_offline(False)
    seen.page.get_by_role("button", name="Try now").click()
    told.wait_for(state="detached")
    seen.settle()
    assert seen.asked()[-1]["constraints"]["ranges"]["credit_amount"][1] == high
    assert int(seen.page.locator("table.plans").get_attribute("data-seq") or 0) == seen.asked()[-1]["seq"]
    assert seen.page.evaluate("window.mark") == 1


def test_an_error_of_the_server_keeps_the_limits(sight: Callable[..., Sight]) -> None:
    seen = sight(START)
    seen.settle()
    seen.page.route("**/api/ask", lambda route: route.fulfill(status=500, json={"status": 500, "title": "broken"}))
    seen.lock("job").click()
    told = seen.page.locator(".status .gone")
    told.wait_for()
    assert "Something went wrong on our side. Your limits are kept." in told.inner_text()
    assert seen.lock("job").get_attribute("aria-pressed") == "true"
    seen.page.unroute("**/api/ask")
    seen.lock("telephone").click()
    told.wait_for(state="detached")
    assert {"job", "telephone"} <= set(seen.asked()[-1]["constraints"]["frozen"])


def test_a_refusal_stands_at_its_field(sight: Callable[..., Sight]) -> None:
    """The engine's own sentence, and plans again once it is mended."""
    seen = sight(START)
    seen.settle()
    seen.page.locator("button[aria-controls=more]").click()
    seen.page.get_by_label("A rule").fill("nothing <= 3")
    seen.page.keyboard.press("Enter")
    told = seen.page.locator(".status .problem")
    told.wait_for()
    assert "nothing" in told.inner_text()
    seen.page.get_by_role("button", name="Drop the rule nothing <= 3").click()
    seen.settle()
    assert seen.plans()


def test_a_server_that_is_killed_and_started_again(
    sight: Callable[..., Sight], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Check 23: the page waits, and goes on."""
    files = request.getfixturevalue("files")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with explored(files, port=port) as running:
        seen = sight(START, url=running.url)
        seen.settle()
        before = {plan.key for plan in seen.plans()}
    seen.lock("foreign_worker" if seen.lock("foreign_worker").count() else "job").click()
    seen.page.locator(".status .gone").wait_for()
    with explored(files, port=port):
        seen.page.locator(".status .gone").wait_for(state="detached", timeout=30_000)
        seen.settle()
        assert seen.plans()
        seen.page.get_by_role("button", name="Undo").click()
        seen.settle()
        assert {plan.key for plan in seen.plans()} == before
