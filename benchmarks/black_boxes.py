"""The classifiers that the benchmarks explain: a multilayer perceptron, and boosted trees."""

from __future__ import annotations

__all__ = ["BLACK_BOXES", "boosting", "perceptron"]

from collections.abc import Callable
from typing import Any

from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from dicoflex.datasets import Dataset


def perceptron(data: Dataset, seed: int) -> Any:
    """scikit-learn's MLP (64, 32) on standardised numbers and one-hot levels."""
    numbers, levels = _columns(data)
    prepare = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), levels)
    )
    model = make_pipeline(prepare, MLPClassifier((64, 32), early_stopping=True, max_iter=100, random_state=seed))
    return model.fit(data.X_train, data.y_train)


def boosting(data: Dataset, seed: int) -> Any:
    """scikit-learn's histogram gradient boosting on numbers and level codes."""
    numbers, levels = _columns(data)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    prepare = make_column_transformer(("passthrough", numbers), (codes, levels))
    model = make_pipeline(prepare, HistGradientBoostingClassifier(random_state=seed))
    return model.fit(data.X_train, data.y_train)


def _columns(data: Dataset) -> tuple[list[Any], list[Any]]:
    features = data.schema.features
    return [f.name for f in features if f.is_number], [f.name for f in features if not f.is_number]


BLACK_BOXES: dict[str, Callable[[Dataset, int], Any]] = {"perceptron": perceptron, "boosting": boosting}
