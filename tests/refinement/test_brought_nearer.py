"""Answers brought nearer against the model at hand: few calls, nothing needless, every wish kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from asked import query_of
from conftest import make_applicants, predict_proba
from dicoflex import Constraints, DiCoFlex, delta, relative
from dicoflex.answers.candidates import distances_of, judged, outstepped
from dicoflex.request import Request
from dicoflex.values import differ

Proba = Callable[[pd.DataFrame], np.ndarray]
ASKED: dict[str, Any] = {"target": "yes", "random_state": 0}
MOST_CALLS = 12
ANYTHING: dict[str, Any] = {"coherent": False, "min_plausibility": 0.0}
"""Nothing but the model decides what an answer is."""
WISHES: dict[str, dict[str, Any]] = {
    "free": {},
    "few": {"p": 0.01},
    "plausible": {"min_plausibility": 0.3},
    "ranges": {
        "constraints": Constraints(ranges={"gain": (0, 1500), "price": relative(-0.5, 0.5), "age": delta(0, 9)})
    },
    "steps": {"constraints": Constraints(steps={"gain": 50, "age": 5}, max_changes=2)},
    "rules": {"constraints": Constraints(rules=["if member == true then gain >= 100", "visits <= price"])},
}


class Counted:
    """A model at hand that counts how often it is called, and gives labels or probabilities."""

    def __init__(self, answer: Callable[[pd.DataFrame], np.ndarray]) -> None:
        self.answer, self.calls = answer, 0

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        self.calls += 1
        return self.answer(frame)


@pytest.fixture(scope="module")
def many(says: Any) -> pd.DataFrame:
    rows = make_applicants(60, seed=2)
    rows = rows.assign(price_next=rows["price"] + 1.25)
    return rows[says(rows) == "no"]


def _far(explainer: DiCoFlex, rows: pd.DataFrame, cfs: Any) -> float:
    """The mean distance of answers from their rows."""
    model = explainer.model_
    query = query_of(model, rows, Request.of(n=1, **ASKED))
    return float(distances_of(model, query, model.encoding.encode(cfs.frame), cfs.positions).mean())


def more_lenient(frame: pd.DataFrame) -> np.ndarray:
    """A model that says yes sooner than the one that was explained."""
    odds = predict_proba(frame)
    odds = 3.0 * odds[:, 1] / odds[:, 0]
    return np.column_stack([1 / (1 + odds), odds / (1 + odds)])


def _labelled(frame: pd.DataFrame) -> np.ndarray:
    return np.where(more_lenient(frame)[:, 1] >= 0.5, "yes", "no")


@pytest.mark.parametrize(("level", "answer"), [("just", more_lenient), (0.7, more_lenient), ("just", _labelled)])
def test_the_model_at_hand_brings_answers_nearer_in_few_calls(
    level: Any, answer: Proba, fitted: DiCoFlex, many: pd.DataFrame
) -> None:
    rows = many[_labelled(many) == "no"]
    check = Counted(answer)
    with_it = fitted.explain(rows, n=1, confidence=level, check=check, **ASKED)
    without = fitted.explain(rows, n=1, confidence=level, **ASKED)
    assert len(with_it) == len(without) == len(rows)
    assert check.calls <= MOST_CALLS
    assert (more_lenient(with_it.frame)[:, 1] >= (0.5 if level == "just" else level)).all()
    assert _far(fitted, rows, with_it) < 0.8 * _far(fitted, rows, without)


def test_no_change_can_be_undone_by_the_model_s_own_word(
    fitted: DiCoFlex, many: pd.DataFrame, black_box: Proba
) -> None:
    cfs = fitted.explain(many, n=1, confidence="just", check=black_box, **ANYTHING, **ASKED)
    undone = [
        cfs.frame.iloc[[i]].assign(**{name: many.iloc[[cfs.positions[i]]][name].to_numpy()})
        for i in range(len(cfs))
        for name in many.columns
        if cfs.changed[i, many.columns.get_loc(name)]
    ]
    assert len(undone) >= len(cfs)
    assert not (black_box(pd.concat(undone))[:, 1] >= 0.5).any()


@pytest.mark.parametrize("name", WISHES)
def test_every_wish_is_kept_while_answers_come_nearer(
    name: str, fitted: DiCoFlex, refused: pd.DataFrame, black_box: Proba
) -> None:
    cfs = fitted.explain(refused, n=3, confidence="just", check=black_box, **WISHES[name], **ASKED)
    assert len(cfs) > 0
    assert cfs.verify()["holds"].all()
    assert (cfs.info["plausibility"] >= WISHES[name].get("min_plausibility", 0.05)).all()
    own = fitted.model_.encoding.encode(refused)[cfs.positions]
    assert differ(fitted.model_.encoding.encode(cfs.frame), own).any(axis=1).all()


def test_nearer_levels_come_first(fitted: DiCoFlex, refused: pd.DataFrame) -> None:
    """Where b is accepted, nobody is sent from c to a."""
    rows = refused.assign(grade=pd.Categorical(["c"] * len(refused), categories=list("abcd"), ordered=True))

    def check(frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame["grade"].cat.codes.to_numpy() <= 1, "yes", "no")

    cfs = fitted.explain(rows, n=3, confidence="just", check=check, **ANYTHING, **ASKED)
    alone = cfs.frame[cfs.changed.sum(axis=1) == 1]
    assert len(alone) >= len(rows)
    assert (alone["grade"] == "b").all()


def test_of_one_ordered_level_the_nearest_step_alone_is_told(fitted: DiCoFlex, refused: pd.DataFrame) -> None:
    model = fitted.model_
    query = query_of(model, refused, Request.of(n=3, **ASKED))
    grade, visits = (model.schema.position(name) for name in ("grade", "visits"))
    query.context.query[:, grade] = 2.0
    rows = query.context.query[[0, 0, 0, 1]]
    rows[:, grade] = [0.0, 1.0, 0.0, 0.0]
    rows[2, visits] += 1.0
    found = judged(model, query, rows, np.array([0, 0, 0, 1]))
    # With another change beside it, and for another person, it is other advice.
    assert outstepped(model, query, found).tolist() == [True, False, False, False]
