"""Rows with values that training never had: they stop no batch, and no answer keeps such a value."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comparing import BlackBox
from dicoflex import Constraints, DiCoFlex, Schema, load, one_of
from dicoflex.answers.plain import answer_plain
from dicoflex.errors import ConstraintError, QueryError, UnseenError
from dicoflex.examples import EXAMPLES, rows_like
from dicoflex.request import Request
from dicoflex.table.plain_rows import plain_row
from dicoflex.table.unseen import said_of_unseen

ODD, LACKING = 2, 5
ASKED: dict[str, Any] = {"target": "yes", "n": 3, "random_state": 0}


@pytest.fixture(scope="module")
def odd(queries: pd.DataFrame) -> pd.DataFrame:
    """The queries, of which one has a city that nobody had, and one lacks a price."""
    rows = queries.astype({"city": object})
    rows.iloc[ODD, rows.columns.get_loc("city")] = "Bonn"
    rows.iloc[LACKING, rows.columns.get_loc("price")] = np.nan
    return rows


def of_rows(frame: pd.DataFrame, places: list[int], rows: pd.DataFrame) -> pd.DataFrame:
    return frame[frame.index.get_level_values(0).isin(rows.index[places])]


def test_other_rows_of_a_batch_are_answered_as_without_it(
    judged: DiCoFlex, queries: pd.DataFrame, odd: pd.DataFrame
) -> None:
    others = [i for i in range(len(odd)) if i not in (ODD, LACKING)]
    for wish in ({}, {"frozen": ["age"]}, {"refine": False}, {"target": None}, {"constraints": {"max_changes": 2}}):
        alone = judged.explain(queries.iloc[others], **ASKED | wish)
        found = judged.explain(odd, **ASKED | wish)
        pd.testing.assert_frame_equal(of_rows(found.frame, others, odd), alone.frame)
        pd.testing.assert_frame_equal(of_rows(found.info, others, odd), alone.info)
        assert [found.status[i] for i in others] == alone.status


def test_answers_leave_what_was_never_seen(judged: DiCoFlex, odd: pd.DataFrame) -> None:
    found = judged.explain(odd, **ASKED)
    assert found.verify()["holds"].all()
    assert found.verify(odd)["holds"].all()
    for place, name, before in ((ODD, "city", "Bonn"), (LACKING, "price", None)):
        told = found.changes().query("row == @odd.index[@place] and feature == @name")
        answers = of_rows(found.frame, [place], odd)
        assert len(told) == len(answers) > 0
        assert told["before"].tolist() == [before] * len(told) or told["before"].isna().all()
        assert answers[name].isin(judged.schema_[name].levels or answers[name].dropna()).all()
    assert found.frame.dtypes.tolist() == judged.sample(odd.iloc[:1], target="yes", n=1).dtypes.tolist()
    assert found.queries["city"].iloc[ODD] == "Bonn"
    assert found.origin is not None
    assert [i for i, label in enumerate(found.origin.labels()) if label is None] == [ODD, LACKING]


def test_views_and_record_show_the_value_as_it_came(judged: DiCoFlex, odd: pd.DataFrame) -> None:
    found = judged.explain(odd.iloc[[ODD]], **ASKED)
    record = json.loads(found.to_json())
    assert record["queries"][0]["values"]["city"] == "Bonn"
    assert all(verdict["holds"] for verdict in record["verdicts"])
    for view in (str(found), found.to_html(), found.to_csv(written=odd.iloc[[ODD]].astype(str)), found.to_dice_json()):
        assert "Rome" in view or "Ulm" in view
    assert "Bonn" in str(found)
    assert "Bonn" in found.to_html(pictures=True)
    assert len(found.importance()) > 0


def test_a_row_that_may_not_leave_it_gets_no_answer_and_is_told_why(judged: DiCoFlex, odd: pd.DataFrame) -> None:
    found = judged.explain(odd, **ASKED, frozen=["city"])
    assert found.status[ODD] == "contradictory"
    _, got, why = found.reasons[ODD]
    assert (got, why) == (
        0, "city 'Bonn' was never seen in training, and may not change; free city, or give a value that was seen",
    )  # fmt: skip
    assert found.status[LACKING] == "found"
    with pytest.raises(ConstraintError, match=r"row .*: city 'Bonn' was never seen in training, and may not change"):
        judged.explain(odd.iloc[[ODD]], **ASKED, frozen=["city"])


IMPOSSIBLE = {
    "a direction": ({"increase": ["price"]}, "and no other value obeys increase"),
    "a distance": ({"ranges": {"price": {"delta": [0, 5]}}}, "and no other value obeys ranges"),
    "a rule": ({"rules": ["price > was.price"]}, "and the rule 'price > was.price' measures from it"),
    "a cost": ({"cost": {"price": {"per_unit": 2}}, "max_cost": 9}, "and the cost of price per unit measures from it"),
    "a consequence": ({"consequences": {"price": "age / 2"}}, "and follows from others"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_nothing_is_measured_from_an_unseen_value(case: str, judged: DiCoFlex, odd: pd.DataFrame) -> None:
    wish, words = IMPOSSIBLE[case]
    found = judged.explain(odd, **ASKED, constraints=wish)
    assert found.status[LACKING] == "contradictory"
    assert f"price is missing, which it never was in training, {words}" in found.reasons[LACKING][2]
    assert found.verify()["holds"].all()


def test_constraints_bind_where_the_unseen_value_goes(judged: DiCoFlex, odd: pd.DataFrame) -> None:
    """The level that stands for it while answers are sought has transitions of its own, which don't count."""
    levels = judged.schema_["city"].levels
    wish = Constraints(transitions={"city": {level: [level] for level in levels}}, max_changes=3)
    found = judged.explain(odd, **ASKED, constraints=wish)
    answers = of_rows(found.frame, [ODD], odd)
    assert len(answers) > 0
    assert found.verify()["holds"].all()
    pinned = judged.explain(odd, **ASKED, constraints={"allowed": {"city": [answers["city"].iloc[0]]}})
    assert (of_rows(pinned.frame, [ODD], odd)["city"] == answers["city"].iloc[0]).all()


def test_an_unseen_level_of_an_ordinal_has_no_direction(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.astype({"grade": object})
    rows.iloc[ODD, rows.columns.get_loc("grade")] = "d"
    assert "found" in judged.explain(rows, **ASKED).status[ODD]
    found = judged.explain(rows, **ASKED, constraints={"increase": ["grade"]})
    assert "grade 'd' was never seen in training, and no other value obeys increase" in found.reasons[ODD][2]


def test_a_check_is_not_asked_whether_such_a_row_has_the_target(
    judged: DiCoFlex, odd: pd.DataFrame, says: BlackBox
) -> None:
    seen: list[pd.DataFrame] = []

    def check(frame: pd.DataFrame) -> Any:
        seen.append(frame)
        return says(frame)

    found = judged.explain(odd, **ASKED, check=check)
    assert found.info["valid"].all()
    assert all("Bonn" not in set(frame["city"]) for frame in seen)
    assert found.status[ODD] in ("found", "not_found")


def test_any_target_can_be_asked_for(judged: DiCoFlex, odd: pd.DataFrame) -> None:
    for target in (None, "other", one_of("no", "yes"), ["yes", "no"] * 4):
        found = judged.explain(odd, **ASKED | {"target": target})
        assert len(of_rows(found.frame, [ODD], odd)) > 0
        assert found.verify()["holds"].all()
    with pytest.raises(QueryError, match="nothing is tried for it"):
        found.relax(position=ODD)


def test_numbers_beyond_all_that_were_seen_are_numbers(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    age = judged.schema_["age"]
    rows = queries.assign(age=int(age.maximum or 0) + 20)
    for wish in ({}, {"frozen": ["age"]}):
        found = judged.explain(rows, **ASKED, **wish, handle_unknown="error")
        assert found.verify()["holds"].all()
        assert len(found) > 0
    assert (found.frame["age"] == rows["age"].iloc[0]).all()


def test_plain_rows_get_what_frames_get(judged: DiCoFlex, odd: pd.DataFrame) -> None:
    cells = [plain_row(row) for row in odd.astype(object).to_numpy(dtype=object).tolist()]
    for wish in ({}, {"frozen": ["city"]}, {"target": None}):
        request = Request.of(**ASKED | wish)
        told = answer_plain(judged.model_, cells, request, verify=True).rows
        record = json.loads(judged.explain(odd, **ASKED | wish).to_json())
        for row, query in zip(told, record["queries"], strict=True):
            assert [one["values"] for one in row["counterfactuals"]] == [
                one["values"] for one in query["counterfactuals"]
            ]
            assert [one["changes"] for one in row["counterfactuals"]] == [
                one["changes"] for one in query["counterfactuals"]
            ]
            assert all(one["verified"] for one in row["counterfactuals"])
        assert [row["reason"] for row in told if "reason" in row] == [one["reason"] for one in record["shortfall"]]
        assert [row["status"] for row in told] == [query["status"] for query in record["queries"]]
    with pytest.raises(UnseenError):
        answer_plain(judged.model_, cells, Request.of(**ASKED, handle_unknown="error"))


def test_a_batch_in_which_nobody_can_be_answered_is_told_so_in_plain_rows(judged: DiCoFlex, odd: pd.DataFrame) -> None:
    cells = [plain_row(row) for row in odd.iloc[[ODD]].astype(object).to_numpy(dtype=object).tolist()]
    found = answer_plain(judged.model_, cells, Request.of(**ASKED, frozen=["city"]))
    assert [row["status"] for row in found.rows] == ["contradictory"]
    assert found.bound["frozen"] == ["city"]


def test_sample_and_the_density_refuse_them(judged: DiCoFlex, odd: pd.DataFrame) -> None:
    with pytest.raises(UnseenError, match="'price' has missing values"):
        judged.sample(odd, target="yes", n=2)
    with pytest.raises(UnseenError, match="'price' has missing values"):
        judged.log_density(odd, odd, target="yes")
    with pytest.raises(UnseenError, match="'price' has missing values"):
        judged.explain(odd, **ASKED, handle_unknown="error")
    with pytest.raises(QueryError, match="handle_unknown must be 'replace' or 'error', got 'skip'"):
        judged.explain(odd, **ASKED, handle_unknown="skip")


def test_what_else_does_not_fit_is_still_refused(judged: DiCoFlex, odd: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match=r"'visits' .*fractions"):
        judged.explain(odd.assign(visits=1.5), **ASKED)
    with pytest.raises(UnseenError, match="has the value"):
        judged.explain(odd.assign(city=[["Ulm"]] * len(odd)), **ASKED)
    with pytest.raises(UnseenError, match="'area' has the value '5'"):
        judged.explain(odd.assign(area=["5"] * len(odd)), **ASKED)


def test_refined_answers_leave_it_too() -> None:
    explainer = load(next(path for path in EXAMPLES if path.stem == "perceptron"))
    level = next(feature for feature in explainer.schema_.features if not feature.is_number)
    seen = rows_like(explainer.schema_, 6)
    rows = seen.astype({level.name: object})
    rows.loc[3, level.name] = "never"
    found = explainer.explain(rows, **ASKED)
    answers = found.frame.loc[3]
    assert len(answers) > 0
    assert "never" not in set(answers[level.name])
    assert found.verify()["holds"].all()
    pd.testing.assert_frame_equal(found.info.drop(index=3), explainer.explain(seen.drop(index=3), **ASKED).info)


def test_a_level_that_few_rows_had_says_so() -> None:
    schema = Schema.infer(pd.DataFrame({"job": ["cook", "nurse"] * 9}), min_count=5)
    assert said_of_unseen(schema, 0, "smith") == "job 'smith' was never seen in training or in fewer than 5 rows"
