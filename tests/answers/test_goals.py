"""Any of some labels, and any label but the present one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, Explainer, at_least, one_of
from dicoflex.answers.plain import answer_plain
from dicoflex.certificate import Certificate
from dicoflex.errors import QueryError
from dicoflex.request import Request
from dicoflex.table.plain_rows import cells_of
from dicoflex.targets import OneOf


def labels_of(goal: Any) -> tuple[Any, ...]:
    return goal.one_of if isinstance(goal, OneOf) else (goal,)


def present(model: DiCoFlex, rows: pd.DataFrame) -> list[str]:
    return [str(label) for label in model.probability(rows).idxmax(axis=1)]


@pytest.mark.parametrize("refine", [True, False])
def test_another_class_is_any_but_the_present_one(three: DiCoFlex, queries: pd.DataFrame, refine: bool) -> None:
    now = present(three, queries)
    found = three.explain(queries, target="other", n=5, refine=refine, random_state=0)
    said = present(three, found.frame.reset_index(drop=True))
    assert said == found.info["target"].tolist()
    assert all(label != now[i] for label, i in zip(said, found.positions, strict=True))
    assert all(now[i] not in labels_of(goal) for i, goal in enumerate(found.targets))
    assert any(isinstance(goal, OneOf) for goal in found.targets)
    assert found.verify(queries)["holds"].all()
    assert np.bincount(found.positions).max() <= 5
    assert found.positions.tolist() == sorted(found.positions.tolist())


def test_a_class_that_a_row_may_have_already_is_no_other(three: DiCoFlex, applicants: pd.DataFrame) -> None:
    """As far as held-out rows showed the surrogate to err, a row near a boundary may be beyond it."""
    said = three.probability(applicants)
    gap = np.diff(np.sort(said.to_numpy(), axis=1)[:, 1:]).ravel()
    order = np.argsort(gap)
    rows = applicants.iloc[[*order[:3], *order[-3:]]]
    wide = replace(Certificate.none(3), margin=np.full((3, 2), gap[order[2]] / 2 + 1e-6))
    model = replace(three.model_, certificate=wide)
    found = Explainer(model).explain(rows, target="other", n=2, random_state=0)
    second = said.loc[rows.index].apply(lambda row: row.nlargest(2).index[1], axis=1)
    kept = [second.iloc[i] in labels_of(goal) for i, goal in enumerate(found.targets)]
    assert kept == [False] * 3 + [True] * 3
    assert all(0 < len(labels_of(goal)) < 3 for goal in found.targets)
    told = three.explain(rows, target="other", n=2, check=lambda frame: np.full(len(frame), "low"), random_state=0)
    assert all(labels_of(goal) == ("high", "middle") for goal in told.targets)


def test_any_of_some_labels(three: DiCoFlex, queries: pd.DataFrame) -> None:
    found = three.explain(queries, target={"low", "high"}, n=4, random_state=0)
    assert set(found.info["target"]) <= {"low", "high"}
    assert [word == "already" for word in found.status] == [one in ("low", "high") for one in present(three, queries)]
    one = three.explain(queries, target=one_of("high"), n=4, random_state=0)
    pd.testing.assert_frame_equal(one.frame, three.explain(queries, target="high", n=4, random_state=0).frame)


def test_rows_are_answered_alone_as_among_others(three: DiCoFlex, queries: pd.DataFrame) -> None:
    whole = three.explain(queries, target="other", n=3, random_state=1)
    for i in range(len(queries)):
        alone = three.explain(queries.iloc[[i]], target="other", n=3, random_state=1)
        pd.testing.assert_frame_equal(alone.frame, whole.frame.iloc[whole.positions == i])


def test_views_name_each_answers_label(three: DiCoFlex, queries: pd.DataFrame) -> None:
    lack = queries[[word != "already" for word in three.explain(queries, target=one_of("low", "high"), n=1).status]]
    found = three.explain(lack.head(2), target=one_of("low", "high"), n=3, random_state=0)
    record = json.loads(found.to_json())
    assert record["settings"]["targets"][0] == {"one_of": ["high", "low"]}
    assert "high or low" in str(found)
    first = found.info["target"].iloc[0]
    assert f"0 → {first}" in str(found)
    assert f"0 → {first}" in found.to_html()
    again = three.explain(lack.head(2), target=[one_of("low", "high")] * 2, n=3, random_state=0)
    pd.testing.assert_frame_equal(again.frame, found.frame)


def test_plain_rows_get_the_same_answers(three: DiCoFlex, queries: pd.DataFrame) -> None:
    found = three.explain(queries, target="other", n=3, random_state=0)
    cells = [list(row) for row in cells_of(three.model_.encoding.conform(queries)[0])]
    answers = answer_plain(three.model_, cells, Request.of(target="other", n=3, random_state=0), verify=True)
    told = [one for row in answers.rows for one in row["counterfactuals"]]
    assert [one["target"] for one in told] == found.info["target"].tolist()
    assert [one["scores"]["proximity"] for one in told] == found.info["proximity"].tolist()
    assert answers.bound["target"] == "other"


def test_constraints_hold_whatever_the_label(three: DiCoFlex, queries: pd.DataFrame) -> None:
    limits = {"max_changes": 2, "frozen": ["age"]}
    found = three.explain(queries, target="other", n=4, constraints=limits, random_state=0)
    assert (found.info["n_changed"] <= 2).all()
    assert "age" not in set(found.changes()["feature"])
    assert found.verify(queries)["holds"].all()
    for i, (_, got, why) in found.reasons.items():
        assert got == np.sum(found.positions == i)
        assert why


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (one_of("high", "hihg"), "target 'hihg' is unknown; did you mean 'high'?"),
        (at_least(3), "target >= 3 asks for a score, and this model explains labels; choose from ['high', 'low', "
                      "'middle']"),
        (["other", at_least(3)] * 4, "target >= 3 asks for a score, and this model explains labels; choose from "
                                     "['high', 'low', 'middle']"),
    ],
)  # fmt: skip
def test_what_is_no_label_is_refused(three: DiCoFlex, queries: pd.DataFrame, target: Any, told: str) -> None:
    with pytest.raises(QueryError) as error:
        three.explain(queries, target=target)
    assert str(error.value) == told


def test_draws_have_one_label_per_row(three: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match="sample takes one label per row"):
        three.sample(queries, target="other", n=3)
    assert len(three.sample(queries, target=one_of("high"), n=3, random_state=0)) == 3 * len(queries)


def test_a_class_of_that_very_name_is_meant(applicants: pd.DataFrame, quickly: Any) -> None:
    labels = np.array(["other", "some"])[applicants["member"].to_numpy(dtype=int)]
    model = quickly(applicants, labels)
    found = model.explain(applicants.head(3), target="other", n=1, random_state=0)
    assert list(found.targets) == ["other"] * 3


def test_rows_that_name_nothing_go_to_the_other_of_two(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    cells = [list(row) for row in cells_of(mixed.model_.encoding.conform(queries.head(2))[0])]
    asked = Request.model_construct(**{**dict(Request.of(n=1, random_state=0)), "target": (None, one_of("yes", "no"))})
    answers = answer_plain(mixed.model_, cells, asked).rows
    assert answers[0]["target"] == {"yes": "no", "no": "yes"}[present(mixed, queries.head(1))[0]]
    assert answers[1]["target"] == {"one_of": ["no", "yes"]}
