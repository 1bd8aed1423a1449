"""Every kind of limit has its words and its parts, for any name and any language."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dicoflex import Constraints, delta, per_unit, relative
from dicoflex.constraints.kinds import KINDS
from dicoflex.explorer import Explorer
from dicoflex.explorer.sentences import arguments, sentence

SAID: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"frozen": ["the age"]}, "Age stays as it is", {}),
    ({"increase": ["visits"]}, "visits only up", {}),
    ({"decrease": [7]}, "7 only towards “a”", {}),
    (
        {"ranges": {"the age": (20, 50)}},
        "Age between 20 and 50",
        {"low": 20.0, "high": 50.0, "of": "absolute", "low_text": "20", "high_text": "50"},
    ),
    (
        {"ranges": {"gain 'net'": (None, 6000)}},
        "gain 'net' at most 6,000",
        {"low": None, "high": 6000.0, "of": "absolute", "high_text": "6,000"},
    ),
    (
        {"ranges": {"the age": delta(0, 5)}},
        "Age changes by between 0 and +5",
        {"low": 0.0, "high": 5.0, "of": "difference", "low_text": "0", "high_text": "+5"},
    ),
    (
        {"ranges": {"the age": relative(-0.1, None)}},
        "Age changes by at least -10%",
        {"low": -0.1, "high": None, "of": "relative", "low_text": "-10%"},
    ),
    (
        {"allowed": {"city": ["Ulm", "Rome"]}},
        "city may become Ulm (Donau) or Rome",
        {"values": ["Ulm", "Rome"], "texts": ["Ulm (Donau)", "Rome"]},
    ),
    ({"forbidden": {"the age": [None]}}, "Age may not become missing", {"values": [None], "texts": ["missing"]}),
    ({"pinned": {"visits": 3}}, "visits is 3", {"value": 3, "text": "3"}),
    (
        {"transitions": {"city": {"Ulm": ["Rome"]}}},
        "city: from Ulm (Donau) only to Rome",
        {"moves": [["Ulm", ["Rome"]]], "texts": [["Ulm (Donau)", ["Rome"]]]},
    ),
    ({"max_changes": 1}, "at most 1 change", {"most": 1}),
    ({"rules": ["visits <= 9"]}, "visits <= 9 must hold", {"rule": "visits <= 9"}),
    (
        {"consequences": {"visits": "was.visits + 1"}},
        "visits follows from other values: was.visits + 1",
        {"value": "was.visits + 1"},
    ),
    ({"steps": {"visits": 2}}, "visits in steps of 2", {"value": 2.0, "text": "2"}),
    ({"cost": {"visits": per_unit(0.5)}}, "changing visits costs 0.5 per unit", {"cost": 0.5, "per_unit": True}),
    ({"cost": {"visits": 2}, "max_cost": 3}, "total effort at most 3", {"most": 3.0}),
    ({"strict": True}, "ranges and lists of values also bind what does not change", {}),
]


@pytest.mark.parametrize(("given", "words", "parts"), SAID)
def test_a_limit_in_words_and_parts(awkward: Explorer, given: dict[str, Any], words: str, parts: dict) -> None:
    one = Constraints(**given).one_by_one()[-1]
    assert sentence(one, awkward.names) == words
    assert arguments(one, awkward.names) == parts == json.loads(json.dumps(parts))


def test_all_kinds_are_said() -> None:
    assert {field for given, _, _ in SAID for field in given} == set(KINDS) - {"override"}


def test_reasons_name_features_as_the_page_does(awkward: Explorer) -> None:
    """Names that are said of become labels; what is quoted, and words that happen to be names, stay."""
    said = awkward.names.labelled
    assert said("the age is frozen, visits has no value besides 3 that ranges allow") == (
        "Age is frozen, visits has no value besides 3 that ranges allow"
    )
    assert said("strict requires 2 features to change (the age, visits), and max_changes is 1") == (
        "strict requires 2 features to change (Age, visits), and max_changes is 1"
    )
    assert said("leave strict out, or relax the constraints on the age").endswith("the constraints on Age")
    assert said("the rule 'the age <= 3' can't hold") == "the rule 'the age <= 3' can't hold"
