"""A generated table of people: four continuous columns, no two rows alike, one column that depends on nothing."""

from __future__ import annotations

__all__ = ["generated"]

import numpy as np
import pandas as pd

from dicoflex.datasets import Dataset
from dicoflex.table.schema import Schema

ROWS, TEST_ROWS = 10_000, 2_000


def generated(n: int = ROWS, *, random_state: int = 0) -> Dataset:
    """`n` rows to learn from and 2,000 that nothing learns from; the label is what a formula says.

    >>> data = generated(100)
    >>> data.X_train.shape, len(data.X_test), bool(data.X_train.duplicated().any())
    ((100, 10), 2000, False)
    """
    X, accepted = _people(n + TEST_ROWS, np.random.default_rng(random_state))
    y = pd.Series(np.where(accepted, "yes", "no"), name="loan")
    return Dataset(
        name="generated",
        X_train=X.head(n),
        y_train=y.head(n),
        X_test=X.tail(TEST_ROWS).reset_index(drop=True),
        y_test=y.tail(TEST_ROWS).reset_index(drop=True),
        schema=Schema.infer(X),
        label="loan",
        positive="yes",
    )


def _people(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    wealth, thrift, years = rng.normal(size=(3, n))
    income = np.exp(10 + 0.5 * wealth + 0.2 * rng.normal(size=n))
    age = np.clip(np.round(40 + 12 * years), 18, 80).astype(int)
    X = pd.DataFrame(
        {
            "income": income,
            "debt": income * np.exp(-1 + 0.6 * thrift),
            "apart": rng.uniform(0, 1, n),
            "score": 50 + 10 * (0.5 * wealth - 0.5 * thrift + 0.7 * rng.normal(size=n)),
            "age": age,
            "children": rng.poisson(1.0 + 0.02 * np.abs(age - 30)),
            "job": rng.choice(["cook", "nurse", "smith", "pilot"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "home": np.where(wealth + rng.normal(size=n) > 0, "own", "rent"),
            "region": rng.choice(["north", "east", "south", "west"], n),
            "married": np.where(age + 10 * rng.normal(size=n) > 35, "yes", "no"),
        }
    )
    worth = 0.9 * np.log(X["income"]) - 0.7 * np.log(X["debt"]) + 0.04 * X["score"] + 0.3 * (X["home"] == "own")
    return X, worth + 0.01 * X["age"] - 0.1 * X["children"] > 4.8
