"""Everything with the keyboard alone, and what a screen reader is told."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from explorer.browser.sight import REFUSED, Sight

LINK = f"#v=1&person={REFUSED}&sure=0.6&freeze=purpose&range.credit_amount=500..6000&up=duration_in_month"
STORED = Path(__file__).with_name("tree.yaml")
RING = """() => {
  const seen = document.activeElement;
  if (seen.matches("input[type=range].thumb")) return seen.matches(":focus-visible") ? "ring on the thumb" : "";
  const { outlineStyle, outlineWidth } = getComputedStyle(seen);
  return outlineStyle !== "none" ? outlineWidth : "";
}"""


class Hands:
    """A keyboard, and nothing else."""

    def __init__(self, seen: Sight) -> None:
        self.seen, self.stops = seen, 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.seen.page.keyboard.press(key)

    def to(self, name: str, *, most: int = 400, back: bool = False) -> None:
        """Go on with Tab until something of that name has the focus; every stop on the way shows it."""
        for _ in range(most):
            self.press("Shift+Tab" if back else "Tab")
            found = self.seen.page.evaluate(
                "() => [document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || '',"
                " document.activeElement === document.body]"
            )
            if found[1]:
                continue
            self.stops += 1
            assert self.seen.page.evaluate(RING), f"no ring at {found[0]!r}"
            if re.search(name, found[0]):
                return
        raise AssertionError(f"{name!r} was not reached with Tab")


def test_a_whole_question_without_a_mouse(sight: Callable[..., Sight]) -> None:
    """Check 4: person, two locks, a range, the number of changes, a relaxation, a plan saved, the receipt."""
    seen = sight()
    keys = Hands(seen)
    page = seen.page
    page.wait_for_function("() => document.activeElement.id === 'picker'")
    person = page.locator(".nobody .offer strong").first.inner_text()
    page.keyboard.type(person)
    page.locator("#person-0", has_text=person).wait_for()
    keys.press("Enter")
    seen.settle()
    assert f"person={person}" in seen.hash

    locked = []
    for _ in range(2):
        keys.to("stays as it is$")
        locked.append(page.evaluate("document.activeElement.closest('tr').dataset.feature"))
        keys.press("Space")
        assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    seen.settle()
    assert not set(locked) & set(seen.changed())

    keys.to("credit amount: highest")
    keys.press("ArrowLeft", "ArrowLeft", "PageDown")
    seen.settle()
    assert re.search(r"range\.credit_amount=\.\.\d+", seen.hash)

    keys.to("At most so many changes", back=True)
    keys.press("Control+A")
    page.keyboard.type("1")
    keys.press("Enter")
    seen.settle()
    assert "most=1" in seen.hash

    for _ in range(12):  # lock what is still changed until nothing fits
        if seen.status.get_attribute("data-status") in ("not_found", "infeasible"):
            break
        keys.to(f"{re.escape(text_of(seen, seen.changed()[0]))} stays as it is$")
        keys.press("Space")
        seen.settle()
    page.locator(".relaxations button").first.wait_for()
    keys.to(r"\d+ plans?$", back=True)
    keys.press("Enter")
    seen.settle()
    assert seen.plans()

    keys.to("Save plan A")
    keys.press("Space")
    assert page.get_by_role("button", name="Saved (1)").count()
    keys.to("^Receipt", back=True)
    keys.press("Enter")
    page.locator("dialog[open]").wait_for()
    page.get_by_role("button", name="Download JSON").wait_for()
    keys.press("Escape")
    page.locator("dialog[open]").wait_for(state="detached")
    assert keys.stops > 40
    assert seen.errors == []


def text_of(seen: Sight, feature: str) -> str:
    return seen.row(feature).locator(".name").inner_text()


def test_single_keys_work_in_the_table_and_can_be_switched_off(sight: Callable[..., Sight]) -> None:
    seen = sight()
    seen.offered()
    name = seen.changed()[0]
    seen.lock(name).focus()
    seen.page.keyboard.press("l")
    assert seen.lock(name).get_attribute("aria-pressed") == "true"
    seen.page.keyboard.press("Control+z")
    seen.page.wait_for_timeout(300)
    assert seen.lock(name).get_attribute("aria-pressed") == "false"
    seen.settle()
    first = next(plan.key for plan in seen.plans() if plan.chosen)
    seen.page.keyboard.press("]")
    assert next(plan.key for plan in seen.plans() if plan.chosen) != first
    seen.page.keyboard.press("s")
    assert seen.page.get_by_role("button", name="Saved (1)").count()
    seen.page.keyboard.press("/")
    assert seen.page.evaluate("document.activeElement.id") == "picker"
    seen.page.keyboard.press("l")  # typed, not obeyed
    assert seen.page.locator("#picker").input_value().endswith("l")
    seen.page.keyboard.press("Escape")
    seen.page.get_by_role("button", name="Help").click()
    seen.page.get_by_label("Single keys are on").uncheck()
    seen.page.keyboard.press("Escape")
    seen.lock(name).focus()
    seen.page.keyboard.press("l")
    assert seen.lock(name).get_attribute("aria-pressed") == "false"


def test_names_roles_and_values_are_in_words(sight: Callable[..., Sight]) -> None:
    """Check 5: the tree of three rows and of the wishes is as stored; `UPDATE=1` stores it anew."""
    seen = sight(LINK)
    seen.settle()
    seen.page.get_by_label("Sort").select_option("file")
    rows = [seen.row(name) for name in ("duration_in_month", "purpose", "credit_amount")]
    # Cells of plans are left out: they are about the fit, not about the page.
    tree = "\n".join(
        [seen.page.locator(".wishes").aria_snapshot()]
        + [row.locator(part).aria_snapshot() for row in rows for part in ("th", "td.control", "td.by-hand")]
    )
    if os.environ.get("UPDATE"):
        STORED.write_text(tree + "\n", encoding="utf-8")
    assert tree == STORED.read_text(encoding="utf-8").rstrip("\n")
    assert 'button "purpose stays as it is" [pressed]' in tree
    high = seen.page.get_by_role("slider", name="credit amount: highest")
    assert high.get_attribute("aria-valuetext") == "at most 6,000"


def test_the_live_region_speaks_once_things_are_calm(sight: Callable[..., Sight]) -> None:
    """Check 6: at most once a second while dragging, and one sentence at the end that is true of the table."""
    seen = sight()
    seen.offered()
    seen.page.evaluate(
        """() => {
          window.spoken = [];
          const live = document.getElementById("live");
          new MutationObserver(() => window.spoken.push([performance.now(), live.textContent]))
            .observe(live, {childList: true, characterData: true, subtree: true});
        }"""
    )
    thumb = seen.row("credit_amount").locator("input.thumb.high")
    thumb.focus()
    for _ in range(40):
        seen.page.keyboard.press("ArrowLeft")
        seen.page.wait_for_timeout(40)
    seen.settle()
    seen.page.wait_for_timeout(1300)
    spoken = seen.page.evaluate("window.spoken")
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(spoken)]
    assert all(gap > 900 for gap in gaps), gaps
    said = seen.page.locator("#live").inner_text()
    chosen = next(plan for plan in seen.plans() if plan.chosen)
    assert str(seen.found) in said
    assert chosen.percent.removesuffix(" sure") in said
    assert all(value in said for value in chosen.changes.values())
