"""By hand: the same percentage as a plan, pins, and refusals of one change."""

from __future__ import annotations

from collections.abc import Callable

from explorer.browser.sight import Sight


def test_a_plan_by_hand_has_the_plan_s_percentage(sight: Callable[..., Sight]) -> None:
    """Check 14; and a value outside a limit is marked and kept."""
    seen = sight()
    seen.offered()
    plan = seen.plans()[1]
    seen.page.get_by_role("button", name="Try by hand: plan B").click()
    seen.page.wait_for_timeout(600)
    by_hand = seen.page.locator("thead th.by-hand .sure").inner_text()
    assert abs(seen.percent(by_hand) - seen.percent(plan.percent)) <= 1
    assert (
        seen.page.locator("thead th.by-hand")
        .inner_text()
        .endswith(f"{len(plan.changes)} change" + ("s" if len(plan.changes) > 1 else ""))
    )
    seen.unfold("duration_in_month").locator("input.end").nth(1).fill("30")
    seen.page.keyboard.press("Enter")
    hand = seen.row("duration_in_month").locator(".hand-value")
    hand.fill("45")
    seen.page.wait_for_timeout(500)
    assert hand.input_value() == "45"
    told = seen.row("duration_in_month").locator("td.by-hand .problem")
    assert "45 is above your limit of 30. Keep it, or move the limit?" in told.inner_text()
    told.get_by_role("button", name="Move the limit").click()
    assert seen.row("duration_in_month").locator("input.end").nth(1).input_value() == "45"
    assert told.count() == 0


def test_a_pinned_value_is_in_every_plan(sight: Callable[..., Sight]) -> None:
    """Check 15: "I could do 9 months; what else?"."""
    seen = sight("#v=1&person=113&most=any&seed=0")
    seen.settle()
    now = seen.row("duration_in_month").locator("td.now-value").inner_text()
    wanted = "9" if now != "9" else "10"
    seen.row("duration_in_month").locator(".hand-value").fill(wanted)
    seen.page.get_by_role("button", name="Finish it for me").click()
    seen.settle()
    plans = seen.plans()
    assert plans
    assert {plan.changes.get("duration_in_month") for plan in plans} == {wanted}
    assert seen.asked()[-1]["pinned"] == {"duration_in_month": int(wanted)}
    assert f"pin.duration_in_month={wanted}" in seen.hash


def test_enter_pins_what_was_typed(sight: Callable[..., Sight]) -> None:
    seen = sight("#v=1&person=113&most=any&seed=0")
    seen.settle()
    hand = seen.row("credit_amount").locator(".hand-value")
    hand.fill("1500")
    hand.press("Enter")
    seen.settle()
    pin = seen.row("credit_amount").locator("button.pin")
    assert pin.get_attribute("aria-pressed") == "true"
    assert {plan.changes.get("credit_amount") for plan in seen.plans()} == {"1,500"}


def test_not_this_is_in_no_plan_and_undo_brings_it_back(sight: Callable[..., Sight]) -> None:
    """Check 16."""
    seen = sight("#v=1&person=113&most=3&seed=0")
    seen.settle()
    before = {plan.key: plan.changes for plan in seen.plans()}
    feature, value = next(iter(seen.plans()[0].changes.items()))
    seen.row(feature).get_by_role("button", name="Not this").first.click()
    seen.settle()
    after = {plan.key: plan.changes for plan in seen.plans()}
    assert after
    assert all(changes.get(feature) != value for changes in after.values())
    others = {key for key, changes in before.items() if changes.get(feature) != value}
    assert not others or len(others & set(after)) >= len(others) // 2
    assert seen.asked()[-1]["refused"][0]["feature"] == feature
    seen.page.locator(".handle").first.click()  # it is a limit like others, and says what it costs
    limit = f"{seen.row(feature).locator('.name').inner_text()}: not {value}"
    seen.page.locator(".drawer th", has_text=limit).wait_for()
    seen.page.get_by_role("button", name="Undo").click()
    seen.settle()
    assert {plan.key for plan in seen.plans()} == set(before)
