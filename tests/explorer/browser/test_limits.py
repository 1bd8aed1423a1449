"""Limits hold, and where nothing fits the page says why and what would help."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from explorer.browser.sight import Sight


def test_what_is_locked_never_changes(sight: Callable[..., Sight]) -> None:
    """Check 9: every feature but two is locked, in random order, and no plan ever shows a change in a locked row."""
    seen = sight("#v=1&person=113&most=any&seed=0")
    seen.settle()
    names = seen.lockable()
    order = np.random.default_rng(0).permutation(names)[:-2]
    for i, name in enumerate(order):
        seen.page.evaluate('(name) => document.querySelector(`[data-feature="${name}"] button.lock`).click()', name)
        for _ in range(3):
            plans, limits = seen.both()
            assert name in limits["locked"]
            for plan in plans:
                assert not set(plan.changes) & set(limits["locked"])
        if i % 6 == 5:
            seen.settle()
    seen.settle()
    assert {*order} <= set(seen.both()[1]["locked"])


def test_nothing_fits_and_each_relaxation_keeps_its_word(sight: Callable[..., Sight]) -> None:
    """Check 11."""
    seen = sight("#v=1&person=113&most=1&seed=0")
    seen.settle()
    names = seen.lockable()
    keep = [name for name in names if name not in seen.changed()][:3]
    for name in names:
        if name not in keep:
            seen.page.evaluate('(name) => document.querySelector(`[data-feature="${name}"] button.lock`).click()', name)
    seen.settle()
    assert seen.status.get_attribute("data-status") in ("not_found", "infeasible")
    offers = seen.page.locator(".relaxations button")
    offers.first.wait_for()
    text = seen.status.inner_text()
    # A proof says so, and so does what is none.
    proved = seen.status.get_attribute("data-status") == "infeasible"
    assert ("that is proved" in text) == proved
    assert ("That is no proof" in text) == (not proved)
    assert "Any one of these is enough:" in text
    assert "stays as it is" in text or "at most 1 change" in text
    promised = [(one.split("\n")[0], int(one.split()[-2])) for one in offers.all_inner_texts()]
    assert promised
    for i, (_, count) in enumerate(promised):
        offers.nth(i).click()
        seen.settle()
        assert seen.found >= count
        assert seen.plans()
        seen.page.get_by_role("button", name="Undo").click()
        seen.settle()
        offers.first.wait_for()


def test_a_contradiction_is_told_at_its_feature(sight: Callable[..., Sight]) -> None:
    """Check 12: only up, for a value that already is at its top."""
    seen = sight("#v=1&person=113&most=any&seed=0")
    seen.settle()
    ends = {one["name"]: one["maximum"] for one in seen.post("model", {})["features"] if one["kind"] == "number"}
    listed = seen.post("people", {"search": "", "offset": 0, "most": 60, "order": "file"})["people"]
    people = [seen.post("person", {"person": one["id"]}) for one in listed if one["result"] == 1]
    able = [(name, one["id"]) for one in people for name, top in ends.items() if one["values"][name] == top]
    feature, person = next(pair for pair in able if pair[0] != "age")
    seen.open(f"#v=1&person={person}&most=any&seed=0")
    seen.page.reload()
    seen.settle()
    seen.unfold(feature).get_by_label("Direction of").select_option("up")
    seen.settle()
    told = seen.row(feature).locator(".problem")
    assert told.count() == 1
    assert told.inner_text()


def test_fewer_than_asked_are_shown_as_they_are(sight: Callable[..., Sight]) -> None:
    """Check 13: nothing is padded."""
    seen = sight("#v=1&person=113&most=1&plans=12&seed=0")
    seen.settle()
    names = seen.lockable()
    one = max(seen.changed(), key=lambda name: sum(name in plan.changes for plan in seen.plans()))
    for name in names:
        if name != one:
            seen.page.evaluate('(name) => document.querySelector(`[data-feature="${name}"] button.lock`).click()', name)
    seen.settle()
    plans = seen.plans()
    assert 0 < len(plans) < 12
    assert len({plan.key for plan in plans}) == len(plans)
    assert seen.status.get_attribute("data-status") == "short"
    many = "plan" if len(plans) == 1 else "plans"
    assert f"{len(plans)} {many} found, 12 asked for." in seen.status.inner_text()
