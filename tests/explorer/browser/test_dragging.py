"""Plans while a limit is dragged: one request at a time, the newest last, and never a plan outside the limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Route

from explorer.browser.sight import Sight, number

WATCH = r"""
() => {
  window.flight = {now: 0, most: 0};
  const fetched = window.fetch;
  window.fetch = async (...given) => {
    if (!/\/(ask|score)$/.test(given[0])) return fetched(...given);  // what settles is given up when something moves
    window.flight.most = Math.max(window.flight.most, ++window.flight.now);
    try { return await fetched(...given); } finally { window.flight.now -= 1; }
  };
  window.waits = [];
  let moved = null;
  document.addEventListener("input", () => { moved ??= performance.now(); }, true);
  new MutationObserver(() => {
    if (moved === null) return;
    const since = moved;
    moved = null;
    requestAnimationFrame(() => window.waits.push(performance.now() - since));
  }).observe(document.querySelector("table.plans"), {attributes: true, attributeFilter: ["data-seq"]});
}
"""


def drag(
    seen: Sight, feature: str, *, moves: int, share: float = 0.55, look: Callable[[int], Any] | None = None
) -> None:
    """Take the upper thumb and pull it down, move by move."""
    thumb = seen.row(feature).locator("input.thumb.high")
    thumb.evaluate("(thumb) => thumb.scrollIntoView({block: 'center'})")
    box = thumb.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] - 12, box["y"] + box["height"] / 2
    seen.page.mouse.move(x, y)
    seen.page.mouse.down()
    for i in range(moves):
        seen.page.mouse.move(x - share * box["width"] * (i + 1) / moves, y)
        if look:
            look(i)
    seen.page.mouse.up()


def test_one_request_at_a_time_and_the_last_painted_is_the_last_sent(sight: Callable[..., Sight]) -> None:
    """Check 7. How long it takes is for the benchmark to say."""
    seen = sight()
    seen.offered()
    seen.page.evaluate(WATCH)
    before = len(seen.asked())
    drag(seen, "credit_amount", moves=100)
    asked = seen.asked()[before:]
    # What was sent last when the button was let go of need not be the last: one more may wait for its answer.
    seen.page.wait_for_function(
        "(last) => Number(document.querySelector('table.plans').dataset.seq) >= last", arg=seen.asked()[-1]["seq"]
    )
    seen.settle()
    assert seen.page.evaluate("window.flight.most") == 1
    assert 3 <= len(asked) <= 100
    last = seen.asked()[-1]
    high = float(seen.row("credit_amount").locator("input.end").nth(1).input_value())
    assert last["constraints"]["ranges"]["credit_amount"] == [None, high]
    assert int(seen.page.locator("table.plans").get_attribute("data-seq") or 0) == last["seq"]
    waits = seen.page.evaluate("window.waits")
    assert len(waits) >= 3


def test_plans_obey_at_every_moment(sight: Callable[..., Sight]) -> None:
    """Check 8: plans and limits are read together from the page, twenty times while dragging."""
    seen = sight("#v=1&person=113&most=any&freeze=account_check_status,savings&seed=0")
    seen.settle()
    shown = 0

    def look(i: int) -> None:
        nonlocal shown
        if i % 3:
            return
        plans, limits = seen.both()
        for plan in plans:
            shown += 1
            assert not set(plan.changes) & set(limits["locked"])
            for feature, (low, high) in limits["ranges"].items():
                if feature in plan.changes:
                    assert low <= number(plan.changes[feature]) <= high

    drag(seen, "credit_amount", moves=60, share=0.9, look=look)
    drag(seen, "duration_in_month", moves=30, share=0.6, look=look)
    assert shown > 20
    seen.settle()
    seen.page.wait_for_function(
        "() => document.querySelectorAll('tfoot .kept').length > 0 || !document.querySelector('th.plan')"
    )
    assert seen.page.locator("tfoot .broken").count() == 0
    assert seen.page.locator("tfoot .kept").count() == len(seen.plans())


@pytest.mark.parametrize("latency", [300, 3000])
def test_order_is_never_reversed_on_a_slow_line(sight: Callable[..., Sight], latency: int) -> None:
    """Check 23, in part: what is shown last was asked last, and where it takes long the page says so."""
    seen = sight()
    seen.offered()

    def slowly(route: Route) -> None:
        seen.page.wait_for_timeout(latency)
        route.continue_()

    seen.page.route("**/api/ask", slowly)
    before = len(seen.asked())
    thumb = seen.row("credit_amount").locator("input.thumb.high")
    thumb.focus()
    for _ in range(20):
        seen.page.keyboard.press("ArrowLeft")
    last = float(seen.row("credit_amount").locator("input.end").nth(1).input_value())
    if latency > 1000:
        seen.page.get_by_text("This takes longer than usual").wait_for()
    seen.page.wait_for_timeout(5 * latency if latency < 1000 else latency)
    seen.settle()
    asked = seen.asked()[before:]
    assert len(asked) < (20 if latency < 1000 else 5)
    assert asked[-1]["constraints"]["ranges"]["credit_amount"][1] == last
    assert [one["seq"] for one in asked] == sorted(one["seq"] for one in asked)
    assert int(seen.page.locator("table.plans").get_attribute("data-seq") or 0) == asked[-1]["seq"]
