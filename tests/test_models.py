"""Models of each library, wrapped: `fit(X, model=...)` and `check=` take them without a function around."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from conftest import fit_quickly
from dicoflex.errors import BlackBoxError, SettingError
from dicoflex.learning.black_box import opened
from dicoflex.models import WrappedClassifier, WrappedRegressor, wrap

rng = np.random.default_rng(0)
N = 300
LABELS = ["no", "yes"]
X = pd.DataFrame({"income": rng.integers(10, 90, N).astype(float), "debt": rng.integers(0, 40, N).astype(float)})
YES = (X["income"] - X["debt"] > 30).to_numpy()
HOUSED = X.assign(housing=pd.Categorical(rng.choice(["own", "rent"], N)))


def check_fits(model: Any, rows: pd.DataFrame, classes: list[Any]) -> None:
    """A quick fit asks the model, and answers are confirmed by it."""
    box = opened(model)
    assert box.classes == classes
    assert box.predict_proba is not None
    said = box.predict_proba(rows)
    assert said.shape == (len(rows), len(classes))
    np.testing.assert_allclose(said.sum(axis=1), 1, atol=1e-5)
    assert (said.argmax(axis=1) == YES).mean() > 0.9
    explainer = fit_quickly(rows, None, model=model, steps=20)
    wrapped = wrap(model)
    cfs = explainer.explain(rows[~YES].head(2), target=classes[1], n=1, check=wrapped.predict_proba, random_state=0)
    assert len(cfs)
    assert (np.asarray(wrapped.predict(cfs.frame)).reshape(-1) == classes[1]).all()


def test_scikit_learns_models_stay_what_they_are() -> None:
    model = LogisticRegression().fit(X, np.where(YES, "yes", "no"))
    assert wrap(model) is model
    check_fits(model, X, ["no", "yes"])


def test_xgboost() -> None:
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=20, enable_categorical=True).fit(HOUSED, YES.astype(int))
    check_fits(model, HOUSED, [0, 1])
    booster = model.get_booster()
    np.testing.assert_allclose(wrap(booster).predict_proba(HOUSED), model.predict_proba(HOUSED), atol=1e-6)
    assert wrap(booster, classes=["no", "yes"]).classes_ == ["no", "yes"]
    scores = xgboost.train({"objective": "reg:squarederror"}, xgboost.DMatrix(X, X["income"]), 3)
    assert isinstance(wrap(scores), WrappedRegressor)
    with pytest.raises(SettingError, match=r"gives scores \(reg:squarederror\)"):
        wrap(scores, classes=[0, 1])
    raw = xgboost.train({"objective": "binary:logitraw"}, xgboost.DMatrix(X, YES), 2)
    with pytest.raises(SettingError, match="gives no probabilities; train it with 'binary:logistic'"):
        wrap(raw)


def test_lightgbm() -> None:
    import lightgbm

    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, num_threads=1).fit(HOUSED, YES)
    check_fits(model, HOUSED, [False, True])
    np.testing.assert_allclose(wrap(model.booster_).predict_proba(HOUSED), model.predict_proba(HOUSED))
    three = np.digitize(X["income"], [30, 60])
    many = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, num_threads=1).fit(X, three)
    assert wrap(many.booster_).classes_ == [0, 1, 2]
    assert (wrap(many.booster_).predict(X) == many.predict(X)).all()


def test_catboost() -> None:
    import catboost

    silent = {"iterations": 20, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    text = HOUSED.astype({"housing": str})
    model = catboost.CatBoostClassifier(**silent, cat_features=["housing"]).fit(text, np.where(YES, "yes", "no"))
    check_fits(model, text, ["no", "yes"])
    plain = catboost.CatBoost({**silent, "loss_function": "Logloss"}).fit(X, YES.astype(int))
    assert wrap(plain).predict_proba(X).shape == (N, 2)
    assert (wrap(plain).predict(X).astype(bool) == YES).mean() > 0.9
    scores = catboost.CatBoostRegressor(**silent).fit(X, X["income"])
    assert wrap(scores) is scores


@pytest.fixture(scope="module")
def network() -> torch.nn.Module:
    """A small network of logits, with dropout, which has to be off when it is asked."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(8, 2))
    given, wanted = torch.tensor(X.to_numpy(np.float32)) / 50, torch.tensor(YES.astype(np.int64))
    steps = torch.optim.Adam(module.parameters(), lr=0.05)
    for _ in range(150):
        steps.zero_grad()
        torch.nn.functional.cross_entropy(module(given), wanted).backward()
        steps.step()
    with torch.no_grad():
        module[0].weight /= 50
    return module.train()


def test_pytorch(network: torch.nn.Module) -> None:
    model = wrap(network, classes=["no", "yes"])
    check_fits(model, X, ["no", "yes"])
    assert network.training
    assert model.predict_proba(X).tolist() == model.predict_proba(X).tolist()
    assert next(network.parameters()).grad is not None
    with_softmax = torch.nn.Sequential(network, torch.nn.Softmax(dim=1))
    with pytest.raises(BlackBoxError, match="seems to be probabilities; say wrap"):
        wrap(with_softmax, classes=["no", "yes"]).predict_proba(X)
    said = wrap(with_softmax, classes=["no", "yes"], output="probabilities").predict_proba(X)
    np.testing.assert_allclose(said, model.predict_proba(X), atol=1e-6)
    with pytest.raises(SettingError, match=r"wrap\(model, classes=\['no', 'yes'\]\)"):
        fit_quickly(X, None, model=network)
    with pytest.raises(BlackBoxError, match="column 'housing' holds no numbers"):
        model.predict_proba(HOUSED)

    def prepare(frame: pd.DataFrame) -> torch.Tensor:
        return torch.tensor(frame[["income", "debt"]].to_numpy(np.float32))

    prepared = wrap(network, classes=["no", "yes"], prepare=prepare)
    assert (prepared.predict(HOUSED) == model.predict(X)).all()
    one = torch.nn.Linear(2, 1)
    assert wrap(one, classes=[0, 1]).predict_proba(X).shape == (N, 2)
    assert wrap(one, output="score").predict(X).shape == (N,)


def onnx_model(folder: Path, network: torch.nn.Module, *, split: bool, labelled: bool) -> Path:
    """The network as an ONNX file: one matrix in, or a column each; a matrix out, or a list of dicts."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    first, last = network[0], network[3]
    arrays = {
        "W": first.weight.detach().numpy().T, "b": first.bias.detach().numpy(),
        "V": last.weight.detach().numpy().T, "c": last.bias.detach().numpy(),
    }  # fmt: skip
    nodes = [
        *([helper.make_node("Concat", ["income", "debt"], ["rows"], axis=1)] if split else []),
        helper.make_node("Gemm", ["rows", "W", "b"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "V", "c"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["logits"], ["label"], axis=1),
    ]
    probabilities = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2])
    if labelled:
        nodes.append(
            helper.make_node(
                "ZipMap", ["probabilities"], ["maps"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]
            )
        )
        kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        probabilities = helper.make_value_info("maps", helper.make_sequence_type_proto(kind))
    inputs = [("income", 1), ("debt", 1)] if split else [("rows", 2)]
    graph = helper.make_graph(
        nodes, "network",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width]) for name, width in inputs],
        [helper.make_tensor_value_info("label", TensorProto.INT64, [None, 1]), probabilities],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    path = folder / f"network-{split}-{labelled}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("labelled", [False, True])
def test_onnx_runtime(split: bool, labelled: bool, network: torch.nn.Module, tmp_path: Path) -> None:
    import onnxruntime

    path = onnx_model(tmp_path, network, split=split, labelled=labelled)
    expected = wrap(network, classes=["no", "yes"]).predict_proba(X)
    for given in (path, onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])):
        model = wrap(given, classes=["no", "yes"])
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)
    if not split and not labelled:
        check_fits(model, X, ["no", "yes"])
    with pytest.raises(SettingError, match="does not say what its outputs are"):
        wrap(path)
    with pytest.raises(SettingError, match="output 'odd' is none of the ONNX model's"):
        wrap(path, classes=["no", "yes"], output="odd")


class Scorer(BaseHTTPRequestHandler):
    """A scorer that is busy at first, takes 100 rows at most, and wants a key."""

    posts: list[dict[str, Any]] = []
    busy = 2

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).posts.append(body)
        if self.headers.get("Authorization") != "Bearer secret":
            return self.tell(401, {"error": "no key"})
        if type(self).busy:
            type(self).busy -= 1
            return self.tell(503, {"error": "busy"})
        if "instances" in body:
            rows = pd.DataFrame(body["instances"])
        else:
            rows = pd.DataFrame(body["dataframe_split"]["data"], columns=body["dataframe_split"]["columns"])
        if len(rows) > 100:
            return self.tell(413, {"error": "too many rows"})
        yes = 1 / (1 + np.exp(30 - rows["income"] + rows["debt"]))
        return self.tell(200, {"predictions": yes.tolist()})

    def tell(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def scorer() -> Iterator[str]:
    Scorer.posts, Scorer.busy = [], 2
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scorer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/score"
    server.shutdown()
    server.server_close()
    thread.join(timeout=5)


@pytest.mark.parametrize("protocol", ["instances", "mlflow"])
def test_a_scorer_behind_a_network_is_asked_in_batches_and_again(scorer: str, protocol: Any) -> None:
    options: dict[str, Any] = {"protocol": protocol, "headers": {"Authorization": "Bearer secret"}, "timeout": 5.0}
    calls = {"chunk": 100, "retries": 3, "wait": 0.01}
    model = wrap(scorer, classes=["no", "yes"], calls=calls, **options)
    assert isinstance(model, WrappedClassifier)
    said = model.predict_proba(X)
    assert ((said[:, 1] > 0.5) == YES).all()
    assert len(Scorer.posts) == 5  # three batches, the first of them three times
    if protocol == "instances":
        check_fits(model, X, ["no", "yes"])
    with pytest.raises(BlackBoxError, match="refused 300 rows: 413"):
        wrap(scorer, classes=["no", "yes"], calls={"chunk": 1000}, **options).predict_proba(X)
    with pytest.raises(BlackBoxError, match="refused 300 rows: 401"):
        wrap(scorer, classes=["no", "yes"], calls={"retries": 0}, timeout=5.0).predict_proba(X)
    assert isinstance(wrap(scorer), WrappedRegressor)


def test_a_scorer_that_gives_no_answer_is_told(scorer: str) -> None:
    nobody = wrap("http://127.0.0.1:9/score", classes=["no", "yes"], calls={"retries": 1, "wait": 0.0}, timeout=1.0)
    with pytest.raises(BlackBoxError, match=r"http://127\.0\.0\.1:9/score failed .* it was tried 2 times"):
        nobody.predict_proba(X)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(SettingError, match="a function goes to predict_proba= or predict="):
        wrap(lambda frame: frame)
    with pytest.raises(SettingError, match=r"protocol= is no option of a LogisticRegression; it needs none"):
        wrap(LogisticRegression(), protocol="mlflow")
    with pytest.raises(SettingError, match="protocol must be one of 'instances', 'mlflow'"):
        wrap("http://localhost/x", classes=[0, 1], protocol="grpc")
    with pytest.raises(BlackBoxError, match=r"gave shape \(1, 3\), and classes= names 2"):
        WrappedClassifier(lambda _: [[0.2, 0.3, 0.5]], classes=["a", "b"]).predict_proba(X.head(1))
