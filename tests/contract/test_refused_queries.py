"""What `explain`, `sample` and `log_density` refuse before any work starts, on a fitted and on a loaded model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from comparing import BlackBox
from dicoflex import DiCoFlex
from dicoflex.errors import BlackBoxError, NotFittedError, QueryError, SettingError

UNSEEN = {"grade": pd.Categorical(["d"] * 8, categories=list("abcd"), ordered=True)}
BAD_QUERIES: dict[str, tuple[Callable[[pd.DataFrame], Any], dict[str, Any], str]] = {
    "no frame": (
        lambda q: q.to_numpy().tolist(),
        {},
        "an array of two dimensions, with the training columns, got list",
    ),
    "a series": (lambda q: q.iloc[0], {}, "an array of two dimensions, with the training columns, got Series"),
    "no rows": (lambda q: q.head(0), {}, "rows is empty; give at least one row"),
    "a column lacks": (lambda q: q.drop(columns="age"), {}, r"lack the column 'age'; the model was fitted on \['age'"),
    "a column too many": (lambda q: q.assign(agee=1), {}, "'agee' is unknown; did you mean 'age'.*only the training"),
    "a column twice": (lambda q: pd.concat([q, q[["age"]]], axis=1), {}, r"column names repeat: \['age'\]"),
    "unseen category": (lambda q: q.assign(city="Bonn"), {}, "'city' has the value 'Bonn', never seen.*'Rome', 'Ulm'"),
    "unseen level of the dtype": (
        lambda q: q.assign(**UNSEEN),
        {},
        "'grade' has the value 'd', never seen in training",
    ),
    "unseen missing value": (lambda q: q.assign(price=np.nan), {}, "'price' has missing values.*fill them in"),
    "text for a number": (lambda q: q.assign(price="dear"), {}, "'price' .*not numbers.*pd.to_numeric"),
    "infinite": (lambda q: q.assign(price=np.inf), {}, "'price' holds infinite numbers; replace them"),
    "fractions": (lambda q: q.assign(visits=1.5), {}, "'visits' .*fractions.*round them"),
    "unknown frozen": (lambda q: q, {"frozen": ["agee"]}, "frozen feature 'agee' is unknown; did you mean 'age'"),
    "frozen text": (lambda q: q, {"frozen": "age"}, r"must be a list of features, got 'age'; write frozen=\['age'\]"),
    "frozen nothing": (lambda q: q, {"frozen": None}, r"must be a list of features, got None; write frozen="),
    "all frozen": (lambda q: q, {"frozen": "ALL"}, "nothing may change: every feature is frozen.*free at least one"),
    "unknown target": (lambda q: q, {"target": "yess"}, "target 'yess' is unknown; did you mean 'yes'"),
    "one unknown target": (lambda q: q, {"target": ["yes"] * 7 + [1]}, "target 1 is unknown; known: no, yes"),
    "missing target": (lambda q: q, {"target": np.nan}, "target nan is unknown; known: no, yes"),
    "target list in list": (lambda q: q.head(1), {"target": {"yes": 1}}, "target {'yes': 1} is unknown"),
    "too few targets": (
        lambda q: q,
        {"target": ["yes"] * 7},
        "target has 7 labels for 8 rows; give one, or one per row",
    ),
    "p above": (lambda q: q, {"p": 2.5}, r"p must lie in the trained range, 0\.01 to 2, got 2\.5"),
    "p below": (lambda q: q, {"p": 0.001}, r"p must lie in the trained range, 0\.01 to 2, got 0\.001"),
    "p missing": (lambda q: q, {"p": np.nan}, "p must lie in the trained range, .*got nan"),
    "p text": (lambda q: q, {"p": "2"}, "p must lie in the trained range, .*got '2'"),
    "p true": (lambda q: q, {"p": True}, "p must lie in the trained range, .*got True"),
    "confidence text": (lambda q: q, {"confidence": "0.8"}, r"confidence must lie between 0 and 1, .*got '0\.8'"),
    "confidence percent": (lambda q: q, {"confidence": 80}, "confidence must lie between 0 and 1, .*got 80"),
    "confidence missing": (lambda q: q, {"confidence": np.nan}, "confidence must lie between 0 and 1, .*got nan"),
}
METHODS = ["explain", "sample", "log_density"]


def call(model: DiCoFlex, method: str, rows: Any, others: pd.DataFrame, **given: Any) -> Any:
    return getattr(model, method)(rows, *([others] if method == "log_density" else []), **given)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", BAD_QUERIES)
def test_queries_that_are_refused(
    case: str, method: str, judged: DiCoFlex, reloaded: DiCoFlex, queries: pd.DataFrame, monkeypatch: Any
) -> None:
    make, given, match = BAD_QUERIES[case]
    if given.get("frozen") == "ALL":
        given = {"frozen": list(queries)}
    if method == "explain":
        given = {**given, "handle_unknown": "error"}
    messages = []
    for model in (judged, reloaded):
        stopped = mock.Mock(side_effect=AssertionError("work was started"))
        monkeypatch.setattr(model, "model_", replace(model.model_, generator=stopped))
        with pytest.raises(QueryError, match=match) as caught:
            call(model, method, make(queries), queries, **given)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("method", ["explain", "sample"])
@pytest.mark.parametrize("n", [0, -3, 2.5, "3", None, True])
def test_numbers_of_rows_that_are_refused(n: Any, method: str, judged: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match=f"n must be a whole number of at least 1, got {n!r}"):
        call(judged, method, queries, queries, n=n)


@pytest.mark.parametrize("method", ["explain", "sample"])
@pytest.mark.parametrize("seed", [-1, 0.5, "0", True])
def test_seeds_that_are_refused(seed: Any, method: str, judged: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(SettingError, match=f"random_state must be a whole number of at least 0 or None, got {seed!r}"):
        call(judged, method, queries, queries, random_state=seed)


@pytest.mark.parametrize("method", METHODS)
def test_confidence_beyond_the_data_names_the_highest(
    method: str, judged: DiCoFlex, reloaded: DiCoFlex, queries: pd.DataFrame
) -> None:
    highest = judged.report_["confidence"]["yes"]["highest"]
    assert 0.5 < highest < 1
    for model in (judged, reloaded):
        with pytest.raises(
            QueryError, match=r"more than the training rows of 'yes' support; the highest is 0\.\d+"
        ) as e:
            call(model, method, queries, queries, target="yes", confidence=1.0)
        named = float(str(e.value).rsplit(" ", 1)[1])
        assert named == pytest.approx(highest, abs=2e-4)
        call(model, method, queries, queries, target="yes", confidence=named)


@pytest.mark.parametrize("method", METHODS)
def test_confidence_that_is_no_level_names_those_that_are(method: str, judged: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match="one of 'just', 'safe', 'sure', got 'certain'"):
        call(judged, method, queries, queries, target="yes", confidence="certain")
    # Without refinement, nobody estimated how answers last.
    with pytest.raises(QueryError, match=r"confidence 'sure' needs an estimate .*; fit with .*, or give a number"):
        call(judged, method, queries, queries, target="yes", confidence="sure")


def test_highest_confidence_is_that_of_the_hundredth_row(
    judged: DiCoFlex, applicants: pd.DataFrame, labels: np.ndarray, black_box: BlackBox
) -> None:
    for i, label in enumerate(["no", "yes"]):
        sure = np.sort(black_box(applicants)[labels == label, i])[::-1]
        reached = sure[min(100, len(sure) // 2) - 1]
        assert judged.report_["confidence"][label]["highest"] == pytest.approx(min(reached, 0.99), abs=1e-4)
        assert judged.report_["confidence"][label]["safe"]["confidence"] == pytest.approx(min(0.7, reached), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_confidence_needs_a_model_that_saw_probabilities(method: str, model: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match=r"fit\(X, y, predict_proba=clf\.predict_proba\), or leave confidence out"):
        call(model, method, queries, queries, confidence=0.8)


@pytest.mark.parametrize("method", METHODS)
def test_three_classes_need_a_target(method: str, three: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match=r"target is needed with 3 classes; choose from \['high', 'low', 'middle'\]"):
        call(three, method, queries, queries)


def test_rows_and_counterfactuals_must_pair_up(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match="rows has 8 entries and counterfactuals 5; give as many, or one row"):
        judged.log_density(queries, queries.head(), target="yes")
    with pytest.raises(QueryError, match="lack the column 'age'"):
        judged.log_density(queries, queries.drop(columns="age"), target="yes")


@pytest.mark.parametrize(
    ("check", "match"),
    [
        ("clf", r"check must be a callable, got str; pass clf\.predict"),
        (lambda f: np.full((len(f), 2), 0.7), r"check gave a matrix .*sums up to 1\.4; .*pass clf\.predict"),
        (
            lambda f: f["wages"],
            r"check failed, asked about \d+ rows: KeyError: 'wages'; give a callable that takes rows",
        ),
        (lambda _: ["yes"], r"check gave shape \(1,\) for \d+ rows; it must return one label per row"),
        (lambda f: np.full(len(f), "perhaps"), "check gave the label 'perhaps', which is not among the labels of y"),
    ],
)
def test_checks_that_are_refused(check: Any, match: str, judged: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(BlackBoxError, match=match):
        judged.explain(queries, target="yes", check=check)


def test_unfitted_use(tmp_path: Path, queries: pd.DataFrame) -> None:
    model = DiCoFlex()
    calls = [
        lambda: model.explain(queries),
        lambda: model.sample(queries),
        lambda: model.log_density(queries, queries),
        lambda: model.save(tmp_path / "m.dicoflex"),
    ]
    for use in calls:
        with pytest.raises(NotFittedError, match=r"not fitted yet; call \.fit\(X, y\), or load\(\) a model file"):
            use()
    assert not list(tmp_path.iterdir())
