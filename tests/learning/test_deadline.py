"""`max_seconds` bounds the whole fit: stages stop when their share is used up, and the report names what was cut."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex
from dicoflex.learning import certifying
from dicoflex.learning.fitting import learn_model
from dicoflex.learning.score_fitting import learn_scores
from dicoflex.runtime.progress import Deadline


def every(step: float) -> Any:
    """A clock that moves on by `step` seconds whenever it is read."""
    ticks = itertools.count(0.0, step)
    return lambda: next(ticks)


def test_without_a_limit_nothing_ends() -> None:
    deadline = Deadline(None, clock=every(1e9))
    assert deadline.left == np.inf
    assert not deadline.part(0.1).is_over
    assert deadline.used == 0


def test_a_stage_ends_with_its_share_and_late_ones_get_a_little() -> None:
    now = [0.0]
    whole = Deadline(100.0, clock=lambda: now[0])
    assert whole.part(0.3).left == 30
    now[0] = 20.0
    stage = whole.part(0.3)
    assert stage.left == 10
    assert stage.part(0.5).left == 5
    now[0] = 25.0
    assert stage.used == 0.5
    now[0] = 60.0
    assert stage.is_over
    assert whole.part(0.3).left == 2
    stage.cut("pairs")
    stage.cut("pairs")
    assert whole.cuts == ["pairs"]


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(3000, 3)), columns=list("abc"))
    return frame, (frame["a"] + frame["b"] > 0).to_numpy().astype(int)


def chances(frame: pd.DataFrame) -> np.ndarray:
    yes = 1 / (1 + np.exp(-3 * (frame["a"] + frame["b"]).to_numpy()))
    return np.column_stack([1 - yes, yes])


@pytest.mark.slow
def test_a_fit_that_is_out_of_time_asks_of_fewer_held_out_rows_and_says_so(table: Any) -> None:
    explainer = DiCoFlex(random_state=0, training={"min_steps": 0, "epochs": 1}, fit_config={"own_draws": 800})
    plan = explainer._plan(remember_rows=False)
    asked: list[int] = []
    ask = certifying._asked

    def counted(model: Any, values: Any, asked_for: Any, *rest: Any) -> Any:
        asked.append(len(asked_for[0]))
        return ask(model, values, asked_for, *rest)

    # A hundred looks at the clock use all of the time up.
    out_of_time = replace(plan, deadline=Deadline(1.0, clock=every(0.01)))
    with mock.patch.object(certifying, "_asked", counted):
        learned = learn_model(table[0], table[1], out_of_time, predict_proba=chances)
    cuts = learned.model.report["cut"]
    assert {"row density", "surrogate", "pairs", "certificate"} <= set(cuts)
    assert 0 < sum(asked) < 2 * 3 * certifying.ROWS / 2
    plan = replace(plan, deadline=Deadline(1.0, clock=every(0.01)))
    scores = learn_scores(table[0], None, plan, predict=lambda frame: frame["a"].to_numpy())
    assert "certificate" in scores.model.report["cut"]


@pytest.mark.slow
def test_a_fit_without_a_limit_cuts_nothing(table: Any, quickly: Any) -> None:
    assert quickly(*table).report_["cut"] == []
