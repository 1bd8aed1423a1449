"""What is worked out once a limit rests: relaxations that are true, verdicts, limits left out, many people at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import Constraints
from dicoflex.answers.asking import explain
from dicoflex.errors import QueryError
from dicoflex.explainer import Explainer
from dicoflex.explorer import Explorer
from dicoflex.request import Request

Ask = Callable[..., dict[str, Any]]
TIGHT: list[dict[str, Any]] = [
    {"constraints": {"max_changes": 1, "ranges": {"gain": [0, 5]}, "frozen": ["member", "grade"]}},
    {"constraints": {"frozen": ["gain", "member", "score"], "forbidden": {"grade": ["a"]}}},
    {"constraints": {"allowed": {"grade": ["c"]}, "decrease": ["gain"], "frozen": ["member", "score"]}},
    {"pinned": {"member": False, "gain": 0.0}, "constraints": {"frozen": ["score"]}},
    {"constraints": {"cost": {"gain": 3, "member": 3, "grade": 3, "score": 3}, "max_cost": 2}},
]


@pytest.mark.parametrize("limits", TIGHT)
def test_relaxations_are_true(loans: Explorer, asked: Ask, limits: dict[str, Any]) -> None:
    """Asked with a relaxation, there are as many as it said, and more than before."""
    offered = 0
    for person in ("7", "20"):
        before = asked(loans, person, **limits)
        body = {"person": person, "target": "yes", **limits, "seq": 5}
        told = loans.answer("relax", body)
        assert told["seq"] == 5
        for one in told["relaxations"]:
            after = asked(loans, person, **{**limits, **one["asking"]})
            assert after["found"] >= one["found"] > before["found"]
            assert one["sentence"]
            offered += 1
    assert offered


def test_a_relaxed_range_is_the_same_limit_moved(loans: Explorer) -> None:
    body = {"person": "7", "target": "yes", **TIGHT[0]}
    found = [one for one in loans.answer("relax", body)["relaxations"] if one["kind"] == "range"]
    for one in found:
        low, high = one["asking"]["constraints"]["ranges"]["gain"]
        assert (low, one["id"], one["feature"]) == (0.0, "ranges:gain", "gain")
        assert high == one["arguments"]["to"] > 5
        assert one["arguments"]["to_text"] in one["sentence"]


def test_a_result_tells_what_to_relax(loans: Explorer) -> None:
    explainer, rows = Explainer(loans.model), loans.people.frame.iloc[[7, 20]]
    wish = Constraints(**TIGHT[1]["constraints"])
    cfs = explainer.explain(rows, target="yes", n=3, constraints=wish, random_state=0)
    for row in rows.index:
        for one in cfs.relax(row):
            again = explainer.explain(
                rows.loc[[row]], target="yes", n=3, constraints=one.constraints, confidence=one.confidence,
                random_state=0,
            )  # fmt: skip
            assert len(again) >= min(3, one.found)
            assert repr(one) == f"Relaxation({one.sentence!r}, found={one.found})"
            assert one.to_dict()["sentence"] == one.sentence
            assert one.feature in (None, "gain", "member", "score", "grade")
    assert cfs.relax(rows.index[0])
    with pytest.raises(QueryError, match="is unknown"):
        cfs.relax("nobody")


def test_with_a_check_only_what_it_confirms_counts(loans: Explorer) -> None:
    explainer, rows = Explainer(loans.model), loans.people.frame.iloc[[7]]
    wish = Constraints(**TIGHT[1]["constraints"])
    cfs = explainer.explain(rows, target="yes", n=3, constraints=wish, random_state=0)

    def only_members(frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame["member"].astype(bool), "yes", "no")

    free, checked = cfs.relax(), cfs.relax(check=only_members)
    assert free
    assert not cfs.relax(check=lambda frame: np.full(len(frame), "no"))
    for one in checked:
        again = explainer.explain(
            rows, target="yes", n=3, constraints=one.constraints, confidence=one.confidence, check=only_members,
            random_state=0,
        )  # fmt: skip
        assert len(again) > 0
    assert [one.found for one in checked] != [one.found for one in free]


def test_what_a_schema_demands_is_not_relaxed(loans: Explorer) -> None:
    from dataclasses import replace

    owner = Constraints(frozen=["member", "gain"])
    encoding = replace(loans.model.encoding, schema=loans.model.schema.with_constraints(owner))
    explainer = Explainer(replace(loans.model, encoding=encoding))
    cfs = explainer.explain(
        loans.people.frame.iloc[[7]], target="yes", n=2, constraints={"frozen": ["score", "grade"]}, random_state=0
    )
    assert {one.feature for one in cfs.relax()} <= {"score", "grade", None}


def test_settled_plans_carry_their_verdicts(explorer: Explorer, refused: list[str]) -> None:
    body = {"person": refused[0], "target": "yes", "constraints": {"max_changes": 3, "frozen": ["city"]}}
    shown = [plan["key"] for plan in explorer.answer("ask", body)["plans"]]
    told = explorer.answer("settle", {**body, "keys": [*shown[:2], "gone"], "seq": 2})
    assert list(told["verdicts"]) == shown[:2]
    for verdict in told["verdicts"].values():
        assert verdict["holds"]
        assert {"at most 3 changes", "city stays as it is"} <= {one["constraint"] for one in verdict["checks"]}
    alone = {"max_changes": {"frozen": ["city"]}, "frozen:city": {"max_changes": 3}}
    for one in told["without"]:
        direct = explorer.answer("ask", {**body, "constraints": alone[one["id"]]})
        assert one["found"] == direct["found"]


def test_the_curve_is_what_so_many_changes_give(loans: Explorer, asked: Ask) -> None:
    body = {"person": "7", "target": "yes"}
    curve = loans.answer("settle", body)["curve"]
    assert [one["changes"] for one in curve] == [1, 2, 3, 4, 5]
    for one in curve:
        direct = asked(loans, "7", constraints={"max_changes": one["changes"]})
        assert one["found"] == direct["found"]
        if direct["plans"]:
            assert one["probability"] >= max(plan["probability"] for plan in direct["plans"]) - 1e-5


@pytest.mark.parametrize("limits", [{"max_changes": 1}, {"frozen": ["gain", "member"], "decrease": ["score"]}])
def test_a_cohort_counts_what_explain_finds(loans: Explorer, limits: dict[str, Any]) -> None:
    lines = list(loans.stream("cohort", {"constraints": limits, "groups": "city"}))
    assert [line["end"] for line in lines] == [False] * (len(lines) - 1) + [True]
    last = lines[-1]
    lacking = np.flatnonzero(loans.people.result != loans.wanted)
    request = Request.of(target="yes", n=1, constraints=limits, random_state=0)
    direct = explain(loans.model, loans.people.frame.iloc[lacking], request)
    ways = np.bincount(direct.positions, minlength=len(lacking)) > 0
    assert (last["done"], last["total"], last["with_way"]) == (len(lacking), len(lacking), ways.sum())
    assert last["already"] == len(loans.people) - len(lacking)
    assert [one["id"] for one in last["without"]] == [loans.people.ids[i] for i in lacking[~ways]]
    assert all(one["reason"] for one in last["without"])
    city = loans.people.frame["city"].iloc[lacking].astype(object).to_numpy()
    counted = {one["group"]: (one["people"], one["with_way"]) for one in last["groups"]}
    assert counted == {level: (int((city == level).sum()), int(ways[city == level].sum())) for level in np.unique(city)}
    assert loans.answer("cohort", {"constraints": limits, "groups": "city"}) == last


def test_a_cohort_by_numbers_and_of_some(explorer: Explorer) -> None:
    some = explorer.people.ids[:12]
    told = explorer.answer("cohort", {"people": some, "groups": "visits", "target": "yes", "p": 0.05})
    assert told["total"] + told["already"] == 12
    assert sum(one["people"] for one in told["groups"]) == told["total"]
    assert sum(one["with_way"] for one in told["groups"]) == told["with_way"]


def test_a_cohort_that_has_no_way_by_logic(loans: Explorer) -> None:
    frozen = [name for name in loans.names.keys if name != "visits"]
    told = loans.answer("cohort", {"constraints": {"frozen": frozen, "ranges": {"visits": [3, 3]}, "strict": True}})
    assert told["done"] == told["total"]
    assert told["with_way"] + len(told["without"]) == told["total"]


def test_refusals_of_a_cohort_are_each_rows_own(loans: Explorer) -> None:
    told = loans.answer("cohort", {"refused": [{"feature": "gain", "value": 1.0}], "people": ["7", "20", "33"]})
    assert told["done"] == told["total"]
