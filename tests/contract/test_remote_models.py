"""Models behind a network: bounded calls, a budget of rows, failures that name what was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex
from dicoflex.errors import BlackBoxError, SettingError

Proba = Callable[[pd.DataFrame], np.ndarray]


class Remote:
    """A model that counts what it is asked, and answers with an error from some call on."""

    def __init__(self, model: Callable[[pd.DataFrame], Any], *, down_from: int = 10**9) -> None:
        self.model, self.down_from = model, down_from
        self.sizes: list[int] = []
        self.frames: list[pd.DataFrame] = []

    def __call__(self, rows: pd.DataFrame) -> Any:
        if len(self.sizes) + 1 >= self.down_from:
            raise ConnectionError("503 Service Unavailable")
        self.sizes.append(len(rows))
        self.frames.append(rows.copy())
        return self.model(rows)


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    small = {"passes": 2, "rounds": 1, "own_draws": 800}
    return {"steps": 60, "fit_config": small, "training": {"min_steps": 0, "epochs": 2}, "coherence": True}


def test_a_budget_of_rows_is_kept_and_told(
    applicants: pd.DataFrame, labels: np.ndarray, black_box: Proba, quickly: Any, settings: dict[str, Any]
) -> None:
    remote = Remote(black_box)
    calls = {"chunk": 100, "most_rows": 700}
    fitted: DiCoFlex = quickly(applicants, labels, predict_proba=remote, calls=calls, **settings)
    assert sum(remote.sizes) <= 700
    assert max(remote.sizes) <= 100
    assert fitted.report_["black_box_calls"] == len(remote.sizes)
    assert "rows asked of the black box" in fitted.report_["cut"]
    assert len(fitted.explain(applicants.head(2), n=1, random_state=0)) > 0
    free = Remote(black_box)
    quickly(applicants, labels, predict_proba=free, **settings)
    assert sum(free.sizes) > 700


def test_a_budget_without_room_for_the_table_is_refused_at_once(
    applicants: pd.DataFrame, labels: np.ndarray, black_box: Proba, quickly: Any
) -> None:
    remote = Remote(black_box)
    with pytest.raises(SettingError, match=r"most_rows=100 has no room for the table.*give at least 325"):
        quickly(applicants, labels, predict_proba=remote, calls={"most_rows": 100})
    with pytest.raises(SettingError, match="setting 'chunks' is unknown; did you mean 'chunk'"):
        quickly(applicants, labels, predict_proba=remote, calls={"chunks": 100})
    assert not remote.sizes


def test_a_server_that_goes_down_is_told_with_what_was_asked(
    applicants: pd.DataFrame, labels: np.ndarray, black_box: Proba, quickly: Any
) -> None:
    with pytest.raises(BlackBoxError, match=r"failed in call 3, of 60 rows, after 200 rows .*503.*'retries': 5"):
        quickly(applicants, labels, predict_proba=Remote(black_box, down_from=3), calls={"chunk": 100})


def test_scores_of_the_table_are_asked_for_once(applicants: pd.DataFrame, scores: Any, quickly: Any) -> None:
    remote = Remote(scores)
    rows = applicants.assign(gain=applicants["gain"].round(-3), score=applicants["score"].round(0))
    quickly(rows, None, predict=remote, calls={"chunk": 300}, min_count=1, coherence=False)
    pd.testing.assert_frame_equal(remote.frames[0], rows)
    values = rows.reset_index(drop=True)
    assert not any(frame.reset_index(drop=True).equals(values) for frame in remote.frames[1:])
