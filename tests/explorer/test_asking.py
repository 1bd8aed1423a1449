"""What `ask` answers: the plans that `explain` gives, under every limit, with honest counts, shares and reasons."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import Constraints
from dicoflex.answers.asking import explain
from dicoflex.answers.shortfall import TRIED
from dicoflex.errors import ConstraintError, UserError
from dicoflex.explorer import Explorer
from dicoflex.explorer.messages import Asking, RefusedError, read
from dicoflex.explorer.user_limits import wish_of
from dicoflex.limits.plan import Plan
from dicoflex.request import Request
from dicoflex.table.plain_rows import CellError
from dicoflex.values import differ, is_missing, plain

Ask = Callable[..., dict[str, Any]]
LIMITS: list[dict[str, Any]] = [
    {},
    {"constraints": {"frozen": ["city", "member"], "max_changes": 2}},
    {"p": 0.05, "n": 2, "seed": 9},
    {"constraints": {"forbidden": {"city": ["Rome"]}, "increase": ["visits"]}, "n": 6},
]


def cells(frame: pd.DataFrame) -> list[list[Any]]:
    return [[None if is_missing(v) else plain(v) for v in row] for row in frame.astype(object).to_numpy().tolist()]


def question(explorer: Explorer, person: str, **more: Any) -> Any:
    return explorer.question(read(Asking, {"person": person, "target": "yes", **more}))


@pytest.mark.parametrize("limits", LIMITS)
def test_plans_are_what_explain_answers(explorer: Explorer, refused: list[str], asked: Ask, limits: dict) -> None:
    compared = 0
    for person in refused[:6]:
        found = asked(explorer, person, **limits)
        row = explorer.people.frame.iloc[[explorer.people.place(person)]]
        direct = explain(explorer.model, row, question(explorer, person, **limits).request)
        if direct.searches:  # a page looks at fewer rows
            continue
        compared += 1
        assert [list(plan["values"].values()) for plan in found["plans"]] == cells(direct.frame)
        assert [plan["probability"] for plan in found["plans"]] == pytest.approx(direct.info["probability"], abs=1e-5)
        assert found["found"] >= len(found["plans"]) > 0
        assert direct.verify()["holds"].all()
    assert compared > 1


def test_answers_are_json(explorer: Explorer, refused: list[str], asked: Ask) -> None:
    told = asked(explorer, refused[0], constraints={"max_changes": 3}, seq=41)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["seq"] == 41
    assert json.loads(json.dumps(explorer.answer("model", {}), allow_nan=False))["v"] == 1


def test_changes_tell_what_differs(explorer: Explorer, refused: list[str], asked: Ask) -> None:
    told = explorer.answer("person", {"person": refused[0]})
    for plan in asked(explorer, refused[0], n=8)["plans"]:
        own = {name: (told["values"][name], value) for name, value in plan["values"].items()}
        assert {c["feature"]: (c["before"], c["after"]) for c in plan["changes"]} == {
            name: pair for name, pair in own.items() if pair[0] != pair[1]
        }
        for change, word in zip(plan["changes"], plan["sentence"], strict=True):
            assert change["before_text"] != change["after_text"]
            assert word["after"] in plan["text"] or word["verb"] == "missing"
            assert (change["direction"] == "up") >= (word["verb"] == "raise")


def test_the_same_seed_gives_the_same_plans_and_another_others(loans: Explorer, asked: Ask) -> None:
    first = asked(loans, "7", n=6)
    assert asked(loans, "7", n=6) == first
    assert [p["key"] for p in asked(loans, "7", n=6, seed=5)["plans"]] != [p["key"] for p in first["plans"]]


def test_moving_a_limit_that_binds_nobody_keeps_most_plans(loans: Explorer, asked: Ask) -> None:
    kept = []
    for person in ("7", "11", "20", "33"):
        wide = asked(loans, person, n=5, constraints={"ranges": {"visits": [0, 12]}})
        narrow = asked(loans, person, n=5, constraints={"ranges": {"visits": [0, 11]}})
        keys = {plan["key"] for plan in narrow["plans"]}
        kept += [plan["key"] in keys for plan in wide["plans"]]
    assert np.mean(kept) > 0.5


def test_two_people_interleaved_never_mix(loans: Explorer, asked: Ask) -> None:
    alone = {person: asked(loans, person, n=3) for person in ("7", "11")}
    for turn in range(6):
        person = ("7", "11")[turn % 2]
        assert asked(loans, person, n=3) == alone[person]


# -- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("pinned", [{"visits": 5}, {"city": "Rome"}, {"job": None}, {"price": 12.5, "member": True}])
def test_pinned_values_are_exact(loans: Explorer, asked: Ask, pinned: dict[str, Any], strict: bool) -> None:
    seen = 0
    for person in ("7", "11", "20"):
        found = asked(loans, person, pinned=pinned, constraints={"strict": strict})
        for plan in found["plans"]:
            seen += 1
            assert {name: plan["values"][name] for name in pinned} == pinned
            assert [type(plan["values"][name]) for name in pinned] == [type(value) for value in pinned.values()]
    assert seen


def test_a_missing_number_can_be_pinned(awkward: Explorer, asked: Ask) -> None:
    place = np.flatnonzero(awkward.people.values[:, 0] == awkward.people.values[:, 0])[0]
    person = awkward.people.ids[place]
    found = awkward.answer("ask", {"person": person, "pinned": {"the age": None}})
    assert found["plans"]
    assert all(plan["values"]["the age"] is None for plan in found["plans"])


def test_refused_changes_are_shown_no_more(explorer: Explorer, refused: list[str], asked: Ask) -> None:
    for person in refused[:3]:
        given: list[dict[str, Any]] = []
        for _ in range(4):
            found = asked(explorer, person, refused=given)
            for one in given:
                shown = [c for plan in found["plans"] for c in plan["changes"] if c["feature"] == one["feature"]]
                assert all(change["after"] != one["value"] for change in shown)
            if not found["plans"]:
                break
            change = found["plans"][0]["changes"][0]
            given.append({"feature": change["feature"], "value": change["after"]})


def test_a_refused_number_is_not_nearly_reached(loans: Explorer, asked: Ask) -> None:
    own = loans.answer("person", {"person": "7"})["values"]["gain"]
    far = own + 800.0
    for plan in asked(loans, "7", n=8, refused=[{"feature": "gain", "value": far}])["plans"]:
        assert plan["values"]["gain"] <= own + 0.951 * 800.0


def test_what_is_refused_from_a_list_of_one_stays(loans: Explorer, asked: Ask) -> None:
    own = loans.answer("person", {"person": "7"})["values"]["city"]
    other = "Rome" if own == "Ulm" else "Ulm"
    found = asked(loans, "7", constraints={"allowed": {"city": [other]}}, refused=[{"feature": "city", "value": other}])
    assert {plan["values"]["city"] for plan in found["plans"]} == {own}


def test_pressures_are_a_naive_recount(explorer: Explorer, refused: list[str], asked: Ask) -> None:
    """Each share again, from unbound draws made here and from the rule of each limit written out."""
    model, person = explorer.model, refused[0]
    limits = {
        "constraints": {
            "frozen": ["city"], "ranges": {"visits": [2, 5]}, "max_changes": 2, "allowed": {"area": [1, 2]},
            "decrease": ["visits"],
        },
        "pinned": {"member": True},
    }  # fmt: skip
    found = {one["id"]: one["share"] for one in asked(explorer, person, **limits)["pressure"]}
    query = question(explorer, person, **limits).query()
    context = query.context
    free = type(context)(
        context.query, context.target, context.p, np.zeros(context.query.shape, dtype=bool), context.confidence
    )
    drawn = model.encoding.snap(model.generator.sample(free, TRIED, query.keys, 0)[0].reshape(TRIED, -1))
    rows = [explorer.cells.plain(row) for row in drawn]
    own, at = explorer.cells.plain(context.query[0]), explorer.names.places
    visits, city, area, member = (at[name] for name in ("visits", "city", "area", "member"))
    naive = {
        "frozen:city": np.mean([row[city] != own[city] for row in rows]),
        "ranges:visits": np.mean([row[visits] != own[visits] and not 2 <= row[visits] <= 5 for row in rows]),
        "max_changes": np.mean([sum(a != b for a, b in zip(row, own, strict=True)) > 2 for row in rows]),
        "allowed:area": np.mean([row[area] != own[area] and row[area] not in (1, 2) for row in rows]),
        "decrease:visits": np.mean([row[visits] > own[visits] for row in rows]),
        "pinned:member": np.mean([row[member] is not True for row in rows]),
    }
    assert found == pytest.approx(naive, abs=1e-3)


def test_reach_is_where_plans_land(loans: Explorer, asked: Ask) -> None:
    found = asked(loans, "7", n=6, constraints={"ranges": {"gain": [0, 900]}})
    for plan in found["plans"]:
        for change in plan["changes"]:
            landed = found["reach"][change["feature"]]
            if "low" in landed and change["after"] is not None:
                assert landed["low"] <= change["after"] <= landed["high"]
                assert len(landed["values"]) <= 24
            else:
                assert change["after"] in landed["values"]
    assert found["reach"].get("gain", {"high": 0})["high"] <= 900


# -- states ----------------------------------------------------------------------------------------------------------


def test_who_has_the_result_already(explorer: Explorer) -> None:
    have = next(i for i, result in enumerate(explorer.people.result) if result == explorer.wanted)
    found = explorer.answer("ask", {"person": explorer.people.ids[have], "target": "yes"})
    assert (found["status"], found["plans"], found["found"]) == ("already", [], 0)
    other = explorer.answer("ask", {"person": explorer.people.ids[have]})
    assert other["target"] == "no"


def test_what_contradicts_itself_is_told_before_drawing(loans: Explorer, asked: Ask) -> None:
    highest = loans.model.schema["visits"].maximum
    values = loans.answer("person", {"person": "7"})["values"] | {"visits": int(highest)}
    others = [name for name in loans.names.keys if name != "visits"]
    body = {"values": values, "target": "yes", "constraints": {"increase": ["visits"], "frozen": others}}
    found = loans.answer("ask", body)
    assert found["status"] == "contradictory"
    assert "visits may only increase and already is at its highest value" in found["shortfall"]["reason"]
    assert found["closed"] == [
        {"feature": "visits", "sentence": "visits may only increase and already is at its highest value"}
    ]


def test_sentences_say_what_the_page_calls_features(awkward: Explorer) -> None:
    person = awkward.answer("people", {"order": "near"})["offered"][0]
    values = awkward.answer("person", {"person": person})["values"]
    values["the age"] = int(awkward.model.schema["the age"].maximum)
    limits = {"increase": ["the age"], "frozen": [name for name in awkward.names.keys if name != "the age"]}
    found = awkward.answer("ask", {"values": values, "target": "yes", "constraints": limits})
    assert "Age may only increase" in found["shortfall"]["reason"]
    assert found["closed"][0]["feature"] == "the age"
    assert found["closed"][0]["sentence"].startswith("Age may only increase")
    assert awkward.names.labelled("the age, and 7 of <script>job</script>") == "Age, and 7 of <script>job</script>"
    assert awkward.names.labelled("the ages") == "the ages"


def test_nothing_left_to_change_is_impossible(explorer: Explorer, refused: list[str], asked: Ask) -> None:
    found = asked(explorer, refused[0], constraints={"frozen": explorer.names.keys})
    assert found["status"] == "contradictory"
    assert "nothing may change" in found["shortfall"]["reason"]


def test_fewer_than_asked_for_are_not_padded(loans: Explorer, asked: Ask) -> None:
    some = [name for name in loans.names.keys if name not in ("member", "grade")]
    found = asked(loans, "7", n=12, constraints={"frozen": some})
    assert found["status"] in ("short", "not_found")
    assert len(found["plans"]) == found["shortfall"]["got"] < 12 == found["shortfall"]["wanted"]


@pytest.mark.parametrize(
    ("body", "why", "place"),
    [
        ({"person": "nobody"}, "person 'nobody' is unknown", "/person"),
        ({}, "give either person or values", ""),
        ({"person": "7", "mood": 1}, "Extra inputs are not permitted", "/mood"),
        ({"person": "7", "n": 13}, "less than or equal to 12", "/n"),
        ({"person": "7", "target": "maybe"}, "target 'maybe' is unknown", "/target"),
        (
            {"person": "7", "constraints": {"ranges": {"shoe": [1, 2]}}},
            "feature 'shoe' is unknown",
            "/constraints/ranges",
        ),
        ({"person": "7", "pinned": {"shoe": 1}}, "feature 'shoe' is unknown", "/pinned"),
        ({"person": "7", "refused": [{"feature": "shoe"}]}, "feature 'shoe' is unknown", "/refused/0/feature"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_place(loans: Explorer, body: dict, why: str, place: str) -> None:
    with pytest.raises(RefusedError, match=why) as told:
        loans.answer("ask", body)
    assert told.value.place.startswith(place)


def test_a_value_that_does_not_fit_names_its_feature(loans: Explorer) -> None:
    values = loans.answer("person", {"person": "7"})["values"]
    with pytest.raises(CellError, match="did you mean 'cook'") as told:
        loans.answer("ask", {"values": values | {"job": "cok"}})
    assert told.value.feature == "job"
    with pytest.raises(CellError, match="lacks 'city'"):
        loans.answer("score", {"values": {k: v for k, v in values.items() if k != "city"}})
    with pytest.raises(ConstraintError, match="'visits'"):
        loans.answer("ask", {"person": "7", "constraints": {"ranges": {"visits": [900, 901]}}})
    with pytest.raises(UserError, match="message 'dance' is unknown"):
        loans.answer("dance", {})


def test_names_that_are_numbers_are_limited_too(awkward: Explorer, asked: Ask) -> None:
    listed = awkward.answer("people", {"order": "near"})
    person = listed["offered"][0]
    own = awkward.answer("person", {"person": person})["values"]["7"]
    found = asked(awkward, person, n=6, constraints={"frozen": ["7"], "forbidden": {"<script>job</script>": ["cook"]}})
    assert found["plans"]
    assert {plan["values"]["7"] for plan in found["plans"]} == {own}
    changed = [c["after"] for plan in found["plans"] for c in plan["changes"] if "script" in c["feature"]]
    assert "cook" not in changed


def test_a_wish_is_the_constraints_that_it_says(loans: Explorer) -> None:
    asked = read(
        Asking,
        {"person": "7", "constraints": {"max_changes": 2}, "pinned": {"visits": 3},
         "refused": [{"feature": "city", "value": "Rome"}]},
    )  # fmt: skip
    wish = wish_of(asked, loans.people.values[7], loans.names, loans.cells)
    assert wish.constraints == Constraints(max_changes=2, pinned={"visits": 3}, forbidden={"city": ["Rome"]})
    assert [limit.kind for limit in wish.limits] == ["max_changes", "pinned", "refused"]
    assert wish.limits[0].sentence == "at most 2 changes"


def test_values_by_hand_are_asked_like_a_person(loans: Explorer, asked: Ask) -> None:
    values = loans.answer("person", {"person": "7"})["values"]
    by_hand = loans.answer("ask", {"values": values, "target": "yes"})
    assert by_hand["plans"] == asked(loans, "7")["plans"]


def test_requests_are_kept_small(loans: Explorer) -> None:
    request = question(loans, "7").request
    assert Request.model_validate_json(request.model_dump_json()) == request
    assert differ(question(loans, "7").own, loans.people.values[[7]]).sum() == 0


def test_limits_are_compiled_once_per_message(loans: Explorer, asked: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the way of every drag they were compiled, thrown away, and compiled again."""
    compiled: list[Constraints] = []
    make = Plan.of.__func__

    def of(cls: type[Plan], constraints: Constraints, *more: Any) -> Plan:
        compiled.append(constraints)
        return make(cls, constraints, *more)

    monkeypatch.setattr(Plan, "of", classmethod(of))
    person = loans.answer("people", {"order": "near"})["people"][0]["id"]
    asked(loans, person, constraints={"max_changes": 2, "frozen": ["city"]})
    assert sum(one.max_changes == 2 and one.frozen == ("city",) for one in compiled) == 1
