"""The classifiers that the benchmarks explain: a multilayer perceptron, and boosted trees of three libraries."""

from __future__ import annotations

__all__ = ["BLACK_BOXES", "boosting", "lightgbm", "perceptron", "xgboost"]

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from dicoflex.datasets import Dataset
from dicoflex.errors import DataError


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
    return _on_codes(data, HistGradientBoostingClassifier(random_state=seed))


def lightgbm(data: Dataset, seed: int) -> Any:
    """LightGBM with its defaults on numbers and level codes."""
    LGBMClassifier = _from("lightgbm", "LGBMClassifier")
    return _on_codes(data, LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1))


def xgboost(data: Dataset, seed: int) -> Any:
    """XGBoost with its defaults on numbers and level codes; its labels are 0 and 1."""
    XGBClassifier = _from("xgboost", "XGBClassifier")
    return _on_codes(data, XGBClassifier(random_state=seed, n_jobs=1))


def _on_codes(data: Dataset, classifier: Any) -> Any:
    numbers, levels = _columns(data)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    prepare = make_column_transformer(("passthrough", numbers), (codes, levels))
    return make_pipeline(prepare, classifier).fit(data.X_train, data.y_train)


def _from(package: str, name: str) -> Any:
    """A class of a package that need not be there."""
    try:
        return getattr(import_module(package), name)
    except ImportError as error:
        raise DataError(
            f"the black box needs the package {package}, which can't be imported ({error}); install it"
        ) from error


def _columns(data: Dataset) -> tuple[list[Any], list[Any]]:
    features = data.schema.features
    return [f.name for f in features if f.is_number], [f.name for f in features if not f.is_number]


BLACK_BOXES: dict[str, Callable[[Dataset, int], Any]] = {
    "perceptron": perceptron,
    "boosting": boosting,
    "lightgbm": lightgbm,
    "xgboost": xgboost,
}
