"""Nothing found is not proved to be nothing: a thorough search follows, and says which of the two it is."""

from __future__ import annotations

import pytest

from dicoflex.answers import engine as quick
from dicoflex.explorer import Explorer
from dicoflex.explorer.asking import Asker
from dicoflex.explorer.messages import Asking, read
from dicoflex.explorer.receipt import check_receipt


def bodies(explorer: Explorer, people: list[str]) -> list[dict[str, object]]:
    return [
        {"person": person, "target": "yes", "n": 3, "constraints": {"max_changes": 1}, "seed": 0} for person in people
    ]


def test_what_explain_finds_the_search_finds(loans: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a quick look finds nothing, since it looks at little, the search goes on; its plans have receipts."""
    people = [one["id"] for one in loans.answer("people", {"order": "near"})["people"]][:12]
    asked = [body for body in bodies(loans, people) if loans.answer("search", body)["status"] in ("found", "short")]
    assert asked
    real = quick.pool

    def nothing(model, query, check=None):  # type: ignore[no-untyped-def]
        found = real(model, query, check)
        return quick.Pool(found.values[:0], found.probability[:0], found.reached[:0], found.plans.take(slice(0, 0)))

    monkeypatch.setattr("dicoflex.explorer.asking.pool", nothing)
    body = asked[0]
    first = loans.answer("ask", body)
    assert (first["status"], first["plans"], first["search"]) == ("not_found", [], None)
    found = loans.answer("search", body)
    assert found["status"] in ("found", "short")
    assert all(len(plan["changes"]) == 1 for plan in found["plans"])
    keys = [plan["key"] for plan in found["plans"]]
    settled = loans.answer("settle", {**body, "keys": keys})
    assert set(settled["verdicts"]) == set(keys)
    assert all(one["holds"] for one in settled["verdicts"].values())
    receipt = loans.answer("receipt", {**body, "keys": keys[:1]})["json"]
    assert check_receipt(receipt, loans.model) == 1


def test_where_the_decision_along_a_feature_is_the_wanted_one_it_is_tried_alone(loans: Explorer) -> None:
    """The strip beside "none found" is not green while the feature is free and its plan usual."""
    people = [one["id"] for one in loans.answer("people", {"order": "near"})["people"]][:12]
    body = next(one for one in bodies(loans, people) if loans.answer("search", one)["status"] in ("found", "short"))
    question = loans.question(read(Asking, body))
    asker = Asker(loans.model, loans.names, loans.cells)
    query = question.query()
    none = asker.find(question).pool
    assert none is not None
    alone = asker._alone(question, query, none.plans.take(slice(0, 0)))
    assert len(alone) > 0
    assert (alone.probability >= 0.5).all()


def test_a_proof_is_told_from_a_search_without_success(loans: Explorer) -> None:
    """One feature free, of which all values are looked at: there is none, and that is proved."""
    names = list(loans.names.keys)
    people = [one["id"] for one in loans.answer("people", {"order": "near"})["people"]][:40]
    free = [key for key, feature in zip(names, loans.model.schema.features, strict=True) if not feature.is_number]
    proved = []
    for person in people[::-1]:
        for feature in free:
            frozen = [name for name in names if name != feature]
            body = {"person": person, "target": "yes", "constraints": {"frozen": frozen}, "seed": 0}
            found = loans.answer("search", body)
            if found["status"] == "infeasible":
                proved.append(found)
            assert found["status"] != "infeasible" or (found["search"]["all"] and not found["search"]["accepted"])
        if proved:
            break
    assert proved
    assert loans.answer("ask", body)["search"] is None
