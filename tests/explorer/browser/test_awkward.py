"""Missing values, ordered words, many levels and hostile text, on a table made of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dicoflex.runtime.printable import printable
from dicoflex.table.schema import Schema
from dicoflex.views.words import shown
from explorer.browser.awkward import GRADES, HOSTILE, HOSTILE_LEVELS, awkward_files, awkward_rows
from explorer.browser.running import Running, explored
from explorer.browser.sight import Sight


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with explored(awkward_files(tmp_path_factory.mktemp("awkward")), "--target", "yes") as running:
        yield running


@pytest.fixture
def look(sight: Callable[..., Sight], awkward: Running) -> Callable[..., Sight]:
    def see(link: str = "", **context: Any) -> Sight:
        return sight(link, url=awkward.url, **context)

    return see


def someone(seen: Sight, suits: Callable[[dict[str, Any]], bool]) -> str:
    """Somebody who lacks the wanted result and whose values suit."""
    people = seen.post("people", {"search": "", "offset": 0, "most": 60, "order": "near"})["people"]
    for one in people:
        found = seen.post("person", {"person": one["id"]})
        if one["result"] == "no" and suits(found["values"]):
            return str(one["id"])
    raise AssertionError("nobody suits")


def test_missing_is_shown_kept_allowed_and_forbidden(look: Callable[..., Sight]) -> None:
    """Check 20, missing values."""
    seen = look()
    person = someone(seen, lambda values: values["income in €"] is None)
    seen.open(f"#v=1&person={person}&most=any&seed=0")
    seen.settle()
    row = seen.unfold("income in €")
    assert row.locator("td.now-value i").inner_text() == "missing"
    box = row.get_by_label("may become missing")
    assert box.is_checked()
    other = someone(seen, lambda values: None not in values.values())
    seen.open(f"#v=1&person={other}&most=any&seed=0")
    seen.settle()
    box = seen.unfold("income in €").get_by_label("may become missing")
    box.uncheck()
    seen.settle()
    assert seen.asked()[-1]["constraints"]["forbidden"] == {"income in €": [None]}
    assert all(plan.changes.get("income in €") != "missing" for plan in seen.plans())
    job = seen.unfold("job 'now'")
    assert job.get_by_label("job 'now' may become missing").is_checked()
    job.get_by_label("job 'now' may become missing").uncheck()
    seen.settle()
    assert None not in seen.asked()[-1]["constraints"]["allowed"]["job 'now'"]


def test_ordered_words_go_one_way(look: Callable[..., Sight]) -> None:
    """Check 20, ordinals: "only up" offers only later words."""
    seen = look()
    person = someone(seen, lambda values: values["grade"] == "school")
    seen.open(f"#v=1&person={person}&most=any&seed=0")
    seen.settle()
    row = seen.unfold("grade")
    way = row.get_by_label("Direction of grade")
    assert way.locator("option").all_inner_texts() == ["any direction", "only towards “doctor”", "only towards “none”"]
    way.select_option("up")
    seen.settle()
    assert row.get_by_label("grade: highest").last.locator("option").all_inner_texts() == GRADES[1:]
    later = GRADES[2:]
    assert all(plan.changes["grade"] in later for plan in seen.plans() if "grade" in plan.changes)
    assert seen.asked()[-1]["constraints"]["increase"] == ["grade"]


def test_numbers_read_as_in_reports(look: Callable[..., Sight]) -> None:
    """Check 20: 200 random values have the same text on the page and in Python; integers show no decimals."""
    rows = awkward_rows(320, seed=0)
    schema = Schema.infer(rows)
    rng = random.Random(0)
    values = [rng.choice([1, -1]) * 10 ** rng.uniform(-5, 9) for _ in range(190)] + [0, 0.5, 1000.5, 2.5, 12345.678]
    seen = look()
    script = """async (values) => {
      const { shown } = await import("./later.js");
      return values.map((value) => shown({ kind: "number" }, value));
    }"""
    told = seen.page.evaluate(script, values)
    feature = schema.features[0]
    assert told == [shown(value, feature) for value in values]
    person = someone(seen, lambda _: True)
    seen.open(f"#v=1&person={person}&most=any&seed=0")
    seen.settle()
    assert re.fullmatch(r"[\d,]+", seen.row("visits").locator("td.now-value").inner_text())
    assert all(re.fullmatch(r"[\d,]+", plan.changes["visits"]) for plan in seen.plans() if "visits" in plan.changes)


def test_two_hundred_levels(look: Callable[..., Sight]) -> None:
    """Check 22: search by keyboard, "only these", and to untick all is refused with a sentence."""
    seen = look()
    seen.offered()
    row = seen.row("town")
    row.locator(".many > button").focus()
    seen.page.keyboard.press("Enter")
    seen.page.keyboard.press("Tab")
    seen.page.keyboard.type("town 01")
    assert row.locator(".tick").count() == 10
    row.get_by_role("button", name="Only these").click()
    seen.settle()
    assert seen.asked()[-1]["constraints"]["allowed"]["town"] == [f"town {i:03d}" for i in range(10, 20)]
    row.get_by_role("button", name="None").click()
    assert "At least one value has to stay." in row.locator(".problem").inner_text()
    assert len(seen.asked()[-1]["constraints"]["allowed"]["town"]) == 10
    row.get_by_label("Search the values of town").fill("")
    row.get_by_role("button", name="All", exact=True).click()
    seen.settle()
    assert "town" not in seen.asked()[-1]["constraints"].get("allowed", {})


def test_hostile_text_is_text(look: Callable[..., Sight]) -> None:
    """Check 24: no script runs, everything is shown as it is written, and the layout holds at 360 pixels."""
    seen = look()
    seen.offered()
    assert printable(HOSTILE) in seen.page.locator("tr .name").all_inner_texts()
    row = seen.page.locator("tr", has=seen.page.locator(".name", has_text="onerror"))
    if row.evaluate("(row) => row.classList.contains('folded')"):
        row.locator("button.name").click()
    seen.page.wait_for_function("(row) => !row.classList.contains('folded')", arg=row.element_handle())
    seen.page.get_by_label(HOSTILE_LEVELS[0]).first.wait_for()
    assert {level[:40] for level in HOSTILE_LEVELS} <= {text[:40] for text in row.locator(".tick").all_inner_texts()}
    seen.page.get_by_label(HOSTILE_LEVELS[0]).first.uncheck()
    seen.settle()
    for width in (1280, 360):
        narrow = look(seen.page.url.removeprefix(seen.url), width=width)
        narrow.settle()
        assert narrow.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        assert narrow.page.evaluate("window.hacked") is None
        assert narrow.page.locator("img, script:not([src])").count() == 0
        assert narrow.errors == []
    assert seen.page.evaluate("window.hacked") is None
    assert HOSTILE_LEVELS[0] not in seen.asked()[-1]["constraints"]["allowed"][HOSTILE]
