"""Constraints: what each field takes, JSON both ways, a table of what is refused, joining and overriding."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, ValidationError

from dicoflex.constraints import Constraints, delta, per_unit, relative
from dicoflex.constraints.parts import PerUnit, Range
from dicoflex.constraints.statement import combine, has_multiple
from dicoflex.errors import ConstraintError, RuleError
from dicoflex.limits.limits import Limits
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

EVERYTHING: dict[str, Any] = {
    "frozen": ["age", 7],
    "ranges": {"hours": (20, 50), "income": relative(-0.1, 0.25), "age": [delta(0, 5), (None, 80)], 7: (1, None)},
    "increase": ["education"],
    "decrease": ["debt"],
    "allowed": {"housing": ["own", "rent", None], "sector": [1, 2.5, "x"]},
    "forbidden": {"housing": ["free"], 7: [True]},
    "transitions": {"degree": {"Master": ["PhD"]}, "level": {1: [2, 3], None: [1]}, "flag": {True: []}},
    "max_changes": 3,
    "rules": ["late <= total", "if married == 'yes' then household >= 2"],
    "steps": {"loan": 500},
    "cost": {"move": 5, "hours": per_unit(0.5)},
    "max_cost": 8,
    "strict": True,
    "override": ["increase:age"],
}

# -- reading and writing -----------------------------------------------------------------------------------------


def test_every_field_survives_json() -> None:
    wish = Constraints(**EVERYTHING)
    again = Constraints.from_json(wish.to_json())
    assert again == wish
    assert hash(again) == hash(wish)
    assert [type(v) for v in again.allowed["sector"]] == [int, float, str]
    assert [type(v) for v in again.transitions["level"]] == [int, type(None)]
    assert [type(v) for v in again.transitions["flag"]] == [bool]
    assert again.parsed_rules == wish.parsed_rules
    assert pickle.loads(pickle.dumps(wish)) == copy.deepcopy(wish) == wish


def test_json_is_plain_to_read_and_holds_only_what_is_set() -> None:
    assert json.loads(Constraints(**EVERYTHING | {"frozen": ["age"], "ranges": {"hours": (20, 50)}}).to_json()) == {
        "frozen": ["age"],
        "ranges": {"hours": [20, 50]},
        "increase": ["education"],
        "decrease": ["debt"],
        "allowed": {"housing": ["own", "rent", None], "sector": [1, 2.5, "x"]},
        "forbidden": [["housing", ["free"]], [7, [True]]],
        "transitions": {
            "degree": {"Master": ["PhD"]},
            "level": [[1, [2, 3]], [None, [1]]],
            "flag": [[True, []]],
        },
        "max_changes": 3,
        "rules": ["late <= total", "if married == 'yes' then household >= 2"],
        "steps": {"loan": 500},
        "cost": {"move": 5, "hours": {"per_unit": 0.5}},
        "max_cost": 8,
        "strict": True,
        "override": ["increase:age"],
    }
    assert Constraints().to_json() == "{}"


def test_ranges_are_written_in_three_ways() -> None:
    text = '{"ranges": {"a": [20, null], "b": {"relative": [-0.1, 0.25]}, "c": [{"delta": [0, 5]}, [1, 9]]}}'
    read = Constraints.from_json(text)
    assert read.ranges == {
        "a": (Range(low=20),),
        "b": (relative(-0.1, 0.25),),
        "c": (delta(0, 5), Range(low=1, high=9)),
    }
    assert json.loads(read.to_json()) == json.loads(text)


def test_an_open_limit_may_be_infinite() -> None:
    assert Range(low=-np.inf, high=3) == Range(high=3)
    assert Constraints(ranges={"a": (3, np.inf)}).ranges == {"a": (Range(low=3),)}


def test_values_of_numpy_and_pandas_become_plain() -> None:
    wish = Constraints(
        frozen=pd.Index(["a"]),
        ranges={np.int64(4): (np.float32(0.5), np.int8(3))},
        allowed={"b": np.array([1, 2]), "c": [np.bool_(True), np.nan], "d": [pd.NA], "e": [np.str_("x")]},
        transitions={"f": {pd.NA: ["x"], "x": [pd.NaT]}},
        max_changes=np.int64(2),
    )
    assert wish.ranges == {4: (Range(low=0.5, high=3),)}
    assert wish.allowed == {"b": (1, 2), "c": (True, None), "d": (None,), "e": ("x",)}
    assert wish.transitions == {"f": {None: ("x",), "x": (None,)}}
    assert Constraints.from_json(wish.to_json()) == wish


def test_sets_have_an_order() -> None:
    assert Constraints(frozen={"c", "a", "b"}).frozen == ("a", "b", "c")


def test_a_file_is_loaded_and_its_errors_name_it(tmp_path: Path) -> None:
    path = tmp_path / "wish.json"
    path.write_text('{"frozen": ["age"]}')
    assert Constraints.load(path) == Constraints.load(str(path)) == Constraints(frozen=["age"])
    path.write_text('{"frozn": ["age"]}')
    with pytest.raises(ConstraintError) as caught:
        Constraints.load(path)
    assert str(caught.value) == f"{path}: constraint 'frozn' is unknown; did you mean 'frozen'?"
    with pytest.raises(ConstraintError, match=r"none\.json can't be read: No such file or directory; give a JSON file"):
        Constraints.load(tmp_path / "none.json")


BAD_JSON = {
    "no JSON": ("frozen: age", "this is not JSON: Expecting value: line 1 column 1 (char 0)"),
    "no text": (b"\xff{}", "this is not JSON: 'utf-8' codec can't decode byte 0xff"),
    "too deep": ("[" * 100_000, "this is not JSON: it is nested too deep"),
    "a list": ("[]", 'constraints are a JSON object such as {"frozen": ["age"]}, got a list'),
    "a field twice": ('{"frozen": [], "frozen": ["a"]}', "the JSON names 'frozen' twice; say it once"),
    "a feature twice": ('{"steps": {"a": 1, "a": 2}}', "the JSON names 'a' twice; say it once"),
    "no number": ('{"steps": {"a": NaN}}', "the JSON holds NaN; write null for a missing value or an open limit"),
    "an unknown field": ('{"rule": []}', "constraint 'rule' is unknown; did you mean 'rules'?"),
    "a field of Python": ('{"self": []}', "constraint 'self' is unknown; known: frozen, ranges,"),
    "null": ('{"frozen": null}', "frozen must be a list, got None"),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_json_that_is_refused(case: str) -> None:
    text, reason = BAD_JSON[case]
    with pytest.raises(ConstraintError) as caught:
        Constraints.from_json(text)
    assert str(caught.value).startswith(reason)


def test_constraints_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Constraints().strict = True  # type: ignore[misc]


def test_a_model_that_holds_constraints_takes_them_apart_from_its_own_errors() -> None:
    class Holder(BaseModel):
        wish: Constraints

    assert Holder.model_validate({"wish": {"frozen": ["a"]}}).wish.frozen == ("a",)
    with pytest.raises(ValidationError, match="frozen must be a list, got 'a'"):
        Holder.model_validate({"wish": {"frozen": "a"}})


# -- refusals ----------------------------------------------------------------------------------------------------

FORMS = '[20, 50], {"relative": [-0.1, 0.25]} or {"delta": [0, 5]}'
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": ({"frosen": ["a"]}, "constraint 'frosen' is unknown; did you mean 'frozen'?"),
    "text for a list": ({"frozen": "age"}, "frozen must be a list, got 'age'; write ['age']"),
    "a feature twice": ({"increase": ["a", "b", "a"]}, "increase names 'a' twice; say it once"),
    "a fraction for a name": ({"frozen": [1.5]}, "frozen: a feature's name is text or a whole number, got 1.5"),
    "a boolean for a name": ({"steps": {True: 1}}, "steps: a feature's name is text or a whole number, got True"),
    "both directions": (
        {"increase": ["a"], "decrease": ["a"]},
        "increase and decrease both name 'a', so that it could not change; put it in frozen instead",
    ),
    "a list for a mapping": (
        {"ranges": ["a"]},
        "ranges must be a mapping by feature, or a list of [feature, ...] pairs, got ['a']",
    ),
    "a feature twice in pairs": ({"steps": [["a", 1], ["a", 2]]}, "steps names 'a' twice; say it once"),
    "limits upside down": (
        {"ranges": {"a": (50, 20.5)}},
        "ranges 'a': the low limit 50 is above the high limit 20.5; swap them",
    ),
    "no limit": (
        {"ranges": {"a": (None, None)}},
        "ranges 'a': a range needs a low or a high limit, got neither; leave the range out",
    ),
    "no ranges": ({"ranges": {"a": []}}, "ranges 'a': the list of ranges is empty; leave the feature out"),
    "one number": ({"ranges": {"a": 5}}, f"ranges 'a': a range is written {FORMS}, got 5"),
    "three numbers": ({"ranges": {"a": [1, 2, 3]}}, f"ranges 'a': a range is written {FORMS}, got [1, 2, 3]"),
    "an unknown range": (
        {"ranges": {"a": {"shift": [0, 1]}}},
        f"ranges 'a': a range is written {FORMS}, got {{'shift': [0, 1]}}",
    ),
    "text as a limit": (
        {"ranges": {"a": ("low", 2)}},
        "ranges 'a': a limit of a range must be a number or None, got 'low'",
    ),
    "NaN as a limit": (
        {"ranges": {"a": (np.nan, 2)}},
        "ranges 'a': a limit of a range must be a number or None, got nan",
    ),
    "ranges apart": (
        {"ranges": {"a": [(1, 2), (5, None)]}},
        "ranges 'a': the ranges 1 to 2 and at least 5 have nothing in common; widen one of them",
    ),
    "never up": (
        {"increase": ["a"], "ranges": {"a": delta(-5, 0)}},
        "ranges 'a': -5 to 0 is never up, and increase names 'a'; raise the high limit above 0",
    ),
    "never down": (
        {"decrease": ["a"], "ranges": {"a": relative(0.1, 0.2)}},
        "ranges 'a': +10% to +20% is never down, and decrease names 'a'; put the low limit below 0",
    ),
    "a range between steps": (
        {"ranges": {"a": (1, 4)}, "steps": {"a": 5}},
        "ranges 'a': 1 to 4 holds no multiple of the step 5; widen the range or choose a smaller step",
    ),
    "a range beside the values": (
        {"ranges": {"a": (5, 9)}, "allowed": {"a": [1, 2]}},
        "ranges 'a': 5 to 9 holds none of the allowed values [1, 2]; widen the range or allow others",
    ),
    "values beside the steps": (
        {"steps": {"a": 500}, "allowed": {"a": [250, 750]}},
        "allowed 'a': [250, 750] holds no multiple of the step 500; drop the step",
    ),
    "nothing allowed": (
        {"allowed": {"a": []}},
        "allowed 'a': the list is empty; to keep a feature as it is, put it in frozen",
    ),
    "nothing forbidden": ({"forbidden": {"a": []}}, "forbidden 'a': the list is empty; leave the feature out"),
    "text for values": ({"allowed": {"a": "own"}}, "allowed 'a' must be a list, got 'own'; write ['own']"),
    "a value twice": ({"allowed": {"a": ["x", "x"]}}, "allowed 'a' lists 'x' twice; list it once"),
    "missing twice": ({"forbidden": {"a": [None, np.nan]}}, "forbidden 'a' lists None twice; list it once"),
    "allowed and forbidden": (
        {"allowed": {"a": ["x", "y"]}, "forbidden": {"a": ["y"]}},
        "'a': the value 'y' is both allowed and forbidden; drop it from one list",
    ),
    "an infinite value": (
        {"allowed": {"a": [np.inf]}},
        "allowed 'a': a value is text, a finite number, true, false or None, got inf",
    ),
    "a list as a value": (
        {"allowed": {"a": [["x"]]}},
        "allowed 'a': a value is text, a finite number, true, false or None, got ['x']",
    ),
    "bytes as a value": (
        {"allowed": {"a": [b"x"]}},
        "allowed 'a': a value is text, a finite number, true, false or None, got b'x'",
    ),
    "no transition": ({"transitions": {"a": {}}}, "transitions 'a': the mapping is empty; leave the feature out"),
    "a transition to text": (
        {"transitions": {"a": {"x": "y"}}},
        "transitions 'a' from 'x' must be a list, got 'y'; write ['y']",
    ),
    "a transition twice": (
        {"transitions": {"a": [[1, [2]], [1.0, [3]]]}},
        "transitions 'a' names 1.0 twice; say it once",
    ),
    "no changes": ({"max_changes": 0}, "max_changes must be a whole number of at least 1, got 0"),
    "half a change": ({"max_changes": 1.5}, "max_changes must be a whole number of at least 1, got 1.5"),
    "true changes": ({"max_changes": True}, "max_changes must be a whole number of at least 1, got True"),
    "a broken rule": ({"rules": ["a <"]}, "rule 'a <': at character 4: expected a value, found the end"),
    "text for rules": ({"rules": "a < b"}, "rules must be a list, got 'a < b'; write ['a < b']"),
    "a rule twice": ({"rules": ["a<b", "a < b"]}, "rules names 'a < b' twice; say it once"),
    "no step": ({"steps": {"a": 0}}, "steps 'a': the step must be a finite number above 0, got 0"),
    "an infinite step": ({"steps": {"a": np.inf}}, "steps 'a': the step must be a finite number above 0, got inf"),
    "no cost": ({"cost": {"a": 0}}, "cost 'a': the cost must be a finite number above 0, got 0"),
    "a negative cost": (
        {"cost": {"a": {"per_unit": -1}}},
        "cost 'a': the cost per unit must be a finite number above 0, got -1",
    ),
    "an unknown cost": (
        {"cost": {"a": {"per": 1}}},
        "cost 'a': a cost is a number above 0 or {\"per_unit\": 0.5}, got {'per': 1}",
    ),
    "a budget without costs": (
        {"max_cost": 3},
        "max_cost is 3 and cost is empty; say what changes cost, cost={'hours': 1}",
    ),
    "a negative budget": (
        {"cost": {"a": 1}, "max_cost": -1},
        "max_cost must be a finite number above 0, got -1",
    ),
    "strict in words": ({"strict": "yes"}, "strict: Input should be a valid boolean, got 'yes'"),
    "an override that is no text": ({"override": [3]}, "override takes text such as 'age' or 'increase:age', got 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_malformed_or_contradicts_itself_is_refused(case: str) -> None:
    fields, reason = REFUSED[case]
    with pytest.raises(ConstraintError) as caught:
        Constraints(**fields)
    assert str(caught.value) == reason
    assert isinstance(caught.value, RuleError) == reason.startswith("rule ")


def test_a_whole_number_may_have_a_point_as_json_has_one_kind_of_numbers() -> None:
    wish = Constraints.from_json('{"max_changes": 4.0}')
    assert wish == Constraints(max_changes=4)
    assert type(wish.max_changes) is int


def test_a_direction_or_list_beside_frozen_is_no_contradiction() -> None:
    wish = Constraints(frozen=["a"], increase=["a"], allowed={"a": [1]}, ranges={"a": delta(1, 2)})
    assert wish.frozen == wish.increase == ("a",)


def test_the_parts_refuse_too() -> None:
    with pytest.raises(ConstraintError, match="the low limit 3 is above the high limit 1; swap them"):
        relative(3, 1)
    with pytest.raises(ConstraintError, match="field of Range 'lo' is unknown; did you mean 'low'"):
        Range(lo=1)  # type: ignore[call-arg]
    with pytest.raises(ConstraintError, match="the cost per unit must be a finite number above 0, got '1'"):
        per_unit("1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "step", "found"),
    [(1, 4, 5, False), (1, 5, 5, True), (-4, -1, 5, False), (-4, 1, 5, True), (0.25, 0.3, 0.1, True)],
)
def test_multiples_between_limits(low: float, high: float, step: float, found: bool) -> None:
    assert has_multiple(low, high, step) is found


def test_open_limits_hold_a_multiple() -> None:
    assert has_multiple(None, 1, 5)
    assert has_multiple(1, None, 5)
    assert has_multiple(1e300, 1e300, 1e-300)


# -- views -------------------------------------------------------------------------------------------------------


def test_every_single_constraint_in_words() -> None:
    assert Constraints(**EVERYTHING).describe() == [
        ("frozen", "age", "age may not change"),
        ("frozen", 7, "7 may not change"),
        ("ranges", "hours", "hours must be 20 to 50"),
        ("ranges", "income", "income may change by -10% to +25% of its size"),
        ("ranges", "age", "age may change by 0 to +5"),
        ("ranges", "age", "age must be at most 80"),
        ("ranges", 7, "7 must be at least 1"),
        ("increase", "education", "education may only increase"),
        ("decrease", "debt", "debt may only decrease"),
        ("allowed", "housing", "housing may only become 'own', 'rent' or missing"),
        ("allowed", "sector", "sector may only become 1, 2.5 or 'x'"),
        ("forbidden", "housing", "housing may not become 'free'"),
        ("forbidden", 7, "7 may not become True"),
        ("transitions", "degree", "degree may go from 'Master' only to 'PhD'"),
        ("transitions", "level", "level may go from 1 only to 2 or 3, from missing only to 1"),
        ("transitions", "flag", "flag may go from True nowhere"),
        ("max_changes", None, "at most 3 features may change"),
        ("rules", None, "late <= total must hold"),
        ("rules", None, "if married == 'yes' then household >= 2 must hold"),
        ("steps", "loan", "loan may only change to multiples of 500"),
        ("cost", "move", "changing move costs 5"),
        ("cost", "hours", "changing hours costs 0.5 per unit"),
        ("max_cost", None, "all changes together may cost at most 8"),
        ("strict", None, "ranges and lists of values also bind what does not change"),
    ]


def test_labels_are_short() -> None:
    labels = {one.kind: one.label for one in Constraints(**EVERYTHING).one_by_one()}
    assert labels["ranges"] == "range 7 at least 1"
    assert labels["steps"] == "step loan 500"
    assert labels["max_changes"] == "max_changes 3"
    assert labels["rules"] == "rule if married == 'yes' then household >= 2"


def test_what_is_empty() -> None:
    assert Constraints().is_empty
    assert Constraints(strict=True, override=["age"]).is_empty
    for field, value in EVERYTHING.items():
        extra = {"cost": {"a": 1}} if field == "max_cost" else {}
        assert Constraints(**{field: value}, **extra).is_empty == (field in ("strict", "override"))


# -- joining -----------------------------------------------------------------------------------------------------


def test_the_join_demands_what_either_demands() -> None:
    one = Constraints(
        frozen=["a", "b"],
        ranges={"x": (20, 60), "y": delta(0, 5)},
        allowed={"h": ["own", "rent"], "k": [1]},
        forbidden={"h": ["free"]},
        transitions={"d": {"B": ["M", "P"], "M": ["P"]}},
        max_changes=4,
        rules=["a<b"],
        steps={"s": 5},
        cost={"x": 1, "y": per_unit(2), "z": 4},
        max_cost=9,
    )
    two = Constraints(
        frozen=["b", "c"],
        ranges={"x": [(30, None), relative(-0.5, 0)], "y": delta(-2, 3)},
        decrease=["y2"],
        allowed={"h": ["rent", "free room"], "k": [1.0]},
        forbidden={"h": ["tent"]},
        transitions={"d": {"B": ["M"], "P": []}},
        max_changes=6,
        rules=["a < b", "b < c"],
        steps={"s": 5, "t": 1},
        cost={"x": 3, "y": per_unit(1)},
        strict=True,
    )
    assert one.merge(two) == Constraints(
        frozen=["a", "b", "c"],
        ranges={"x": [(30, 60), relative(-0.5, 0)], "y": delta(0, 3)},
        decrease=["y2"],
        allowed={"h": ["rent"], "k": [1]},
        forbidden={"h": ["free", "tent"]},
        transitions={"d": {"B": ["M"], "M": ["P"], "P": []}},
        max_changes=4,
        rules=["a<b", "b < c"],
        steps={"s": 5, "t": 1},
        cost={"x": 3, "y": per_unit(2), "z": 4},
        max_cost=9,
        strict=True,
    )


def test_a_join_with_itself_or_nothing_changes_nothing() -> None:
    wish = Constraints(**EVERYTHING)
    assert wish.merge(wish) == wish.merge(Constraints()) == Constraints().merge(wish) == wish


APART: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "ranges": (
        {"ranges": {"a": (1, 2)}},
        {"ranges": {"a": (3, 4)}},
        "ranges 'a': the ranges 1 to 2 and 3 to 4 have nothing in common; widen one of them",
    ),
    "allowed": (
        {"allowed": {"a": ["x"]}},
        {"allowed": {"a": ["y", "z"]}},
        "allowed 'a': ['x'] and ['y', 'z'] have no value in common; to keep the feature as it is, put it in frozen",
    ),
    "forbidden": (
        {"allowed": {"a": ["x"]}},
        {"forbidden": {"a": ["x"]}},
        "'a': the value 'x' is both allowed and forbidden; drop it from one list",
    ),
    "directions": (
        {"increase": ["a"]},
        {"decrease": ["a"]},
        "increase and decrease both name 'a', so that it could not change; put it in frozen instead",
    ),
    "steps": ({"steps": {"a": 5}}, {"steps": {"a": 2}}, "steps 'a': the steps 5 and 2 differ; give one of them"),
    "costs": (
        {"cost": {"a": 5}},
        {"cost": {"a": per_unit(2)}},
        "cost 'a': the costs 5 and 2 per unit can't be compared; give both as a number or both per unit",
    ),
}


@pytest.mark.parametrize("case", APART)
def test_sets_that_contradict_each_other_are_refused(case: str) -> None:
    one, two, reason = APART[case]
    with pytest.raises(ConstraintError) as caught:
        Constraints(**one).merge(Constraints(**two))
    assert str(caught.value) == reason
    with pytest.raises(ConstraintError) as caught:
        combine(Constraints(**one), Constraints(**two))
    assert str(caught.value) == f"{reason} (the schema's constraints bind too; relax one with override=[...])"


PRESET = Constraints(
    frozen=["sex", "cost"],
    increase=["age", "education"],
    ranges={"age": [(18, 99), delta(0, 5)]},
    max_changes=3,
    rules=["a < b", "b < c"],
    cost={"age": 1, 7: 2},
    max_cost=4,
    strict=True,
)


@pytest.mark.parametrize(
    ("entry", "dropped"),
    [
        ("sex", {("frozen", "sex")}),
        ("frozen:sex", {("frozen", "sex")}),
        ("frozen", {("frozen", "sex"), ("frozen", "cost")}),
        ("increase:age", {("increase", "age")}),
        ("ranges:age", {("ranges", "age")}),
        ("age", {("increase", "age"), ("ranges", "age"), ("cost", "age")}),
        ("7", {("cost", 7)}),
        ("max_changes", {("max_changes", None)}),
        ("rules", {("rules", None)}),
        ("strict", {("strict", None)}),
        ("max_cost", {("max_cost", None)}),
        ("cost", {("cost", "age"), ("cost", 7), ("max_cost", None)}),
    ],
)
def test_an_override_drops_what_it_names_and_no_more(entry: str, dropped: set[tuple[str, Any]]) -> None:
    left = combine(PRESET, Constraints(override=[entry]))
    assert {(kind, name) for kind, name, _ in PRESET.describe()} - {(k, n) for k, n, _ in left.describe()} == dropped
    assert left.override == ()


def test_one_rule_can_be_overridden() -> None:
    assert combine(PRESET, Constraints(override=["rules:a < b"])).rules == ("b < c",)


def test_a_call_tightens_the_preset() -> None:
    bound = combine(PRESET, Constraints(max_changes=2, ranges={"age": (30, None)}, frozen=["race"]))
    assert bound.max_changes == 2
    assert bound.ranges["age"] == (Range(low=30, high=99), delta(0, 5))
    assert bound.frozen == ("sex", "cost", "race")
    assert combine(PRESET, Constraints(max_changes=9)).max_changes == 3


def test_a_call_relaxes_only_what_it_overrides() -> None:
    bound = combine(PRESET, Constraints(max_changes=9, decrease=["age"], override=["max_changes", "age"]))
    assert (bound.max_changes, bound.decrease, bound.increase) == (9, ("age",), ("education",))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("increase:agee", "constraint of the schema 'increase:agee' is unknown; did you mean 'increase:age'?"),
        ("sexx", "constraint of the schema 'sexx' is unknown; did you mean 'sex'?"),
        ("decrease:age", "constraint of the schema 'decrease:age' is unknown; did you mean 'increase:age'?"),
        ("rules:a > b", "constraint of the schema 'rules:a > b' is unknown; did you mean 'rules:a < b'?"),
    ],
)
def test_an_override_that_names_nothing_is_refused(entry: str, reason: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        combine(PRESET, Constraints(override=[entry]))
    assert str(caught.value) == f"override: {reason}"


def test_an_override_without_a_preset_is_refused() -> None:
    with pytest.raises(ConstraintError) as caught:
        combine(Constraints(), Constraints(override=["age"]))
    assert str(caught.value) == "override 'age' names no constraint of the schema; it has none"


def test_costs_per_unit_are_told_from_numbers() -> None:
    assert isinstance(Constraints(cost={"a": {"per_unit": 2}}).cost["a"], PerUnit)
    assert Constraints(cost={"a": 2}).cost["a"] == 2.0


# -- long lists --------------------------------------------------------------------------------------------------


class Counted(str):
    """Text that counts how often one is compared with another."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other) is True

    __hash__ = str.__hash__


@pytest.mark.parametrize("n", [500, 2000])
def test_long_lists_are_read_joined_and_compared_in_time_that_grows_with_them(n: int) -> None:
    """In 0.1.0 (9aa4d8c) every value was compared with every other: 30,000 of them took 12 s."""
    names = [f"v{i}" for i in range(n)]
    schema = Schema.infer(pd.DataFrame({"a": names * 2}), kinds={"a": "categorical"})
    Counted.compared = 0
    one = Constraints(
        allowed={"a": [Counted(name) for name in names]},
        transitions={"a": {Counted("v0"): [Counted(name) for name in names]}},
    )
    two = Constraints(forbidden={"a": [Counted(name) for name in names[1:]]})
    schema.check_constraints(one)
    one.merge(one)
    two.merge(two)
    schema.check_constraints(two)
    with pytest.raises(ConstraintError, match="both allowed and forbidden"):
        one.merge(two)
    Limits.build(one, Encoding.unit(schema), np.zeros((1, 1)), np.zeros((1, 1), dtype=bool))
    assert Counted.compared < 50 * n


def test_lists_and_rules_have_an_end() -> None:
    Constraints(forbidden={"a": list(range(10_000))}, rules=[f"a <= {i}" for i in range(64)])
    with pytest.raises(ConstraintError, match=r"forbidden 'a' has 10,001 entries, and 10,000 are the most"):
        Constraints(forbidden={"a": list(range(10_001))})
    with pytest.raises(ConstraintError, match=r"rules has 65 entries, and 64 are the most; leave some out"):
        Constraints(rules=[f"a <= {i}" for i in range(65)])


@pytest.mark.parametrize("text", ['{"max_cost": 1e999}', '{"max_cost": -1e999}'])
def test_a_number_that_json_can_not_hold_is_none(text: str) -> None:
    with pytest.raises(ConstraintError, match=r"the JSON holds -?1e999; write null"):
        Constraints.from_json(text)


def test_a_set_is_printed_as_it_is_written_and_in_words() -> None:
    wish = Constraints(
        frozen=["age"], ranges={"hours": (20, 50), "pay": [(None, 9.5), relative(-0.1, 0.2)], "rent": delta(0, 5)},
        forbidden={"job": [None, "smith"]}, cost={"hours": per_unit(0.5), "job": 2}, max_changes=3, strict=True,
    )  # fmt: skip
    assert repr(wish) == (
        "Constraints(frozen=['age'], ranges={'hours': (20, 50), 'pay': [(None, 9.5), relative(-0.1, 0.2)], "
        "'rent': delta(0, 5)}, forbidden={'job': [None, 'smith']}, max_changes=3, "
        "cost={'hours': per_unit(0.5), 'job': 2}, strict=True)"
    )
    assert eval(repr(wish)) == wish
    assert str(wish).splitlines()[:2] == ["age may not change", "hours must be 20 to 50"]
    assert (repr(Constraints()), str(Constraints())) == ("Constraints()", "no constraints")
    shown = Constraints(rules=["a < b"])._repr_html_()
    assert shown == "<ul><li>a &lt; b must hold</li></ul>"
