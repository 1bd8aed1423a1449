"""The MLflow flavour: what is saved, logged and served is asked with MLflow's own functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dicoflex import Explainer, load
from dicoflex.errors import ModelFileError


@pytest.fixture(scope="module", autouse=True)
def without_telemetry(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        folder = tmp_path_factory.mktemp("mlflow")
        patch.setenv("MLFLOW_TRACKING_URI", (folder / "mlruns").as_uri())
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the small package has no database
        patch.chdir(folder)
        yield


@pytest.fixture(scope="module")
def asked() -> Explainer:
    """A model of features of every kind."""
    return load(Path(__file__).parent / "recording" / "mixed.dicoflex")


@pytest.fixture(scope="module")
def saved(asked: Explainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dicoflex import mlflow as flavour

    path = tmp_path_factory.mktemp("saved") / "explainer"
    flavour.save_model(asked, path, metadata={"team": "credit"})
    return path


def test_the_folder_has_no_pickle_and_says_what_it_needs(saved: Path, asked: Explainer) -> None:
    names = {path.name for path in saved.rglob("*") if path.is_file()}
    assert "model.dicoflex" in names
    assert not [name for name in names if name.endswith((".pkl", ".pickle", ".joblib", ".py"))]
    assert "loader_module: dicoflex.mlflow" in (saved / "MLmodel").read_text()
    assert "dicoflex[mlflow]==" in (saved / "requirements.txt").read_text()


def test_predict_gives_what_explain_gives(saved: Path, asked: Explainer, queries: pd.DataFrame) -> None:
    import mlflow.pyfunc

    rows = asked.explain(queries, n=1, random_state=0).queries
    params = {
        "target": "yes", "n": 3, "frozen": ["city"], "random_state": 5,
        "constraints": json.dumps({"max_changes": 3}),
    }  # fmt: skip
    found = mlflow.pyfunc.load_model(str(saved)).predict(rows, params=params)
    constraints = {"max_changes": 3}
    direct = asked.explain(rows, target="yes", n=3, frozen=["city"], random_state=5, constraints=constraints)
    assert found["status"].tolist() == list(direct.status)
    for place, text in enumerate(found["counterfactuals"]):
        answers = direct.frame.iloc[direct.positions == place]
        told = pd.DataFrame(json.loads(text), columns=answers.columns)
        expected = answers.astype(object).where(answers.notna(), None)
        assert told.astype(object).where(told.notna(), None).to_numpy().tolist() == expected.to_numpy().tolist()
    assert found.index.equals(rows.index)


def test_an_explainer_comes_back_from_a_folder_and_a_run(saved: Path, asked: Explainer, queries: pd.DataFrame) -> None:
    import mlflow

    from dicoflex import mlflow as flavour

    question: dict[str, Any] = {"n": 2, "random_state": 0}
    expected = asked.explain(queries, **question).frame
    pd.testing.assert_frame_equal(flavour.load_model(saved).explain(queries, **question).frame, expected)
    with mlflow.start_run():
        info = flavour.log_model(asked, "income", registered_model_name="income")
    for uri in (info.model_uri, "models:/income/1"):
        pd.testing.assert_frame_equal(flavour.load_model(uri).explain(queries, **question).frame, expected)


def test_the_signature_is_that_of_the_schema(asked: Explainer) -> None:
    from dicoflex import mlflow as flavour

    signature = flavour.signature_of(asked)
    inputs = {one.name: (str(one.type), one.required) for one in signature.inputs}
    assert inputs["visits"] == ("DataType.long", True)
    assert inputs["gain"] == ("DataType.double", True)
    assert inputs["age"] == ("Any", False)
    assert inputs["member"] == ("DataType.boolean", True)
    assert inputs["city"] == ("DataType.string", True)
    assert inputs["grade"] == ("Any", True)
    assert {one.name for one in signature.params} == {
        "target", "n", "p", "frozen", "constraints", "confidence", "random_state",
    }  # fmt: skip


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    from dicoflex import mlflow as flavour

    with pytest.raises(ModelFileError, match="has 0 files of dicoflex"):
        flavour.load_model(tmp_path)
