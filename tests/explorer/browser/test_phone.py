"""On a phone: nothing scrolls sideways, targets are large enough, and limits are set by touch."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Playwright

from explorer.browser.sight import REFUSED, Sight

SMALL = """() => [...document.querySelectorAll("button, select, input:not([type=range]), summary")]
  .filter((one) => one.checkVisibility() && !one.closest(".hidden"))
  .map((one) => [one, one.matches("[type=checkbox], [type=radio]") ? one.closest("label") ?? one : one])
  .map(([one, target]) => [one.outerHTML.slice(0, 90), target.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && (box.width < 24 || box.height < 24))
  .map(([text, box]) => `${text} ${box.width}x${box.height}`)"""
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_a_phone(sight: Callable[..., Sight], playwright: Playwright) -> None:
    """Check 25."""
    phone = {**playwright.devices["iPhone 13"]}
    phone.pop("default_browser_type")
    seen = sight(f"#v=1&person={REFUSED}&most=3&seed=0", viewport=phone.pop("viewport"), **phone)
    seen.settle()
    page = seen.page
    assert page.locator(".card").count() >= 2
    assert page.evaluate(SIDEWAYS) <= 0
    assert page.evaluate(SMALL) == []
    page.get_by_role("button", name="Change my limits").tap()
    sheet = page.locator("dialog[open]")
    sheet.wait_for()
    assert page.evaluate(SMALL) == []
    assert sheet.evaluate("(sheet) => sheet.scrollWidth - sheet.clientWidth") <= 0
    row = sheet.locator('[data-feature="credit_amount"]')
    row.evaluate("(row) => row.scrollIntoView({block: 'center'})")
    page.wait_for_timeout(400)  # rows take their height when they come into sight
    thumb = row.locator("input.thumb.high")
    box = thumb.bounding_box()
    assert box is not None
    assert box["height"] >= 24
    # Touch moves the thumb where it is put.
    client = seen.context.new_cdp_session(page)
    x, y = box["x"] + box["width"] - 12, box["y"] + box["height"] / 2
    client.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for i in range(1, 9):
        point = {"x": x - i * box["width"] * 0.06, "y": y}
        client.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_function("() => location.hash.includes('range.credit_amount=..')")
    count = sheet.locator(".count")
    top = count.bounding_box()
    assert top is not None
    assert 0 <= top["y"] < 200  # still in sight, though the sheet is scrolled
    assert count.inner_text()
    page.get_by_role("button", name="Close").tap()
    sheet.wait_for(state="detached")
    seen.settle()
    assert page.evaluate(SIDEWAYS) <= 0
    assert seen.errors == []


def test_what_i_cant_change_is_locked_from_the_card(sight: Callable[..., Sight]) -> None:
    """The path of a refused person: three taps from a plan that asks too much to one that does not."""
    seen = sight(f"#v=1&person={REFUSED}&most=3&seed=0", width=360, height=780)
    seen.settle()
    card = seen.page.locator(".card").first
    feature = card.locator("[data-feature]").first.get_attribute("data-feature")
    card.get_by_role("button", name="I can’t change this").first.click()
    seen.settle()
    changed = seen.page.eval_on_selector_all(".card [data-feature]", "rows => rows.map((row) => row.dataset.feature)")
    assert feature not in changed
    assert f"freeze={feature}" in seen.hash
    seen.page.locator(".card .star").first.click()
    seen.page.locator(".card").first.get_by_role("button", name="Receipt").click()
    paper = seen.page.locator("dialog .paper").inner_text()
    assert "It is not a promise, unless whoever decides makes it one." in paper
    assert "stays as it is" in paper
