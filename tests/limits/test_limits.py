"""Constraints compiled for one call: what may be drawn, what must be dropped, what is moved inside, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex.constraints import Constraints, delta, per_unit, relative
from dicoflex.errors import ConstraintError
from dicoflex.limits.compile import MOST_POINTS, _multiples
from dicoflex.limits.limits import Limits
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

GRADES = ["low", "mid", "high"]
TABLE = pd.DataFrame(
    {
        "age": pd.array([18, 30, 45, 70, None], dtype="Int64"),
        "income": [0.0, 40.125, 100.0, 500.0, np.nan],
        "rate": np.array([0.1, 0.2, 0.3, 0.4, 0.9], dtype="float32"),
        "visits": [0, 2, 4, 9, 12],
        "grade": pd.Categorical(["low", "mid", "high", "mid", "low"], GRADES, ordered=True),
        "job": pd.Series(["cook", "nurse", "smith", None, "cook"], dtype=object),
        "member": [True, False, True, False, True],
    }
)
SCHEMA = Schema.infer(TABLE)
ENCODING = Encoding.fit(TABLE, SCHEMA)
NAMES = SCHEMA.names
QUERY: dict[str, Any] = {
    "age": 30, "income": 100.0, "rate": 0.3, "visits": 4, "grade": "mid", "job": "cook", "member": True,
}  # fmt: skip


def encoded(**changes: Any) -> np.ndarray:
    """The usual query with some values changed, as a matrix of one row."""
    row = pd.DataFrame({name: [value] for name, value in (QUERY | changes).items()}).astype(
        {"rate": "float32", "grade": TABLE["grade"].dtype, "job": object}
    )
    return ENCODING.encode(row.astype({"age": "Int64", "income": "float64"}))


def limits(query: np.ndarray | None = None, **given: Any) -> Limits:
    values = encoded() if query is None else query
    bound = Constraints(**given)
    mask = np.tile(SCHEMA.mask(list(bound.frozen)), (len(values), 1))
    SCHEMA.check_constraints(bound)
    return Limits.build(bound, ENCODING, values, mask)


def at(name: str) -> int:
    return NAMES.index(name)


def ends(found: Limits, name: str) -> tuple[float, float]:
    return float(found.low[0, at(name)]), float(found.high[0, at(name)])


def may_become(found: Limits, name: str) -> list[Any]:
    """The levels (None for missing) that a changed value may take."""
    feature = SCHEMA[name]
    states = found.states[0, found.offset[at(name)] : found.offset[at(name) + 1]]
    known = [*feature.levels, None] if not feature.is_number else [None]
    return [level for level, fine in zip(known, states, strict=False) if fine]


def breaks(found: Limits, query: np.ndarray | None = None, **changes: Any) -> bool:
    own = encoded() if query is None else query
    row = own.copy()
    answer = encoded(**changes)
    for name in changes:
        row[:, at(name)] = answer[:, at(name)]
    return bool(found.broken(row, own, np.zeros(1, dtype=np.int64))[0])


# -- numbers -----------------------------------------------------------------------------------------------------


def test_without_a_word_the_schema_bounds() -> None:
    found = limits(max_changes=7)
    assert ends(found, "age") == (18, 70)
    assert ends(found, "income") == (0, 500)
    assert may_become(found, "age") == [None]
    assert may_become(found, "job") == ["nurse", "smith", None]
    assert found.may_keep.all()
    assert not found.frozen.any()
    assert found.reasons.tolist() == [None]


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        ({"ranges": {"income": (20, 50)}}, "income", (20, 50)),
        ({"ranges": {"income": (None, 50)}}, "income", (0, 50)),
        ({"ranges": {"age": (20.5, 49.9)}}, "age", (21, 49)),
        ({"ranges": {"age": delta(0, 5)}}, "age", (30, 35)),
        ({"ranges": {"age": delta(-100, 5.5)}}, "age", (18, 35)),
        ({"ranges": {"age": relative(-0.1, 0.25)}}, "age", (27, 37)),
        ({"ranges": {"age": [delta(-5, 5), (28, 60)]}}, "age", (28, 35)),
        ({"increase": ["age"]}, "age", (31, 70)),
        ({"decrease": ["age"]}, "age", (18, 29)),
        ({"increase": ["income"]}, "income", (np.nextafter(100.0, 200.0), 500)),
        ({"decrease": ["income"], "ranges": {"income": (50, 200)}}, "income", (50, np.nextafter(100.0, 0.0))),
        ({"forbidden": {"visits": [0, 1, 3, 12, 11]}}, "visits", (2, 10)),
    ],
)
def test_ends_of_a_changed_number(given: dict[str, Any], name: str, expected: tuple[float, float]) -> None:
    assert ends(limits(**given), name) == pytest.approx(expected, rel=1e-13)


def test_ends_are_values_that_the_column_can_hold() -> None:
    """0.3 in 32 bits is more than 0.3, and lies outside a range up to 0.3."""
    found = limits(ranges={"rate": (0.15, 0.3)})
    low, high = ends(found, "rate")
    assert low == float(np.float32(low)) >= 0.15
    assert high == float(np.float32(high)) <= 0.3
    assert high > 0.3 - 1e-7
    assert ends(limits(increase=["rate"]), "rate")[0] == np.nextafter(np.float32(0.3), np.float32(1))


def test_calculated_ends_take_the_number_that_was_meant() -> None:
    """0.3 + 10 % is 0.33 to people, and 0.33000000000000002 to the machine."""
    query = encoded(income=0.3)
    assert not breaks(limits(query, ranges={"income": relative(0.1, 1)}), query, income=0.33)
    assert breaks(limits(query, ranges={"income": relative(0.1, 1)}), query, income=0.3299999)
    assert not breaks(limits(query, ranges={"income": delta(-0.2, 0)}), query, income=0.1)


def test_an_open_relative_end_is_open_at_zero() -> None:
    query = encoded(income=0.0)
    assert ends(limits(query, ranges={"income": relative(-0.1, None)}), "income") == (0, 500)
    assert limits(query, ranges={"income": relative(-0.1, 0.5)}).frozen[0, at("income")]


def test_a_bound_number_does_not_become_missing() -> None:
    bound: list[dict[str, Any]] = [{"ranges": {"age": (20, 50)}}, {"steps": {"age": 5}}, {"increase": ["age"]}]
    for given in (*bound, {"allowed": {"age": [20]}}, {"forbidden": {"age": [None]}}):
        assert may_become(limits(**given), "age") == []
    assert may_become(limits(allowed={"age": [20, None]}), "age") == [None]
    assert may_become(limits(forbidden={"age": [20]}), "age") == [None]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "given", [{"ranges": {"age": delta(0, 5)}}, {"ranges": {"age": relative(0, 1)}}, {"increase": ["age"]}]
)
def test_what_is_measured_from_a_missing_value_keeps_it_missing(given: dict[str, Any], strict: bool) -> None:
    query = encoded(age=None)
    found = limits(query, strict=strict, **given)
    assert found.frozen[0, at("age")]
    assert found.may_keep[0, at("age")]
    assert found.reasons[0] is None
    assert breaks(found, query, age=30)


def test_a_missing_value_may_appear_under_an_absolute_range() -> None:
    query = encoded(age=None)
    assert ends(limits(query, ranges={"age": (20, 50)}), "age") == (20, 50)
    assert not limits(query, ranges={"age": (20, 50)}, strict=True).may_keep[0, at("age")]


def test_points_are_the_only_values_of_a_changed_number() -> None:
    found = limits(allowed={"visits": [0, 9, 12], "age": [20, None]}, steps={"income": 30, "rate": 0.1})
    assert found.points[at("visits")].tolist() == [0, 9, 12]
    assert found.points[at("income")].tolist() == [30.0 * k for k in range(17)]
    assert found.points[at("rate")].tolist() == [float(np.float32(k / 10)) for k in range(1, 10)]
    assert found.points[at("grade")] is None
    assert [breaks(found, visits=v) for v in (9, 3, 0)] == [False, True, False]
    assert [breaks(found, income=v) for v in (90.0, 91.0, 480.0)] == [False, True, False]


def test_points_join_lists_steps_and_bans() -> None:
    found = limits(allowed={"visits": [0, 2, 3, 6, 9]}, steps={"visits": 3}, forbidden={"visits": [4, 5]})
    assert found.points[at("visits")].tolist() == [0, 3, 6, 9]
    found = limits(steps={"visits": 4}, forbidden={"visits": [0, 8]})
    assert found.points[at("visits")].tolist() == [4, 12]


def test_multiples_are_decimal_numbers() -> None:
    points = limits(steps={"income": 0.1}).points[at("income")]
    assert {0.3, 0.7, 1.1, 499.9} <= set(points)
    third = limits(steps={"income": 1 / 3}).points[at("income")]
    assert np.abs(third * 3 - np.rint(third * 3)).max() < 1e-9


def test_too_fine_a_step_is_refused() -> None:
    with pytest.raises(ConstraintError, match=rf"steps: 1e-05 cuts 'income' \(0 to 500\).*{MOST_POINTS:,} values"):
        limits(steps={"income": 1e-5})


def test_listed_numbers_are_taken_as_the_column_holds_them() -> None:
    """0.3 is another number in 32 bits; a person who forbids 0.3 means that one."""
    found = limits(forbidden={"rate": [0.4, 0.9]})
    assert breaks(found, rate=0.4)
    assert not breaks(found, rate=0.2)
    assert not breaks(limits(allowed={"rate": [0.2, 0.4]}), rate=0.4)
    assert limits(allowed={"rate": [0.2, 0.3]}, strict=True).may_keep[0, at("rate")]
    assert not limits(forbidden={"rate": [0.3]}, strict=True).may_keep[0, at("rate")]


# -- levels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        ({"increase": ["grade"]}, "grade", ["high"]),
        ({"decrease": ["grade"]}, "grade", ["low"]),
        ({"allowed": {"job": ["smith", "cook"]}}, "job", ["smith"]),
        ({"allowed": {"job": ["smith", None]}}, "job", ["smith", None]),
        ({"forbidden": {"job": ["smith", None]}}, "job", ["nurse"]),
        ({"transitions": {"job": {"cook": ["nurse"], "nurse": []}}}, "job", ["nurse"]),
        ({"transitions": {"job": {"nurse": ["cook"]}}}, "job", ["nurse", "smith", None]),
        ({"transitions": {"job": {"cook": []}}}, "job", []),
        ({"allowed": {"member": [0]}}, "member", [False]),
    ],
)
def test_what_a_changed_level_may_become(given: dict[str, Any], name: str, expected: list[Any]) -> None:
    assert may_become(limits(**given), name) == expected


def test_a_missing_level_has_no_direction_but_transitions() -> None:
    query = encoded(job=None)
    found = limits(query, transitions={"job": [[None, ["smith"]]]})
    assert may_become(found, "job") == ["smith"]


# -- keeping -----------------------------------------------------------------------------------------------------


def test_a_value_outside_may_stay_unless_strict() -> None:
    given: dict[str, Any] = {"ranges": {"income": (0, 50)}, "allowed": {"job": ["nurse"]}, "forbidden": {"visits": [4]}}
    loose, strict = limits(**given), limits(**given, strict=True)
    assert loose.may_keep.all()
    assert not breaks(loose, income=20.0)
    assert [NAMES[j] for j in np.flatnonzero(~strict.may_keep[0])] == ["income", "visits", "job"]
    assert breaks(strict, income=20.0)
    assert not breaks(strict, income=20.0, visits=2, job="nurse")


def test_directions_and_transitions_let_everything_stay() -> None:
    found = limits(increase=["age"], transitions={"job": {"cook": []}}, steps={"visits": 3}, strict=True)
    assert found.may_keep.all()


def test_what_has_no_other_value_counts_as_frozen() -> None:
    found = limits(
        ranges={"age": (30, 30), "income": (99.0, 101.0)},
        transitions={"job": {"cook": []}},
        allowed={"visits": [4], "member": [True]},
    )
    assert [NAMES[j] for j in np.flatnonzero(found.frozen[0])] == ["age", "visits", "job", "member"]
    assert (found.can_change == ~found.frozen).all()


def test_forbidden_numbers_leave_nothing_between_them() -> None:
    found = limits(ranges={"visits": (3, 5)}, forbidden={"visits": [3, 5]})
    assert found.frozen[0, at("visits")]


# -- budgets -----------------------------------------------------------------------------------------------------


def test_changes_are_counted() -> None:
    found = limits(max_changes=2)
    assert not breaks(found, age=31, job="nurse")
    assert breaks(found, age=31, job="nurse", member=False)


def test_costs_add_up_fixed_and_per_unit() -> None:
    found = limits(cost={"job": 2, "age": per_unit(0.5)}, max_cost=4)
    own = encoded()
    assert found.cost(encoded(job="nurse", age=34, member=False), own).tolist() == [4.0]
    assert found.cost(encoded(age=None), own).tolist() == [0.5]
    assert not breaks(found, job="nurse", age=34)
    assert breaks(found, job="nurse", age=35)


def test_least_costs_are_those_of_the_nearest_allowed_value() -> None:
    given: dict[str, Any] = {
        "cost": {name: per_unit(1) for name in ("age", "income", "visits", "rate")} | {"job": 2},
        "ranges": {"income": (110, 120)},
        "allowed": {"visits": [0, 4, 12]},
        "max_cost": 500,
    }
    found = limits(**given)
    least = dict(zip(NAMES, found.least_cost(encoded())[0], strict=True))
    assert least == {"age": 1.0, "income": 10.0, "rate": 0.0, "visits": 4.0, "grade": 0.0, "job": 2.0, "member": 0.0}
    query = encoded(age=None)
    assert limits(query, **given).least_cost(query)[0, at("age")] == 1.0


def test_a_change_that_costs_too_much_counts_as_frozen() -> None:
    found = limits(cost={"job": 5, "age": per_unit(2), "visits": per_unit(1)}, max_cost=1.5)
    assert [NAMES[j] for j in np.flatnonzero(found.frozen[0])] == ["age", "job"]


# -- rules -------------------------------------------------------------------------------------------------------


def test_rules_are_judged_on_the_finished_row() -> None:
    found = limits(rules=["visits <= age / 6"])
    assert not breaks(found, visits=2)
    assert breaks(found, visits=9)


@pytest.mark.parametrize(
    ("frozen", "given", "query"),
    [
        (["age"], {"rules": ["age >= 40"]}, {}),
        (["job"], {"rules": ["job == 'smith'"]}, {}),
        ([], {"rules": ["income >= 200"], "ranges": {"income": (0, 150)}}, {}),
        (["age", "visits"], {"rules": ["visits * 10 <= age"]}, {}),
        (["age"], {"rules": ["age is missing"]}, {}),
        (["age"], {"rules": ["age is not missing"]}, {"age": None}),
        (["age"], {"rules": ["age >= 20 or job == 'smith'"], "transitions": {"job": {"cook": []}}}, {"age": None}),
        ([], {"rules": ["grade == 'low'"], "increase": ["grade"]}, {}),
        (["age", "member"], {"rules": ["if member == true then age > 30"]}, {}),
        (["visits"], {"rules": ["visits != 4"]}, {}),
        ([], {"rules": ["visits >= 10"], "allowed": {"visits": [0, 9]}}, {}),
        (
            [],
            {"rules": ["visits >= 1"], "allowed": {"visits": [0, 9]}, "ranges": {"visits": (0, 8)}, "strict": True},
            {},
        ),
        (["visits"], {"rules": ["visits in [1, 2]"]}, {}),
    ],
)
def test_a_rule_that_can_not_hold_is_said(frozen: list[str], given: dict[str, Any], query: dict[str, Any]) -> None:
    reason = limits(encoded(**query), frozen=frozen, **given).reasons[0]
    text = given["rules"][0]
    assert reason == (
        f"the rule {text!r} can't hold with what is frozen or limited; free one of its features, or leave the rule out"
    )


@pytest.mark.parametrize(
    ("frozen", "given", "query"),
    [
        (["age"], {"rules": ["age >= 40 or job == 'smith'"]}, {}),
        (["age"], {"rules": ["not age >= 20"]}, {"age": None}),
        ([], {"rules": ["age is missing"]}, {}),
        (["age", "visits"], {"rules": ["visits * 10 - 10 <= age"]}, {}),
        (["age"], {"rules": ["age / 0 >= 1 or age * age > 1"]}, {}),
        (["age"], {"rules": ["visits > age - 30 or age is missing"]}, {}),
    ],
)
def test_a_rule_that_may_hold_is_not_refused(frozen: list[str], given: dict[str, Any], query: dict[str, Any]) -> None:
    assert limits(encoded(**query), frozen=frozen, **given).reasons[0] is None


@pytest.mark.parametrize(
    ("given", "before"),
    [
        ({"rules": ["visits >= 6"]}, ["age", "income", "rate"]),
        ({"rules": ["visits <= 6"]}, []),
        ({"rules": ["visits >= 6 or job == 'smith'"]}, ["age", "income", "rate"]),
        (
            {"rules": ["visits >= 6 or job == 'smith'"], "frozen": ["visits"]},
            ["age", "income", "rate", "visits", "grade"],
        ),
        ({"rules": ["age >= 20 and member == false"]}, NAMES[:-1]),
        ({"rules": ["visits * visits >= 17"]}, []),
        ({"rules": ["visits >= 6"], "forbidden": {"visits": [4]}, "strict": True}, []),
        ({"max_changes": 2}, []),
    ],
)
def test_a_change_is_left_for_features_that_mend_a_rule(given: dict[str, Any], before: list[str]) -> None:
    found = limits(**given)
    assert [NAMES[j] for j in np.flatnonzero(found.reserved(encoded(), np.arange(len(NAMES)))[0])] == before


def test_domains_join_what_stays_and_what_may_change() -> None:
    query = encoded(income=400.0)
    found = limits(query, frozen=["visits"], ranges={"income": (50, 60)}, increase=["age"])
    least, most, may_miss = found.domain(query)
    spans = {name: (least[0, at(name)], most[0, at(name)], bool(may_miss[0, at(name)])) for name in NAMES[:4]}
    assert spans["age"] == (30, 70, False)
    assert spans["income"] == (50, 400, False)
    assert spans["visits"] == (4, 4, False)
    strict = limits(query, ranges={"income": (50, 60)}, strict=True)
    assert [part[0, at("income")] for part in strict.domain(query)[:2]] == [50, 60]


# -- what can't be met -------------------------------------------------------------------------------------------

WHY: dict[str, tuple[dict[str, Any], str]] = {
    "highest": (
        {"increase": ["grade"], "forbidden": {"grade": ["high"]}, "strict": True},
        "grade is required to change, because strict is set and its value 'high' is not one that the constraints "
        "allow, and grade may only increase and already is at its highest value; leave strict out, or relax the "
        "constraints on grade",
    ),
    "lowest": (
        {"decrease": ["visits"], "ranges": {"visits": (3, 9)}, "strict": True},
        "visits is required to change, because strict is set and its value 0 is not one that the constraints allow, "
        "and visits may only decrease and already is at its lowest value; leave strict out, or relax the "
        "constraints on visits",
    ),
    "no way": (
        {"allowed": {"job": ["smith"]}, "transitions": {"job": {"cook": ["nurse"]}}, "strict": True},
        "job is required to change, because strict is set and its value 'cook' is not one that the constraints "
        "allow, and job has no value besides 'cook' that allowed and transitions allow; leave strict out, or relax "
        "the constraints on job",
    ),
    "frozen": (
        {"frozen": ["age"], "ranges": {"age": (40, 60)}, "strict": True},
        "age is required to change, because strict is set and its value 30 is not one that the constraints allow, "
        "and age is frozen; leave strict out, or relax the constraints on age",
    ),
    "too many": (
        {"ranges": {"age": (40, 60)}, "allowed": {"job": ["smith"]}, "max_changes": 1, "strict": True},
        "strict requires 2 features to change (age, job), and max_changes is 1; raise it, or leave strict out",
    ),
    "too dear": (
        {"ranges": {"age": (40, 60)}, "cost": {"age": per_unit(1), "job": 1}, "max_cost": 9.5, "strict": True},
        "age is required to change, because strict is set and its value 30 is not one that the constraints allow, "
        "and age has no value besides 30 that ranges and cost allow; leave strict out, or relax the constraints on "
        "age",
    ),
    "dear together": (
        {
            "ranges": {"age": (40, 60)},
            "allowed": {"job": ["smith"]},
            "cost": {"age": per_unit(1), "job": 2},
            "max_cost": 11,
            "strict": True,
        },
        "what strict requires to change (age, job) costs at least 12, and max_cost is 11; raise it, or leave strict "
        "out",
    ),
}


@pytest.mark.parametrize("case", WHY)
def test_why_a_query_has_no_answer(case: str) -> None:
    given, reason = WHY[case]
    query = encoded(grade="high", visits=0)
    assert limits(query, **given).reasons[0] == reason


def test_why_nothing_may_change() -> None:
    rest = ["income", "rate", "visits", "member"]
    found = limits(
        encoded(grade="high"),
        frozen=rest,
        increase=["grade"],
        ranges={"age": (29.5, 30.5)},
        transitions={"job": {"cook": []}},
    )
    assert found.reasons[0] == (
        "nothing may change: age has no value besides 30 that ranges allow, grade may only increase and already is at "
        "its highest value, job has no value besides 'cook' that transitions allow, income is frozen, and 3 "
        "more; relax one of these"
    )


def test_reasons_belong_to_their_query() -> None:
    query = np.concatenate([encoded(age=50), encoded(), encoded(age=None)])
    found = limits(query, frozen=["age"], ranges={"age": (40, 60)}, strict=True)
    assert [reason is None for reason in found.reasons] == [True, False, False]
    assert "its value missing is not one" in found.reasons[2]


def test_entries_can_be_taken() -> None:
    query = np.concatenate([encoded(age=age) for age in (20, 30, 40)])
    found = limits(query, increase=["age"])
    part = found.take(np.array([2, 0]))
    assert len(part) == 2
    assert part.low[:, at("age")].tolist() == [41, 21]
    assert part.points is found.points


# -- moving inside -----------------------------------------------------------------------------------------------


def project(found: Limits, rows: list[np.ndarray], query: np.ndarray | None = None) -> np.ndarray:
    values = np.concatenate(rows)
    own = np.repeat(encoded() if query is None else query, len(values), axis=0)
    return found.project(values, own, np.zeros(len(values), dtype=np.int64))


def test_numbers_go_to_the_nearest_allowed_value() -> None:
    found = limits(ranges={"age": (28, 40)}, steps={"income": 30})
    moved = project(found, [encoded(age=a, income=i) for a, i in ((20, 44.0), (39, 46.0), (70, 100.0))])
    assert moved[:, at("age")].tolist() == [28, 39, 40]
    assert moved[:, at("income")].tolist() == [30, 60, 100]


def test_levels_that_are_not_allowed_go_back() -> None:
    found = limits(allowed={"job": ["nurse"]}, increase=["grade"])
    moved = project(found, [encoded(job=j, grade=g) for j, g in (("smith", "low"), ("nurse", "high"))])
    assert ENCODING.decode(moved)[["job", "grade"]].to_numpy().tolist() == [["cook", "mid"], ["nurse", "high"]]


def test_what_may_not_stay_goes_to_an_allowed_level() -> None:
    found = limits(allowed={"job": ["nurse"]}, strict=True)
    assert ENCODING.decode(project(found, [encoded(age=31)]))["job"].tolist() == ["nurse"]


def test_missing_values_go_back_where_they_are_not_allowed() -> None:
    rows = [encoded(age=None, income=None)]
    moved = project(limits(ranges={"age": (20, 50)}), rows)
    assert moved[0, at("age")] == 30
    assert np.isnan(moved[0, at("income")])


def test_the_smallest_changes_are_undone_first() -> None:
    found = limits(max_changes=2)
    moved = project(found, [encoded(age=31, income=500.0, job="nurse", visits=5)])
    changed = ENCODING.differs(moved, encoded())[0]
    assert [NAMES[j] for j in np.flatnonzero(changed)] == ["income", "job"]


def test_changes_are_undone_until_they_can_be_paid() -> None:
    found = limits(cost={"age": per_unit(1), "job": 3}, max_cost=4)
    moved = project(found, [encoded(age=34, job="nurse"), encoded(age=31, job="nurse")])
    assert (found.cost(moved, np.repeat(encoded(), 2, axis=0)) <= 4).all()
    assert moved[1, at("age")] == 31


def test_frozen_features_stay_when_moved() -> None:
    found = limits(frozen=["job"], ranges={"age": (20, 40)})
    assert (project(found, [encoded(job="nurse")]) == encoded()).all()


def test_moved_rows_break_nothing_but_rules() -> None:
    """Random rows of every kind under random single constraints."""
    rng = np.random.default_rng(0)
    rows = [encoded(age=int(rng.integers(18, 71)) if rng.random() < 0.8 else None, income=float(rng.uniform(0, 500)),
                    rate=float(rng.choice([0.1, 0.2, 0.4])), visits=int(rng.integers(0, 13)),
                    grade=str(rng.choice(GRADES)), job=rng.choice(["cook", "nurse", "smith"]),
                    member=bool(rng.random() < 0.5)) for _ in range(60)]  # fmt: skip
    sets: list[dict[str, Any]] = [
        {"ranges": {"age": (20, 40), "income": relative(-0.2, 0.5)}},
        {"increase": ["age", "grade"], "decrease": ["income", "rate"]},
        {"allowed": {"job": ["nurse"], "visits": [2, 9]}, "strict": True},
        {"steps": {"income": 25, "visits": 5}},
        {"max_changes": 2},
        {"cost": {"age": per_unit(0.1), "income": per_unit(0.01), "job": 1, "grade": 1}, "max_cost": 1.5},
        {"transitions": {"job": {"cook": ["smith"]}, "grade": {"mid": ["low"]}}},
    ]
    for given in sets:
        found = limits(**given)
        moved = project(found, rows)
        own = np.repeat(encoded(), len(moved), axis=0)
        assert not found.broken(moved, own, np.zeros(len(moved), dtype=np.int64)).any(), given
        assert ENCODING.differs(moved, own).any(axis=1).mean() > 0.5, given


@pytest.mark.parametrize("step", [0.1, 0.01, 0.005, 0.25, 0.3, 1e-5, 7.5, 50.0, 1e6, 123.456, 2e-7, 1 / 3, np.pi, 1e22])
def test_multiples_are_the_numbers_that_their_decimals_say(step: float) -> None:
    low, high = -1000 * step, 20_000 * step
    frame = pd.DataFrame({"a": [low, high, low / 3]})
    feature = Schema.infer(frame, kinds={"a": "continuous"})["a"]
    found = _multiples(feature, low, high, step)
    assert found.tolist() == [
        float(f"{k * step:.15g}") for k in range(round(found[0] / step), round(found[-1] / step) + 1)
    ]
