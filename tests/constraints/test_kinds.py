"""Every room covers every kind of constraint: a row of the table that one of them lacks fails here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest

from dicoflex.answers import verification
from dicoflex.cli import main
from dicoflex.cli.constraint_flags import FORMS, PLAIN, Flags, constraints
from dicoflex.constraints import Constraints, delta, per_unit
from dicoflex.constraints.kinds import KINDS, Flag
from dicoflex.constraints.statement import combine
from dicoflex.errors import ConstraintError
from dicoflex.limits.limits import Limits
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "constraints.md"
TABLE = pd.DataFrame(
    {
        "age": [18, 30, 45, 70],
        "hours": [10.0, 40.0, 37.5, 60.0],
        "grade": pd.Categorical(["low", "mid", "high", "mid"], ["low", "mid", "high"], ordered=True),
        "job": ["cook", "nurse", "smith", "baker"],
    }
)
SCHEMA = Schema.infer(TABLE)
ENCODING = Encoding.fit(TABLE, SCHEMA)
QUERY = {"age": 30, "hours": 40.0, "grade": "mid", "job": "cook"}


@dataclass(frozen=True)
class Example:
    """A value of a kind, answers that obey and break it, and another value with what the two make together.

    fine, broken: what changes in an answer to the query. said: the value's words. besides: fields that it goes with,
    and their words.
    """

    value: Any
    said: Any
    fine: dict[str, Any]
    broken: dict[str, Any]
    other: Any
    joined: Any
    besides: tuple[dict[str, Any], dict[str, Any]] = ({}, {})


EXAMPLES = {
    "frozen": Example(["age"], ["age"], {"hours": 50.0}, {"age": 45}, ["job"], ("age", "job")),
    "increase": Example(["age"], ["age"], {"age": 45}, {"age": 18}, ["hours"], ("age", "hours")),
    "decrease": Example(["grade"], ["grade"], {"grade": "low"}, {"grade": "high"}, ["grade"], ("grade",)),
    "ranges": Example(
        {"age": [(20, 50), delta(0, 30)]}, ["age=20:50", "age=+0:+30"], {"age": 45}, {"age": 55},
        {"age": (40, 60)}, Constraints(ranges={"age": [(40, 50), delta(0, 30)]}).ranges,
    ),
    "allowed": Example(
        {"job": ["nurse", "smith"]}, ["job=nurse,smith"], {"job": "nurse"}, {"job": "baker"},
        {"job": ["smith"]}, {"job": ("smith",)},
    ),
    "forbidden": Example(
        {"job": ["nurse"]}, ["job=nurse"], {"job": "smith"}, {"job": "nurse"},
        {"job": ["smith"]}, {"job": ("nurse", "smith")},
    ),
    "pinned": Example(
        {"job": "smith"}, ["job=smith"], {"job": "smith"}, {"hours": 50.0},
        {"age": 45}, {"job": "smith", "age": 45},
    ),
    "transitions": Example(
        {"grade": {"mid": ["high"]}}, ["grade=mid>high"], {"grade": "high"}, {"grade": "low"},
        {"grade": {"low": ["mid"]}}, {"grade": {"mid": ("high",), "low": ("mid",)}},
    ),
    "max_changes": Example(1, 1, {"age": 45}, {"age": 45, "hours": 50.0}, 3, 1),
    "rules": Example(["age <= hours"], ["age <= hours"], {"age": 39}, {"age": 45}, ["age<=hours"], ("age <= hours",)),
    "consequences": Example(
        {"hours": "was.hours - (age - was.age)"}, ["hours=was.hours - (age - was.age)"], {"age": 45, "hours": 25.0},
        {"age": 45}, {"age": "if changed(job) then 20 else was.age"},
        {"hours": "was.hours - (age - was.age)", "age": "if changed(job) then 20 else was.age"},
    ),
    "steps": Example({"hours": 5}, ["hours=5"], {"hours": 45.0}, {"hours": 47.0}, {"age": 2}, {"hours": 5, "age": 2}),
    "cost": Example(
        {"age": 2, "hours": per_unit(1)}, ["age=2", "hours=1/unit"], {"age": 45}, {"age": 45, "hours": 45.0},
        {"age": 3}, {"age": 3, "hours": per_unit(1)}, ({"max_cost": 4}, {"max_cost": 4.0}),
    ),
    "max_cost": Example(
        3, 3.0, {"age": 45}, {"age": 45, "hours": 50.0}, 8, 3,
        ({"cost": {"age": 2, "hours": 2}}, {"cost": ["age=2", "hours=2"]}),
    ),
    "strict": Example(
        True, True, {"age": 45}, {"hours": 50.0}, False, True,
        ({"ranges": {"age": [(40, 60)]}}, {"ranges": ["age=40:60"]}),
    ),
    "override": Example(["increase:age"], ["increase:age"], {}, {}, ["job"], ("increase:age", "job")),
}  # fmt: skip
BINDING = [kind for kind in KINDS if kind != "override"]


def wish(kind: str, value: Any = None) -> Constraints:
    example = EXAMPLES[kind]
    return Constraints(**{kind: example.value if value is None else value}, **example.besides[0])


def frame(changes: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([QUERY | changes]).astype(TABLE.dtypes)


def is_broken(bound: Constraints, changes: dict[str, Any]) -> bool:
    """Whether the limits drop an answer, or never let it be drawn: frozen features are not even offered."""
    own = ENCODING.encode(frame({}))
    limits = Limits.build(bound, ENCODING, own, SCHEMA.mask(list(bound.frozen))[None])
    drawn = limits.can_change[0, [SCHEMA.position(name) for name in changes]].all()
    return bool(limits.broken(ENCODING.encode(frame(changes)), own, np.zeros(1, dtype=np.int64))[0] or not drawn)


def verdicts(bound: Constraints, changes: dict[str, Any]) -> dict[str, bool]:
    """What the certificate says of an answer, by label."""
    answer = frame(changes)
    answer.index = pd.MultiIndex.from_tuples([(0, 0)], names=["row", "cf"])
    found = verification.verify(frame({}), answer, [0], bound, SCHEMA)
    return dict(zip(found["constraint"], found["holds"], strict=True))


def test_the_examples_cover_the_table() -> None:
    assert list(EXAMPLES) == list(KINDS)
    assert all(kind.field == field for field, kind in KINDS.items())


def test_the_statement_has_every_field_and_no_other() -> None:
    assert sorted(Constraints.model_fields) == sorted(KINDS)
    explained = [line.partition(":")[0].strip() for line in str(Constraints.__doc__).splitlines()]
    assert set(KINDS) <= {name for names in explained for name in names.split(", ")}


@pytest.mark.parametrize("kind", KINDS)
def test_json_holds_it(kind: str) -> None:
    made = wish(kind)
    assert kind in made.model_dump()
    again = Constraints.from_json(made.to_json())
    assert again == made
    assert getattr(again, kind) == getattr(made, kind) != Constraints.model_fields[kind].default


@pytest.mark.parametrize("kind", KINDS)
def test_two_of_it_join(kind: str) -> None:
    example = EXAMPLES[kind]
    assert getattr(wish(kind).merge(wish(kind, example.other)), kind) == example.joined
    assert wish(kind).merge(Constraints()) == Constraints().merge(wish(kind)) == wish(kind)


@pytest.mark.parametrize("kind", BINDING)
def test_a_sentence_says_it(kind: str) -> None:
    ones = [one for one in wish(kind).one_by_one() if one.kind == kind]
    assert ones
    for one in ones:
        assert (one.kind, one.feature, one.text) in wish(kind).describe()
        assert one.label
        assert (one.feature is not None) == KINDS[kind].names_features
        assert str(one.feature or "") in one.text
        assert one.entry.startswith(kind)


@pytest.mark.parametrize("kind", BINDING)
def test_it_is_taken_apart_and_put_together(kind: str) -> None:
    made = wish(kind)
    ones = [one for one in made.one_by_one() if one.kind == kind]
    assert KINDS[kind].whole(ones) == getattr(made, kind)
    for one in ones:
        alone = made.only(one)
        assert [found for found in alone.one_by_one() if found.kind == kind] == [one]
        assert all(KINDS[found.kind].role != "limit" for found in alone.one_by_one() if found.kind != kind)


@pytest.mark.parametrize("kind", BINDING)
def test_an_override_lifts_it(kind: str) -> None:
    for one in wish(kind).one_by_one():
        left = combine(wish(kind), Constraints(override=[one.entry]))
        assert one.entry not in [found.entry for found in left.one_by_one()]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].names_features])
def test_a_feature_that_the_table_lacks_is_refused(kind: str) -> None:
    value = EXAMPLES[kind].value
    odd = {"shoe": next(iter(value.values()))} if isinstance(value, dict) else ["shoe"]
    with pytest.raises(ConstraintError, match=f"^{kind}: feature 'shoe' is unknown"):
        SCHEMA.check_constraints(Constraints(**{kind: odd}))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].suits != "any"])
def test_a_feature_that_it_does_not_suit_is_refused(kind: str) -> None:
    wrong = "age" if KINDS[kind].suits == "levels" else "job"
    value = EXAMPLES[kind].value
    odd = {wrong: next(iter(value.values()))} if isinstance(value, dict) else [wrong]
    with pytest.raises(ConstraintError, match=f"^{kind} '{wrong}': it is "):
        SCHEMA.check_constraints(Constraints(**{kind: odd}))


@pytest.mark.parametrize("kind", BINDING)
def test_limits_drop_what_breaks_it(kind: str) -> None:
    example = EXAMPLES[kind]
    assert not is_broken(wish(kind), example.fine)
    assert is_broken(wish(kind), example.broken)
    assert not is_broken(wish(kind).without([kind]), example.broken)


@pytest.mark.parametrize("kind", BINDING)
def test_the_certificate_tells_what_breaks_it(kind: str) -> None:
    example = EXAMPLES[kind]
    found = verdicts(wish(kind), example.broken)
    assert all(verdicts(wish(kind), example.fine).values())
    assert not all(found.values())
    assert all(verdicts(wish(kind).without([kind]), example.broken).values())
    labels = {one.label for one in wish(kind).one_by_one() if one.kind == kind}
    assert (labels <= set(found)) == (KINDS[kind].role == "limit")


def test_the_certificate_refuses_a_kind_that_it_does_not_know() -> None:
    unknown = wish("frozen").one_by_one()[0]._replace(kind="mood")
    with pytest.raises(NotImplementedError, match="mood has no check"):
        verification._check(unknown, Constraints(), SCHEMA, set())


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_line_says_it(kind: str) -> None:
    example = EXAMPLES[kind]
    assert constraints(Flags(**{kind: example.said}, **example.besides[1]), SCHEMA) == wish(kind)


def test_the_command_line_offers_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--help"]) == 0
    offered = capsys.readouterr().out.split()
    assert {kind.flag.name for kind in KINDS.values()} <= set(offered)


def test_every_form_of_words_is_read() -> None:
    assert {*FORMS, *PLAIN, "texts"} == set(get_args(get_type_hints(Flag)["form"]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_names_it(kind: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"`{kind}`" in page
    assert f"`{KINDS[kind].flag.name}`" in page
