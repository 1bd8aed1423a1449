"""A fit estimates what it leaks on the rows that it held out, writes it down, and warns above a stated level."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex
from dicoflex.attacks import Attack
from dicoflex.learning import leakage, row_density
from dicoflex.learning.fitting import learn_model
from dicoflex.learning.leakage import leakage_of
from dicoflex.learning.steps import held_out_rows
from dicoflex.runtime.progress import Deadline

QUICK: dict[str, Any] = {"training": {"min_steps": 0, "epochs": 1}, "fit_config": {"own_draws": 800, "passes": 1}}


def rows(n: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["x", "y"], n)})
    return X, np.where(X["a"] + X["b"] > 0, "yes", "no")


def fitted(n: int = 600, **settings: Any) -> DiCoFlex:
    return DiCoFlex(random_state=0, **QUICK, **settings).fit(*rows(n))


@pytest.mark.slow
def test_a_fit_reports_what_held_out_rows_tell() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fitted().report_["leakage"]
    assert found["held_out_rows"] == 60
    assert found["attack"] in leakage.ATTACKS
    assert 0.4 < found["membership_auc"] <= 0.6
    assert found["high"] is False
    assert 0 <= found["values_found"] <= 1


def test_few_held_out_rows_tell_nothing() -> None:
    assert fitted(200, coherence=False).report_["leakage"] is None


@pytest.mark.slow
def test_a_fit_that_knows_its_rows_by_heart_warns_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_density, "DECAY", 0.0)
    monkeypatch.setattr(row_density, "LEAST_DECAY", 0.0)
    monkeypatch.setattr(row_density, "LEAST_STEPS", 600)
    with pytest.warns(UserWarning, match=r"tells who was among its 600 rows.*privacy='dp'"):
        found = fitted(min_count=1).report_["leakage"]
    assert found["high"] is True
    assert found["attack"] == "rows"
    assert found["membership_auc"] > leakage.MOST_AUC


def test_no_time_means_no_estimate() -> None:
    plan = DiCoFlex(random_state=0, coherence=False, **QUICK)._plan(remember_rows=False)
    seen: dict[str, Any] = {}

    def kept(task: Any, fitted: Any, model: Any, deadline: Any) -> Any:
        late = Deadline(0.0)
        seen["found"], seen["cuts"] = leakage_of(task, fitted, model, late), late.cuts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dicoflex.learning.fitting.leakage_of", kept)
        learn_model(*rows(600), replace(plan, deadline=Deadline()))
    assert seen == {"found": None, "cuts": ["leakage"]}


def test_both_densities_hold_out_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what one has learned would pass for what it has never seen."""
    taken = []

    def kept(n: int, rng: Any) -> Any:
        taken.append(held_out_rows(n, rng))
        return taken[-1]

    monkeypatch.setattr("dicoflex.learning.steps.held_out_rows", kept)
    monkeypatch.setattr("dicoflex.learning.row_density.held_out_rows", kept)
    fitted(300)
    assert len(taken) == 2
    assert np.array_equal(*taken)


def test_what_may_be_chance_is_no_reason_to_warn() -> None:
    assert leakage._is_high(Attack(0.65, 0.02, 0.05), None)
    assert not leakage._is_high(Attack(0.65, 0.1, 0.05), None)
    assert not leakage._is_high(Attack(0.58, 0.01, 0.05), None)
