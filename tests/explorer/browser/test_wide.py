"""A thousand features: the page stays quick and small. The answers are made here; the engine is not what is tried."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Route

from explorer.browser.sight import Sight

COUNT = 1000
NAMES = [f"f{i}" for i in range(COUNT)]
MODEL: dict[str, Any] = {
    "v": 1, "name": "wide", "lead": "", "fingerprint": "0" * 64, "classes": ["no", "yes"], "texts": ["no", "yes"],
    "wanted": "yes", "people": {"count": 1, "word": "person"}, "exponents": {"least": 0.01, "most": 2.0, "usual": 2.0},
    "confidence": {"yes": {"lowest": 0.5, "usual": 0.6, "highest": 0.9}}, "has_confidence": True, "agreement": None,
    "rows": 10, "own": {"constraints": {}, "sentences": [], "limits": []}, "most_plans": 12,
    "features": [
        {
            "name": name, "text": f"feature number {i}", "kind": "number", "integer": True, "decimals": 0, "minimum": 0,
            "maximum": 100, "step": 1, "unit": "", "help": "", "group": "", "missing": False, "levels": [],
            "locked": None, "limits": [], "scale": "linear",
            "marginal": {"edges": list(range(0, 104, 4)), "counts": [(7 * k) % 11 for k in range(25)]},
        }
        for i, name in enumerate(NAMES)
    ],
}  # fmt: skip
VALUES = dict.fromkeys(NAMES, 50)


def plan(i: int, frozen: set[str]) -> dict[str, Any]:
    names = [name for name in (NAMES[-1 - i], NAMES[10 + i]) if name not in frozen] or [NAMES[500 + i]]
    changes = [
        {"feature": name, "before": 50, "after": 60, "before_text": "50", "after_text": "60", "direction": "up",
         "then": False, "small": 0.1} for name in names
    ]  # fmt: skip
    told = [{"verb": "raise", "feature": name, "text": name, "before": "50", "after": "60"} for name in names]
    return {
        "key": f"{i} {names}", "values": {**VALUES, **dict.fromkeys(names, 60)}, "changes": changes, "sentence": told,
        "probability": 0.7, "percent": "70 %", "plausibility": 0.5, "plausibility_words": "", "way": i, "cost": None,
        "text": "",
    }  # fmt: skip


def answer(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    now = {"result": "no", "result_text": "no", "probability": 0.4, "percent": "40 %"}
    one = {"id": "1", "label": "1", "about": [], **now}
    frozen = set(body.get("constraints", {}).get("frozen", []))
    if kind == "score":
        wanted = body.get("features") or NAMES
        strip = [{"value": k, "text": str(k), "probability": k / 100} for k in range(0, 101, 5)]
        return {"seq": body["seq"], "strips": dict.fromkeys(wanted, strip), **now}
    return {
        "model": MODEL,
        "people": {"total": 1, "lacking": 1, "people": [one], "near": [one], "offered": ["1"]},
        "person": {"id": "1", "label": "1", "values": VALUES, "texts": {}, "result": "no", "probabilities": {}},
        "settle": {"seq": 0, "verdicts": {}, "without": [], "curve": []},
        "ask": {
            "seq": body.get("seq"), "now": now, "target": "yes", "needed": 0.6, "needed_percent": "60 %",
            "status": "found", "found": 40, "asked": 4, "plans": [plan(i, frozen) for i in range(4)], "pressure": [],
            "reach": {}, "closed": [], "shortfall": None, "certified": None, "search": None,
            "p": 0.01,
        },
    }[kind]  # fmt: skip


@pytest.fixture
def wide(sight: Callable[..., Sight]) -> Sight:
    seen = sight()

    def told(route: Route) -> None:
        kind = route.request.url.rsplit("/", 1)[1]
        route.fulfill(json=answer(kind, json.loads(route.request.post_data or "{}")))

    seen.page.route("**/api/*", told)
    seen.page.reload()
    seen.offered()
    return seen


def test_a_thousand_features(wide: Sight) -> None:
    """Check 21."""
    page = wide.page
    assert len(wide.page.locator("th.plan").all()) == 4
    nodes = "document.querySelectorAll('*').length"
    assert page.evaluate(nodes) < 6000
    assert wide.row(NAMES[-1]).count() == 1  # changed, and so among the first
    page.get_by_label("Sort").select_option("file")
    box = page.locator(".grid")
    for _ in range(3):
        box.evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
        page.wait_for_timeout(150)
    wide.row(NAMES[-1]).wait_for()
    assert page.evaluate(nodes) < 6000
    box.evaluate("(box) => box.scrollTo(0, 0)")
    wide.row(NAMES[0]).wait_for()
    page.get_by_label("Search rows").fill(f"number {COUNT - 1}")
    wide.row(NAMES[-1]).wait_for()
    assert page.locator("tr[data-feature]").count() == 1
    wide.lock(NAMES[-1]).click()
    wide.settle()
    assert wide.asked()[-1]["constraints"]["frozen"] == [NAMES[-1]]
    assert page.locator("td.plan .change").count() == 0
    assert wide.errors == []
    strips = [len(body.get("features", NAMES)) for body in wide.asked("score")]
    assert max(strips) <= 120
