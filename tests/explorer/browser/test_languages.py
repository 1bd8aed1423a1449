"""The page speaks other languages: nothing of its own stays English, and numbers follow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from explorer.browser.sight import REFUSED, Sight

TEXTS = Path(__file__).resolve().parents[3] / "front" / "texts"
ENGLISH = {
    key: text
    for name in ("en.json", "en-later.json")
    for key, text in json.loads((TEXTS / name).read_text(encoding="utf-8")).items()
}
LINK = f"#v=1&person={REFUSED}&most=3&range.credit_amount=500..6000&freeze=purpose&seed=0"
OWN = """() => {
  const texts = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (walk.currentNode.parentElement.checkVisibility()) texts.push(walk.currentNode.data);
  for (const one of document.querySelectorAll("[aria-label], [title], [placeholder]")) {
    for (const name of ["aria-label", "title", "placeholder"]) texts.push(one.getAttribute(name) ?? "");
  }
  return texts.map((text) => text.trim()).filter((text) => text);
}"""


def test_no_english_is_left_in_the_page_s_own_texts(sight: Callable[..., Sight]) -> None:
    """Check 27: in the pseudo-language every text of the page's own is marked."""
    seen = sight(f"?lang=zz{LINK}")
    seen.settle()
    whole = {form for text in ENGLISH.values() for form in text.split("|") if "{" not in form and len(form) > 3}
    for drawer in range(5):
        seen.page.locator(".handle").nth(drawer).click()
        seen.page.wait_for_timeout(150)
        texts = set(seen.page.evaluate(OWN))
        assert not texts & whole
    assert any("⟦" in text for text in texts)


def test_nothing_is_cut_off_when_texts_are_longer(sight: Callable[..., Sight]) -> None:
    for width in (1280, 360):
        seen = sight(f"?lang=zz{LINK}", width=width)
        seen.settle()
        cut = seen.page.evaluate(
            """() => [...document.querySelectorAll("button, h1, h2, .line, label:not(.tick)")]
              .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0
                && getComputedStyle(one).overflow !== "visible")
              .map((one) => one.outerHTML.slice(0, 100))"""
        )
        assert cut == []
        assert seen.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_german_numbers_and_words(sight: Callable[..., Sight]) -> None:
    seen = sight(LINK, locale="de-DE")
    seen.settle()
    assert "Pläne" in seen.status.inner_text()
    assert seen.page.evaluate("document.documentElement.lang") == "de"
    amount = seen.row("credit_amount")
    assert re.fullmatch(r"\d{1,3}(\.\d{3})*", amount.locator("td.now-value").inner_text())
    assert amount.get_by_role("slider").last.get_attribute("aria-valuetext") == "höchstens 6.000"
    seen.page.get_by_role("button", name="Was jede Grenze kostet").last.click()
    assert "zwischen 500 und 6.000" in seen.page.locator(".drawer").inner_text()
    seen.page.get_by_label("Sprache").select_option("en")
    seen.page.get_by_text("or more plan").first.wait_for()
    seen.page.reload()
    seen.page.get_by_text("or more plan").first.wait_for()
