"""Every baseline keeps the protocol, does its job on a small table, and stops when its time is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler

from benchmarks.baselines import BASELINES, Answers, Baseline, NoGradientError, Problem, network_of
from benchmarks.baselines.base import Clock
from benchmarks.baselines.descent import Schedule
from benchmarks.baselines.distance import Distance
from benchmarks.black_boxes import perceptron
from benchmarks.tasks import cut
from dicoflex import Schema, datasets, metrics
from dicoflex.datasets import Dataset
from dicoflex.errors import DataError, QueryError
from dicoflex.table.encoding import Encoding

ROWS = 2000
DICE = [name for name in BASELINES if name.startswith("dice")]
SLOW = ("dice-genetic", "dice-gradient")
needs_dice = pytest.mark.skipif(find_spec("dice_ml") is None, reason="dice-ml is not installed")
# Small autoencoders and short searches: enough for a table of this size.
QUICK: dict[str, dict[str, Any]] = {
    "cchvae": {"steps": 200},
    "revise": {"steps": 200, "schedule": Schedule(steps=80, rate=0.2)},
    "tabcf": {"steps": 100, "schedule": Schedule(steps=80, rate=0.4)},
    "wachter": {"schedule": Schedule(steps=120, rate=0.15)},
    "dice-gradient": {"options": {"min_iter": 50, "max_iter": 300}},
}
# Next to none of either: enough to see what is left alone.
BRIEF = QUICK | {
    "revise": {"steps": 5, "schedule": Schedule(steps=5, rate=0.2)},
    "tabcf": {"steps": 5, "schedule": Schedule(steps=5, rate=0.4)},
    "wachter": {"schedule": Schedule(steps=20, rate=0.2), "restarts": 0},
}


def methods(*, needs: str | None = None, but: Sequence[str] = ()) -> list[Any]:
    """The names to run a test for; DiCE's are skipped where the library is not installed."""
    named = [name for name, method in BASELINES.items() if name not in but and needs in (None, method.needs)]
    return [pytest.param(name, marks=needs_dice if name in DICE else ()) for name in named]


@pytest.fixture(scope="module")
def table() -> Dataset:
    """Adult, cut to few rows; test rows fit its schema, and training rows lack some of its levels."""
    return cut(datasets.load("adult"), ROWS)


@pytest.fixture(scope="module")
def black_box(table: Dataset) -> Any:
    return perceptron(table, 0)


@pytest.fixture(scope="module")
def problem(table: Dataset, black_box: Any) -> Problem:
    return Problem.of(black_box, table.X_train, table.schema)


@pytest.fixture(scope="module")
def queries(table: Dataset, black_box: Any) -> pd.DataFrame:
    """Six test rows of each predicted class, under an index that is not their position."""
    rows = table.X_test.head(300)
    said = black_box.predict(rows)
    chosen = np.concatenate([np.flatnonzero(said == label)[:6] for label in black_box.classes_])
    return rows.iloc[chosen].set_axis([f"q{i}" for i in range(len(chosen))])


@pytest.fixture(scope="module")
def targets(black_box: Any, queries: pd.DataFrame) -> np.ndarray:
    first, second = black_box.classes_
    return np.where(black_box.predict(queries) == first, second, first)


@pytest.fixture(scope="module")
def fitted(problem: Problem) -> Callable[[str], Baseline]:
    """Each method fitted once, when first asked for."""
    made: dict[str, Baseline] = {}

    def get(name: str) -> Baseline:
        if name not in made:
            made[name] = quick(name).fit(problem, seed=0)
        return made[name]

    return get


@pytest.fixture(scope="module")
def answered(
    fitted: Callable[[str], Baseline], queries: pd.DataFrame, targets: np.ndarray
) -> Callable[[str], tuple[pd.DataFrame, np.ndarray, Answers]]:
    """Each method's answers, with the queries and targets that it got; DiCE takes them one by one and gets fewer."""
    made: dict[str, tuple[pd.DataFrame, np.ndarray, Answers]] = {}

    def get(name: str) -> tuple[pd.DataFrame, np.ndarray, Answers]:
        if name not in made:
            each = 1 if name in SLOW else 2 if name in DICE else 6
            some = [*range(each), *range(6, 6 + each)]
            asked, wanted = queries.iloc[some], targets[some]
            made[name] = asked, wanted, fitted(name).answer(asked, wanted, n=2)
        return made[name]

    return get


def quick(name: str) -> Baseline:
    return BASELINES[name](**QUICK.get(name, {}))


def target_of(answers: Answers, queries: pd.DataFrame, targets: np.ndarray) -> np.ndarray:
    """The target of each answer."""
    return targets[queries.index.get_indexer(answers.frame.index.get_level_values("row"))]


def distances(problem: Problem, queries: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray:
    """How far each answer is from its query."""
    encode = problem.encoding.encode
    origin = queries.loc[frame.index.get_level_values("row")]
    reals = [torch.from_numpy(problem.encoding.to_reals(encode(rows))) for rows in (frame, origin)]
    return Distance.of(problem)(*reals).numpy()


# -- all of them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", methods())
def test_answers_have_the_training_dtypes_and_name_their_query(name: str, answered: Any, table: Dataset) -> None:
    queries, _, answers = answered(name)
    assert answers.frame.index.names == ["row", "cf"]
    assert answers.frame.index.is_unique
    assert answers.frame.dtypes.equals(table.X_train.dtypes)
    assert set(answers.frame.index.get_level_values("row")) <= set(queries.index)
    assert answers.frame.groupby(level="row").size().max() <= (2 if BASELINES[name].many else 1)
    assert answers.done.all()


@pytest.mark.parametrize("name", methods())
def test_answers_are_valid_for_nearly_every_query(name: str, answered: Any, black_box: Any) -> None:
    queries, targets, answers = answered(name)
    asked = target_of(answers, queries, targets)
    valid = black_box.predict(answers.frame) == asked
    assert valid.mean() > 0.9
    served = answers.frame.index.get_level_values("row")[valid].nunique()
    assert served >= 0.8 * len(queries)


@pytest.mark.parametrize("name", methods())
def test_answers_are_nearer_than_random_rows_of_the_target_class(name: str, answered: Any, problem: Problem) -> None:
    queries, targets, answers = answered(name)
    asked = target_of(answers, queries, targets)
    rng = np.random.default_rng(0)
    strangers = [rng.choice(np.flatnonzero(problem.labels == label), 20) for label in asked]
    index = answers.frame.index.repeat(20)
    random = problem.train.iloc[np.concatenate(strangers)].set_axis(index)
    near, far = distances(problem, queries, answers.frame), distances(problem, queries, random)
    # DiCE without a training row at hand draws numbers evenly from their range, far from most rows.
    far_off = name in ("dice-random", "dice-gradient")
    assert np.median(near) < (1.5 if far_off else 0.8) * np.median(far)


@pytest.mark.parametrize("name", methods())
def test_time_that_is_up_leaves_every_query_undone(
    name: str, fitted: Any, queries: pd.DataFrame, targets: np.ndarray, table: Dataset
) -> None:
    answers = fitted(name).answer(queries, targets, n=2, seconds=0.0)
    assert not answers.done.any()
    assert len(answers.frame) == 0
    assert answers.frame.dtypes.equals(table.X_train.dtypes)


@pytest.mark.parametrize("name", methods(but=SLOW))
def test_the_same_seed_gives_the_same_answers(name: str, fitted: Any, queries: pd.DataFrame, targets: Any) -> None:
    first, second = (fitted(name).answer(queries.head(1), targets[:1], n=2).frame for _ in range(2))
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize("name", methods(but=("oracle", *SLOW)))
def test_immutable_features_stay(
    name: str, problem: Problem, table: Dataset, queries: pd.DataFrame, targets: np.ndarray
) -> None:
    frozen = ("sex", "race", "education")
    bound = replace(problem, immutable=frozen)
    method = BASELINES[name](**BRIEF.get(name, {})).fit(bound, seed=0)
    answers = method.answer(queries.head(2), targets[:2], n=2)
    assert metrics.changed(queries, answers.frame, table.schema).to_numpy().any()
    assert metrics.violations(queries, answers.frame, frozen) == 0


@pytest.mark.parametrize("name", ["cchvae", "revise", "tabcf"])
def test_training_stops_when_its_time_is_up(name: str, problem: Problem) -> None:
    looks = count()
    BASELINES[name](steps=10**9).fit(replace(problem, now=lambda: float(next(looks))), seconds=5.0)
    assert next(looks) < 10


def test_a_clock_runs_out_when_its_budget_is_spent() -> None:
    times = iter([3.0, 4.0, 4.5, 5.0, 6.0])
    clock = Clock(2.0, now=lambda: next(times))
    assert [clock.share, clock.elapsed, clock.is_out, clock.share] == [0.5, 1.5, True, 1.0]
    assert Clock(0.0, now=lambda: 7.0).is_out
    assert not Clock(now=lambda: 7.0).is_out


def test_an_unknown_target_is_refused(fitted: Any, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match="target 'rich' is unknown"):
        fitted("oracle").answer(queries, "rich")


# -- each by itself ----------------------------------------------------------------------------------------------


@needs_dice
def test_some_queries_are_done_when_time_runs_out_on_the_way(
    problem: Problem, queries: pd.DataFrame, targets: np.ndarray
) -> None:
    looks = count()
    # DiCE looks at the clock some ten times for each query.
    method = quick("dice-random").fit(replace(problem, now=lambda: float(next(looks))))
    answers = method.answer(queries, targets, n=1, seconds=45.0)
    assert 0 < answers.done.sum() < len(queries)
    assert answers.done[: answers.done.sum()].all()
    assert set(answers.frame.index.get_level_values("row")) == set(queries.index[answers.done])
    assert 45.0 <= answers.seconds < 50.0


def test_the_oracle_gives_training_rows_nearest_first(answered: Any, problem: Problem, table: Dataset) -> None:
    _, _, answers = answered("oracle")
    assert metrics.share_of_copies(answers.frame, problem.train, table.schema) == 1.0
    assert len(answers.frame) == 2 * len(answers.done)


def test_wachter_changes_no_level(answered: Any, table: Dataset) -> None:
    queries, _, answers = answered("wachter")
    assert metrics.share_categories_changed(queries, answers.frame, table.schema) == 0.0


def test_wachter_stays_nearer_than_the_oracle_where_both_change_numbers_alone() -> None:
    moons = datasets.two_moons(300)
    black_box = perceptron(moons, 0)
    problem = Problem.of(black_box, moons.X_train, moons.schema)
    targets = 1 - black_box.predict(moons.X_test)
    near, far = (
        distances(problem, moons.X_test, quick(name).fit(problem).answer(moons.X_test, targets).frame)
        for name in ("wachter", "oracle")
    )
    assert near.mean() < far.mean()


@pytest.mark.parametrize("name", ["revise", "tabcf"])
def test_a_search_through_an_autoencoder_may_change_levels(name: str, answered: Any, table: Dataset) -> None:
    queries, _, answers = answered(name)
    assert metrics.share_categories_changed(queries, answers.frame, table.schema) > 0.0


def test_cchvae_gives_different_answers_nearest_first(fitted: Any, queries: pd.DataFrame, targets: Any) -> None:
    answers = fitted("cchvae").answer(queries, targets, n=10)
    assert not answers.frame.reset_index("cf", drop=True).reset_index().duplicated().any()
    away = pd.Series(distances(fitted("cchvae").problem_, queries, answers.frame), answers.frame.index)
    assert away.groupby(level="row").is_monotonic_increasing.all()
    assert len(answers.frame) > 0.9 * 10 * len(queries)


@needs_dice
def test_dice_answers_nothing_to_a_level_that_training_lacked(
    fitted: Any, problem: Problem, queries: pd.DataFrame, targets: np.ndarray
) -> None:
    seen = set(problem.train["workclass"].dropna())
    unseen = next(level for level in problem.encoding.schema["workclass"].levels if level not in seen)
    odd = queries.head(2).assign(workclass=[unseen, queries["workclass"].iloc[1]])
    answers = fitted("dice-random").answer(odd, targets[:2], n=1)
    assert answers.done.all()
    assert answers.frame.index.get_level_values("row").tolist() == ["q1"]


@needs_dice
def test_dice_refuses_numbers_that_may_be_missing() -> None:
    rows = pd.DataFrame({"x": [0.0, 1.0, np.nan, 3.0], "y": list("abab")})
    encoding = Encoding.fit(rows, Schema.infer(rows))
    proba = np.array([[0.2, 0.8], [0.8, 0.2], [0.2, 0.8], [0.8, 0.2]])
    problem = Problem(rows, np.array([1, 0, 1, 0]), np.array([0, 1]), encoding, lambda _: proba)
    with pytest.raises(DataError, match="number 'x' has missing values"):
        BASELINES["dice-random"]().fit(problem)


# -- gradients ---------------------------------------------------------------------------------------------------


def test_the_network_is_the_black_box(problem: Problem, black_box: Any, table: Dataset) -> None:
    reals = torch.from_numpy(problem.encoding.to_reals(problem.encoding.encode(table.X_test)))
    assert problem.network is not None
    chances = problem.network(reals).softmax(dim=1).numpy()
    np.testing.assert_allclose(chances, black_box.predict_proba(table.X_test), atol=1e-5)


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
def test_the_network_of_other_perceptrons_is_exact(activation: str) -> None:
    """Three classes, missing numbers that are filled in, scaling to a range, and a level that is dropped."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=200), "k": rng.integers(0, 50, 200), "c": rng.choice(list("abc"), 200)})
    rows.loc[::7, "x"] = np.nan
    numbers = make_pipeline(SimpleImputer(), MinMaxScaler())
    prepare = make_column_transformer((numbers, ["x", "k"]), (OneHotEncoder(drop="first", sparse_output=False), ["c"]))
    model = make_pipeline(prepare, MLPClassifier((8,), activation=activation, max_iter=20, random_state=0))
    model.fit(rows, rng.choice(["low", "middle", "high"], 200))
    encoding = Encoding.fit(rows, Schema.infer(rows))
    network = network_of(model, encoding, rows)
    chances = network(torch.from_numpy(encoding.to_reals(encoding.encode(rows)))).softmax(dim=1).numpy()
    np.testing.assert_allclose(chances, model.predict_proba(rows), atol=1e-5)


def test_preprocessing_that_is_not_affine_is_refused() -> None:
    rows = pd.DataFrame({"x": np.random.default_rng(0).gamma(2.0, size=200)})
    prepare = make_pipeline(FunctionTransformer(np.log), StandardScaler())
    model = make_pipeline(prepare, MLPClassifier((8,), random_state=0, max_iter=20)).fit(rows, rows["x"] > 1.0)
    with pytest.raises(NoGradientError, match="off by"):
        network_of(model, Encoding.fit(rows, Schema.infer(rows)), rows)


@pytest.mark.parametrize("name", methods(needs="gradients"))
def test_a_black_box_without_a_gradient_is_refused(name: str, table: Dataset) -> None:
    numbers = table.X_train[["age", "hours_per_week"]]
    trees = make_pipeline(HistGradientBoostingClassifier(max_iter=2)).fit(numbers, table.y_train)
    problem = Problem.of(trees, numbers, Schema.infer(numbers))
    with pytest.raises(NoGradientError, match=f"{name} needs the gradient"):
        BASELINES[name]().fit(problem)
