"""Importance from answers: shares that can be counted by hand, and doors to neighbours that read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, Schema
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.importance import interval, necessity, sufficiency, who_is_answered
from dicoflex.errors import ConstraintError, QueryError

GRADES = ["low", "mid", "high"]
QUERIES = pd.DataFrame(
    {
        "age": [30, 50],
        "job": ["clerk", "nurse"],
        "grade": pd.Categorical(["low", "mid"], GRADES, ordered=True),
        "sex": ["f", "m"],
    }
)
ANSWERS = pd.DataFrame(
    {
        "age": [30, 34, 32, 50],
        "job": ["nurse", "clerk", "nurse", "smith"],
        "grade": pd.Categorical(["low", "high", "low", "high"], GRADES, ordered=True),
        "sex": ["f", "f", "f", "m"],
    },
    index=pd.MultiIndex.from_tuples([(0, 0), (0, 1), (0, 2), (1, 0)], names=["row", "cf"]),
)


SCHEMA = Schema.infer(pd.concat([QUERIES, ANSWERS], ignore_index=True))


@pytest.fixture
def cfs() -> Counterfactuals:
    info = pd.DataFrame(
        {"target": "yes", "log_density": -1.0, "n_changed": 1, "proximity": 0.5, "valid": pd.array([True] * 4)},
        index=ANSWERS.index,
    )
    short = pd.DataFrame(columns=["row", "wanted", "got", "reason"])
    return Counterfactuals(QUERIES, ANSWERS, info, np.array([0, 0, 0, 1]), short, SCHEMA, targets=["yes", "yes"])


def test_the_share_of_a_query_is_counted_over_its_answers(cfs: Counterfactuals) -> None:
    found = cfs.importance(0)
    assert found["share"].to_dict() == pytest.approx({"age": 2 / 3, "job": 2 / 3, "grade": 1 / 3, "sex": 0.0})
    assert found.loc["age", "mean_move"] == 3.0
    assert found.loc["grade", "mean_move"] == 2.0
    assert found.loc["job", "commonest"] == "nurse"
    assert found.loc["sex", ["share", "low"]].tolist() == [0.0, 0.0]
    assert found.loc["grade", ["low", "high"]].tolist() == pytest.approx([0.008404, 0.905701], abs=1e-5)


def test_over_all_queries_each_counts_the_same(cfs: Counterfactuals) -> None:
    found = cfs.importance()
    assert found["share"].to_dict() == pytest.approx({"job": 5 / 6, "grade": 2 / 3, "age": 1 / 3, "sex": 0.0})
    assert found.index[0] == "job"
    assert (found["low"] <= found["share"]).all()
    assert (found["high"] >= found["share"]).all()


def test_intervals_cover_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    hits = rng.binomial(30, 0.2, 2000)
    covered = np.mean([low <= 0.2 <= high for low, high in (interval(int(k), 30) for k in hits)])
    assert covered >= 0.95


def test_necessity_and_sufficiency_of_rows_that_are_known() -> None:
    """Row 0 can use age or job, row 1 only job, row 2 needs age and job together, row 3 has no way."""
    ways = [[{"age"}, {"job"}], [{"job"}], [{"age", "job"}], []]

    def explain(frozen: list[Any]) -> Any:
        if len(frozen) == 4:
            raise QueryError("nothing may change")
        if frozen == ["age", "grade", "job"]:
            raise ConstraintError("sex alone is nothing")
        positions = [i for i, own in enumerate(ways) if any(not way & set(frozen) for way in own)]
        return type("Found", (), {"positions": np.array(positions, dtype=np.int64)})

    schema, answered = SCHEMA, who_is_answered(explain, 4)
    needed, enough = necessity(schema, answered, pairs=True), sufficiency(schema, answered, pairs=True)
    assert needed["share"].to_dict() == pytest.approx(
        {
            "age": 1 / 3, "job": 2 / 3, "grade": 0, "sex": 0, ("age", "job"): 1.0, ("age", "grade"): 1 / 3,
            ("age", "sex"): 1 / 3, ("job", "grade"): 2 / 3, ("job", "sex"): 2 / 3, ("grade", "sex"): 0,
        }
    )  # fmt: skip
    assert enough["share"].to_dict() == pytest.approx(
        {
            "age": 0.25, "job": 0.5, "grade": 0, "sex": 0, ("age", "job"): 0.75, ("age", "grade"): 0.25,
            ("age", "sex"): 0.25, ("job", "grade"): 0.5, ("job", "sex"): 0.5, ("grade", "sex"): 0,
        }
    )  # fmt: skip


@pytest.mark.slow
def test_a_model_says_who_still_has_an_answer(
    mixed: DiCoFlex, queries: pd.DataFrame, says: Callable[[pd.DataFrame], np.ndarray]
) -> None:
    refused = queries[says(queries) == "no"].head(12)
    enough = mixed.sufficiency(refused, target="yes", frozen=["city"])
    assert enough.loc["city", "share"] == 0.0
    assert enough["share"].max() > 0.2
    assert enough.index[0] in ("gain", "member", "score")
    needed = mixed.necessity(refused, target="yes")
    assert needed["share"].between(0, 1).all()


def test_by_default_the_decision_counts_and_not_what_is_usual(
    judged: DiCoFlex, applicants: pd.DataFrame, says: Callable[[pd.DataFrame], np.ndarray]
) -> None:
    """Sufficiency is what a sweep through the black box says: each value of a feature, all else as it is."""
    refused = applicants[says(applicants) == "no"].head(25)
    found = judged.sufficiency(refused, target="yes")["share"]
    swept = pd.Series({name: sweep(refused, applicants[name].drop_duplicates(), says) for name in found.index})
    assert swept.nunique() > 3
    assert found.corr(swept, method="spearman") >= 0.9
    least = float(judged.model_.confidence.lowest[list(judged.classes_).index("yes")])
    at_boundary = judged.sufficiency(refused, target="yes", confidence=least, coherent=False)["share"]
    pd.testing.assert_series_equal(found, at_boundary)
    usual = judged.sufficiency(refused, target="yes", usual=True)["share"]
    assert usual.sum() < found.sum()
    surest = judged.sufficiency(refused, target="yes", confidence=0.9, coherent=True)["share"]
    assert surest.sum() <= usual.sum()


def sweep(rows: pd.DataFrame, values: pd.Series, says: Callable[[pd.DataFrame], np.ndarray]) -> float:
    """The share of rows that have the label with one of these values in place of their own."""
    tried = [says(rows.assign(**{str(values.name): pd.Series([value] * len(rows), rows.index, values.dtype)}))
             for value in values]  # fmt: skip
    return float((np.array(tried) == "yes").any(axis=0).mean())


@pytest.mark.parametrize("what", ["necessity", "sufficiency"])
def test_what_cannot_be_asked_is_refused_and_not_counted(judged: DiCoFlex, queries: pd.DataFrame, what: str) -> None:
    with pytest.raises(QueryError, match="target 'maybe' is unknown"):
        getattr(judged, what)(queries, target="maybe")
    with pytest.raises(QueryError, match="usual must be True or False"):
        getattr(judged, what)(queries, target="yes", usual="no")


def test_what_dice_reads_is_valid_by_its_own_schema(cfs: Counterfactuals, tmp_path: Path) -> None:
    dice = pytest.importorskip("dice_ml")
    jsonschema = pytest.importorskip("jsonschema")
    path = tmp_path / "cfs.json"
    cfs.to_dice_json(path, outcome="loan")
    told = json.loads(path.read_text(encoding="utf-8"))
    schema = Path(dice.__file__).parent / "schema" / "counterfactual_explanations_v2.0.json"
    jsonschema.validate(told, json.loads(schema.read_text(encoding="utf-8")))
    assert told["feature_names_including_target"] == ["age", "job", "grade", "sex", "loan"]
    assert told["cfs_list"][1] == [[50, "smith", "high", "m", "yes"]]
    assert told["local_importance"][0] == pytest.approx([2 / 3, 2 / 3, 1 / 3, 0.0])
    assert told["summary_importance"] == pytest.approx([1 / 3, 5 / 6, 2 / 3, 0.0])
