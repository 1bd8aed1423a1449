"""A fit that is interrupted, or runs out of time, is usable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from comparing import Quickly, sampled
from dicoflex import load
from dicoflex.generators import GENERATORS


@pytest.mark.parametrize("steps", [0, 5])
@pytest.mark.parametrize("name", ["mixed", "maf"])
def test_interrupted_fit_is_usable(
    name: str, steps: int, applicants: pd.DataFrame, labels: np.ndarray, queries: pd.DataFrame, tmp_path: Path,
    quickly: Quickly, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    kind = GENERATORS[name]
    honest, calls = kind.loss, []

    def loss(self: Any, *given: Any) -> Any:
        if torch.is_grad_enabled():
            calls.append(1)
            if len(calls) == steps + 1:
                raise KeyboardInterrupt
        return honest(self, *given)

    monkeypatch.setattr(kind, "loss", loss)
    model = quickly(applicants, labels, name, training={"min_steps": 0, "epochs": 50, "batch_size": 2048},
                    fit_config={"passes": 2, "rounds": 1, "own_draws": 200})  # fmt: skip
    assert "interrupted" in model.report_["training_ended"]
    assert len(calls) == steps + 1, "training went on after it was interrupted"
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex")
    pd.testing.assert_frame_equal(sampled(model, queries, random_state=0), sampled(again, queries, random_state=0))


@pytest.mark.usefixtures("few_steps")
def test_time_budget(applicants: pd.DataFrame, labels: np.ndarray, quickly: Quickly) -> None:
    model = quickly(
        applicants, labels, training={"min_steps": 0, "epochs": 100_000, "patience": 100_000}, max_seconds=0.5
    )
    assert model.report_["training_ended"] == "the 0.5 s were used up"
    assert 0.5 <= model.history_[-1]["seconds"] <= 0.6
    assert len(model.history_) <= 50
