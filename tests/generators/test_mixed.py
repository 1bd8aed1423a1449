"""The default density: exact, normalised, with point masses, grids and a keep state that are what they say."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dicoflex import DiCoFlex
from dicoflex.generators.base import Context
from dicoflex.runtime.randomness import row_keys

pytestmark = pytest.mark.usefixtures("one_thread")

Quickly = Callable[..., DiCoFlex]
N = 500


@pytest.fixture(scope="module")
def amounts() -> pd.DataFrame:
    """A level, a number with a point mass and missing values, a whole number of many values, a switch."""
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(N) < 0.4, 0.0, rng.gamma(2.0, 50.0, N))
    return pd.DataFrame(
        {
            "level": rng.choice(["low", "mid", "top"], N),
            "gain": np.where(rng.random(N) < 0.1, np.nan, gain),
            "count": rng.poisson(15, N),
            "switch": rng.random(N) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def model(amounts: pd.DataFrame, quickly: Quickly) -> DiCoFlex:
    """Three classes; so few cells that whole numbers share some."""
    score = amounts["gain"].fillna(20.0) / 50 + amounts["switch"] + amounts["level"].map({"low": 0, "mid": 1, "top": 2})
    labels = np.array(["bad", "fair", "good"])[np.digitize(score, [1.2, 2.6])]
    return quickly(
        amounts, labels, steps=300, generator_config={"max_cells": 10, "hidden": 48, "head": 24},
        training={"min_steps": 0, "epochs": 12, "batch_size": 256, "learning_rate": 3e-3},
        fit_config={"passes": 3, "rounds": 0},
    )  # fmt: skip


def cells(model: DiCoFlex, name: str) -> list[tuple[float, float, int]]:
    """The cells of a feature: least and greatest value, and how many it holds (0: a stretch of the line)."""
    grid: Any = model.model_.generator.grid
    j = model.schema_.position(name)
    at = slice(grid.offset[j], grid.offset[j + 1])
    return list(zip(grid.low[at], grid.high[at], grid.count[at], strict=True))


def panels(model: DiCoFlex, name: str, own: float) -> list[tuple[float, float]]:
    """Points and weights: the integral of anything that is smooth on each cell is the weighted sum over the points.

    `own`, where a draw may stay, is a point of its own.
    """
    points = []
    nodes, weights = np.polynomial.legendre.leggauss(3)
    for low, high, count in cells(model, name):
        if count == 1:
            points.append((low, 1.0))
        elif count == 0:
            points += [
                ((low + high) / 2 + (high - low) / 2 * x, (high - low) / 2 * w)
                for x, w in zip(nodes, weights, strict=True)
            ]
        else:
            points += [(value, 1.0) for value in np.linspace(low, high, count)]
    same = [(np.isnan(v) and np.isnan(own)) or v == own for v, _ in points]
    return points if any(same) else [*points, (own, 1.0)]


QUERIES = {
    "usual": ("mid", 33.25, 14, True),
    "at the point mass": ("low", 0.0, 15, False),
    "missing": ("top", np.nan, 9, True),
    "beyond the limits": ("mid", 1e5, 90, False),
}
FROZEN: list[list[str]] = [[], ["gain"], ["level", "count"], ["gain", "count", "switch"]]


def query_frame(amounts: pd.DataFrame, case: str) -> pd.DataFrame:
    return pd.DataFrame([QUERIES[case]], columns=list(amounts)).astype(amounts.dtypes.to_dict())


# -- the density ------------------------------------------------------------------------------------------------------


def test_table_has_every_sort_of_cell(model: DiCoFlex) -> None:
    assert {count for _, _, count in cells(model, "gain")} >= {0, 1}
    assert max(count for _, _, count in cells(model, "count")) > 1
    assert any(np.isnan(low) for low, _, _ in cells(model, "gain"))


@pytest.mark.parametrize("frozen", FROZEN, ids=str)
@pytest.mark.parametrize("case", QUERIES)
def test_density_integrates_to_one(case: str, frozen: list[str], model: DiCoFlex, amounts: pd.DataFrame) -> None:
    query = query_frame(amounts, case)
    choices = {
        "level": [(v, 1.0) for v in ("low", "mid", "top")],
        "gain": panels(model, "gain", query["gain"].item()),
        "count": panels(model, "count", query["count"].item()),
        "switch": [(v, 1.0) for v in (False, True)],
    }
    choices |= {name: [(query[name].item(), 1.0)] for name in frozen}
    combined = list(product(*choices.values()))
    answers = pd.DataFrame([[value for value, _ in row] for row in combined], columns=list(amounts))
    weights = np.array([np.prod([weight for _, weight in row]) for row in combined])
    for target, p in (("bad", 2.0), ("fair", 0.5), ("good", 0.01)):
        density = np.exp(model.log_density(query, answers.astype(amounts.dtypes), target=target, p=p, frozen=frozen))
        assert (density * weights).sum() == pytest.approx(1.0, abs=2e-4)


@pytest.mark.parametrize("frozen", [[], ["b"]], ids=str)
def test_density_equals_the_frequency_of_draws(frozen: list[str], quickly: Quickly) -> None:
    """On a table of 24 rows that can be told apart; the draws come from the density itself, nothing filtered."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.choice(list("xyz"), 300), "b": rng.random(300) < 0.5, "c": rng.integers(0, 4, 300)})
    model = quickly(rows, np.where(rows["c"] + rows["b"] > 2, "yes", "no"), training={"min_steps": 0, "epochs": 6})
    query = pd.DataFrame({"a": ["y"], "b": [True], "c": [1]})
    every = pd.DataFrame(list(product("xyz", [False, True], range(4))), columns=["a", "b", "c"])
    expected = np.exp(model.log_density(query, every, target="yes", p=0.25, frozen=frozen))
    n = 40_000
    encoding = model.model_.encoding
    values = encoding.encode(query)
    context = Context(
        values, np.array([1]), np.array([0.25]), model.schema_.mask(frozen)[None], model.model_.confidence.default[[1]]
    )
    draws, _ = model.model_.generator.sample(context, n, row_keys(values, 1), 0)
    found, counts = np.unique(draws[0], axis=0, return_counts=True)
    lookup = {tuple(row): count for row, count in zip(found, counts, strict=True)}
    counts = np.array([lookup.get(tuple(row), 0) for row in encoding.encode(every)])
    assert counts.sum() == n
    possible = expected > 0
    assert counts[~possible].sum() == 0
    spread = np.sqrt(n * expected * (1 - expected)) + 1
    assert (np.abs(counts - n * expected) < 5 * spread).all()
    enough = n * expected >= 5
    statistic = ((counts - n * expected)[enough] ** 2 / (n * expected)[enough]).sum()
    assert statistic < stats.chi2.ppf(1 - 1e-5, enough.sum() - 1)


@pytest.mark.parametrize("frozen", FROZEN, ids=str)
def test_densities_of_the_sampler_are_those_of_log_prob(
    frozen: list[str], model: DiCoFlex, amounts: pd.DataFrame
) -> None:
    queries = pd.concat([query_frame(amounts, case) for case in QUERIES] + [amounts.head(20)])
    values = model.model_.encoding.encode(queries)
    n = len(values)
    context = Context(
        values, np.arange(n) % 3, np.linspace(0.01, 2, n), np.tile(model.schema_.mask(frozen), (n, 1)),
        model.model_.confidence.default[np.arange(n) % 3],
    )  # fmt: skip
    draws, log_density = model.model_.generator.sample(context, 50, row_keys(values, 0), 0)
    assert log_density is not None
    again = model.model_.generator.log_prob(context.repeat(50), draws.reshape(50 * n, -1))
    np.testing.assert_allclose(log_density.ravel(), again, atol=1e-4)


@pytest.mark.parametrize("case", QUERIES)
def test_query_itself_has_no_density(case: str, model: DiCoFlex, amounts: pd.DataFrame) -> None:
    query = query_frame(amounts, case)
    for frozen in FROZEN:
        assert model.log_density(query, query, target="good", frozen=frozen)[0] == -np.inf


def test_what_can_not_be_drawn_has_no_density(model: DiCoFlex, amounts: pd.DataFrame) -> None:
    query = query_frame(amounts, "usual")
    other = query.assign(level="top")

    def density(answer: pd.DataFrame, **given: Any) -> float:
        return float(model.log_density(query, answer, target="good", **given)[0])

    assert np.isfinite(density(other))
    assert density(other, frozen=["level"]) == -np.inf
    assert density(other.assign(count=16), frozen=["count"]) == -np.inf
    assert np.isfinite(density(other, frozen=["gain", "count", "switch"]))
    assert density(other.assign(gain=-1.0)) == -np.inf
    assert density(other.assign(gain=1e6)) == -np.inf
    assert density(other.assign(count=1000)) == -np.inf


def test_every_training_row_has_some(model: DiCoFlex, amounts: pd.DataFrame) -> None:
    for case in ("usual", "missing"):
        query = query_frame(amounts, case)
        others = amounts[~(amounts.eq(query.iloc[0]) | (amounts.isna() & query.iloc[0].isna())).all(axis=1)]
        assert len(others) > N - 5
        assert np.isfinite(model.log_density(query, others, target="fair")).all()


def test_density_changes_little_between_near_exponents(model: DiCoFlex, amounts: pd.DataFrame) -> None:
    query = query_frame(amounts, "usual")
    at = [model.log_density(query, amounts, target="good", p=p) for p in (0.25, 0.2501, 0.5, 1.0)]
    assert np.abs(at[0] - at[1]).max() < 0.01
    assert np.abs(at[0] - at[3]).max() > 0.01


def test_densities_do_not_depend_on_the_batch(model: DiCoFlex, amounts: pd.DataFrame) -> None:
    query = query_frame(amounts, "usual")
    together = model.log_density(query, amounts, target="good")
    alone = [model.log_density(query, amounts.iloc[[i]], target="good")[0] for i in range(30)]
    np.testing.assert_array_equal(together[:30], alone)


# -- draws ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def draws(mixed: DiCoFlex, queries: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draws for the applicants, and the rows that they were drawn for."""
    frame = mixed.sample(queries, target="yes", n=200, filter=False, random_state=0)
    return frame, queries.loc[frame.index.get_level_values("row")]


def test_point_masses_are_exact(draws: tuple[pd.DataFrame, pd.DataFrame], applicants: pd.DataFrame) -> None:
    frame, own = draws
    drawn = frame["gain"].to_numpy()[frame["gain"].to_numpy() != own["gain"].to_numpy()]
    assert 0.05 < (drawn == 0.0).mean() < 0.95
    assert not np.signbit(drawn).any()
    assert drawn[drawn > 0].min() > 1e-6


def test_whole_numbers_and_cents_stay_on_their_grids(draws: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    frame, _ = draws
    assert frame["visits"].dtype == "int8"
    assert str(frame["age"].dtype) == "Int64"
    price = frame["price"].to_numpy()
    np.testing.assert_array_equal(price, np.round(price, 2))
    np.testing.assert_array_equal(price * 4, np.rint(price * 4))


def test_currency_that_hardly_repeats_stays_in_cents(quickly: Quickly) -> None:
    """More values than cells: runs of cents, not stretches of the line."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"price": np.round(rng.integers(500, 900, 1500) / 100, 2), "kind": rng.choice(list("ab"), 1500)}
    )
    model = quickly(rows, np.where(rows["price"] > 7, "dear", "cheap"), generator_config={"max_cells": 16})
    prices = model.sample(rows.head(20), n=50, filter=False, random_state=0)["price"].to_numpy()
    np.testing.assert_array_equal(prices, np.round(prices, 2))
    assert len(np.unique(prices)) > 16


def test_continuous_numbers_are_continuous(draws: tuple[pd.DataFrame, pd.DataFrame], applicants: pd.DataFrame) -> None:
    frame, own = draws
    score = frame["score"].to_numpy()
    drawn = score[score != own["score"].to_numpy()]
    assert len(drawn) > 100
    assert len(np.unique(drawn)) > 0.99 * len(drawn)
    assert not np.isin(drawn, applicants["score"].to_numpy()).mean() > 0.01


def test_missing_is_a_state_of_its_own(draws: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    frame, own = draws
    for name in ("age", "job"):
        gone = frame[name].isna().to_numpy() & ~own[name].isna().to_numpy()
        assert 0 < gone.mean() < 0.5
    assert not frame[["gain", "price", "score", "visits", "city", "grade", "area", "member"]].isna().any(axis=None)


def test_kept_values_are_exact(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    """Numbers that stay are the query's to the last bit, far more often than chance would have it."""
    frame = judged.sample(queries, target="yes", n=50, p=0.01, random_state=0)
    own = queries.loc[frame.index.get_level_values("row")]
    for name in ("score", "gain"):
        assert (frame[name].to_numpy() == own[name].to_numpy()).mean() > 0.1


def test_kept_values_beyond_the_limits_are_exact(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.assign(price=99.99, score=np.float32(50.5))
    frame = mixed.sample(rows, target="yes", n=100, p=0.01, filter=False, random_state=0)
    for name, own in (("price", 99.99), ("score", np.float32(50.5))):
        values = frame[name].to_numpy()
        feature = mixed.schema_[name]
        assert ((values == own) | ((values >= feature.minimum) & (values <= feature.maximum))).all()
        assert (values == own).any()


def test_small_numbers_of_draws_are_the_start_of_large_ones(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    values = mixed.model_.encoding.encode(queries)
    n = len(values)
    context = Context(
        values, np.ones(n, dtype=np.int64), np.full(n, 0.25), np.zeros(values.shape, dtype=bool), np.zeros(n)
    )
    few, _ = mixed.model_.generator.sample(context, 5, row_keys(values, 0), 0)
    many, _ = mixed.model_.generator.sample(context, 50, row_keys(values, 0), 0)
    np.testing.assert_array_equal(few, many[:, :5])


def test_no_draw_equals_the_query_even_where_little_can_change(quickly: Quickly) -> None:
    rows = pd.DataFrame({"a": [True, False] * 40, "b": [1, 1, 2, 2] * 20, "c": [0.5] * 80})
    model = quickly(rows, np.where(rows["a"], "yes", "no"))
    for frozen in ([], ["a"], ["b"], ["c"]):
        frame = model.sample(rows.head(4), target="yes", n=20, frozen=frozen, filter=False, random_state=0)
        own = rows.head(4).loc[frame.index.get_level_values("row")]
        assert (frame.to_numpy() != own.to_numpy()).any(axis=1).all()


def test_draws_follow_the_target(judged: DiCoFlex, queries: pd.DataFrame, says: Callable[..., np.ndarray]) -> None:
    for target in ("yes", "no"):
        frame = judged.sample(queries, target=target, n=50, random_state=0)
        assert (says(frame) == target).mean() > 0.75
