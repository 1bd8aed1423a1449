"""A plan in sentences says every change with its values, what follows, and what it is not."""

from __future__ import annotations

from typing import Any

from dicoflex.views.words import NOT_A_PROMISE, joined, narrative


def change(before: str, after: str, *, then: bool = False) -> dict[str, Any]:
    return {"before": before, "after": f"then {after}" if then else after, "direction": "up", "size": 0.1, "then": then}


def answer(**more: Any) -> dict[str, Any]:
    usual = {"cf": "0", "way": None, "log_density": -1.0, "plausibility": 0.31, "likely": 0.3, "word": "3 in 10"}
    return {**usual, "probability": 0.72, "confidence": "72 %", "valid": None, **more}


def card(*answers: Any, shortfall: str = "") -> Any:
    return {"heading": "ann", "target": "granted", "answers": list(answers), "shortfall": shortfall}


def test_every_change_is_said_with_its_values_and_units() -> None:
    changes = {"age": change("30", "31"), "job": change("cook", "nurse"), "band": change("a", "b", then=True)}
    first, last = narrative(card(answer(changes=changes)), {"age": "years"}).split("\n\n")
    assert first == (
        "Row ann, counterfactual 0. If age were 31 years instead of 30 years and job nurse instead of cook, the model "
        "would answer granted with a confidence of 72 %. As a consequence, band would be b. Everything else stays as "
        "it is. Of the real rows with this result, 3 in 10 are less usual. The confidence is an estimate by the "
        "surrogate; the model itself was not asked."
    )
    assert last == NOT_A_PROMISE


def test_what_is_not_known_is_not_said() -> None:
    bare = answer(changes={"age": change("30", "missing")}, probability=None, plausibility=None, valid=True)
    text = narrative(card(bare), {"age": "years"})
    assert text.startswith(
        "Row ann, counterfactual 0. If age were missing instead of 30 years, the model would answer granted. "
        "Everything else stays as it is. The model confirmed this."
    )
    assert "refused" in narrative(card({**bare, "valid": False}), {})


def test_too_few_or_none_is_said_with_the_reason() -> None:
    assert narrative(card(shortfall="0 of 5 found: none fits"), {}) == "Row ann: 0 of 5 found: none fits."
    assert joined(["a", "b", "c"]) == "a, b and c"
