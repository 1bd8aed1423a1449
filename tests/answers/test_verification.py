"""The certificate: every constraint on answers that obey it and on answers that break it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex.answers.verification import verify
from dicoflex.constraints import Constraints, delta, per_unit, relative
from dicoflex.table.schema import Schema

GRADES = ["low", "mid", "high"]


def table(**columns: Any) -> pd.DataFrame:
    """Rows of every kind of column; what is not given is like the query."""
    given = {
        "age": [30],
        "income": [100.0],
        "grade": ["mid"],
        "job": ["cook"],
        "sector": [1],
        "member": [True],
    } | columns
    rows = max(len(values) for values in given.values())
    frame = pd.DataFrame({name: list(values) * (rows // len(values)) for name, values in given.items()})
    return frame.astype(
        {
            "age": "Int64",
            "income": "float64",
            "grade": pd.CategoricalDtype(GRADES, ordered=True),
            "job": "str",
            "sector": pd.CategoricalDtype([1, 2, 3]),
            "member": "boolean",
        }
    )


SCHEMA = Schema.infer(
    table(
        age=[20, 60, None],
        income=[-500.0, 500.0, None],
        grade=["low", "mid", "high"],
        job=["cook", "nurse", None],
        sector=[1, 2, 3],
        member=[True, False, None],
    ),
    kinds={"income": "continuous"},
)


def check(constraints: Constraints, *, query: dict[str, Any] | None = None, **answer: Any) -> pd.Series:
    """Whether each constraint holds on one answer, by label; `query` and `answer` say what is not as usual."""
    before = table(**{name: [value] for name, value in (query or {}).items()})
    after = table(**{name: [value] for name, value in ((query or {}) | answer).items()})
    after.index = pd.MultiIndex.from_tuples([(0, 0)], names=["row", "cf"])
    return verify(before, after, [0], constraints, SCHEMA).set_index("constraint")["holds"]


def holds(constraints: dict[str, Any], *, query: dict[str, Any] | None = None, **answer: Any) -> bool:
    """Whether a set that is one single constraint holds; the schema's own line does in any case."""
    found = check(Constraints(**constraints), query=query, **answer)
    assert found["schema"]
    assert len(found) == 2
    return bool(found.iloc[0])


# -- the table ---------------------------------------------------------------------------------------------------


def test_one_line_per_answer_and_single_constraint() -> None:
    queries = table(age=[30, 40]).set_axis(["x", "y"])
    index = pd.MultiIndex.from_tuples([("x", 0), ("y", 0), ("y", 1)], names=["row", "cf"])
    answers = table(age=[30, 40, 41], income=[1.0, 2.0, 3.0]).set_axis(index)
    wish = Constraints(
        frozen=["job"],
        ranges={"income": [(0, 2), delta(None, 0)]},
        max_changes=1,
        rules=["age <= 40", "income<3"],
        cost={"age": 1, "income": per_unit(1)},
        max_cost=98.5,
        strict=True,
    )
    table_ = verify(queries, answers, np.array([0, 1, 1]), wish, SCHEMA, frozen=["age", "job"])
    assert table_.columns.tolist() == ["row", "cf", "constraint", "holds"]
    assert table_["row"].tolist() == ["x"] * 9 + ["y"] * 18
    assert table_["cf"].tolist() == [0] * 18 + [1] * 9
    assert {label: lines["holds"].tolist() for label, lines in table_.groupby("constraint")} == {
        "frozen job": [True, True, True],
        "frozen age": [True, True, False],
        "range income 0 to 2": [True, True, False],
        "range income at most 0": [True, True, True],
        "max_changes 1": [True, True, False],
        "rule age <= 40": [True, True, False],
        "rule income<3": [True, True, False],
        "max_cost 98.5": [False, True, True],
        "schema": [True, True, True],
    }
    assert table_["holds"].dtype == bool


def test_no_answers_give_an_empty_table_and_no_constraints_only_the_schema() -> None:
    index = pd.MultiIndex.from_tuples([(0, 0)], names=["row", "cf"])
    answers = table().set_axis(index)
    empty = verify(table(), answers.iloc[:0], [], Constraints(frozen=["age"]), SCHEMA)
    assert empty.shape == (0, 4)
    assert empty["holds"].dtype == bool
    assert verify(table(), answers, [0], Constraints(), SCHEMA)["constraint"].tolist() == ["schema"]


def test_the_frames_are_left_as_they_were() -> None:
    queries, answers = table(), table(age=[31]).set_axis(pd.MultiIndex.from_tuples([(0, 0)]))
    before = queries.copy(), answers.copy()
    verify(queries, answers, [0], Constraints(increase=["age"]), SCHEMA)
    pd.testing.assert_frame_equal(queries, before[0])
    pd.testing.assert_frame_equal(answers, before[1])


# -- one constraint each -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["age", "income", "grade", "job", "sector", "member"])
def test_frozen_is_equality(name: str) -> None:
    other = {
        "age": 31,
        "income": np.nextafter(100.0, 101.0),
        "grade": "low",
        "job": "nurse",
        "sector": 2,
        "member": False,
    }
    assert holds({"frozen": [name]})
    assert not holds({"frozen": [name]}, **{name: other[name]})


@pytest.mark.parametrize("name", ["age", "income", "job", "member"])
def test_frozen_keeps_what_is_missing_missing(name: str) -> None:
    assert holds({"frozen": [name]}, query={name: None})
    assert not holds({"frozen": [name]}, **{name: None})


def test_frozen_numbers_are_equal_bit_for_bit() -> None:
    assert holds({"frozen": ["income"]}, query={"income": -0.0})
    assert not holds({"frozen": ["income"]}, query={"income": 0.0}, income=-0.0)
    assert holds({"max_changes": 1}, query={"income": 0.0}, income=-0.0, age=31)


@pytest.mark.parametrize(("value", "fine"), [(20.0, True), (50.0, True), (19.999999, False), (50.000001, False)])
def test_absolute_ranges_include_their_ends_and_nothing_beyond(value: float, fine: bool) -> None:
    assert holds({"ranges": {"income": (20, 50)}}, income=value) is fine
    assert holds({"ranges": {"income": (20, None)}}, income=value) is (value >= 20)


@pytest.mark.parametrize(
    ("query", "value", "fine"),
    [
        (100.0, 90.0, True),
        (100.0, 125.0, True),
        (100.0, 89.9, False),
        (100.0, 125.1, False),
        (-100.0, -110.0, True),
        (-100.0, -75.0, True),
        (-100.0, -111.0, False),
        (-100.0, -74.0, False),
        (0.0, 0.1, False),
    ],
)
def test_relative_ranges_are_shares_of_the_querys_size(query: float, value: float, fine: bool) -> None:
    assert holds({"ranges": {"income": relative(-0.1, 0.25)}}, query={"income": query}, income=value) is fine


def test_an_open_relative_range_is_open_at_zero() -> None:
    assert holds({"ranges": {"income": relative(None, 0.25)}}, query={"income": 0.0}, income=-3.0)


@pytest.mark.parametrize(("age", "fine"), [(30, True), (31, True), (35, True), (29, False), (36, False)])
def test_differences_are_counted_from_the_query(age: int, fine: bool) -> None:
    assert holds({"ranges": {"age": delta(0, 5)}}, age=age) is fine


def test_ends_that_are_calculated_may_be_off_by_rounding() -> None:
    assert 0.1 + 0.2 > 0.3
    assert holds({"ranges": {"income": delta(0, 0.2)}}, query={"income": 0.1}, income=0.3 + 1e-16)
    assert not holds({"ranges": {"income": delta(0, 0.2)}}, query={"income": 0.1}, income=0.3 + 1e-8)


def test_an_unchanged_value_may_lie_outside_unless_strict() -> None:
    wish = {"ranges": {"age": (40, 50)}}
    assert holds(wish, income=1.0)
    found = check(Constraints(**wish, allowed={"job": ["nurse"]}, forbidden={"sector": [1]}, strict=True), income=1.0)
    assert found.to_dict() == {
        "range age 40 to 50": False,
        "allowed job": False,
        "forbidden sector": False,
        "schema": True,
    }
    assert check(Constraints(**wish, strict=True), age=45).all()


def test_strict_forces_a_difference() -> None:
    assert not check(Constraints(ranges={"age": delta(1, 5)}, strict=True))["range age +1 to +5"]
    assert check(Constraints(ranges={"age": delta(1, 5)}, strict=True), age=31).all()
    assert check(Constraints(ranges={"age": delta(0, 5)}, strict=True)).all()


MOVED = [
    {"ranges": {"age": (0, 99)}},
    {"ranges": {"age": relative(-1, 1)}},
    {"ranges": {"age": delta(-50, 50)}},
    {"increase": ["age"]},
    {"decrease": ["age"]},
    {"steps": {"age": 1}},
]


@pytest.mark.parametrize("wish", MOVED)
def test_a_bound_feature_does_not_become_missing(wish: dict[str, Any]) -> None:
    assert not holds(wish, age=None)


@pytest.mark.parametrize("wish", MOVED)
def test_what_is_measured_from_a_missing_value_keeps_it_missing(wish: dict[str, Any]) -> None:
    absolute = wish in (MOVED[0], MOVED[5])
    assert holds(wish, query={"age": None}, age=40) is absolute
    assert holds(wish, query={"age": None})


def test_a_missing_value_is_outside_a_strict_absolute_range() -> None:
    label = "range age 0 to 99"
    assert not check(Constraints(ranges={"age": (0, 99)}, strict=True), query={"age": None})[label]
    assert check(Constraints(ranges={"age": delta(0, 1)}, strict=True), query={"age": None}).all()


@pytest.mark.parametrize("name", ["age", "grade"])
def test_directions(name: str) -> None:
    less, more = {"age": (29, 31), "grade": ("low", "high")}[name]
    for kind, good, bad in (("increase", more, less), ("decrease", less, more)):
        assert holds({kind: [name]}, **{name: good})
        assert not holds({kind: [name]}, **{name: bad})
        assert holds({kind: [name]}, income=1.0)


def test_ordinals_rise_by_their_order_not_by_the_alphabet() -> None:
    assert holds({"increase": ["grade"]}, query={"grade": "low"}, grade="high")


def test_allowed_and_forbidden_values_bind_changes() -> None:
    assert holds({"allowed": {"job": ["nurse"]}}, job="nurse")
    assert holds({"allowed": {"job": ["nurse"]}}, age=31)
    assert not holds({"allowed": {"job": ["nurse"]}}, job=None)
    assert holds({"allowed": {"job": [None]}}, job=None)
    assert not holds({"forbidden": {"job": [None]}}, job=None)
    assert not holds({"forbidden": {"job": ["nurse"]}}, job="nurse")
    assert holds({"forbidden": {"job": ["cook"]}}, age=31)
    assert holds({"allowed": {"age": [40, 41]}}, age=41)
    assert not holds({"allowed": {"age": [40, 41]}}, age=42)
    assert not holds({"forbidden": {"income": [5]}}, income=5.0)


def test_values_that_are_numbers_or_booleans_are_told_from_text() -> None:
    assert holds({"allowed": {"sector": [2.0]}}, sector=2)
    assert not holds({"allowed": {"sector": ["2"]}}, sector=2)
    assert holds({"allowed": {"member": [0]}}, member=False)


def test_transitions_bind_only_what_they_list() -> None:
    wish = {"transitions": {"sector": {1: [2], 3: []}}}
    assert holds(wish, sector=2)
    assert not holds(wish, sector=3)
    assert holds(wish, age=31)
    assert holds(wish, query={"sector": 2}, sector=3)
    assert not holds(wish, query={"sector": 3}, sector=1)
    assert holds(wish, query={"sector": 3}, age=31)
    assert holds({"transitions": {"job": {None: ["cook"], "cook": [None]}}}, job=None)
    assert not holds({"transitions": {"job": {None: ["nurse"]}}}, query={"job": None}, job="cook")


def test_steps_put_changed_numbers_on_a_grid() -> None:
    assert holds({"steps": {"age": 7}}, age=35)
    assert not holds({"steps": {"age": 7}}, age=36)
    assert holds({"steps": {"age": 7}}, income=1.0)
    assert holds({"steps": {"income": 0.1}}, income=0.1 * 3)
    assert not holds({"steps": {"income": 0.1}}, income=0.35)
    assert holds({"steps": {"income": 50}}, income=-50.0)


def test_max_changes_counts_features() -> None:
    assert holds({"max_changes": 2}, age=31, job=None)
    assert not holds({"max_changes": 2}, age=31, job=None, sector=2)
    assert holds({"max_changes": 1}, query={"age": None, "job": None}, sector=2)


def cost(most: float, **answer: Any) -> bool:
    wish = Constraints(cost={"age": per_unit(2), "job": 3}, max_cost=most)
    return bool(check(wish, **answer).iloc[0])


def test_costs_add_up() -> None:
    assert cost(1, income=5.0, sector=2)
    assert cost(9, age=33, job="nurse")
    assert not cost(8.9, age=33, job="nurse")
    assert cost(4, age=28)
    assert not cost(3.9, age=28)
    assert cost(2, age=None)
    assert not cost(1.9, age=None)
    assert not cost(2.9, job=None)


def test_rules_hold_on_every_answer_changed_or_not() -> None:
    assert holds({"rules": ["age >= 30 and grade >= 'mid'"]}, income=1.0)
    assert not holds({"rules": ["age > 30"]}, income=1.0)
    assert not holds({"rules": ["grade > 'mid'"]}, grade="low")
    assert holds({"rules": ["if sector == 2 then member == false"]}, sector=2, member=False)
    assert not holds({"rules": ["if sector == 2 then member == false"]}, sector=2)
    assert not holds({"rules": ["job is not missing"]}, job=None)
    assert not holds({"rules": ["age > 0"]}, age=None)
    assert holds({"rules": ["not age > 0"]}, age=None)


def test_rules_name_columns_that_are_numbers() -> None:
    frame = pd.DataFrame({7: [1.5, 2.5]})
    answers = frame.set_axis(pd.MultiIndex.from_tuples([(0, 0), (1, 0)]))
    found = verify(frame, answers, [0, 1], Constraints(rules=["`7` > 2"], frozen=[7]), Schema.infer(frame))
    assert found["holds"].tolist() == [True, False, True, True, True, True]


# -- the schema's line -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "answer", "fine"),
    [
        ({}, {"age": 60}, True),
        ({}, {"age": 61}, False),
        ({"age": 99}, {"income": 1.0}, True),
        ({"age": 99}, {"age": 98}, False),
        ({}, {"income": -501.0}, False),
        ({}, {"age": None}, True),
        ({}, {"grade": None}, False),
        ({}, {"job": "pilot"}, False),
        ({"job": "pilot"}, {"age": 31}, True),
        ({}, {"member": False}, True),
    ],
)
def test_changed_values_are_ones_that_the_schema_knows(query: Any, answer: Any, fine: bool) -> None:
    assert check(Constraints(), query=query, **answer)["schema"] == fine


def test_whole_numbers_stay_whole() -> None:
    whole = pd.DataFrame({"a": [1.0, 5.0]})
    answers = pd.DataFrame({"a": [2.0, 2.5]}, index=pd.MultiIndex.from_tuples([(0, 0), (0, 1)]))
    assert verify(whole, answers, [0, 0], Constraints(), Schema.infer(whole))["holds"].tolist() == [True, False]


def test_columns_and_dtypes_are_the_querys() -> None:
    index = pd.MultiIndex.from_tuples([(0, 0)])
    answers = table(age=[31]).set_axis(index)
    wish = Constraints(frozen=["job"])
    for other in (
        answers.astype({"age": "int64"}),
        answers.astype({"grade": "str"}),
        answers[answers.columns[::-1]],
        answers.drop(columns="job"),
        answers.assign(extra=1),
    ):
        found = verify(table(), other, [0], wish, SCHEMA).set_index("constraint")["holds"]
        assert not found["schema"]
        assert found["frozen job"] == ("job" in other)


def test_narrow_floats_are_compared_as_they_are_stored() -> None:
    frame = pd.DataFrame({"a": np.array([0.0, 20_000.0], dtype="float32")})
    index = pd.MultiIndex.from_tuples([(0, 0), (0, 1)])
    answers = pd.DataFrame({"a": np.array([12_345.1, 0.1], dtype="float32")}, index=index)
    wish = Constraints(allowed={"a": [0.1, 12_345.1]}, steps={"a": 0.1})
    found = verify(frame, answers, [0, 0], wish, Schema.infer(frame, kinds={"a": "continuous"}))
    assert found["holds"].all()


def test_equal_objects_of_different_types_are_a_change() -> None:
    frame = pd.DataFrame({"a": pd.Series([1, True, 1.0, "x"], dtype=object)})
    answers = frame.set_axis(pd.MultiIndex.from_tuples([(0, i) for i in range(4)]))
    found = verify(frame, answers, [0] * 4, Constraints(frozen=["a"]), Schema.infer(frame))
    assert found.loc[found["constraint"] == "frozen a", "holds"].tolist() == [True, False, False, False]


def test_a_step_is_met_or_not() -> None:
    """0.1.0 (9aa4d8c) let an answer be off by a millionth of a step."""
    assert holds({"steps": {"income": 5.0}}, income=105.0)
    assert not holds({"steps": {"income": 5.0}}, income=105.000001)
    assert holds({"steps": {"income": 0.1}}, income=0.3)
    assert holds({"steps": {"income": 0.1}}, income=3 * 0.1)
