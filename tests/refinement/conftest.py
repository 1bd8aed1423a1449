"""One fitted explainer for the tests of refined answers: with a column that follows from another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from dicoflex import DiCoFlex


@pytest.fixture(scope="package")
def tied(applicants: pd.DataFrame) -> pd.DataFrame:
    """The applicants with a column that follows from another."""
    return applicants.assign(price_next=applicants["price"] + 1.25)


@pytest.fixture(scope="package")
def fitted(tied: pd.DataFrame, quickly: Callable[..., DiCoFlex], black_box: Any, says: Any) -> DiCoFlex:
    return quickly(
        tied, says(tied), predict_proba=black_box, steps=400, training={"min_steps": 0, "epochs": 8},
        fit_config={"passes": 3, "rounds": 1, "own_draws": 2000, "coherence": True},
    )  # fmt: skip


@pytest.fixture(scope="package")
def refused(queries: pd.DataFrame, says: Any) -> pd.DataFrame:
    mine = queries.assign(price_next=queries["price"] + 1.25)
    return mine[says(mine) == "no"]
