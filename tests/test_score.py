"""Scores as ranks: knots, shares, and the probability that one lies in an interval."""

from __future__ import annotations

import numpy as np
import pytest

from dicoflex.errors import ModelFileError
from dicoflex.score import Score, inside


def test_ranks_are_shares_of_the_rows_below() -> None:
    scores = np.random.default_rng(0).normal(600, 50, 4000)
    score = Score.of(scores)
    for at in (520.0, 600.0, 680.0):
        assert score.rank(np.array([at]))[0] == pytest.approx((scores < at).mean(), abs=0.01)
    ranks = np.linspace(-0.2, 1.2, 30)
    assert score.rank(score.score(ranks)) == pytest.approx(ranks, abs=1e-9)
    assert (np.diff(score.rank(np.linspace(300, 900, 200))) > 0).all()


def test_many_equal_scores_are_one_knot_with_its_share() -> None:
    score = Score.of(np.concatenate([np.zeros(400), np.linspace(1, 10, 600)]))
    assert score.share(0.0, 0.0) == pytest.approx(0.4, abs=0.01)
    assert score.share(1.0, np.inf) == pytest.approx(0.6, abs=0.02)
    assert score.share(20.0, np.inf) == 0.0
    assert score.share(-5.0, -1.0) == 0.0


def test_knots_tell_no_single_row() -> None:
    scores = np.random.default_rng(1).normal(size=800)
    told = Score.of(scores, min_count=5)
    assert not np.isin(told.knots, scores).any()
    assert told.knots[0] > np.sort(scores)[1]
    assert told.knots[-1] < np.sort(scores)[-2]
    assert told.rows % 10 == 0
    assert (np.round(told.below, 2) == told.below).all()


def test_the_probability_inside_by_hand() -> None:
    low, high, s = 0.4, 0.6, 0.05
    for r in (0.3, 0.4, 0.5, 0.65):
        logits = np.array([0.0, (r - low) / s, (2 * r - low - high) / s])
        wanted = np.exp(logits)[1] / np.exp(logits).sum()
        assert inside(np.array([r]), np.array([low]), np.array([high]), s)[0] == pytest.approx(wanted)
    assert inside(np.array([0.5]), np.array([-np.inf]), np.array([0.5]), s)[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("knots", np.array([2.0, 1.0])), ("knots", np.array([1.0])), ("below", np.array([0.5, 0.1])),
        ("upto", np.array([0.5, 1.5])), ("spread", np.array([0.0])), ("spread", np.array([np.inf])),
        ("rows", np.array([0])), ("other", np.zeros(1)),
    ],
)  # fmt: skip
def test_arrays_of_a_file_that_are_no_scores_are_refused(name: str, wrong: np.ndarray) -> None:
    good = {"knots": np.array([1.0, 2.0]), "below": np.array([0.0, 0.5]), "upto": np.array([0.5, 1.0])}
    good |= {"spread": np.array([0.1]), "rows": np.array([40])}
    assert Score.restore(good).rows == 40
    with pytest.raises(ModelFileError):
        Score.restore({**good, name: wrong})
