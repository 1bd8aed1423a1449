"""What can't be meant is refused before any work, in words that name the thing, the rule, the value and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from dicoflex import Constraints, DiCoFlex, Schema
from dicoflex.errors import ConstraintError, UserError

ROWS = pd.DataFrame(
    {
        "age": [20, 30, 40, 50],
        "hours": [10.0, 20.5, 30.0, 40.0],
        "job": ["cook", "clerk", "pilot", "cook"],
        "grade": ["low", "mid", "high", "mid"],
        "member": [True, False, True, False],
        "marital-status": ["a", "b", "a", "b"],
    }
)
SCHEMA = Schema.infer(ROWS, orders={"grade": ["low", "mid", "high"]})

RULES: dict[str, str] = {
    "age >= was.agee": "feature 'agee' is unknown; did you mean 'age'?",
    "was age <= age": (
        "at character 5: expected an operator or the end, found 'age'; what a feature was is written was.age"
    ),
    "was.age": "at character 1: expected a condition such as 'a <= b', found the value 'was.age'",
    "age = was.age": "at character 5: '=' is no comparison; write '=='",
    "changed(was.age)": "at character 12: expected ')', found '.'; changed(age) compares with was.age already",
    "changed(age, hours)": "at character 12: expected ')', found ','",
    "changed(age) >= 1": "at character 1: expected a value, found a condition",
    "job > was.job": "job is a category and has no order; use ==, != or in",
    "member >= was.member": "member is a boolean and has no order; use ==, != or in",
    "age - was.age >= 2 * job": "calculates with job, a category; only numbers can be calculated with",
    "grade > was.age": ("grade is an ordinal; compare it by order with one of its levels, not with was.age, a number"),
    "if changed(job) then job != 'baker'": "level of job: 'baker' is unknown; known: clerk, cook, pilot",
    "age >= 'old'": "compares age, a number, with the text 'old'; write a number",
    "was.marital-status == 'a'": "a name such as marital-status goes in backticks: `marital-status`",
    "age > was.age and": "at character 18: expected a value, found the end",
    "__import__('os').system('x')": "at character 17: '.' is unknown here; names with it go in backticks",
    "age > 1e999": "at character 7: the number is too large",
}
CONSEQUENCES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown feature": ({"agee": "was.age"}, "consequences: feature 'agee' is unknown; did you mean 'age'?"),
    "an unknown cause": (
        {"age": "was.age + tenure"},
        "consequences 'age': rule 'was.age + tenure': "
        "feature 'tenure' is unknown; known: age, hours, job, grade, member, marital-status",
    ),
    "text for a number": (
        {"age": "if changed(job) then 'old' else was.age"},
        "consequences 'age': rule \"if changed(job) then 'old' else was.age\": "
        "gives age, a number, the text 'old'; write a number",
    ),
    "a level that is none": (
        {"job": "'baker'"},
        "consequences 'job': rule \"'baker'\": level of job: 'baker' is unknown; known: clerk, cook, pilot",
    ),
    "a number for a boolean": (
        {"member": "1"},
        "consequences 'member': rule '1': gives member, a boolean, 1; write true or false",
    ),
    "a rank for an ordinal": (
        {"grade": "was.grade + 1"},
        "consequences 'grade': rule 'was.grade + 1': "
        "gives grade, an ordinal, was.grade + 1; write one of its levels, or was.grade",
    ),
    "a condition": (
        {"age": "age > 3"},
        "consequences 'age': rule 'age > 3': at character 1: expected a value, found a condition",
    ),
    "no other value": (
        {"age": "if changed(job) then 0"},
        "consequences 'age': rule 'if changed(job) then 0': "
        "at character 23: expected 'else' and another value, found the end",
    ),
    "a circle": (
        {"age": "was.age + hours", "hours": "age / 2"},
        "consequences go round in a circle: age follows from hours follows from age; break it with was.",
    ),
    "itself": (
        {"age": "age + 1"},
        "consequences go round in a circle: age follows from age; break it with was.",
    ),
    "no text": (
        {"age": 3},
        "consequences 'age': what a feature follows from must be text such as 'was.age + 1', got int",
    ),
}
SETS: dict[str, tuple[Callable[[], Any], str]] = {
    "frozen": (
        lambda: Constraints(consequences={"age": "was.age + 1"}, frozen=["age"]),
        "consequences 'age': it is frozen too; leave it out of one of them",
    ),
    "pinned": (
        lambda: Constraints(consequences={"age": "was.age + 1"}, pinned={"age": 30}),
        "consequences 'age': it is pinned too; leave it out of one of them",
    ),
    "priced": (
        lambda: Constraints(consequences={"age": "was.age + 1"}, cost={"age": 2}),
        "cost 'age': it follows from others and costs nothing of its own; leave it out",
    ),
    "two that differ": (
        lambda: Constraints(consequences={"age": "was.age"}).merge(Constraints(consequences={"age": "was.age + 1"})),
        "consequences 'age': it follows from 'was.age' and from 'was.age + 1', which differ; give one of them",
    ),
    "the same rule twice": (
        lambda: Constraints(rules=["age > was.age", "age>was.age"]),
        "rules names 'age > was.age' twice; say it once",
    ),
    "a lone text": (
        lambda: Constraints(rules="age > was.age"),
        "rules must be a list, got 'age > was.age'; write ['age > was.age']",
    ),
    "too many": (
        lambda: Constraints(rules=[f"age > was.age + {i}" for i in range(65)]),
        "rules has 65 entries, and 64 are the most; leave some out",
    ),
}


@pytest.mark.parametrize("text", RULES)
def test_a_rule_is_refused(text: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        SCHEMA.check_constraints(Constraints(rules=[text]))
    assert str(caught.value) == f"rule {text!r}: {RULES[text]}"


@pytest.mark.parametrize("case", CONSEQUENCES)
def test_a_consequence_is_refused(case: str) -> None:
    given, reason = CONSEQUENCES[case]
    with pytest.raises(ConstraintError) as caught:
        SCHEMA.check_constraints(Constraints(consequences=given))
    assert str(caught.value) == reason


@pytest.mark.parametrize("case", SETS)
def test_a_set_is_refused(case: str) -> None:
    make, reason = SETS[case]
    with pytest.raises(ConstraintError) as caught:
        make()
    assert str(caught.value) == reason


CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "no class": ({"target": "maybe"}, "target 'maybe' is unknown; known: no, yes"),
    "all frozen": (
        {"frozen": ["age", "gain", "price", "score", "visits", "member", "job", "city", "grade", "area"]},
        "nothing may change: every feature is frozen or constant; free at least one",
    ),
    "a rule that can't hold": (
        {"frozen": ["age"], "constraints": Constraints(rules=["age >= was.age + 2"])},
        "row 'r1-0': the rule 'age >= was.age + 2' can't hold with what is frozen or limited; "
        "free one of its features, or leave the rule out",
    ),
    "no switch": ({"exhaustive": "no"}, "exhaustive must be True or False, got 'no'"),
    "no callable": ({"check": "predict"}, "check must be a callable, got str; pass clf.predict"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call_is_refused(mixed: DiCoFlex, queries: pd.DataFrame, case: str) -> None:
    given, reason = CALLS[case]
    with pytest.raises(UserError) as caught:
        mixed.explain(queries.head(1), **{"target": "yes", "random_state": 0, **given})
    assert str(caught.value) == reason


def test_more_than_twenty_five_are_shown() -> None:
    assert len(RULES) + len(CONSEQUENCES) + len(SETS) + len(CALLS) >= 25
