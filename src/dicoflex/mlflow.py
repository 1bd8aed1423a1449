"""An MLflow flavour: explainers logged, registered, served and loaded as MLflow models, without pickle."""

from __future__ import annotations

__all__ = ["load_model", "log_model", "save_model", "signature_of"]

import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.constraints import Constraints
from dicoflex.errors import ModelFileError
from dicoflex.explainer import Explainer, load
from dicoflex.model import Model
from dicoflex.runtime.extras import extra
from dicoflex.table.feature import Feature
from dicoflex.values import jsonable

with extra("mlflow", to="save and load MLflow models"):
    import mlflow.artifacts
    import mlflow.pyfunc
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

FILE = "model.dicoflex"
TOLD = ("status", "counterfactuals", "reason")
PARAMS: dict[str, tuple[DataType, Any, tuple[int, ...] | None]] = {
    "target": (DataType.string, None, None),
    "n": (DataType.long, 10, None),
    "p": (DataType.double, None, None),
    "frozen": (DataType.string, [], (-1,)),
    "constraints": (DataType.string, None, None),
    "confidence": (DataType.string, None, None),
    "random_state": (DataType.long, 0, None),
}
"""What may be asked for besides rows: type, default, shape. Labels, constraints and levels are given as text."""


def signature_of(explainer: Explainer) -> ModelSignature:
    """What MLflow is told of rows, answers and parameters.

    Parameters
    ----------
    explainer : Explainer
        A fitted explainer; its schema says what the columns are.

    Returns
    -------
    mlflow.models.ModelSignature
        A row in has the features; a row out has its `status`, its `counterfactuals` as JSON, and the `reason` where
        there are fewer than asked for.
    """
    features = explainer.schema_.features
    columns = [ColSpec(_type_of(one), name=str(one.name), required=not one.missing) for one in features]
    told = [ColSpec(DataType.string, name=name, required=name != "reason") for name in TOLD]
    params = ParamSchema([ParamSpec(name, *rest) for name, rest in PARAMS.items()])
    return ModelSignature(inputs=Schema(columns), outputs=Schema(told), params=params)


def _type_of(feature: Feature) -> Any:
    """The type of a column; MLflow has none for categories, nor for numbers and truth values that may be missing."""
    kinds = {type(level) for level in feature.levels}
    if feature.categories is not None or (feature.missing and kinds != {str}):
        return AnyType()
    if feature.is_number:
        return DataType.long if feature.is_whole else DataType.double
    return DataType.boolean if kinds == {bool} else DataType.string if kinds == {str} else AnyType()


def save_model(explainer: Explainer, path: str | os.PathLike[str], **more: Any) -> None:
    """Save an explainer as an MLflow model in a new folder.

    Parameters
    ----------
    explainer : Explainer
        A fitted explainer.
    path : path
        The folder to make.
    **more : Any
        Further arguments of `mlflow.pyfunc.save_model`, such as `metadata` and `input_example`.
    """
    with tempfile.TemporaryDirectory() as folder:
        mlflow.pyfunc.save_model(path=os.fspath(path), **_parts(explainer, Path(folder)), **more)


def log_model(explainer: Explainer, name: str = "explainer", **more: Any) -> Any:
    """Log an explainer to the active run, or register it.

    Parameters
    ----------
    explainer : Explainer
        A fitted explainer.
    name : str
        What the model is called.
    **more : Any
        Further arguments of `mlflow.pyfunc.log_model`, such as `registered_model_name`.

    Returns
    -------
    mlflow.models.model.ModelInfo
    """
    with tempfile.TemporaryDirectory() as folder:
        return mlflow.pyfunc.log_model(name=name, **_parts(explainer, Path(folder)), **more)


def _parts(explainer: Explainer, folder: Path) -> dict[str, Any]:
    explainer.save(folder / FILE)
    return {
        "loader_module": __name__,
        "data_path": str(folder / FILE),
        "signature": signature_of(explainer),
        "pip_requirements": [f"dicoflex[mlflow]=={version('dicoflex')}"],
    }


def load_model(model_uri: str | os.PathLike[str], *, trust: str | os.PathLike[str] | bytes | None = None) -> Explainer:
    """The explainer of an MLflow model.

    Parameters
    ----------
    model_uri : str or path
        A folder, or what MLflow calls a model: `models:/income/3`, `runs:/…/explainer`.
    trust : path or bytes, optional
        A public key that the model file must be signed with, as for `dicoflex.load`.

    Returns
    -------
    Explainer
    """
    folder = Path(model_uri) if Path(model_uri).is_dir() else Path(mlflow.artifacts.download_artifacts(str(model_uri)))
    found = sorted(folder.rglob("*.dicoflex"))
    if len(found) != 1:
        raise ModelFileError(f"{model_uri} has {len(found)} files of dicoflex, and an MLflow model of it has one")
    return load(found[0], trust=trust)


class _Predicting:
    """What `mlflow.pyfunc` calls: a row of answers for each row."""

    def __init__(self, explainer: Explainer) -> None:
        self.explainer = explainer

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> pd.DataFrame:
        given = {name: value for name, value in (params or {}).items() if value is not None}
        if "constraints" in given:
            given["constraints"] = Constraints.model_validate_json(given["constraints"])
        if "target" in given:
            given["target"] = _target(self.explainer.model_, given["target"])
        if "confidence" in given:
            given["confidence"] = _confidence(given["confidence"])
        given = {name: list(value) if name == "frozen" else value for name, value in given.items()}
        return _told(self.explainer.explain(model_input, **given))


def _load_pyfunc(path: str) -> _Predicting:
    """What MLflow calls to load the model."""
    return _Predicting(load(path))


def _target(model: Model, text: Any) -> Any:
    """A label by its text; what is none is a target as `explain` reads it."""
    known = {str(label): label for label in model.labels}
    return known.get(str(text), text)


def _confidence(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _told(found: Counterfactuals) -> pd.DataFrame:
    """A row for each query, under its index: status, answers as JSON, and why there are fewer than asked for."""
    rows = []
    for place in range(len(found.queries)):
        answers = found.frame.iloc[found.positions == place]
        cells = [dict(zip(map(str, answers.columns), row, strict=True)) for row in answers.astype(object).to_numpy()]
        reason = found.reasons[place][2] if place in found.reasons else None
        rows.append((found.status[place], json.dumps(jsonable(cells)), reason))
    return pd.DataFrame(rows, columns=list(TOLD), index=found.queries.index)
