"""Private rows: the noise is what it is said to be, the budget adds up, and a private fit reads nothing but counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, Schema
from dicoflex.errors import DataError, SettingError
from dicoflex.learning import private_rows as module
from dicoflex.learning.private_rows import Budget, private_rows, two_sided_geometric
from dicoflex.table.encoding import Encoding

QUICK: dict[str, Any] = {"training": {"min_steps": 0, "epochs": 1}, "fit_config": {"own_draws": 800, "passes": 1}}


def people(n: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    pay = rng.normal(50.0, 10.0, n)
    X = pd.DataFrame(
        {
            "pay": pay,
            "rent": pay / 2 + rng.normal(0.0, 2.0, n),
            "age": rng.integers(20, 60, n),
            "job": rng.choice(["cook", "nurse", "smith"], n, p=[0.6, 0.3, 0.1]),
            "left": np.where(rng.random(n) < 0.2, np.nan, rng.random(n)),
        }
    )
    return X, np.where(pay > 50, "yes", "no")


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_the_noise_is_two_sided_geometric(epsilon: float) -> None:
    noise = two_sided_geometric(200_000, epsilon)
    alpha = np.exp(-epsilon)
    assert noise.dtype == np.int64
    assert abs((noise == 0).mean() - (1 - alpha) / (1 + alpha)) < 0.005
    assert noise.var() == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=0.05)
    assert abs(noise.mean()) < 5 * noise.std() / np.sqrt(len(noise))


def test_no_seed_repeats_the_noise() -> None:
    np.random.seed(0)  # noqa: NPY002
    one = two_sided_geometric(50, 0.1)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(one, two_sided_geometric(50, 0.1))


def spent(monkeypatch: pytest.MonkeyPatch, *, labelled: bool) -> list[float]:
    """What a table of five features and perhaps a label spends, piece by piece."""
    pieces: list[float] = []

    class Watched(Budget):
        def spend(self, epsilon: float) -> float:
            pieces.append(epsilon)
            return super().spend(epsilon)

    monkeypatch.setattr(module, "Budget", Watched)
    X, y = people(300)
    schema = Schema.infer(X)
    labels = (y == "yes").astype(np.int64) if labelled else None
    private_rows(schema, Encoding.unit(schema).encode(X), labels, 2, epsilon=3.0, seed=0)
    return pieces


@pytest.mark.parametrize("labelled", [True, False])
def test_the_pieces_add_up_to_epsilon(monkeypatch: pytest.MonkeyPatch, labelled: bool) -> None:
    pieces = spent(monkeypatch, labelled=labelled)
    columns = 6 if labelled else 5
    assert len(pieces) == columns + 2 * (columns - 1)
    assert sum(pieces) == pytest.approx(3.0)


def test_every_table_gets_the_noise_that_was_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of the noise for every table of counts, with that table's piece of epsilon."""
    asked: list[tuple[int, float]] = []

    def kept(n: int, epsilon: float) -> Any:
        asked.append((n, epsilon))
        return np.zeros(n, dtype=np.int64)

    monkeypatch.setattr(module, "two_sided_geometric", kept)
    pieces = spent(monkeypatch, labelled=False)
    assert [epsilon for _, epsilon in asked] == [*pieces[:5], *pieces[9:]]
    assert [n for n, _ in asked[:5]] == [64, 64, 40, 3, 65]


def test_more_than_epsilon_is_never_spent() -> None:
    budget = Budget(1.0)
    budget.spend(0.9)
    with pytest.raises(AssertionError):
        budget.spend(0.2)


def test_drawn_rows_are_like_the_rows() -> None:
    X, y = people(5000)
    schema = Schema.infer(X)
    encoding = Encoding.unit(schema)
    values, labels = private_rows(schema, encoding.encode(X), (y == "yes").astype(np.int64), 2, epsilon=10.0, seed=0)
    drawn = encoding.decode(values)
    assert labels is not None
    assert len(drawn) >= 5000
    assert drawn.dtypes.equals(X.dtypes)
    assert abs(drawn["pay"].median() - X["pay"].median()) < 2
    assert drawn["pay"].corr(drawn["rent"]) > 0.7
    assert abs((drawn["job"] == "cook").mean() - 0.6) < 0.05
    assert abs(drawn["left"].isna().mean() - 0.2) < 0.05
    assert abs(labels.mean() - 0.5) < 0.05
    for name in ("pay", "rent", "age"):
        assert drawn[name].between(X[name].min(), X[name].max()).all()


def test_a_private_fit_learns_from_drawn_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = people(600)
    seen: list[pd.DataFrame] = []

    def proba(frame: pd.DataFrame) -> Any:
        seen.append(frame)
        sure = 1 / (1 + np.exp(-(frame["pay"].to_numpy() - 50)))
        return np.column_stack([1 - sure, sure])

    explainer = DiCoFlex(
        privacy="dp", epsilon=5.0, schema=Schema.infer(X), coherence=False, random_state=0, max_seconds=20, **QUICK
    ).fit(X, y, predict_proba=proba)
    assert explainer.report_["privacy"] == {"epsilon": 5.0, "delta": 0.0}
    assert explainer.report_["leakage"] is None
    real = set(X["pay"])
    assert not any(real & set(frame["pay"]) for frame in seen)
    cfs = explainer.explain(X[y == "no"].head(3), target="yes", n=2, random_state=0)
    assert len(cfs) > 0


def test_what_epsilon_would_not_cover_is_refused() -> None:
    X, y = people(300)
    schema = Schema.infer(X)
    with pytest.raises(SettingError, match="privacy must be one of None, 'dp'"):
        DiCoFlex(privacy="yes").fit(X, y)
    with pytest.raises(SettingError, match="needs a schema"):
        DiCoFlex(privacy="dp").fit(X, y)
    with pytest.raises(SettingError, match="needs a schema"):
        DiCoFlex(privacy="dp", schema=Schema.infer(X, min_count=5)).fit(X, y)
    with pytest.raises(SettingError, match="epsilon must be a number above 0, got 0"):
        DiCoFlex(privacy="dp", epsilon=0, schema=schema).fit(X, y)
    with pytest.raises(SettingError, match="none to remember"):
        DiCoFlex(privacy="dp", schema=schema).fit(X, y, remember_rows=True)
    with pytest.raises(SettingError, match="y holds scores"):
        DiCoFlex(privacy="dp", schema=schema, task="scores").fit(X, X["pay"])


def test_a_label_that_no_private_row_has_is_refused() -> None:
    X, y = people(300)

    def never(frame: pd.DataFrame) -> Any:
        return np.tile([1.0, 0.0], (len(frame), 1))

    with pytest.raises(DataError, match="no private row has the label 'yes'"):
        DiCoFlex(privacy="dp", schema=Schema.infer(X)).fit(X, y, predict_proba=never)
