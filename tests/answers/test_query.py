"""One call: which constraints bind it, what is refused and why, and what is said where answers lack."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from dicoflex import Constraints, DiCoFlex, Schema, load
from dicoflex.answers import engine as ask
from dicoflex.answers.frames import index_of, numbers_within
from dicoflex.answers.query import bound_by, exponent, limited
from dicoflex.constraints import delta, per_unit
from dicoflex.errors import ConstraintError, QueryError, RuleError, UserError
from dicoflex.generators import GENERATORS
from dicoflex.request import Request

pytestmark = pytest.mark.usefixtures("one_thread")

Quickly = Callable[..., DiCoFlex]


def wish(schema: Schema, frozen: Any, constraints: Any) -> Constraints:
    """What binds a call that freezes these features under these constraints."""
    return bound_by(schema, Request.of(frozen=frozen, constraints=constraints))


@pytest.fixture(autouse=True, scope="module")
def few_candidates() -> Iterator[None]:
    with mock.patch.object(ask, "CANDIDATES", 24):
        yield


SCHEMA = Schema.infer(pd.DataFrame({"age": [20, 60], "hours": [10.5, 60.0], "sex": ["f", "m"], "job": ["a", "b"]}))
PRESET = SCHEMA.with_constraints(Constraints(increase=["age"], frozen=["sex"], max_changes=3))


# -- which constraints bind ----------------------------------------------------------------------------------------


def test_nothing_asked_for_binds_nothing() -> None:
    bound = wish(SCHEMA, (), None)
    assert bound == Constraints()
    assert not limited(bound)


def test_frozen_features_of_the_call_and_of_its_constraints_are_joined() -> None:
    bound = wish(SCHEMA, ["sex", np.str_("age")], {"frozen": ["job", "sex"], "max_changes": 2})
    assert bound.frozen == ("job", "sex", "age")
    assert bound.max_changes == 2


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({"frozen": ["age"]}, False),
        ({"frozen": ["age"], "strict": True}, False),
        ({"cost": {"age": 1}}, True),
        ({"cost": {"age": 1}, "max_cost": 2}, True),
        ({"increase": ["age"]}, True),
        ({"rules": ["age < 40"]}, True),
        ({"max_changes": 4}, True),
    ],
)
def test_more_than_frozen_features_is_told_apart(given: dict[str, Any], more: bool) -> None:
    assert limited(wish(SCHEMA, (), given)) == more


def test_the_schemas_own_constraints_bind_and_the_call_tightens_them() -> None:
    assert wish(PRESET, (), None).describe() == PRESET.constraints.describe()
    bound = wish(PRESET, ["job"], {"max_changes": 2, "ranges": {"age": delta(0, 5)}})
    assert (bound.frozen, bound.increase, bound.max_changes) == (("sex", "job"), ("age",), 2)
    assert wish(PRESET, (), {"max_changes": 4}).max_changes == 3


def test_a_call_relaxes_only_what_it_overrides() -> None:
    bound = wish(PRESET, (), {"override": ["increase:age", "max_changes"], "decrease": ["age"], "max_changes": 4})
    assert (bound.frozen, bound.increase, bound.decrease, bound.max_changes) == (("sex",), (), ("age",), 4)
    with pytest.raises(ConstraintError, match=r"increase and decrease both name 'age'.*relax one with override"):
        wish(PRESET, (), {"decrease": ["age"]})


def test_what_binds_can_be_asked_for_again() -> None:
    """Also where the call relaxed what the schema says."""
    bound = wish(PRESET, ["job"], {"override": ["sex"], "ranges": {"age": (20, 40)}})
    assert bound.frozen == ("job",)
    assert wish(PRESET, bound.frozen, json.loads(bound.to_json())) == bound


@pytest.mark.parametrize(
    ("frozen", "constraints", "message"),
    [
        ("sex", None, r"frozen must be a list of features, got 'sex'; write frozen=\['sex'\]"),
        (["sexx"], None, "frozen feature 'sexx' is unknown; did you mean 'sex'"),
        ((), ["age"], r"constraints must be Constraints\(...\) or a dict of its fields, got list"),
        ((), "age", r"constraints must be Constraints\(...\) or a dict of its fields, got str"),
        ((), {"freeze": ["age"]}, "constraint 'freeze' is unknown"),
    ],
)
def test_what_is_no_wish_is_refused(frozen: Any, constraints: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        wish(SCHEMA, frozen, constraints)


# -- p ---------------------------------------------------------------------------------------------------------------

TRAINED = (0.01, 0.25, 2.0)


def test_the_exponent_by_default_is_two_or_the_least_under_a_budget() -> None:
    assert exponent(None, TRAINED, sparse=False) == 2.0
    assert exponent(None, TRAINED, sparse=True) == 0.01
    assert exponent(0.25, TRAINED, sparse=True) == 0.25
    assert exponent(None, (0.5, 1.0), sparse=False) == 1.0
    assert exponent(None, (3.0, 4.0), sparse=False) == 3.0


@pytest.mark.parametrize("p", [0.001, 2.1, np.nan])
def test_exponents_outside_the_trained_range_are_refused(p: Any) -> None:
    with pytest.raises(QueryError, match=r"p must lie in the trained range, 0\.01 to 2, got"):
        exponent(p, TRAINED, sparse=False)


@pytest.mark.parametrize("p", ["1", True])
def test_exponents_that_are_no_numbers_are_refused(p: Any) -> None:
    with pytest.raises(QueryError, match=r"p must lie in the trained range, and be a number, got"):
        Request.of(p=p)


def test_few_changes_are_asked_for_with_the_least_exponent(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    asked = {"n": 2, "random_state": 0}
    assert mixed.explain(queries.head(1), **asked).settings["p"] == 2.0
    few = mixed.explain(queries.head(1), constraints={"max_changes": 2}, **asked)
    assert few.settings["p"] == 0.01
    assert (few.info["n_changed"] <= 2).all()
    own = mixed.explain(queries.head(1), constraints={"max_changes": 2}, p=1.0, **asked)
    assert own.settings["p"] == 1.0


def test_numbers_within_runs() -> None:
    assert numbers_within(np.array([0, 0, 3, 3, 3, 9])).tolist() == [0, 1, 0, 1, 2, 0]
    assert numbers_within(np.zeros(0, dtype=np.int64)).tolist() == []


# -- what is refused, before anything is drawn -------------------------------------------------------------------------

ALL_BUT_AGE = ["gain", "price", "score", "visits", "job", "city", "grade", "area", "member"]
ALL_BUT_GRADE = ["age", "gain", "price", "score", "visits", "job", "city", "area", "member"]
ALL_BUT_JOB = ["age", "gain", "price", "score", "visits", "city", "grade", "area", "member"]

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    # The constraints contradict themselves or are malformed.
    "unknown field": ({"freeze": ["age"]}, "constraint 'freeze' is unknown; did you mean 'frozen'?"),
    "range upside down": (
        {"ranges": {"age": (50, 20)}},
        "ranges 'age': the low limit 50 is above the high limit 20; swap them",
    ),
    "up and down": (
        {"increase": ["age"], "decrease": ["age"]},
        "increase and decrease both name 'age', so that it could not change; put it in frozen instead",
    ),
    "allowed and forbidden": (
        {"allowed": {"job": ["cook"]}, "forbidden": {"job": ["cook"]}},
        "'job': the value 'cook' is both allowed and forbidden; drop it from one list",
    ),
    "nothing allowed": (
        {"allowed": {"job": []}},
        "allowed 'job': the list is empty; to keep a feature as it is, put it in frozen",
    ),
    "never up": (
        {"increase": ["age"], "ranges": {"age": delta(-5, 0)}},
        "ranges 'age': -5 to 0 is never up, and increase names 'age'; raise the high limit above 0",
    ),
    "no step in the range": (
        {"ranges": {"visits": (1, 4)}, "steps": {"visits": 5}},
        "ranges 'visits': 1 to 4 holds no multiple of the step 5; widen the range or choose a smaller step",
    ),
    "no changes at all": ({"max_changes": 0}, "max_changes must be a whole number of at least 1, got 0"),
    "free of cost": (
        {"max_cost": 3},
        "max_cost is 3 and cost is empty; say what changes cost, cost={'hours': 1}",
    ),
    "a rule cut short": (
        {"rules": ["age >="]},
        "rule 'age >=': at character 7: expected a value, found the end",
    ),
    # They don't fit the table.
    "unknown feature": ({"increase": ["agee"]}, "increase: feature 'agee' is unknown; did you mean 'age'?"),
    "unknown value": (
        {"allowed": {"job": ["coook"]}},
        "allowed 'job': value 'coook' is unknown; did you mean 'cook'?",
    ),
    "no order": (
        {"increase": ["job"]},
        "increase 'job': it is categorical and has no order; use allowed or transitions",
    ),
    "outside the column": (
        {"ranges": {"age": (90, 120)}},
        "ranges 'age': 90 to 120 lies outside the column's limits, 18 to 79; choose limits inside",
    ),
    "half a visit": (
        {"steps": {"visits": 0.5}},
        "steps 'visits': the step 0.5 has a fraction, and the column holds whole numbers; use a whole step",
    ),
    "moves of a number": (
        {"transitions": {"age": {30: [31]}}},
        "transitions 'age': it is integer, and transitions are for levels; use ranges, increase or decrease",
    ),
    "a rule of unknown names": (
        {"rules": ["agee >= 30"]},
        "rule 'agee >= 30': feature 'agee' is unknown; did you mean 'age'?",
    ),
    "a rule that compares apples": (
        {"rules": ["age >= 'old'"]},
        "rule \"age >= 'old'\": compares age, a number, with the text 'old'; write a number",
    ),
    "an override of nothing": (
        {"override": ["age"]},
        "override 'age' names no constraint of the schema; it has none",
    ),
    # This query can't meet them.
    "at its highest": (
        {"increase": ["grade"], "forbidden": {"grade": ["c"]}, "strict": True},
        "row 0: grade is required to change, because strict is set and its value 'c' is not one that the constraints "
        "allow, and grade may only increase and already is at its highest value; leave strict out, or relax the "
        "constraints on grade",
    ),
    "nothing but upwards": (
        {"increase": ["grade"], "frozen": ALL_BUT_GRADE},
        "row 0: nothing may change: grade may only increase and already is at its highest value, age is frozen, gain "
        "is frozen, price is frozen, and 6 more; relax one of these",
    ),
    "frozen outside": (
        {"frozen": ["age"], "ranges": {"age": (50, 60)}, "strict": True},
        "row 0: age is required to change, because strict is set and its value 40 is not one that the constraints "
        "allow, and age is frozen; leave strict out, or relax the constraints on age",
    ),
    "more than the budget": (
        {"ranges": {"age": (50, 60)}, "allowed": {"job": ["smith"]}, "max_changes": 1, "strict": True},
        "row 0: strict requires 2 features to change (age, job), and max_changes is 1; raise it, or leave strict out",
    ),
    "more than the purse": (
        {
            "ranges": {"age": (50, 60)},
            "allowed": {"job": ["smith"]},
            "cost": {"age": per_unit(1), "job": 2},
            "max_cost": 11,
            "strict": True,
        },
        "row 0: what strict requires to change (age, job) costs at least 12, and max_cost is 11; raise it, or leave "
        "strict out",
    ),
    "nothing affordable": (
        {"frozen": ALL_BUT_AGE, "cost": {"age": per_unit(5)}, "max_cost": 4},
        "row 0: nothing may change: age has no value besides 40 that cost allow, gain is frozen, price is frozen, "
        "score is frozen, and 6 more; relax one of these",
    ),
    "nowhere to go": (
        {"frozen": ALL_BUT_JOB, "transitions": {"job": {"cook": []}}},
        "row 0: nothing may change: job has no value besides 'cook' that transitions allow, age is frozen, gain is "
        "frozen, price is frozen, and 6 more; relax one of these",
    ),
    "a rule against what is frozen": (
        {"frozen": ["age"], "rules": ["age >= 50"]},
        "row 0: the rule 'age >= 50' can't hold with what is frozen or limited; free one of its features, or leave "
        "the rule out",
    ),
    "a rule against a range": (
        {"ranges": {"visits": (0, 5)}, "rules": ["if job == 'cook' then visits >= 6"], "frozen": ["job"]},
        "row 0: the rule \"if job == 'cook' then visits >= 6\" can't hold with what is frozen or limited; free one of "
        "its features, or leave the rule out",
    ),
    "all frozen": (
        {"frozen": [*ALL_BUT_AGE, "age"]},
        "nothing may change: every feature is frozen or constant; free at least one",
    ),
}


@pytest.fixture
def person(queries: pd.DataFrame) -> pd.DataFrame:
    values = {"age": 40, "gain": 0.0, "job": "cook", "grade": "c", "visits": 3}
    row = queries.iloc[[0]].reset_index(drop=True)
    for name, value in values.items():
        row.loc[0, name] = value
    return row


@pytest.mark.parametrize("method", ["explain", "sample"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_met_is_said_before_drawing(
    case: str, method: str, mixed: DiCoFlex, person: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, reason = REFUSED[case]
    monkeypatch.setattr(mixed, "model_", replace(mixed.model_, generator=mock.Mock(spec=[])))
    with pytest.raises(UserError) as caught:
        getattr(mixed, method)(person, constraints=given)
    assert str(caught.value) == reason
    assert isinstance(caught.value, ConstraintError | RuleError | QueryError)


def test_enough_sets_are_refused() -> None:
    assert len(REFUSED) >= 25


@pytest.mark.parametrize("generator", GENERATORS)
def test_every_density_refuses_alike(generator: str, models: Callable[[str], DiCoFlex], person: pd.DataFrame) -> None:
    given, reason = REFUSED["at its highest"]
    with pytest.raises(ConstraintError) as caught:
        models(generator).explain(person, constraints=given)
    assert str(caught.value) == reason


# -- what is short -----------------------------------------------------------------------------------------------------


def test_rows_that_can_not_be_answered_stand_beside_those_that_can(mixed: DiCoFlex, person: pd.DataFrame) -> None:
    rows = pd.concat([person, person.assign(grade=pd.Categorical(["a"], person["grade"].cat.categories, ordered=True))])
    rows = rows.set_axis(["c", "a"])
    given, reason = REFUSED["at its highest"]
    cfs = mixed.explain(rows, constraints=given, n=3, random_state=0)
    assert set(cfs.positions) == {1}
    short = cfs.shortfall.set_index("row")
    assert short.loc["c", ["wanted", "got"]].tolist() == [3, 0]
    assert short.loc["c", "reason"] == reason.removeprefix("row 0: ")
    with pytest.raises(ConstraintError, match="row 'c': grade is required to change"):
        mixed.sample(rows, constraints=given, n=3)


def test_shortfall_names_the_hardest_constraint(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    frozen = [name for name in queries if name not in ("visits", "member")]
    bound = Constraints(frozen=frozen, allowed={"visits": [3], "member": [True, False]}, max_changes=2)
    rows = queries.assign(visits=np.full(len(queries), 5, dtype="int8"))
    cfs = mixed.explain(rows, constraints=bound, n=5, random_state=0)
    assert cfs.shortfall["row"].tolist() == queries.index.tolist()
    told = cfs.shortfall["reason"].str.extract(
        r"and pass; the hardest: (.*) \((\d+)% of the draws without it break it\)"
    )
    assert set(told[0]) == {"visits may only become 3"}
    assert told[1].astype(int).between(1, 100).all()


def test_the_hardest_of_several_rules_is_named(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    rules = ["age >= 18 or age is missing", "7 * score * score == gain + 1", "visits <= 100"]
    hardest = "the hardest: 7 * score * score == gain + 1 must hold (100% of the draws without it break it)"
    with pytest.raises(QueryError) as caught:
        mixed.sample(queries, constraints={"rules": rules}, n=2, random_state=0)
    assert str(caught.value) == f"row 'r1-0': no draw obeys the constraints; {hardest}"
    cfs = mixed.explain(queries, constraints={"rules": rules}, n=2, random_state=0)
    assert len(cfs) == 0
    said = f"too few different rows obey the constraints and pass; {hardest}; none of 20,000 rows drawn evenly obeys"
    assert cfs.shortfall["reason"].str.startswith(said).all()
    assert json.loads(cfs.to_json())["verdicts"] == []


def test_weights_without_a_bound_are_no_constraint(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    """And a shortfall is not blamed on them."""
    frozen = [name for name in queries if name != "member"]
    cfs = mixed.explain(queries, constraints={"cost": {"member": 2}}, frozen=frozen, n=3, random_state=0)
    assert (cfs.shortfall["got"] <= 1).all()
    assert cfs.shortfall["reason"].str.contains("free a feature").all()


def test_check_and_constraints_bind_together(
    judged: DiCoFlex, queries: pd.DataFrame, says: Callable[[pd.DataFrame], np.ndarray]
) -> None:
    bound = Constraints(frozen=["gain"], increase=["score"], max_changes=3)
    cfs = judged.explain(queries, target="yes", constraints=bound, check=says, n=3, random_state=0)
    assert len(cfs) > 5
    assert (says(cfs.frame) == "yes").all()
    assert cfs.verify()["holds"].all()


# -- what comes back ---------------------------------------------------------------------------------------------------


def bits(column: pd.Series) -> list[Any]:
    """Cells to the last bit: -0.0 is not 0.0."""
    return [struct.pack("d", v) if isinstance(v, float) else v for v in column.astype(object)]


@pytest.mark.parametrize("generator", GENERATORS)
def test_frozen_features_are_the_querys_bit_for_bit(
    generator: str, models: Callable[[str], DiCoFlex], queries: pd.DataFrame
) -> None:
    rows = queries.fillna({"job": "cook"}).assign(gain=-0.0, price=1 / 3)
    frozen = ["age", "gain", "price", "job"]
    draws = models(generator).sample(
        rows, constraints={"frozen": frozen, "ranges": {"score": delta(-1, 1)}}, n=5, random_state=0
    )
    repeated = rows.loc[rows.index.repeat(5)]
    for name in frozen:
        assert draws[name].dtype == rows[name].dtype
        assert bits(draws[name]) == bits(repeated[name]), name


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_query_outside_a_range_may_stay_unless_strict(
    generator: str, models: Callable[[str], DiCoFlex], queries: pd.DataFrame
) -> None:
    rows = queries.head(4).assign(gain=90_000.0)
    model = models(generator)
    bound = {"ranges": {"gain": (0, 800)}, "max_changes": 5}
    gain = model.sample(rows, target="yes", constraints=bound, n=20, random_state=0)["gain"]
    assert ((gain == 90_000) | gain.between(0, 800)).all()
    strict = model.sample(rows, target="yes", constraints={**bound, "strict": True}, n=20, random_state=0)["gain"]
    assert strict.between(0, 800).all()
    if generator == "mixed":
        assert 0 < (gain == 90_000).mean() < 1


# -- presets -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def protective(quickly: Quickly, applicants: pd.DataFrame, labels: np.ndarray) -> DiCoFlex:
    """A model whose schema protects people: age never decreases, the city stays."""
    preset = Constraints(increase=["age"], frozen=["city"], ranges={"visits": (0, 6)})
    return quickly(applicants, labels, schema=Schema.infer(applicants).with_constraints(preset))


def ages(rows: pd.DataFrame, draws: pd.DataFrame, n: int) -> pd.Series:
    """By how much each draw's age differs from its query's, where both are known."""
    before = rows["age"].loc[rows.index.repeat(n)].to_numpy(dtype=float, na_value=np.nan)
    after = draws["age"].to_numpy(dtype=float, na_value=np.nan)
    return pd.Series(after - before).dropna()


def test_presets_bind_every_call(protective: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.assign(visits=np.array([3] * len(queries), dtype="int8"))
    draws = protective.sample(rows, n=30, random_state=0)
    assert (ages(rows, draws, 30) >= 0).all()
    assert draws["visits"].between(0, 6).all()
    assert draws["city"].tolist() == rows["city"].repeat(30).tolist()
    cfs = protective.explain(rows, n=2, constraints={"max_changes": 3}, random_state=0)
    labels = set(cfs.verify()["constraint"])
    assert {"frozen city", "increase age", "range visits 0 to 6", "max_changes 3", "schema", "record"} == labels
    assert cfs.constraints.frozen == ("city",)


def test_presets_are_relaxed_only_by_name(protective: DiCoFlex, queries: pd.DataFrame) -> None:
    draws = protective.sample(queries, n=30, constraints={"override": ["age"]}, random_state=0)
    assert (ages(queries, draws, 30) < 0).any()
    assert draws["city"].tolist() == queries["city"].repeat(30).tolist()
    with pytest.raises(ConstraintError, match="override: constraint of the schema 'agee' is unknown"):
        protective.sample(queries, constraints={"override": ["agee"]})
    with pytest.raises(ConstraintError, match=r"nothing in common.*relax one with override=\[...\]"):
        protective.explain(queries, constraints={"ranges": {"visits": (8, 9)}})


def test_presets_are_part_of_the_model_file(protective: DiCoFlex, queries: pd.DataFrame, tmp_path: Path) -> None:
    protective.save(tmp_path / "people.dicoflex")
    again = load(tmp_path / "people.dicoflex")
    assert again.schema_.constraints == protective.schema_.constraints
    one, other = (model.sample(queries, n=5, random_state=0) for model in (protective, again))
    pd.testing.assert_frame_equal(one, other)


# -- the record --------------------------------------------------------------------------------------------------------


def rerun(model: DiCoFlex, rows: pd.DataFrame, record: dict[str, Any]) -> pd.DataFrame:
    """The rows that the settings of a record give."""
    given = record["settings"]
    names = ("n", "p", "frozen", "constraints", "confidence", "novel", "random_state")
    return model.explain(rows, target=given["targets"], **{name: given[name] for name in names}).frame


def test_the_record_can_be_run_again(protective: DiCoFlex, queries: pd.DataFrame, tmp_path: Path) -> None:
    protective.save(tmp_path / "people.dicoflex")
    bound = Constraints(
        ranges={"gain": delta(-500, 1500)},
        transitions={"area": {1: [2], 2: [1, 5]}, "job": [[None, ["cook"]]]},
        rules=["if member == true then visits <= 5"],
        cost={"age": per_unit(0.1), "job": 2},
        max_cost=4,
        override=["city"],
    )
    cfs = protective.explain(queries, constraints=bound, frozen=["grade"], n=3, p=0.25)
    record = json.loads(cfs.to_json())
    again = load(tmp_path / "people.dicoflex")
    assert record["settings"]["model"] == again.fingerprint_
    assert isinstance(record["settings"]["random_state"], int)
    assert record["settings"]["constraints"]["override"] == ["city"]
    assert Constraints(**record["settings"]["constraints"]) == cfs.constraints
    pd.testing.assert_frame_equal(rerun(again, queries, record), cfs.frame)


def test_the_record_carries_a_verdict_for_every_answer_and_constraint(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    bound = Constraints(frozen=["city"], increase=["grade"], max_changes=3, rules=["visits <= 9"])
    cfs = mixed.explain(queries, constraints=bound, n=2, random_state=7)
    record = json.loads(cfs.to_json())
    assert record["settings"]["constraints"] == bound.model_dump()
    assert record["settings"]["random_state"] == 7
    verdicts = record["verdicts"]
    assert len(verdicts) == 6 * len(cfs)
    assert verdicts[0] == {"row": cfs.frame.index[0][0], "cf": 0, "constraint": "frozen city", "holds": True}
    assert all(verdict["holds"] for verdict in verdicts)


@pytest.mark.parametrize(
    "labels",
    [
        pd.RangeIndex(3),
        pd.Index([7, 8, 30], name="person"),
        pd.Index(["a", "b", "c"]),
        pd.Index([5, 3, 9]),
        pd.Index([1, 1, 2]),
        pd.Index([1.0, np.nan, 2.0]),
        pd.MultiIndex.from_tuples([(0, "x"), (0, "y"), (1, "x")]),
        pd.DatetimeIndex(["2024-01-01", "2024-02-01", "2024-03-01"]),
    ],
    ids=["range", "named", "text", "unsorted", "repeated", "missing", "pairs", "dates"],
)
@pytest.mark.parametrize("query", [[0, 0, 1, 2, 2], [0, 2], [1, 1], []], ids=["all", "gap", "one", "none"])
def test_the_index_is_the_rows_labels_and_numbers(labels: pd.Index, query: list[int]) -> None:
    found = index_of(labels, np.array(query, dtype=np.int64))
    flat = labels.to_flat_index()
    seen: dict[int, int] = {}
    expected = []
    for i in query:
        expected.append((flat[i], seen.setdefault(i, 0)))
        seen[i] += 1
    assert found.names == ["row", "cf"]
    assert len(found) == len(expected)
    for (label, number), (row, cf) in zip(found, expected, strict=True):
        assert number == cf
        assert label == row or (pd.isna(label) and pd.isna(row))
    # What is not answered is not among the labels either: looking it up is an error, not an empty frame.
    assert set(found.levels[0]) <= {flat[i] for i in query}
    if query and labels.nlevels == 1 and labels.is_unique and not labels.hasnans:
        frame = pd.DataFrame({"x": range(len(query))}, index=found)
        assert frame.loc[[flat[query[0]]]]["x"].tolist()[0] == 0
