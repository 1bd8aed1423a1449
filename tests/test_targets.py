"""What may be asked for besides a label, as values, as text and as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from dicoflex import at_least, at_most, between, by, one_of
from dicoflex.errors import QueryError
from dicoflex.request import Request
from dicoflex.targets import Interval, OneOf, Shift, as_sent, read_goal

GOALS = [
    (at_least(620), {"at_least": 620.0}, ">= 620"),
    (at_most(5.5), {"at_most": 5.5}, "<= 5.5"),
    (between(-1, 2), {"at_least": -1.0, "at_most": 2.0}, "-1 to 2"),
    (by(40), {"by": 40.0}, "by +40"),
    (by(-2.5), {"by": -2.5}, "by -2.5"),
]


@pytest.mark.parametrize(("goal", "sent", "text"), GOALS, ids=[text for *_, text in GOALS])
def test_a_goal_is_the_same_in_python_in_json_and_as_text(goal: Any, sent: Any, text: str) -> None:
    assert as_sent(goal) == sent
    assert Request.of(target=sent).target == goal
    assert Request.model_validate_json(Request.of(target=goal, random_state=1).model_dump_json()).target == goal
    assert str(goal) == text
    assert read_goal(text) == goal


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        (">=620", at_least(620)), (" > 1e3 ", at_least(1000)), ("<=-2", at_most(-2)), ("600..700", between(600, 700)),
        ("-.5 to +.5", between(-0.5, 0.5)), ("+40", by(40)), ("by -40", by(-40)),
    ],
)  # fmt: skip
def test_texts_that_ask_for_scores(text: str, goal: Any) -> None:
    assert read_goal(text) == goal


@pytest.mark.parametrize(
    "text", ["", "620", "-40", ">=", ">=six", "1..", "1..2..3", "by", ">= 1; drop", "nan..1", ">=inf"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(QueryError, match="asks for no score; write '>=620'"):
        read_goal(text)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: between(2, 1), "no score is at least 2 and at most 1"),
        (lambda: by(0), "a change by 0 is none"),
        (lambda: at_least("x"), "asked for by a finite number, got 'x'"),
        (lambda: at_most(float("nan")), "asked for by a finite number, got nan"),
        (lambda: at_least(True), "asked for by a finite number, got True"),
        (lambda: one_of(), "at least 1 item"),
        (lambda: one_of([1]), r"one_of takes labels, got \[1\]"),
        (lambda: Request.of(target={"at_leats": 3}), "is unknown; write {'at_least': 620}"),
        (lambda: Request.of(target={}), "is unknown; write {'at_least': 620}"),
    ],
)
def test_goals_that_are_none_are_refused(make: Any, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        make()


def test_sets_are_any_of_their_labels() -> None:
    assert Request.of(target={"b", "a"}).target == one_of("a", "b")
    assert one_of("a", "a", 1).one_of == ("a", 1)
    assert one_of("a").holds("a")
    assert not one_of("a").holds("b")


def test_what_an_interval_is_made_of() -> None:
    assert between(1, 2).parts == (["< 1", "1 to 2", "> 2"], 1)
    assert at_most(2).parts == (["<= 2", "> 2"], 0)
    assert at_least(1).parts == (["< 1", ">= 1"], 1)
    assert [between(1, 2).holds(x) for x in (0.9, 1, 2, 2.1)] == [False, True, True, False]
    assert by(-3).from_(10.0) == at_most(7)
    assert [str(by(b).from_(x)) for b, x in ((2, 16.3144), (40, 583.2174), (-0.05, 0.31234), (0.1, 0.3))] == [
        ">= 18.32", ">= 623.3", "<= 0.2623", ">= 0.4",
    ]  # fmt: skip
    assert by(1e-30).from_(5.0) == at_least(5)
    assert by(1).from_(1e300) == at_least(1e300)
    assert {Interval(at_least=1), Interval(at_least=1.0)} == {at_least(1)}
    assert isinstance(Request.of(target=[at_least(1), "+4"]).target, tuple)
    assert (Shift(by=1), OneOf(one_of=(1,))) == (by(1), one_of(1))
