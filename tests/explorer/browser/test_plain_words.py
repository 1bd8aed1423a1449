"""What the page says is so: none found is not proved, settings shown are in use, and everybody can be reached."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Route

from explorer.browser.running import Running, explored
from explorer.browser.sight import INFEASIBLE, REFUSED, Sight

LINK = f"#v=1&person={REFUSED}&most=3&seed=0"
ODD = {"job": "constructor", "telephone": "__proto__", "housing": "toString"}
"""Names that every object of a browser has besides its own."""


def altered(seen: Sight, kind: str, alter: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Have the page see other answers of a kind than the server gives."""

    def answer(route: Route) -> None:
        found = route.fetch()
        route.fulfill(response=found, body=json.dumps(alter(found.json())))

    seen.page.route(f"**/api/{kind}", answer)


def test_a_proof_is_told_from_nothing_found(sight: Callable[..., Sight]) -> None:
    """Where all rows were looked at there is none; where not, none was found, and the offers are the same."""
    seen = sight(INFEASIBLE)
    seen.settle()
    assert seen.status.get_attribute("data-status") == "infeasible"
    assert "There is no plan, and that is proved: of all" in seen.status.inner_text()
    other = sight()
    altered(
        other,
        "search",
        lambda found: {
            **found, "status": "not_found", "search": {"looked_at": 20000, "all": False, "accepted": 0},
        },
    )  # fmt: skip
    other.open(INFEASIBLE)
    other.page.reload()
    other.settle()
    text = other.status.inner_text()
    assert "None found among 20,000 of the rows that these limits allow. That is no proof: there may be one." in text
    assert "proved" not in text


def test_what_the_search_finds_is_shown(sight: Callable[..., Sight]) -> None:
    """A quick look that finds nothing is followed by a search, and its plans take the place of the sentence."""
    seen = sight()
    altered(seen, "ask", lambda found: {**found, "status": "not_found", "found": 0, "plans": [], "search": None})
    seen.open(LINK)
    seen.page.reload()
    seen.settle()
    assert seen.asked("search")
    assert seen.status.get_attribute("data-status") in ("found", "short")
    assert seen.plans()


def test_columns_may_be_called_like_what_every_object_has(sight: Callable[..., Sight]) -> None:
    seen = sight()

    def renamed(route: Route) -> None:
        sent = route.request.post_data or "{}"
        for old, new in ODD.items():
            sent = sent.replace(json.dumps(new), json.dumps(old))
        found = route.fetch(post_data=sent)
        text = found.text()
        for old, new in ODD.items():
            text = text.replace(json.dumps(old), json.dumps(new))
        route.fulfill(response=found, body=text)

    seen.page.route("**/api/*", renamed)
    seen.open(LINK)
    seen.page.reload()
    seen.settle()
    assert seen.plans()
    for name in ODD.values():
        assert seen.row(name).count() == 1
        assert "limited" not in (seen.row(name).get_attribute("class") or "")
        assert seen.lock(name).get_attribute("aria-pressed") == "false"
        seen.toggle(name)
    seen.settle()
    assert set(seen.asked()[-1]["constraints"]["frozen"]) == set(ODD.values())
    seen.page.reload()
    seen.settle()
    assert all(seen.lock(name).get_attribute("aria-pressed") == "true" for name in ODD.values())
    seen.toggle("__proto__")
    hand = seen.row("__proto__").locator("select.hand-value")
    hand.select_option(index=1 - int(hand.input_value()))
    seen.settle()
    assert "hand.__proto__" in seen.hash
    seen.page.reload()
    seen.settle()
    assert seen.row("__proto__").locator(".edited").count() == 1
    assert seen.errors == []


def test_the_slider_shows_the_exponent_in_use(sight: Callable[..., Sight]) -> None:
    seen = sight(LINK)
    seen.settle()
    slider = seen.page.locator(".wish.kind input")
    used = seen.post("ask", {"person": REFUSED, "constraints": {"max_changes": 3}, "target": 0})["p"]
    assert slider.get_attribute("aria-valuetext") == f"few big changes, chosen automatically (p {used:g})"
    assert slider.input_value() == "0"
    assert seen.page.locator(".in-use").inner_text() == "automatic"
    slider.focus()
    slider.press("End")
    seen.settle()
    assert slider.get_attribute("aria-valuetext") == f"many small ones (p {seen.asked()[-1]['p']:g})"
    seen.page.get_by_role("button", name="automatic").click()
    seen.settle()
    assert seen.asked()[-1]["p"] is None


def test_who_is_refused_is_never_shown_at_a_half(sight: Callable[..., Sight]) -> None:
    """ "Now 50 %" stood beside a refusal."""
    seen = sight()
    half = {"probability": 0.4975, "percent": "50 %"}
    altered(seen, "ask", lambda found: {**found, "now": {**found["now"], **half}})
    seen.open(LINK)
    seen.page.reload()
    seen.settle()
    said = seen.page.locator(".head .meter").inner_text()
    assert "now just under half" in said


def test_a_server_that_is_gone_leaves_nobody_else_s_values(sight: Callable[..., Sight]) -> None:
    seen = sight(LINK)
    seen.settle()
    seen.page.route("**/api/*", lambda route: route.abort())
    seen.page.get_by_role("button", name="Next applicant").click()
    seen.page.get_by_text("No answer from the server.").first.wait_for()
    assert "missing" not in seen.page.locator("table.plans").inner_text()
    assert seen.page.locator(".meter").count() == 0
    assert seen.page.locator("th.by-hand .sure").inner_text().startswith("…")
    seen.page.unroute("**/api/*")
    seen.settle()
    assert seen.status.get_attribute("data-status")


def test_not_this_by_keyboard_keeps_the_focus(sight: Callable[..., Sight]) -> None:
    seen = sight(LINK)
    seen.settle()
    button = seen.page.locator("table.plans .not-this").first
    feature = button.evaluate("(one) => one.closest('tr').dataset.feature")
    button.focus()
    seen.page.keyboard.press("Enter")
    seen.settle()
    assert seen.page.evaluate("document.activeElement.closest('tr')?.dataset.feature") == feature


def test_long_names_stay_in_their_cell_and_weak_certificates_warn(sight: Callable[..., Sight]) -> None:
    seen = sight()
    long = "averyveryverylongname" * 6

    def named(found: dict[str, Any]) -> dict[str, Any]:
        found["features"][0]["text"] = long
        return found

    altered(seen, "model", named)
    weak = {"at_least": 0.141, "percent": "14.1 %", "weak": True, "sentence": ""}
    altered(seen, "ask", lambda found: {**found, "certified": weak})
    seen.open(LINK)
    seen.page.reload()
    seen.settle()
    over = seen.page.evaluate(
        """() => [...document.querySelectorAll("tbody th[scope=row]")].map((cell) =>
          cell.querySelector(".name").getBoundingClientRect().right - cell.getBoundingClientRect().right)"""
    )
    assert max(over) <= 0
    warning = seen.page.locator(".problem.certified")
    assert "Not proven: of plans like these, only 14.1\u00a0% are certain" in warning.inner_text()


def test_plans_that_change_the_same_stand_together(sight: Callable[..., Sight]) -> None:
    seen = sight(f"#v=1&person={REFUSED}&most=2&plans=12&seed=0")
    seen.settle()
    sets = [tuple(sorted(plan.changes)) for plan in seen.plans()]
    assert len(dict.fromkeys(sets)) == sum(one != two for one, two in zip(sets, [(), *sets], strict=False))
    heads = seen.page.locator("th.plan .ways").all_inner_texts()
    firsts = [sets.index(one) for one in sets]
    for i, (head, first) in enumerate(zip(heads, firsts, strict=True)):
        assert head.startswith(f"as plan {chr(65 + first)}" if first < i else f"{len(sets[i])} change")


def test_whose_limits_were_kept_and_the_owner_s_once(sight: Callable[..., Sight]) -> None:
    seen = sight(LINK)
    seen.settle()
    owner = len(seen.post("model", {})["own"]["limits"])
    assert seen.page.locator(".kept").first.inner_text() == f"✓ your 1 limit, the owner’s {owner}"
    fold = seen.page.locator("details.owner")
    assert fold.count() == 1
    assert fold.locator("summary").inner_text() == f"The owner’s {owner} limits"
    assert not fold.locator("li").first.is_visible()
    fold.locator("summary").click()
    assert "stay as they are" in fold.inner_text()
    assert seen.page.locator(".key span").count() == 4
    assert seen.row("credit_amount").locator(".edges").is_visible()


def test_on_a_phone_the_words_follow_the_card_in_sight(sight: Callable[..., Sight]) -> None:
    seen = sight(LINK, width=360, height=780)
    seen.settle()
    page = seen.page
    assert page.locator(".words h2").inner_text() == "Plan A in words"
    button, cards = page.get_by_role("button", name="Change my limits"), page.locator(".snap")
    assert button.bounding_box()["y"] < cards.bounding_box()["y"]  # type: ignore[index]
    second = page.locator(".card").nth(1)
    name = second.locator(".choose").first.inner_text()
    cards.evaluate("(box) => box.scrollTo({ left: box.children[1].offsetLeft - 20, behavior: 'instant' })")
    page.get_by_role("heading", name=f"{name} in words").wait_for()
    room = cards.bounding_box()["height"] - second.bounding_box()["height"]  # type: ignore[index]
    assert 0 <= room <= 24


def test_many_people_with_intervals_burden_and_a_file(sight: Callable[..., Sight]) -> None:
    seen = sight(f"#v=1&person={REFUSED}&most=1&seed=0")
    seen.settle()
    seen.page.locator(".handle", has_text="Many people").click()
    drawer = seen.page.locator(".drawer")
    drawer.get_by_label("By").select_option("purpose")
    drawer.get_by_role("button", name="Count", exact=True).click()
    drawer.locator("[aria-busy=false]").wait_for()
    for row in drawer.locator("tbody tr").all():
        people = int(row.locator("td").first.inner_text())
        share = row.locator("td").nth(1).inner_text()
        assert ("too few" in share) == (people < 5)
        assert ("%" in share) == (people >= 5)
        assert (" to " in share) == (people >= 5)
    with seen.page.expect_download() as coming:
        drawer.get_by_role("button", name="Download CSV").click()
    rows = list(csv.reader(io.StringIO(Path(coming.value.path()).read_text(encoding="utf-8"))))
    assert rows[0] == ["group", "people", "with_plan", "share", "low", "high", "mean_changes"]
    assert all(not row[3] for row in rows[1 : rows.index([])] if int(row[1]) < 5)


def test_words_come_from_the_texts_and_from_the_language(sight: Callable[..., Sight]) -> None:
    seen = sight(f"?lang=de{INFEASIBLE}")
    seen.settle()
    text = seen.page.locator("main").inner_text()
    assert "Es gibt keinen Plan, und das ist bewiesen" in text
    assert not any(word in text for word in ("stays as it is", "rules out", "let ", "can't", "tightest"))
    other = sight()
    altered(other, "model", lambda found: {**found, "decider": "the clinic"})
    other.open(LINK)
    other.page.reload()
    other.settle()
    other.page.get_by_role("button", name="Receipt").first.click()
    assert "unless the clinic makes it one" in other.page.locator(".dialog .paper").inner_text()


def test_what_the_engine_refuses_is_told_in_the_page_s_language(sight: Callable[..., Sight]) -> None:
    """Refusals of the engine stood on the German page in English."""
    seen = sight()
    problem = {"status": 422, "code": "invalid-request", "detail": "nothing may change", "feature": None}
    seen.page.route("**/api/ask", lambda route: route.fulfill(status=422, json=problem))
    seen.open(f"?lang=de{LINK}")
    seen.page.reload()
    seen.page.locator(".line.problem").wait_for()
    assert seen.page.locator(".line.problem").inner_text() == "Das lässt sich so nicht fragen."


# -- more people than a list shows at once ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    files = request.getfixturevalue("files")
    folder = tmp_path_factory.mktemp("crowd")
    people = pd.read_csv(files["people"])
    whole = pd.concat([people, people], ignore_index=True).head(260).assign(person=lambda rows: rows.index + 1)
    whole.to_csv(folder / "people.csv", index=False)
    with explored({**files, "people": folder / "people.csv"}) as running:
        yield running


def test_everybody_can_be_found_and_reached(sight: Callable[..., Sight], crowd: Running) -> None:
    seen = sight(url=crowd.url)
    offers = seen.page.locator(".nobody .offer:not(.plain)")
    offers.nth(2).wait_for()
    assert all("refused" in text for text in offers.all_inner_texts())
    listed = seen.page.locator("table.listed tbody tr")
    listed.first.wait_for()
    assert "260 in the file" in seen.page.locator(".everyone").inner_text()
    before = listed.count()
    seen.page.get_by_role("button", name="Show more").click()
    seen.page.wait_for_function("(n) => document.querySelectorAll('table.listed tbody tr').length > n", arg=before)
    seen.page.get_by_label("Search by name or value").fill("259")
    seen.page.locator("table.listed").get_by_role("button", name="259", exact=True).wait_for()
    seen.page.locator("#picker").click()
    assert "60 more: type to find them." in seen.page.locator("#people").inner_text()
    seen.page.keyboard.press("Escape")
    seen.open("#v=1&person=251&most=3&seed=0")
    seen.page.reload()
    seen.page.locator("section.status[data-stage=settled]").wait_for()
    seen.page.get_by_role("button", name="Next applicant").click()
    seen.page.wait_for_function("() => location.hash.includes('person=252')")
    seen.page.get_by_role("button", name="Previous applicant").click()
    seen.page.wait_for_function("() => location.hash.includes('person=251')")
