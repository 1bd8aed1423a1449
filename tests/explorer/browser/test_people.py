"""Two people at once on one server, many people under one set of limits, and values of one's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from explorer.browser.sight import REFUSED, Sight


def test_two_at_once_never_see_each_other_s_plans(sight: Callable[..., Sight]) -> None:
    """Check 29: fifty actions each, in turns."""
    both = [sight(f"#v=1&person={person}&most=3&seed=0") for person in (REFUSED, "182")]
    for seen in both:
        seen.settle()
    own = [
        seen.post("person", {"person": person})["texts"] for seen, person in zip(both, (REFUSED, "182"), strict=True)
    ]
    names = ["job", "telephone", "housing", "property", "purpose", "savings"]
    rng = np.random.default_rng(0)
    for step in range(50):
        for seen in both:
            seen.toggle(names[int(rng.integers(len(names)))])
        if step % 10 == 9:
            for seen, texts in zip(both, own, strict=True):
                seen.settle()
                assert seen.row("age").locator("td.now-value").inner_text() == texts["age"]
                for plan, sent in ((plan, seen.asked()[-1]) for plan in seen.plans()):
                    assert not set(plan.changes) & set(sent["constraints"].get("frozen", []))
                    # A change from what this one has now, to something else.
                    assert all(value != texts[name] for name, value in plan.changes.items())
    assert [{body["person"] for body in seen.asked()} for seen in both] == [{REFUSED}, {"182"}]


def test_many_people_by_group_and_a_click_to_go_there(sight: Callable[..., Sight]) -> None:
    """The data scientist's path: coverage by group, who has no way, and a look at one of them."""
    seen = sight(
        f"#v=1&person={REFUSED}&most=1&freeze=account_check_status,duration_in_month,savings,credit_history&seed=0"
    )
    seen.settle()
    seen.page.locator(".handle", has_text="Many people").click()
    drawer = seen.page.locator(".drawer")
    drawer.get_by_label("By").select_option("housing")
    drawer.get_by_role("button", name="Count", exact=True).click()
    drawer.locator("[aria-busy=false]").wait_for()
    groups = [row.split("\t") for row in drawer.locator("tbody tr").all_inner_texts()]
    assert len(groups) >= 2
    assert "people have a plan" in drawer.inner_text()
    drawer.locator("summary").click()
    someone = drawer.locator(".without button").first
    name = someone.inner_text()
    someone.click()
    seen.settle()
    assert seen.page.locator("#picker").input_value() == name
    assert seen.status.get_attribute("data-status") in ("not_found", "infeasible", "contradictory")


def test_values_of_one_s_own_stay_out_of_the_link(sight: Callable[..., Sight]) -> None:
    seen = sight()
    seen.page.get_by_role("button", name="Enter own values").click()
    seen.page.get_by_label("credit amount").fill("7777")
    seen.page.get_by_label("duration in month").fill("48")
    seen.page.get_by_label("account check status").select_option(label="< 0 DM")
    seen.page.get_by_role("button", name="Ask about these values").click()
    seen.settle()
    assert seen.asked()[-1]["values"]["credit_amount"] == 7777
    assert seen.asked()[-1]["person"] is None
    assert "7777" not in seen.hash
    seen.page.reload()
    seen.settle()
    assert seen.asked()[-1]["values"]["credit_amount"] == 7777


def test_an_officer_s_path(sight: Callable[..., Sight]) -> None:
    """File number, sentence, "I could do 9 months", "not by that", two saved, compared, and undo."""
    seen = sight()
    seen.page.locator("#picker").fill(REFUSED)
    seen.page.locator("#person-0", has_text=REFUSED).wait_for()
    seen.page.keyboard.press("Enter")
    seen.settle()
    assert "Nothing else changes." in seen.page.locator(".sentence").inner_text()
    hand = seen.row("duration_in_month").locator(".hand-value")
    hand.fill("9")
    hand.press("Enter")
    seen.settle()
    assert {plan.changes["duration_in_month"] for plan in seen.plans()} == {"9"}
    other = next(name for plan in seen.plans() for name in plan.changes if name != "duration_in_month")
    seen.row(other).get_by_role("button", name="Not this").first.click()
    seen.settle()
    assert seen.plans()
    seen.page.get_by_role("button", name="Save plan A").click()
    seen.page.locator(".handle", has_text="Saved (1)").click()
    assert "9" in seen.page.locator("table.compare").inner_text()
    seen.page.locator("h1").click()
    seen.page.keyboard.press("Control+z")
    seen.page.wait_for_function("() => !location.hash.includes('not.')")


def test_who_types_quickly_finds_whom_they_named(sight: Callable[..., Sight]) -> None:
    """Enter may come before the list does."""
    seen = sight()
    seen.page.wait_for_function("() => document.activeElement.id === 'picker'")
    seen.page.keyboard.type(REFUSED)
    seen.page.keyboard.press("Enter")
    seen.settle()
    assert f"person={REFUSED}" in seen.hash
    assert seen.plans()


def test_who_has_the_result_is_shown_others(sight: Callable[..., Sight]) -> None:
    seen = sight()
    listed = seen.post("people", {"search": "", "offset": 0, "most": 60, "order": "file"})["people"]
    happy = next(one["id"] for one in listed if one["result"] == 0)
    seen.open(f"#v=1&person={happy}&most=3&seed=0")
    seen.page.reload()
    offers = seen.page.locator(".offers .offer")
    offers.nth(2).wait_for()
    assert "refused" in offers.first.inner_text()
    offers.first.click()
    seen.settle()
    assert seen.plans()
