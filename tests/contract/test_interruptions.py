"""A fit that is interrupted, or runs out of time, is usable, or keeps nothing where nothing was learned yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from comparing import Quickly, sampled
from dicoflex import DiCoFlex, load
from dicoflex.generators import GENERATORS
from dicoflex.learning import fitting, judged, leakage


def interrupt(monkeypatch: pytest.MonkeyPatch, name: str, *, after: int) -> list[int]:
    """Ctrl-C in the step after so many; the list grows by one with each step."""
    kind = GENERATORS[name]
    honest, calls = kind.loss, []

    def loss(self: Any, *given: Any) -> Any:
        if torch.is_grad_enabled():
            calls.append(1)
            if len(calls) == after + 1:
                raise KeyboardInterrupt
        return honest(self, *given)

    monkeypatch.setattr(kind, "loss", loss)
    return calls


@pytest.mark.parametrize("name", ["mixed", "maf"])
def test_a_fit_that_is_interrupted_before_an_epoch_ends_keeps_nothing(
    name: str, applicants: pd.DataFrame, labels: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.1.0 (9aa4d8c) kept "the best weights so far", of which there were none: raw validity .194."""
    interrupt(monkeypatch, name, after=0)
    model = DiCoFlex(name, random_state=0, fit_config={"passes": 2}, verbose=False)
    with pytest.raises(KeyboardInterrupt):
        model.fit(applicants, labels)
    assert not [attribute for attribute in vars(model) if attribute.endswith("_")]


def test_interrupting_a_later_stage_keeps_the_one_before(
    applicants: pd.DataFrame, labels: np.ndarray, quickly: Quickly, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"training": {"min_steps": 0, "epochs": 3, "batch_size": 256}}
    own_draws = {"passes": 2, "rounds": 1, "own_draws": 200}
    with monkeypatch.context() as patch:
        steps = interrupt(patch, "mixed", after=10**9)
        alone = quickly(applicants, labels, fit_config={"passes": 2, "rounds": 0}, **settings)
    interrupt(monkeypatch, "mixed", after=len(steps) + 1)
    model = quickly(applicants, labels, fit_config=own_draws, **settings)
    assert [epoch["stage"] for epoch in model.history_] == [0] * len(alone.history_)
    for name, array in alone.model_.generator.state().items():
        np.testing.assert_array_equal(array, model.model_.generator.state()[name])


def interrupt_late(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """Ctrl-C in one of the stages after training."""

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    if stage == "surrogate":
        learn = judged.learn
        monkeypatch.setattr(
            judged, "learn", lambda *given, **more: (stop if more["thorough"] else learn)(*given, **more)
        )
    else:
        places = {
            "own draws": (judged.Judged, "_own_pairs"),
            "retrained": (fitting, "retrained"),
            "certificate": (fitting, "certified"),
            "leakage": (leakage, "guesses_of"),
        }
        monkeypatch.setattr(*places[stage], stop)


LATE = {
    "own draws": "own draws 1",
    "surrogate": "surrogate",
    "retrained": "certificate",
    "certificate": "certificate",
    "leakage": "leakage",
}
"""Stages after training, and what the report says was cut when they are interrupted."""


@pytest.mark.parametrize("stage", LATE)
def test_interrupting_what_comes_after_training_keeps_what_was_learned(
    stage: str, applicants: pd.DataFrame, labels: np.ndarray, black_box: Any, quickly: Quickly,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Ctrl-C late in a fit kept nothing."""
    interrupt_late(monkeypatch, stage)
    monkeypatch.setattr(leakage, "LEAST_HELD", 10)
    model = quickly(
        applicants, labels, predict_proba=black_box, coherence=True, training={"min_steps": 0, "epochs": 2},
        fit_config={"passes": 2, "rounds": 1, "own_draws": 200},
    )  # fmt: skip
    assert model.report_["cut"] == [LATE[stage]]
    assert len(model.explain(applicants.head(20), n=1, random_state=0)) > 0


@pytest.mark.parametrize("name", ["mixed", "maf"])
def test_interrupted_fit_is_usable(
    name: str, applicants: pd.DataFrame, labels: np.ndarray, queries: pd.DataFrame, tmp_path: Path,
    quickly: Quickly, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    calls = interrupt(monkeypatch, name, after=5)
    model = quickly(applicants, labels, name, training={"min_steps": 0, "epochs": 50, "batch_size": 2048},
                    fit_config={"passes": 2, "rounds": 1, "own_draws": 200})  # fmt: skip
    assert "interrupted" in model.report_["training_ended"]
    assert len(calls) == 6, "training went on after it was interrupted"
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex")
    pd.testing.assert_frame_equal(sampled(model, queries, random_state=0), sampled(again, queries, random_state=0))


@pytest.mark.usefixtures("few_steps")
def test_time_budget(applicants: pd.DataFrame, labels: np.ndarray, quickly: Quickly) -> None:
    model = quickly(
        applicants, labels, training={"min_steps": 0, "epochs": 100_000, "patience": 100_000}, max_seconds=0.5
    )
    assert model.report_["training_ended"].endswith(" s were used up")
    assert "training" in model.report_["cut"]
    assert len(model.history_) <= 50
