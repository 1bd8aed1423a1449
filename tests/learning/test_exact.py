"""Exact surrogates: every recognised model decides as its copy does, and what can't be copied says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from conftest import small_surrogate
from dicoflex import DiCoFlex, Schema, load
from dicoflex.audit.revealed import reveals
from dicoflex.errors import ModelFileError, SettingError
from dicoflex.learning.exact import copied
from dicoflex.surrogate import Forest, Network, Surrogate, Votes, restore
from dicoflex.table.encoding import Encoding

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

NUMBERS, LEVELS = ["income", "ratio", "age", "gap"], ["member", "job", "city"]
QUICK: dict[str, Any] = {"training": {"min_steps": 0, "epochs": 2}, "fit_config": {"passes": 1, "rounds": 0}}


def table(n: int, seed: int) -> pd.DataFrame:
    """Single precision, whole numbers, missing ones, truths, categories and texts."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": np.exp(rng.normal(10, 1, n)),
            "ratio": rng.random(n).astype(np.float32),
            "age": rng.integers(18, 90, n),
            "gap": rng.normal(size=n).round(2),
            "member": rng.random(n) > 0.4,
            "job": pd.Categorical(rng.choice(list("abcdefg"), n)),
            "city": rng.choice(["rome", "oslo", "bonn", "kyiv"], n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "gap"] = np.nan
    return frame


def labelled(frame: pd.DataFrame, n_classes: int) -> np.ndarray:
    score = np.log(frame["income"]) - 10 + 2 * frame["ratio"] + frame["age"] / 40 + frame["gap"].fillna(0.5)
    score += 1.2 * frame["job"].isin(["a", "d", "f"]) - (frame["city"] == "oslo")
    return np.digitize(score, np.quantile(score, [0.5] if n_classes == 2 else [0.3, 0.65]))


ROWS, OTHERS = table(900, 0), table(4000, 1)
ENCODING = Encoding.fit(ROWS, Schema.infer(ROWS, min_count=5))


def before(scaler: Any = None, *, onehot: bool = True, sparse: bool = False, impute: bool = False) -> ColumnTransformer:
    """Encoders and scalers before a classifier; the levels stand first, so that columns change places."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), scaler) if impute else scaler or "passthrough"
    levels = OneHotEncoder(sparse_output=sparse) if onehot else OrdinalEncoder()
    return ColumnTransformer([("levels", levels, LEVELS), ("numbers", numbers, NUMBERS)], sparse_threshold=1.0 * sparse)


def xgboost(**given: Any) -> Any:
    library = pytest.importorskip("xgboost")
    return library.XGBClassifier(n_estimators=20, n_jobs=1, **given)


def lightgbm() -> Any:
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1)


def catboost(**given: Any) -> Any:
    library = pytest.importorskip("catboost")
    return library.CatBoostClassifier(iterations=30, verbose=0, thread_count=1, allow_writing_files=False, **given)


def histograms() -> Any:
    pytest.importorskip("treelite")
    return make_pipeline(before(onehot=False), HistGradientBoostingClassifier(max_iter=20))


MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: make_pipeline(before(StandardScaler(), impute=True), LogisticRegression()),
    "logistic, sparse": lambda: make_pipeline(before(MinMaxScaler(), sparse=True, impute=True), LogisticRegression()),
    "perceptron": lambda: make_pipeline(before(StandardScaler(), impute=True), MLPClassifier((9, 7), max_iter=20)),
    "perceptron, tanh": lambda: make_pipeline(
        before(RobustScaler(), impute=True), MLPClassifier((9,), activation="tanh", max_iter=20)
    ),
    "tree": lambda: make_pipeline(before(StandardScaler()), DecisionTreeClassifier(max_depth=7)),
    "random forest": lambda: make_pipeline(before(MinMaxScaler(clip=True)), RandomForestClassifier(20)),
    "extra trees, ordinal": lambda: make_pipeline(before(onehot=False), ExtraTreesClassifier(20)),
    "boosting, sparse": lambda: make_pipeline(
        before(StandardScaler(), sparse=True, impute=True), GradientBoostingClassifier(n_estimators=20)
    ),
    "histogram boosting": histograms,
    "xgboost": lambda: make_pipeline(before(StandardScaler()), xgboost()),
    "xgboost, dart": lambda: make_pipeline(before(), xgboost(booster="dart", rate_drop=0.3)),
    "xgboost, categories": lambda: xgboost(enable_categorical=True),
    "lightgbm": lambda: make_pipeline(before(onehot=False), lightgbm()),
    "lightgbm, categories": lightgbm,
    "catboost": lambda: make_pipeline(before(), catboost()),
    "catboost, categories": lambda: catboost(cat_features=["job", "city"], one_hot_max_size=9),
    "catboost, leaf by leaf": lambda: make_pipeline(before(), catboost(grow_policy="Lossguide")),
}


def fitted(name: str, n_classes: int) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """The model, and frames as it takes them."""
    rows, others = ROWS, OTHERS
    if name in ("xgboost, categories", "lightgbm, categories"):
        rows, others = (frame.assign(city=frame["city"].astype("category")) for frame in (ROWS, OTHERS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name]().fit(rows, labelled(ROWS, n_classes)), rows, others


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_copies_decide_as_their_models_do(name: str, n_classes: int) -> None:
    model, rows, others = fitted(name, n_classes)
    encoding = Encoding.fit(rows, Schema.infer(rows, min_count=5))
    # Beyond what the table holds too: rare extremes are not in its limits.
    others = others.assign(income=np.where(np.arange(len(others)) % 9, others["income"], 40 * others["income"]))
    copy = copied(model, encoding, encoding.encode(rows), range(n_classes))
    values, theirs = encoding.encode(others), model.predict_proba(others)
    ours = copy.probabilities(values)
    assert (ours.argmax(axis=1) != theirs.argmax(axis=1)).sum() == 0
    np.testing.assert_allclose(ours, theirs, atol=2e-6)
    again = restore(copy.kind, encoding, n_classes, copy.arrays())
    np.testing.assert_array_equal(again.probabilities(values[:50]), ours[:50])


@pytest.mark.parametrize("name", ["logistic", "random forest", "boosting, sparse"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_may_surrogate_any_order(name: str, n_classes: int) -> None:
    model, rows, _ = fitted(name, n_classes)
    order = list(reversed(range(n_classes)))
    ours = copied(model, ENCODING, ENCODING.encode(rows), order).probabilities(ENCODING.encode(rows))
    np.testing.assert_allclose(ours, model.predict_proba(rows)[:, order], atol=1e-9)


def test_single_precision_is_copied_to_the_last_bit() -> None:
    """Values on both sides of where XGBoost's rounding to single precision changes what a test says."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=400) + 1000.0})
    model = xgboost().fit(rows, rows["x"] > 1000)
    encoding = Encoding.fit(rows, Schema.infer(rows))
    copy = copied(model, encoding, encoding.encode(rows), (0, 1))
    assert isinstance(copy, Forest)
    edges = np.unique(copy.threshold[np.isfinite(copy.threshold) & (copy.feature >= 0)])
    near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    frame = pd.DataFrame({"x": near})
    np.testing.assert_allclose(copy.probabilities(encoding.encode(frame)), model.predict_proba(frame), atol=1e-6)
    # The edges are not those of the trees themselves, which hold what single precision holds.
    assert (edges.astype(np.float32) != edges).any()


def onehot_number() -> Any:
    return make_pipeline(ColumnTransformer([("age", OneHotEncoder(), ["age"])]), LogisticRegression())


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "another classifier": (lambda: make_pipeline(before(impute=True, scaler=StandardScaler()), SVC()), "is a SVC"),
    "another step": (
        lambda: make_pipeline(SimpleImputer(), KBinsDiscretizer(), LogisticRegression()),
        "has the step KBinsDiscretizer",
    ),
    "a number as a category": (onehot_number, r"kinds=\{'age': 'categorical'\}"),
    "cut off": (
        lambda: make_pipeline(before(MinMaxScaler(clip=True), impute=True), LogisticRegression()),
        "in a way that is not linear",
    ),
    "zeros as missing": (lambda: make_pipeline(before(sparse=True), xgboost()), "sparse_threshold=0"),
    "statistics of the target": (
        lambda: catboost(cat_features=["job", "city"], one_hot_max_size=2),
        "one_hot_max_size",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_recognised_is_refused(name: str) -> None:
    make, words = REFUSED[name]
    numeric = name == "another step"
    rows = ROWS[["income", "age"]] if numeric else ROWS
    model = make().fit(rows, labelled(ROWS, 2))
    encoding = Encoding.fit(rows, Schema.infer(rows, min_count=5))
    with pytest.raises(SettingError, match=words):
        copied(model, encoding, encoding.encode(rows), (0, 1))


# -- a whole fit ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forest() -> Pipeline:
    names = np.array(["no", "yes"])[labelled(ROWS, 2)]
    return make_pipeline(before(), RandomForestClassifier(30, random_state=0)).fit(ROWS, names)


@pytest.fixture(scope="module")
def explainer(forest: Pipeline) -> DiCoFlex:
    return DiCoFlex(random_state=0, **QUICK).fit(ROWS, model=forest, surrogate="exact")


@pytest.mark.parametrize("confidence", [0.5, 0.7, 0.9])
def test_answers_reach_what_was_asked_for_and_no_more(
    explainer: DiCoFlex, forest: Pipeline, confidence: float
) -> None:  # fmt: skip
    """A learned surrogate of trees gets a margin of .2, so that .7 became .92. Ties are no decision: see .5."""
    queries = ROWS[forest.predict(ROWS) == "no"].head(25)
    cfs = explainer.explain(queries, target="yes", n=1, confidence=confidence, random_state=0)
    sure = forest.predict_proba(cfs.frame)[:, 1]
    assert (forest.predict(cfs.frame) == "yes").all()
    assert sure.min() >= confidence
    assert np.median(sure) <= confidence + 0.05
    np.testing.assert_allclose(cfs.info["probability"], sure, atol=1e-9)


def test_report_and_certificate_say_that_it_is_exact(explainer: DiCoFlex) -> None:
    assert (explainer.report_["surrogate"], explainer.report_["surrogate_agreement"]) == ("exact", 1.0)
    certificate = explainer.model_.certificate
    assert certificate is not None
    assert certificate.margin.max() < 1e-5
    assert (certificate.counts[..., 0] == certificate.counts[..., 1]).all()


def test_file_says_that_it_contains_the_model(explainer: DiCoFlex, tmp_path: Any) -> None:
    explainer.save(tmp_path / "a.dicoflex")
    again = load(tmp_path / "a.dicoflex")
    values = ENCODING.encode(OTHERS)[:300]
    np.testing.assert_array_equal(
        again.model_.surrogate.probabilities(values), explainer.model_.surrogate.probabilities(values)
    )
    told = {one.what: one.guarantee for one in reveals(again.model_)}
    assert "contains the model itself" in told["the model that is explained, as an exact copy"]
    assert "contains the model itself" in told["splits of income in the surrogate"]


def test_perceptron_is_refined_in_the_copys_own_terms() -> None:
    model = make_pipeline(before(StandardScaler(), impute=True), MLPClassifier((12,), max_iter=60, random_state=0))
    model.fit(ROWS, labelled(ROWS, 2))
    explainer = DiCoFlex(random_state=0, **QUICK).fit(ROWS, model=model, surrogate="exact")
    queries = ROWS[model.predict(ROWS) == 0].head(20)
    cfs = explainer.explain(queries, target=1, n=1, random_state=0)
    sure = model.predict_proba(cfs.frame)[:, 1]
    assert sure.min() >= 0.7
    np.testing.assert_allclose(cfs.info["probability"], sure, atol=1e-9)


def test_model_stands_for_its_callables(forest: Pipeline) -> None:
    with small_surrogate():
        given = DiCoFlex(random_state=0, **QUICK).fit(ROWS, model=forest)
        called = DiCoFlex(random_state=0, **QUICK).fit(
            ROWS, forest.predict(ROWS), predict_proba=forest.predict_proba, classes=forest.classes_
        )
    queries = ROWS.head(3)
    one, other = (e.explain(queries, target="yes", n=2, random_state=0).frame for e in (given, called))
    pd.testing.assert_frame_equal(one, other)


def test_model_without_probabilities_counts_by_its_labels_and_a_regressor_by_its_scores() -> None:
    rows = ROWS[["income", "age"]]
    with small_surrogate():
        ridge = RidgeClassifier().fit(rows, labelled(ROWS, 2))
        assert DiCoFlex(random_state=0, **QUICK).fit(rows, model=ridge).model_.labels == [0, 1]
        line = LinearRegression().fit(rows, np.log(rows["income"]))
        assert DiCoFlex(random_state=0, **QUICK).fit(rows, model=line).model_.score is not None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"surrogate": "exact"}, "give it with model=clf"),
        ({"surrogate": "copy", "model": None}, "surrogate must be one of"),
        ({"model": LogisticRegression()}, "was not fitted"),
        ({"model": len}, "is not a known model: give one with predict_proba or predict"),
        ({"model": LinearRegression(), "surrogate": "exact"}, "copies classifiers with predict_proba"),
        ({"model": LogisticRegression(), "predict_proba": len}, "give it or them"),
    ],
)
def test_wrong_words_are_refused_before_any_work(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        DiCoFlex().fit(ROWS, **given)


def test_copy_that_is_none_is_refused(forest: Pipeline) -> None:
    """A model that does more than its class says."""

    class Wilful(RandomForestClassifier):
        def predict_proba(self, X: Any) -> np.ndarray:
            return super().predict_proba(X)[:, ::-1]

    Wilful.__name__, Wilful.__module__ = "RandomForestClassifier", "sklearn.ensemble"
    model = make_pipeline(before(), Wilful(5)).fit(ROWS, labelled(ROWS, 2))
    with pytest.raises(SettingError, match="it is no copy"):
        DiCoFlex(random_state=0, **QUICK).fit(ROWS, model=model, surrogate="exact")


# -- forged files -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copies() -> dict[str, Surrogate]:
    values = ENCODING.encode(ROWS)
    return {
        "network": copied(fitted("perceptron", 3)[0], ENCODING, values, range(3)),
        "votes": copied(fitted("random forest", 3)[0], ENCODING, values, range(3)),
    }


@pytest.mark.parametrize("kind", ["network", "votes"])
def test_forged_arrays_are_refused(kind: str, copies: dict[str, Surrogate]) -> None:
    arrays = copies[kind].arrays()
    assert isinstance(copies[kind], {"network": Network, "votes": Votes}[kind])
    for name, array in arrays.items():
        with pytest.raises(ModelFileError):
            restore(kind, ENCODING, 3, {k: v for k, v in arrays.items() if k != name})
        for wrong in (array[None], array.astype(np.float16), array.ravel()[:0], array[:-1]):
            with pytest.raises(ModelFileError):
                restore(kind, ENCODING, 3, {**arrays, name: wrong})
    for n_classes in (2, 4):
        with pytest.raises(ModelFileError):
            restore(kind, ENCODING, n_classes, arrays)
    with pytest.raises(ModelFileError, match="too many"):
        restore(kind, ENCODING, 3, {**arrays, "more": np.zeros(1)})


FORGED = {
    "network": [("size", 2**62), ("size", -1), ("activation", 4), ("weight", np.nan), ("bias", np.inf)],
    "votes": [("value", 1.5), ("baseline", 0.5), ("left", 0)],
}


@pytest.mark.parametrize(
    ("kind", "name", "value"), [(kind, *one) for kind, several in FORGED.items() for one in several]
)
def test_forged_values_are_refused(kind: str, name: str, value: float, copies: dict[str, Surrogate]) -> None:
    arrays = {k: v.copy() for k, v in copies[kind].arrays().items()}
    arrays[name][min(1, len(arrays[name]) - 1)] = value
    with pytest.raises(ModelFileError, match=f"array '({name}|value)'"):
        restore(kind, ENCODING, 3, arrays)
