"""Rows that nobody touched take one line, and open when they are touched, focused or limited."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator

from explorer.browser.sight import REFUSED, Sight

LINK = f"#v=1&person={REFUSED}&most=3&range.credit_amount=500..9000&seed=0"


def is_open(row: Locator) -> bool:
    """As the row says itself, to eyes and to screen readers."""
    said = row.locator("button.name").get_attribute("aria-expanded") == "true"
    assert row.locator(".manner").is_visible() == said
    return said


def test_a_row_opens_when_it_is_wanted(sight: Callable[..., Sight]) -> None:
    seen = sight(LINK)
    seen.settle()
    amount, months, purpose = (seen.row(name) for name in ("credit_amount", "duration_in_month", "purpose"))
    assert [is_open(row) for row in (amount, months, purpose)] == [True, False, False]
    months.locator("input.thumb.low").focus()
    assert is_open(months)
    months.locator("button.name").press("Enter")
    assert not is_open(months)
    purpose.locator("td.control").click()  # opens the row, and unticks nothing
    assert is_open(purpose)
    assert purpose.locator("input[type=checkbox]:not(:checked)").count() == 0
    assert seen.asked()[-1]["constraints"].get("allowed", {}) == {}


def test_folded_rows_are_of_one_line(sight: Callable[..., Sight]) -> None:
    for width in (768, 1280, 1920):
        seen = sight(LINK, width=width)
        seen.settle()
        control = seen.page.locator("tr.folded td.control > *")
        heights = control.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().height)")
        assert len(heights) > 10
        assert max(heights) <= 54  # the picture, and the ends of its track
