"""Questions to a model of scores: intervals, changes of one's own score, refusals, files, plain rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, at_least, at_most, between, by, load
from dicoflex.answers.aiming import aimed, score_of
from dicoflex.answers.plain import answer_plain
from dicoflex.errors import BlackBoxError, QueryError
from dicoflex.metrics import validity
from dicoflex.request import Request
from dicoflex.score import inside
from dicoflex.table.plain_rows import cells_of
from dicoflex.targets import Interval

Scores = Callable[[pd.DataFrame], np.ndarray]


@pytest.fixture(scope="module")
def people(applicants: pd.DataFrame) -> pd.DataFrame:
    return applicants.head(16)


def middle(scores: Scores, people: pd.DataFrame, share: float) -> float:
    return float(np.quantile(scores(people), share))


def goals(scores: Scores, applicants: pd.DataFrame) -> dict[str, Interval]:
    low, high = middle(scores, applicants, 0.3), middle(scores, applicants, 0.7)
    return {"above": at_least(high), "below": at_most(low), "between": between(low, high)}


@pytest.mark.parametrize("p", [2.0, 0.01])
@pytest.mark.parametrize("which", ["above", "below", "between"])
def test_answers_lie_in_the_interval(
    scored: DiCoFlex, scores: Scores, applicants: pd.DataFrame, people: pd.DataFrame, which: str, p: float
) -> None:
    goal = goals(scores, applicants)[which]
    found = scored.explain(people, target=goal, n=4, p=p, frozen=["city"], random_state=0)
    true = scores(found.frame)
    assert validity(true, goal) >= 0.95
    assert len(found) >= 3 * sum(word != "already" for word in found.status)
    assert found.info["score"].to_numpy() == pytest.approx(true, abs=40)
    assert (found.frame["city"].to_numpy() == people["city"].to_numpy()[found.positions]).all()
    assert found.verify(people)["holds"].all()
    already = np.array([word == "already" for word in found.status])
    assert np.mean(already == [goal.holds(score) for score in scores(people)]) >= 0.85


def test_a_change_of_ones_own_score(scored: DiCoFlex, scores: Scores, people: pd.DataFrame) -> None:
    found = scored.explain(people, target=by(60), n=3, check=scores, random_state=0)
    gained = scores(found.frame) - scores(people)[found.positions]
    assert (gained >= 59.9).all()
    assert found.info["valid"].all()
    assert len(set(found.targets)) == len(people)
    assert found.verify(people)["holds"].all()
    alone = scored.explain(people.iloc[[5]], target=by(60), n=3, check=scores, random_state=0)
    pd.testing.assert_frame_equal(alone.frame, found.frame.iloc[found.positions == 5])


def test_every_row_may_have_a_goal_of_its_own(scored: DiCoFlex, people: pd.DataFrame) -> None:
    wanted = [at_least(620), "<=500", by(-20), "+50"]
    found = scored.explain(people.head(4), target=wanted, n=2, random_state=0)
    assert found.targets[:2] == [">= 620", "<= 500"]
    assert found.targets[2].startswith("<=")
    assert found.targets[3].startswith(">=")
    assert found.positions.tolist() == sorted(found.positions.tolist())
    record = json.loads(found.to_json())
    assert record["settings"]["targets"] == list(found.targets)
    again = scored.explain(people.head(4), target=record["settings"]["targets"], n=2, random_state=0)
    pd.testing.assert_frame_equal(again.frame, found.frame)
    assert "→ >= 620" in str(found)


def test_a_file_answers_alike(scored: DiCoFlex, people: pd.DataFrame, tmp_path: Path) -> None:
    scored.save(tmp_path / "scores.dicoflex")
    again = load(tmp_path / "scores.dicoflex")
    ask = {"target": at_least(600), "n": 3, "random_state": 4}
    one, other = scored.explain(people, **ask), again.explain(people, **ask)
    pd.testing.assert_frame_equal(one.frame, other.frame)
    assert one.model == other.model == again.fingerprint_
    pd.testing.assert_frame_equal(scored.probability(people), again.probability(people))
    assert list(again.classes_) == []


def test_plain_rows_get_the_same_answers(scored: DiCoFlex, people: pd.DataFrame) -> None:
    request = Request.of(target=[at_least(620), by(40), "480..600"], n=2, random_state=0)
    found = scored.explain(people.head(3), target=request.target, n=2, random_state=0)
    cells = [list(row) for row in cells_of(scored.model_.encoding.conform(people.head(3))[0])]
    answers = answer_plain(scored.model_, cells, request, verify=True)
    told = [one for row in answers.rows for one in row["counterfactuals"]]
    assert [one["scores"]["score"] for one in told] == found.info["score"].tolist()
    assert all(one["verified"] for one in told)
    assert [row["target"] for row in answers.rows] == list(found.targets)
    assert answers.bound["target"][0] == {"at_least": 620.0, "at_most": None}


def test_an_aimed_surrogate_says_what_the_formula_says(scored: DiCoFlex, people: pd.DataFrame) -> None:
    model = scored.model_
    assert model.score is not None
    values = model.encoding.encode(people)
    ranks = model.score.rank(score_of(model, values))
    for goal in (at_least(600), at_most(560), between(520, 640)):
        aim = aimed(model, goal)
        low, high = (np.full(len(ranks), end) for end in model.score.rank(np.array(goal.ends)))
        said = aim.surrogate.probabilities(values)[:, goal.parts[1]]
        assert said == pytest.approx(inside(ranks, low, high, model.score.spread), abs=1e-4)
        assert aim.fingerprint == model.fingerprint


def test_draws_and_densities(scored: DiCoFlex, scores: Scores, people: pd.DataFrame) -> None:
    draws = scored.sample(people.head(5), target=by(30), n=6, random_state=0)
    assert draws.shape == (30, people.shape[1])
    assert draws.index.get_level_values(0).unique().tolist() == people.index[:5].tolist()
    own = np.repeat(scores(people.head(5)), 6)
    assert np.mean(scores(draws) >= own + 30) >= 0.8
    each = scored.log_density(people.head(5), draws.iloc[::6], target=by(30))
    first = scored.log_density(people.head(1), draws.iloc[:1], target=by(30))
    assert each[0] == pytest.approx(first[0])


REFUSED: list[tuple[Any, str]] = [
    (None, "target None is no interval of scores, and this model explains scores; ask for at_least(620), at_most(5), "
           "between(600, 700) or by(40)"),
    ("yes", "target 'yes' asks for no score; write '>=620', '<=5', '600..700', or '+40' for more than one's own"),
    (3, "target 3 is no interval of scores, and this model explains scores; ask for at_least(620), at_most(5), "
        "between(600, 700) or by(40)"),
    ({"a", "b"}, "target 'a or b' is no interval of scores, and this model explains scores; ask for at_least(620), "
                 "at_most(5), between(600, 700) or by(40)"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "told"), REFUSED)
def test_what_is_no_score_is_refused(scored: DiCoFlex, people: pd.DataFrame, target: Any, told: str) -> None:
    with pytest.raises(QueryError) as error:
        scored.explain(people, target=target)
    assert str(error.value) == told


def test_what_the_rows_do_not_support_is_refused_with_what_they_do(scored: DiCoFlex, people: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match=r"target >= 5000: fewer than 10 training rows .* lie between \d+.* and \d+"):
        scored.explain(people, target=at_least(5000))
    with pytest.raises(QueryError, match=r"fewer than 10|narrower than the model can tell scores apart.*wider one"):
        scored.explain(people, target=between(600, 600.5))
    with pytest.raises(QueryError, match="fewer than 10 training rows"):
        scored.explain(people, target=by(4000))


def test_a_check_that_gives_no_scores_is_refused(scored: DiCoFlex, people: pd.DataFrame, says: Any) -> None:
    with pytest.raises(BlackBoxError, match="check gave no numbers"):
        scored.explain(people, target=at_least(600), check=says)
    with pytest.raises(BlackBoxError, match="one score per row"):
        scored.explain(people, target=at_least(600), check=lambda rows: np.zeros((len(rows), 2)))
    with pytest.raises(BlackBoxError, match="check must be a callable"):
        scored.explain(people, target=at_least(600), check=3)  # type: ignore[arg-type]


def test_limits_hold_and_can_be_relaxed(scored: DiCoFlex, people: pd.DataFrame) -> None:
    limits = {"frozen": ["score", "gain", "member"], "max_changes": 1}
    found = scored.explain(people, target=by(30), n=3, constraints=limits, random_state=0)
    assert (found.info["n_changed"] == 1).all()
    assert found.importance().loc["gain", "share"] == 0
    short = [i for i, word in enumerate(found.status) if word in ("infeasible", "not_found")]
    assert short
    assert any(found.relax(position=short[0]))
    assert not found.relax(position=short[0], check=lambda rows: np.zeros(len(rows)))
