"""Scores to learn from: what is one, what is refused, and how well a surrogate follows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, at_least
from dicoflex.errors import BlackBoxError, DataError, SettingError
from dicoflex.learning import certifying_scores
from dicoflex.learning.interval_pairs import Intervals
from dicoflex.learning.score_box import is_score
from dicoflex.learning.score_surrogate import learn_score
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema


def test_more_numbers_than_labels_are_scores() -> None:
    rng = np.random.default_rng(0)
    assert is_score(rng.normal(size=50))
    assert is_score(pd.Series(np.arange(300, 850)))
    assert not is_score(np.arange(20))
    assert not is_score(["a", "b"])
    assert not is_score(rng.random(50) < 0.5)
    assert not is_score(None)


def test_predict_proba_says_that_numbers_are_labels(applicants: pd.DataFrame, quickly: Any) -> None:
    cuts = np.unique(np.quantile(applicants["price"], np.linspace(0, 1, 22)[1:-1]))

    def label(rows: pd.DataFrame) -> np.ndarray:
        return np.searchsorted(cuts, rows["price"].to_numpy(dtype=float)) * 2 + rows["member"].to_numpy(dtype=int)

    names = np.unique(label(applicants))
    assert len(names) > 20
    model = quickly(applicants, label(applicants), predict_proba=lambda rows: label(rows)[:, None] == names)
    assert len(model.classes_) == len(names)


BAD: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (np.r_[np.arange(259.0), np.nan], {}, DataError, "y has 1 missing or infinite scores; drop those rows"),
    (np.arange(100.0), {}, DataError, "y has 100 scores for 260 rows; give one score per row"),
    (None, {"predict": lambda rows: np.ones(len(rows))}, DataError,
     "the scores have 1 different values, and at least 5 are needed to ask for an interval; fit(X, labels) explains "
     "classes"),
    (None, {"predict": 3}, BlackBoxError, "predict must be a callable, got int; pass model.predict"),
    (None, {"predict": lambda rows: np.ones((len(rows), 2))}, BlackBoxError,
     "predict gave an array of shape (260, 2) for 260 rows; it must return one score per row, such as lambda rows: "
     "clf.predict_proba(rows)[:, 1]"),
    (None, {"predict": lambda rows: np.full(len(rows), np.nan)}, BlackBoxError,
     "predict gave scores that are missing or infinite; it must return a finite one per row"),
    (None, {"predict": lambda rows: ["x"] * len(rows)}, BlackBoxError,
     "predict gave a list that is not numbers; pass a callable that returns scores"),
    (np.arange(260.0), {"predict": np.sum, "predict_proba": np.sum}, SettingError,
     "predict gives scores and predict_proba classes; give one of them"),
]  # fmt: skip


@pytest.mark.parametrize(("y", "given", "kind", "told"), BAD, ids=[told[:40] for *_, told in BAD])
def test_what_is_no_score_is_refused(
    applicants: pd.DataFrame, y: Any, given: dict[str, Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind) as error:
        DiCoFlex(task="scores").fit(applicants, y, **given)
    assert str(error.value) == told


@pytest.mark.parametrize(
    ("task", "given", "match"),
    [
        ("classes", {}, "task must be one of None, 'labels', 'scores', got 'classes'"),
        ("scores", {"classes": ["a", "b"]}, "task='scores' takes predict=, and predict_proba= and classes= are for"),
        ("labels", {"predict": len}, "task='labels' takes predict_proba=, and predict= is for task='scores'"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(
    applicants: pd.DataFrame, task: str, given: dict[str, Any], match: str
) -> None:
    with pytest.raises(SettingError, match=match):
        DiCoFlex(task=task).fit(applicants, ["a", "b"] * 130, **given)


def test_the_papers_densities_learn_labels_alone(applicants: pd.DataFrame) -> None:
    with pytest.raises(SettingError, match="generator 'maf' learns classes alone; scores are explained by 'mixed'"):
        DiCoFlex("maf", task="scores").fit(applicants, np.arange(260.0))


def test_scores_alone_are_enough(applicants: pd.DataFrame, scores: Any, quickly: Any) -> None:
    y = scores(applicants)
    with pytest.raises(SettingError, match=r"y holds \d+ different numbers.* say DiCoFlex\(task='scores'\) or"):
        DiCoFlex().fit(applicants, y)
    model = quickly(applicants, y, steps=300, task="scores")
    goal = f">={np.quantile(y, 0.6)}"
    found = model.explain(applicants.head(10), target=goal, n=2, random_state=0)
    assert np.mean(scores(found.frame) >= np.quantile(y, 0.6)) >= 0.7
    assert not model.model_.has_confidence
    assert model.report_["black_box_calls"] == 0


def test_a_surrogate_follows_scores(applicants: pd.DataFrame, scores: Any) -> None:
    schema = Schema.infer(applicants)
    values = Encoding.unit(schema).encode(applicants)
    encoding = Encoding.of_values(schema, values)
    rows = np.repeat(values, 8, axis=0)
    ranks = np.argsort(np.argsort(scores(applicants))) / len(applicants)
    found = learn_score(encoding, rows, np.repeat(ranks, 8), seed=0)
    assert found.explained > 0.97
    assert found.spread < 0.05


def test_intervals_are_of_all_kinds() -> None:
    drawn = Intervals.drawn(np.random.default_rng(0), 600)
    assert (drawn.low < drawn.high).all()
    assert 0.3 < np.isinf(drawn.high).mean() < 0.5
    assert 0.1 < np.isinf(drawn.low).mean() < 0.3
    whole = np.isfinite(drawn.low) & np.isfinite(drawn.high)
    assert ((drawn.low >= 0) & (drawn.high <= 1.0 + 1e-9))[whole].all()
    narrow = Intervals(np.array([0.5]), np.array([0.52]))
    assert narrow.surest(0.05)[0] == pytest.approx(1 / (1 + 2 * np.exp(-0.2)))


def test_a_fit_without_time_for_answers_has_a_spread_all_the_same(
    applicants: pd.DataFrame, scores: Any, quickly: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where time was short no held-out row got an answer, and the fit ended with an IndexError."""
    real = certifying_scores.answers_like_asked

    def none(*given: Any, **more: Any) -> Any:
        return real(*given, **more).take(np.arange(0))

    monkeypatch.setattr(certifying_scores, "answers_like_asked", none)
    model = quickly(applicants, None, predict=scores, coherence=True)
    assert model.model_.score.spread > 0
    assert len(model.explain(applicants.head(3), target=at_least(600), n=1, random_state=0).status) == 3
