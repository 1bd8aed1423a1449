"""Without a model, the explorer learns one of the table that ships."""

from __future__ import annotations

import pytest

from dicoflex.cli.explore_command import german
from dicoflex.explorer import Explorer
from dicoflex.learning import surrogate

pytestmark = pytest.mark.slow


def test_the_german_table_is_explored(few_steps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surrogate, "STEPS", 200)
    model, people, texts = german(seconds=0.5)
    explorer = Explorer(model, people, texts=texts)
    told = explorer.answer("model", {})
    assert (told["name"], told["wanted"], told["texts"]) == ("German credit", 0, ["granted", "refused"])
    assert told["people"] == {"count": 200, "word": "applicant"}
    assert [one["name"] for one in told["features"] if one["locked"]] == ["personal_status_sex", "foreign_worker"]
    person = explorer.answer("people", {})["offered"][0]
    found = explorer.answer("ask", {"person": person, "target": 0})
    assert found["status"] in ("found", "short", "not_found")
    assert all(plan["probability"] > 0.5 for plan in found["plans"])
