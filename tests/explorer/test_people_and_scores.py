"""Who there is, what a page is told of the model, and rows scored by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dicoflex.errors import QueryError, SettingError
from dicoflex.explainer import Explainer
from dicoflex.explorer import Explorer, Texts
from dicoflex.views.words import percent


def test_the_list_is_searched_and_cut(loans: Explorer) -> None:
    whole = loans.answer("people", {})
    assert whole["total"] == len(whole["people"]) == 60
    page = loans.answer("people", {"offset": 10, "most": 5})
    assert page["people"] == whole["people"][10:15]
    found = loans.answer("people", {"search": "5"})
    assert found["total"] == len([one for one in whole["people"] if "5" in one["id"]])


def test_people_are_found_by_what_they_are_and_have_neighbours(awkward: Explorer) -> None:
    """Names first, then levels that are shown; and everybody knows who stands before and after."""
    whole = awkward.answer("people", {})
    about = whole["people"][0]["about"]
    assert [one["feature"] for one in about] == ["city"]
    found = awkward.answer("people", {"search": "ulm"})
    assert found["total"] == sum(one["about"][0]["text"] == "Ulm (Donau)" for one in whole["people"]) > 0
    assert [one["id"] for one in whole["near"]] == whole["offered"]
    ids = [one["id"] for one in whole["people"]]
    ends = [awkward.answer("person", {"person": person}) for person in (ids[0], ids[1], ids[-1])]
    assert [(one["previous"], one["next"]) for one in ends] == [(None, ids[1]), (ids[0], ids[2]), (ids[-2], None)]


def test_those_near_the_mark_come_first(loans: Explorer) -> None:
    near = loans.answer("people", {"order": "near"})
    lacking = [one for one in near["people"] if one["result"] == "no"]
    chances = [one["probability"] for one in lacking]
    assert chances == sorted(chances, reverse=True)
    assert near["people"][: len(lacking)] == lacking
    assert near["offered"] == [one["id"] for one in lacking[:3]]
    assert near["people"][0]["percent"] == percent(near["people"][0]["probability"])


def test_probabilities_are_the_surrogates(loans: Explorer) -> None:
    direct = Explainer(loans.model).probability(loans.people.frame)
    assert list(direct.columns) == loans.model.labels
    told = {one["id"]: one["probability"] for one in loans.answer("people", {})["people"]}
    assert list(told.values()) == pytest.approx(direct["yes"].tolist(), abs=1e-5)
    one = loans.answer("person", {"person": "3"})
    assert one["probabilities"] == pytest.approx(direct.iloc[3].to_dict(), abs=1e-5)
    assert one["result"] == direct.iloc[3].idxmax()


def test_names_that_repeat_are_told_apart(loans: Explorer) -> None:
    rows = loans.people.frame.iloc[:3].set_axis(["a", "a", "a (2)"])
    ids = [one["id"] for one in Explorer(loans.model, rows).answer("people", {})["people"]]
    assert len(set(ids)) == 3
    with pytest.raises(QueryError, match="nobody to explore"):
        Explorer(loans.model, rows.head(0))


def test_texts_name_things(awkward: Explorer) -> None:
    told = awkward.answer("model", {})
    age = next(one for one in told["features"] if one["name"] == "the age")
    assert (age["text"], age["unit"], age["group"], age["missing"]) == ("Age", "years", "You", True)
    city = next(one for one in told["features"] if one["name"] == "city")
    assert {level["value"]: level["text"] for level in city["levels"]} == {"Rome": "Rome", "Ulm": "Ulm (Donau)"}
    assert told["people"] == {"count": 30, "word": "applicant"}
    assert (told["texts"], told["wanted"]) == (["refused", "granted"], "yes")
    first = awkward.answer("people", {})["people"][0]
    assert first["label"].startswith(f"{first['id']} · ")
    assert {one["name"] for one in told["features"]} >= {"7", "<script>job</script>", 'price "€"', "score 😀"}


def test_features_are_told_as_they_are(awkward: Explorer) -> None:
    told = {one["name"]: one for one in awkward.answer("model", {})["features"]}
    assert [told[name]["kind"] for name in ("the age", "7", "city", "member")] == [
        "number",
        "ordinal",
        "level",
        "level",
    ]
    assert (told["the age"]["integer"], told["the age"]["decimals"]) == (True, 0)
    assert (told['price "€"']["integer"], told['price "€"']["decimals"] > 0) == (False, True)
    marginal = told["visits"]["marginal"]
    assert len(marginal["edges"]) == len(marginal["counts"]) + 1
    assert all(count == 0 or count >= 10 for one in told.values() for count in one["marginal"]["counts"])


def test_owners_limits_are_told(loans: Explorer) -> None:
    from dataclasses import replace

    from dicoflex import Constraints

    owner = Constraints(frozen=["city"], increase=["visits"])
    encoding = replace(loans.model.encoding, schema=loans.model.schema.with_constraints(owner))
    told = Explorer(replace(loans.model, encoding=encoding), loans.people.frame.head(3)).answer("model", {})
    features = {one["name"]: one for one in told["features"]}
    assert features["city"]["locked"] is True  # the page has words of its own for it
    assert (features["visits"]["locked"], features["visits"]["limits"]) == (None, ["visits only up"])
    assert told["own"]["sentences"] == ["city stays as it is", "visits only up"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no JSON"),
        ('{"colour": 1}', "colour: Extra inputs"),
        ('{"features": {"age": {"text": 3}}}', "features.age.text"),
    ],
)
def test_texts_that_are_none_are_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "texts.json"
    file.write_text(text)
    with pytest.raises(SettingError, match=why):
        Texts.load(file)


def test_texts_for_other_tables_are_refused(loans: Explorer) -> None:
    with pytest.raises(SettingError, match="feature 'shoe' is unknown"):
        Explorer(loans.model, loans.people.frame, texts=Texts.model_validate({"features": {"shoe": {}}}))
    with pytest.raises(SettingError, match="target 'maybe' is unknown"):
        Explorer(loans.model, loans.people.frame, target="maybe")


def test_a_plan_entered_by_hand_has_the_plans_probability(explorer: Explorer, refused: list[str]) -> None:
    for plan in explorer.answer("ask", {"person": refused[0], "target": "yes"})["plans"]:
        scored = explorer.answer("score", {"values": plan["values"], "target": "yes", "seq": 3})
        assert scored["probability"] == pytest.approx(plan["probability"], abs=1e-4)
        assert (scored["seq"], scored["result"]) == (3, "yes")


def test_strips_are_the_decision_along_each_feature(explorer: Explorer) -> None:
    values = explorer.answer("person", {"person": explorer.people.ids[2]})["values"]
    scored = explorer.answer("score", {"values": values, "target": "yes"})
    assert list(scored["strips"]) == explorer.names.keys
    rng = np.random.default_rng(0)
    for name, strip in scored["strips"].items():
        assert 1 < len(strip) <= 40
        point = strip[rng.integers(len(strip))]
        again = explorer.answer("score", {"values": values | {name: point["value"]}, "target": "yes", "strips": False})
        assert again["probability"] == pytest.approx(point["probability"], abs=2e-4)
        assert again["strips"] == {}
    few = explorer.answer("score", {"values": values, "target": "yes", "features": ["city"]})
    assert list(few["strips"]) == ["city"]


def test_a_result_that_is_asked_for_by_default(explorer: Explorer) -> None:
    person = explorer.people.ids[0]
    values = explorer.answer("person", {"person": person})["values"]
    scored = explorer.answer("score", {"values": values})
    assert scored["probability"] < 0.5
    assert json.dumps(scored, allow_nan=False)


def test_rows_with_other_columns_are_refused(loans: Explorer) -> None:
    with pytest.raises(QueryError, match="lack the column"):
        Explorer(loans.model, pd.DataFrame({"age": [3]}))
