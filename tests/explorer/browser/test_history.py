"""Undo, redo, Back, reload and links: what was asked is never lost, and a link holds nobody's values."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

import numpy as np

from dicoflex import Constraints
from explorer.browser.sight import REFUSED, Sight

LINK = f"#v=1&person={REFUSED}&most=2&freeze=purpose,housing&range.credit_amount=500..6000&up=duration_in_month&seed=3"


def keys_of(seen: Sight) -> set[str]:
    return {plan.key for plan in seen.plans()}


def do_something(seen: Sight, rng: np.random.Generator) -> None:
    page = seen.page
    what = [
        lambda: page.get_by_role("button", name="More changes").click(),
        lambda: page.get_by_role("button", name="Fewer plans").click(),
        lambda: seen.lock("job").click(),
        lambda: seen.lock("telephone").click(),
        lambda: seen.unfold("duration_in_month").get_by_label("Direction of").select_option("down"),
        lambda: seen.unfold("credit_amount").get_by_label("How hard").select_option("hard"),
        lambda: page.get_by_role("button", name="Show me others").click(),
    ]
    before = seen.hash
    while seen.hash == before:
        what[int(rng.integers(len(what)))]()
        page.wait_for_timeout(330)


def test_ten_steps_and_back_again(sight: Callable[..., Sight]) -> None:
    """Check 17: ten undos lead to the start, Back is undo, and a reload in the middle loses nothing."""
    seen = sight(f"#v=1&person={REFUSED}&most=3&seed=0")
    seen.settle()
    rng = np.random.default_rng(1)
    hashes = [seen.hash]
    for _ in range(10):
        do_something(seen, rng)
        hashes.append(seen.hash)
    seen.settle()
    last = keys_of(seen)
    for expected in reversed(hashes[5:-1]):
        seen.page.get_by_role("button", name="Undo").click()
        seen.page.wait_for_function("(hash) => location.hash === '#' + hash", arg=expected)
    seen.page.reload()
    seen.settle()
    assert seen.hash == hashes[5]
    for i, expected in enumerate(reversed(hashes[:5])):
        if i % 2:
            seen.page.go_back()
        else:
            seen.page.get_by_role("button", name="Undo").click()
        seen.page.wait_for_function("(hash) => location.hash === '#' + hash", arg=expected)
    assert seen.page.get_by_role("button", name="Undo").is_disabled()
    for expected in hashes[1:]:
        seen.page.get_by_role("button", name="Redo").click()
        seen.page.wait_for_function("(hash) => location.hash === '#' + hash", arg=expected)
    seen.settle()
    assert keys_of(seen) == last


def test_one_drag_is_one_step(sight: Callable[..., Sight]) -> None:
    """From the first movement until the key is let go, a rest on the way included."""
    seen = sight(f"#v=1&person={REFUSED}&most=3&seed=0")
    seen.settle()
    start = seen.hash
    seen.row("credit_amount").locator("input.thumb.high").focus()
    for _ in range(15):
        seen.page.keyboard.down("ArrowLeft")
        seen.page.wait_for_timeout(30)
    seen.page.wait_for_timeout(600)
    seen.page.keyboard.down("ArrowLeft")
    seen.page.keyboard.up("ArrowLeft")
    seen.settle()
    assert "range.credit_amount" in seen.hash
    seen.page.keyboard.press("Control+z")
    seen.page.wait_for_function("(hash) => location.hash === '#' + hash", arg=start)


def test_the_same_question_has_the_same_plans(sight: Callable[..., Sight]) -> None:
    """Check 10: after a reload and in another context; another number of the draw gives others."""
    seen = sight(LINK)
    seen.settle()
    plans = keys_of(seen)
    assert plans
    seen.page.reload()
    seen.settle()
    assert keys_of(seen) == plans
    other = sight(LINK)
    other.settle()
    assert keys_of(other) == plans
    for _ in range(5):
        other.page.get_by_role("button", name="Show me others").click()
        other.settle()
        if keys_of(other) != plans:
            break
    assert keys_of(other) != plans


def test_a_link_opens_the_same_and_holds_no_value(sight: Callable[..., Sight]) -> None:
    """Check 18."""
    seen = sight(LINK)
    seen.settle()
    seen.page.locator("button.choose").last.click()
    seen.settle()
    chosen = next(plan for plan in seen.plans() if plan.chosen)
    seen.page.get_by_role("button", name="Share").click()
    link = seen.page.locator("dialog textarea").input_value()
    own = seen.page.eval_on_selector_all(
        "tr[data-feature] td.now-value", "cells => cells.map((cell) => cell.innerText)"
    )
    said = unquote(link.replace("+", " ")).split("#")[1].split("&")
    values = {
        part.split("=", 1)[1]
        for part in said
        if part.split("=")[0] not in ("v", "most", "seed", "person", "model", "plan")
    }
    assert not values & {text for text in own if not text.isdigit() or int(text) > 12}
    fresh = sight("#" + link.split("#")[1])
    fresh.settle()
    assert keys_of(fresh) == keys_of(seen)
    assert next(plan for plan in fresh.plans() if plan.chosen).key == chosen.key
    assert fresh.both()[1] == seen.both()[1]


def test_a_damaged_or_older_link_is_told_and_applied(sight: Callable[..., Sight]) -> None:
    """Check 18: a banner, not an error."""
    seen = sight(LINK + "&stepz=4&range.nothing=1..2&sure=lots&model=00000000")
    seen.settle()
    banner = seen.page.locator(".banner").inner_text()
    assert "This link was made with another version of the model." in banner
    assert all(part in banner for part in ("‘stepz’", "‘range.nothing’", "‘sure’"))
    assert seen.plans()
    assert "stepz=4" in seen.hash
    assert {"purpose", "housing"} <= set(seen.both()[1]["locked"])
    assert seen.errors == []


def test_limits_can_be_taken_elsewhere(sight: Callable[..., Sight]) -> None:
    """Copied as Python and as a command, they are what is asked."""
    seen = sight(LINK)
    seen.settle()
    seen.page.get_by_role("button", name="Share").click()
    seen.page.get_by_label("Python").check()
    text = seen.page.locator("dialog textarea").input_value()
    made = eval(text.split("\nexplainer")[0].removeprefix("limits = "), {"Constraints": Constraints})
    assert made.model_dump() == Constraints(**seen.asked()[-1]["constraints"]).model_dump()
    seen.page.get_by_label("Command line").check()
    command = seen.page.locator("dialog textarea").input_value()
    for part in (
        "--freeze purpose,housing",
        "--range credit_amount=500:6000",
        "--increase duration_in_month",
        "--max-changes 2",
    ):
        assert part in command
