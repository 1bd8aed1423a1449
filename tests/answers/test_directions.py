"""Directions that the model itself suggests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, at_least, at_most, between
from dicoflex.errors import QueryError

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_step_against_the_models_own_slope_is_advised_against(judged: DiCoFlex, applicants: pd.DataFrame) -> None:
    """Of the law school's answers, 15 % said: lower your grades."""
    found = judged.suggested(applicants, target="yes")
    assert "gain" in found.increase
    assert "gain" not in found.decrease
    other = judged.suggested(applicants, target="no")
    assert "gain" in other.decrease
    assert "city" not in {*found.increase, *found.decrease}
    # What the names suggest is among it.
    assert "age" in found.increase
    rows = applicants.head(20)
    cfs = judged.explain(rows, target="yes", n=2, constraints=found, random_state=0)
    before = rows["gain"].to_numpy()[cfs.positions]
    assert (cfs.frame["gain"].to_numpy() >= before).all()


def test_scores_have_directions_too(scored: DiCoFlex, applicants: pd.DataFrame) -> None:
    up, down = (scored.suggested(applicants, target=target) for target in (at_least(600), at_most(500)))
    assert "gain" in up.increase
    assert "gain" in down.decrease
    with pytest.raises(QueryError, match="lies between two scores"):
        scored.suggested(applicants, target=between(500, 600))


def test_a_target_is_needed(judged: DiCoFlex, applicants: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match="suggested needs the target that is wanted"):
        judged.suggested(applicants, target=None)
    with pytest.raises(QueryError, match="target 'perhaps' is unknown"):
        judged.suggested(applicants, target="perhaps")
    assert np.isscalar(len(judged.suggested(applicants.head(1), target="yes").increase))
