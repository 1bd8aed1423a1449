"""Models of libraries that are not scikit-learn's, with its methods: frames in, probabilities and labels out."""

from __future__ import annotations

__all__ = ["WrappedClassifier", "WrappedRegressor", "wrap"]

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import BlackBoxError, SettingError
from dicoflex.models.calls import CallConfig, Caller
from dicoflex.runtime.extras import extra
from dicoflex.table.native import Frame, as_pandas

Floats = NDArray[np.float64]
Output = Literal["logits", "probabilities", "score"]


class WrappedClassifier:
    """A classifier behind a function that gives probabilities for a frame.

    Parameters
    ----------
    function : callable
        Gives, for a pandas frame, a matrix with the probability of each class, or one number per row: the probability
        of the second of two classes.
    classes : sequence
        The label of each column.
    name : str
        What messages call it.
    calls : CallConfig, optional
        How the function is called: in which chunks, how often again.

    Examples
    --------
    >>> model = WrappedClassifier(lambda frame: frame["age"] / 100, classes=["no", "yes"])
    >>> frame = pd.DataFrame({"age": [25, 75]})
    >>> model.predict_proba(frame).tolist(), model.predict(frame).tolist()
    ([[0.75, 0.25], [0.25, 0.75]], ['no', 'yes'])
    """

    def __init__(
        self,
        function: Callable[[pd.DataFrame], Any],
        *,
        classes: Sequence[Any],
        name: str = "model",
        calls: CallConfig | None = None,
    ) -> None:
        self.classes_ = list(classes)
        self.predict_proba = Caller(lambda frame: self._matrix(function(as_pandas(frame))), name, calls)

    def predict(self, rows: Frame) -> NDArray[Any]:
        """The likeliest label of each row."""
        said = self.predict_proba(as_pandas(rows)).argmax(axis=1)
        return np.asarray(pd.Series(self.classes_).take(said))

    def _matrix(self, answer: Any) -> Floats:
        """A column per class, of what the function gave."""
        found = np.asarray(answer, dtype=np.float64)
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        if found.ndim == 1:
            found = np.column_stack([1.0 - found, found])
        if found.shape[1:] != (len(self.classes_),):
            raise BlackBoxError(
                f"{self.predict_proba.name} gave shape {found.shape}, and classes= names {len(self.classes_)}: "
                f"{self.classes_}; name a label for each column"
            )
        return found


class WrappedRegressor:
    """A model of scores behind a function that gives one number for each row of a frame.

    >>> WrappedRegressor(lambda frame: 2 * frame["age"]).predict(pd.DataFrame({"age": [20, 80]})).tolist()
    [40.0, 160.0]
    """

    def __init__(
        self, function: Callable[[pd.DataFrame], Any], *, name: str = "model", calls: CallConfig | None = None
    ) -> None:
        self.predict = Caller(
            lambda frame: np.asarray(function(as_pandas(frame)), dtype=float).reshape(-1), name, calls
        )


Wrapped = WrappedClassifier | WrappedRegressor


def wrap(model: Any, **options: Any) -> Any:
    """A fitted model as `fit(X, model=...)` takes it; `check=wrapped.predict_proba` takes it, too.

    Parameters
    ----------
    model : object, path or URL
        A scikit-learn estimator or one with its methods (`XGBClassifier`, `LGBMClassifier`, `CatBoostClassifier`, a
        pipeline) stays what it is. A `Booster` of XGBoost or LightGBM, a `CatBoost` model, a PyTorch module, an ONNX
        model (a session of ONNX Runtime, or the path of a `.onnx` file) and the URL of a scorer are wrapped.
    **options : Any
        `classes`: the labels, in the order of the model's columns, for all but scikit-learn's. Boosters have 0, 1, …
        by default; a URL without `classes` gives scores.

        PyTorch: `output="logits"` (default), "probabilities", or "score" of a regressor; `prepare`, a callable that
        makes the module's input of a frame, by default a float32 tensor of all columns.

        ONNX: `output`, the name of the output with probabilities, where several could be meant; `prepare`, a callable
        that makes a dict of inputs of a frame. By default an input that is named like a column gets that column, and a
        single input gets a float32 matrix of all columns.

        URL: `protocol="instances"` (KServe, TensorFlow Serving, Vertex AI) or "mlflow"; `headers`; `timeout` in
        seconds; `calls`, a `CallConfig` or dict with `chunk`, `retries` and `wait`.

    Returns
    -------
    object
        Has `predict_proba` and `classes_`, or `predict` alone where it gives scores.

    Raises
    ------
    SettingError
        If the model is not known, or an option is not one of its kind.

    Examples
    --------
    >>> import torch
    >>> module = torch.nn.Linear(2, 3)
    >>> wrap(module, classes=["a", "b", "c"]).predict_proba(pd.DataFrame({"x": [1.0], "y": [2.0]})).shape
    (1, 3)
    """
    adapter = next((adapter for is_one, adapter in ADAPTERS if is_one(model)), None)
    if adapter is None:
        raise SettingError(
            f"a {type(model).__name__} is not a known model: give one with predict_proba or predict, of XGBoost, "
            "LightGBM, CatBoost, PyTorch or ONNX Runtime, or a URL; a function goes to predict_proba= or predict="
        )
    known = [name for name, one in inspect.signature(adapter).parameters.items() if one.kind is one.KEYWORD_ONLY]
    odd = next((name for name in options if name not in known), None)
    if odd is not None:
        raise SettingError(
            f"wrap: {odd}= is no option of a {type(model).__name__}; "
            + (f"its options are {', '.join(known)}" if known else "it needs none")
        )
    return adapter(model, **options)


def _is_a(model: Any, library: str, name: str) -> bool:
    """Whether an object is of a class of a library, which is not imported for that."""
    return any(one.__module__.partition(".")[0] == library and one.__name__ == name for one in type(model).__mro__)


def _as_it_is(model: Any) -> Any:
    return model


# -- trees -----------------------------------------------------------------------------------------------------------


def _of_xgboost(model: Any, *, classes: Sequence[Any] | None = None) -> Wrapped:
    import xgboost

    def asked(frame: pd.DataFrame) -> Any:
        return model.predict(xgboost.DMatrix(frame, enable_categorical=True))

    learner = json.loads(model.save_config())["learner"]
    objective = str(learner["objective"]["name"])
    if not objective.startswith(("binary:logi", "multi:soft")):
        return _scores(asked, objective, "xgboost.Booster", classes)
    if objective in ("binary:logitraw", "multi:softmax"):
        raise SettingError(
            f"the Booster's objective is {objective!r}, which gives no probabilities; train it with "
            "'binary:logistic' or 'multi:softprob', or give a function as predict_proba="
        )
    n = max(2, int(learner["learner_model_param"]["num_class"]))
    return WrappedClassifier(asked, classes=range(n) if classes is None else classes, name="xgboost.Booster")


def _of_lightgbm(model: Any, *, classes: Sequence[Any] | None = None) -> Wrapped:
    objective = str(model.dump_model(num_iteration=1).get("objective", ""))
    name = objective.partition(" ")[0]
    if name not in ("binary", "multiclass", "multiclassova", "cross_entropy"):
        return _scores(model.predict, name, "lightgbm.Booster", classes)
    labels = range(max(2, model.num_model_per_iteration())) if classes is None else classes
    return WrappedClassifier(model.predict, classes=labels, name="lightgbm.Booster")


def _of_catboost(model: Any, *, classes: Sequence[Any] | None = None) -> Wrapped:
    labels = list(getattr(model, "classes_", ()))
    if not labels:
        return _scores(model.predict, str(model.get_all_params().get("loss_function")), "CatBoost", classes)

    def asked(frame: pd.DataFrame) -> Any:
        return model.predict(frame, prediction_type="Probability")

    return WrappedClassifier(asked, classes=labels if classes is None else classes, name="CatBoost")


def _scores(asked: Any, objective: str, name: str, classes: Sequence[Any] | None) -> WrappedRegressor:
    """A model of scores; refused where classes were named."""
    if classes is not None:
        raise SettingError(f"classes= is for a classifier, and the {name} gives scores ({objective}); leave it out")
    return WrappedRegressor(asked, name=name)


# -- networks --------------------------------------------------------------------------------------------------------


def _of_torch(
    model: Any,
    *,
    classes: Sequence[Any] | None = None,
    output: Output = "logits",
    prepare: Callable[[pd.DataFrame], Any] | None = None,
) -> Wrapped:
    if output not in ("logits", "probabilities", "score"):
        raise SettingError(f"output must be 'logits', 'probabilities' or 'score', got {output!r}")

    def asked(frame: pd.DataFrame) -> Any:
        import torch

        first = next(model.parameters(), None)
        given = _matrix_of(frame) if prepare is None else prepare(frame)
        if isinstance(given, np.ndarray):
            given = torch.tensor(given, device=None if first is None else first.device)
        was_training = model.training
        model.eval()
        try:
            with torch.no_grad():
                found = model(given)
        finally:
            model.train(was_training)
        return found.detach().cpu().double().numpy()

    if output == "score":
        return _scores(asked, output, type(model).__name__, classes)

    def probable(frame: pd.DataFrame) -> Floats:
        found = asked(frame)
        return np.asarray(found) if output == "probabilities" else _from_logits(found)

    return WrappedClassifier(probable, classes=_needed(classes, type(model).__name__), name=type(model).__name__)


def _from_logits(found: Floats) -> Floats:
    """Probabilities of a network's logits; what looks like probabilities already is refused."""
    wide = found.ndim == 2 and found.shape[1] > 1
    is_sum = wide and np.allclose(found.sum(axis=1), 1.0, atol=1e-4)
    if len(found) > 1 and (found >= 0).all() and (is_sum or (not wide and (found <= 1).all())):
        raise BlackBoxError(
            "the network's output seems to be probabilities; say wrap(model, output='probabilities'), or "
            "output='logits' is for layers without a softmax or sigmoid at the end"
        )
    from scipy.special import expit, softmax

    said: Floats = softmax(found, axis=1) if wide else expit(found)
    return said


def _matrix_of(frame: pd.DataFrame) -> NDArray[np.float32]:
    """All columns as float32; a column of text has to be prepared."""
    odd = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    if odd:
        raise BlackBoxError(
            f"column {odd[0]!r} holds no numbers ({frame[odd[0]].dtype}), and the model takes a matrix of numbers; "
            "give wrap(model, prepare=...), a callable that makes its input of a frame"
        )
    matrix: NDArray[np.float32] = frame.to_numpy(dtype=np.float32, na_value=np.nan)
    return matrix


def _of_onnx(
    model: Any,
    *,
    classes: Sequence[Any] | None = None,
    output: str | None = None,
    prepare: Callable[[pd.DataFrame], Mapping[str, Any]] | None = None,
) -> Wrapped:
    with extra("onnx", to="ask an ONNX model"):
        import onnxruntime
    session = model
    if isinstance(model, str | Path):
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    name, is_labelled = _output_of_onnx(session, output)
    labels = _needed(classes, "ONNX model")

    def asked(frame: pd.DataFrame) -> Any:
        (found,) = session.run([name], _inputs_of_onnx(session, frame) if prepare is None else dict(prepare(frame)))
        return [[row[label] for label in labels] for row in found] if is_labelled else found

    return WrappedClassifier(asked, classes=labels, name="the ONNX model")


def _needed(classes: Sequence[Any] | None, what: str) -> list[Any]:
    if classes is None:
        raise SettingError(
            f"the {what} does not say what its outputs are; name the label of each: wrap(model, classes=['no', 'yes'])"
        )
    return list(classes)


def _output_of_onnx(session: Any, output: str | None) -> tuple[str, bool]:
    """The output with probabilities, and whether it is a list of dicts, as converters of scikit-learn's models make."""
    known = {one.name: one.type for one in session.get_outputs()}
    if output is not None and output not in known:
        raise SettingError(f"output {output!r} is none of the ONNX model's: {', '.join(known)}")
    fit = [name for name, kind in known.items() if kind.startswith("seq(map") or kind in FLOATS]
    chosen = [output] if output is not None else fit
    if len(chosen) != 1:
        raise SettingError(
            f"the ONNX model has the outputs {', '.join(known)}; say which has probabilities: wrap(model, output=...)"
        )
    return chosen[0], known[chosen[0]].startswith("seq(map")


FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64}
TENSORS: dict[str, Any] = {
    **FLOATS,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}


def _inputs_of_onnx(session: Any, frame: pd.DataFrame) -> dict[str, Any]:
    inputs = session.get_inputs()
    if len(inputs) == 1 and inputs[0].name not in frame.columns:
        return {inputs[0].name: _matrix_of(frame).astype(TENSORS[inputs[0].type])}
    lacking = [one.name for one in inputs if one.name not in frame.columns]
    if lacking:
        raise BlackBoxError(
            f"the ONNX model's input {lacking[0]!r} is no column of the rows; give wrap(model, prepare=...), a "
            "callable that makes a dict of inputs of a frame"
        )
    found = {}
    for one in inputs:
        column = frame[one.name].to_numpy(dtype=TENSORS[one.type])
        found[one.name] = column[:, None] if len(one.shape) == 2 else column
    return found


# -- behind a network ------------------------------------------------------------------------------------------------


def _of_url(
    model: str,
    *,
    classes: Sequence[Any] | None = None,
    protocol: Literal["instances", "mlflow"] = "instances",
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    calls: CallConfig | Mapping[str, Any] | None = None,
) -> Wrapped:
    from dicoflex.models.remote import Scorer

    how = calls if isinstance(calls, CallConfig) else CallConfig(**{"chunk": 1000, "retries": 3, **(calls or {})})
    scorer = Scorer(model, protocol=protocol, headers=headers, timeout=timeout)
    if classes is None:
        return WrappedRegressor(scorer, name=model, calls=how)
    return WrappedClassifier(scorer, classes=classes, name=model, calls=how)


def _has_methods(model: Any) -> bool:
    return callable(getattr(model, "predict", None)) and not isinstance(model, type)


ADAPTERS: list[tuple[Callable[[Any], bool], Callable[..., Any]]] = [
    (lambda model: isinstance(model, str) and model.startswith(("http://", "https://")), _of_url),
    (lambda model: isinstance(model, str | Path) and str(model).endswith(".onnx"), _of_onnx),
    (lambda model: _is_a(model, "onnxruntime", "InferenceSession"), _of_onnx),
    (lambda model: _is_a(model, "torch", "Module"), _of_torch),
    (lambda model: _is_a(model, "xgboost", "Booster"), _of_xgboost),
    (lambda model: _is_a(model, "lightgbm", "Booster"), _of_lightgbm),
    (lambda model: type(model).__name__ == "CatBoost" and _is_a(model, "catboost", "CatBoost"), _of_catboost),
    (_has_methods, _as_it_is),
]
