"""The contract of `DiCoFlex`: what it refuses, what it returns, and that the same seed gives the same rows."""

from __future__ import annotations

import itertools
import json
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numba
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from dicoflex import DiCoFlex, Schema, explainer, load, model_file
from dicoflex.errors import (
    BlackBoxError,
    DataError,
    ModelFileError,
    NotFittedError,
    QueryError,
    SchemaError,
    SettingError,
    UserError,
)
from dicoflex.explainer import CHECK_ROUNDS
from dicoflex.generators import GENERATORS
from dicoflex.learning import training
from dicoflex.learning.config import FitConfig
from dicoflex.learning.training import TrainingConfig

pytestmark = pytest.mark.usefixtures("one_thread")

Quickly = Callable[..., DiCoFlex]
BlackBox = Callable[[pd.DataFrame], np.ndarray]


@pytest.fixture(autouse=True, scope="module")
def few_candidates() -> Iterator[None]:
    """`explain` chooses from fewer, as densities that were hardly trained take many rounds for each."""
    with mock.patch.object(explainer, "CANDIDATES", 24):
        yield


def same_bits(left: pd.Series, right: pd.Series) -> bool:
    """Whether two columns are equal to the last bit: -0.0 is not 0.0, NaN is NaN, None is not NaN."""
    if left.dtype != right.dtype or len(left) != len(right):
        return False
    if isinstance(left.dtype, np.dtype) and left.dtype != object:
        return left.to_numpy().tobytes() == right.to_numpy().tobytes()
    pairs = zip(left.astype(object), right.astype(object), strict=True)
    return all(a is b if pd.isna(a) or pd.isna(b) else type(a) is type(b) and a == b for a, b in pairs)


def assert_layout(frame: pd.DataFrame, X: pd.DataFrame) -> None:
    assert list(frame.columns) == list(X.columns)
    pd.testing.assert_series_equal(frame.dtypes, X.dtypes)
    assert frame.index.names == ["row", "cf"]


def differences(frame: pd.DataFrame, own: pd.DataFrame) -> np.ndarray:
    """Where the rows of `frame` differ from those of `own` at the same places; missing equals missing."""
    columns = []
    for name in frame.columns:
        pairs = zip(frame[name].astype(object), own[name].astype(object), strict=True)
        columns.append([not (pd.isna(a) and pd.isna(b)) and (pd.isna(a) or pd.isna(b) or a != b) for a, b in pairs])
    return np.array(columns, dtype=bool).T.reshape(len(frame), -1)


def rows_of(frame: pd.DataFrame) -> list[str]:
    """Every row as one text, to look rows up."""
    return ["|".join(map(repr, row)) for row in frame.astype(object).itertuples(index=False)]


def assert_within(frame: pd.DataFrame, schema: Schema, own: pd.DataFrame | None = None) -> None:
    """No value that training did not have, unless it is that of the row in `own`: limits, grids, levels, missing."""
    changed = np.ones(frame.shape, dtype=bool) if own is None else differences(frame, own)
    for feature in schema.features:
        column = frame[feature.name][changed[:, list(frame.columns).index(feature.name)]]
        present = column.dropna()
        assert feature.missing or len(present) == len(column)
        if feature.is_number:
            numbers = present.to_numpy(dtype=float)
            assert np.isfinite(numbers).all()
            assert (numbers >= feature.minimum).all()
            assert (numbers <= feature.maximum).all()
            assert feature.kind != "integer" or (numbers == np.rint(numbers)).all()
        else:
            assert set(present) <= set(feature.levels)


# -- refusals: fit ----------------------------------------------------------------------------------------------------

N = 60


def rows_for_refusals() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(20, 60, N), "pay": rng.normal(size=N), "job": rng.choice(["a", "b"], N)})


ROWS = rows_for_refusals()
LABELS = np.where(ROWS["pay"] > 0, "yes", "no")
DAYS = pd.date_range("2020-01-01", periods=N)


def repeated_columns() -> pd.DataFrame:
    return ROWS.set_axis(["age", "pay", "pay"], axis=1)


BAD_ROWS = {
    "array": (ROWS.to_numpy(), DataError, r"must be a pandas DataFrame, got ndarray; wrap arrays with pd\.DataFrame"),
    "no rows": (ROWS.head(0), DataError, "the frame is empty: 0 rows and 3 columns; give at least one of each"),
    "no columns": (ROWS[[]], DataError, "the frame is empty: 60 rows and 0 columns; give at least one of each"),
    "repeated column": (repeated_columns(), DataError, r"column names repeat: \['pay'\]; rename them"),
    "odd column name": (ROWS.rename(columns={"pay": ("p", 1)}), DataError, "must be text or whole numbers.*rename"),
    "dates": (ROWS.assign(day=DAYS), DataError, "'day' holds dates or times .*turn it into numbers .* or drop it"),
    "durations": (ROWS.assign(day=DAYS - DAYS[0]), DataError, "'day' holds dates or times .*turn it into numbers"),
    "periods": (ROWS.assign(day=DAYS.to_period()), DataError, "'day' holds dates or times .*turn it into numbers"),
    "identifier": (
        ROWS.assign(name=[f"person {i}" for i in range(N)]),
        DataError,
        "'name' has 60 different values in 60 rows, as identifiers do; drop it",
    ),
    "infinite": (ROWS.assign(pay=ROWS["pay"].where(ROWS["pay"] < 1, np.inf)), DataError, "infinite numbers; replace"),
    "no number": (ROWS.assign(pay=np.nan), DataError, "'pay' .*drop it"),
    "complex": (ROWS.assign(pay=ROWS["pay"] + 1j), DataError, "complex128.*convert it"),
    "lists": (ROWS.assign(job=[[1]] * N), DataError, r"'job' holds a list \(\[1\]\).*convert it with \.astype\(str\)"),
}
BAD_LABELS = {
    "too few": (LABELS[:-1], "y has 59 labels for 60 rows; give one label per row"),
    "too many": ([*LABELS, "no"], "y has 61 labels for 60 rows; give one label per row"),
    "none": (None, "labels for 60 rows; give one label per row"),
    "single class": (["yes"] * N, "y has a single class, 'yes'; counterfactuals need at least two"),
    "missing": (pd.Series(LABELS).where(ROWS["age"] > 30), "missing labels; drop those rows"),
    "missing number": (np.where(ROWS["age"] > 30, 1.0, np.nan), "missing labels; drop those rows"),
    "continuous": (ROWS["pay"], "y has 60 different labels in 60 rows; dicoflex explains classes, not numbers"),
    "matrix": (np.eye(2)[(LABELS == "yes").astype(int)], "y has 2 dimensions; give one label per row"),
    "frame": (pd.DataFrame({"y": LABELS}), "y has 2 dimensions; give one label per row"),
    "tuples": (pd.Series([("a", 1), ("b", 2)] * (N // 2)), r"y holds a tuple \(\('a', 1\)\); labels may be text"),
}
BAD_SETTINGS = {
    "generator": ({"generator": "mixd"}, "generator 'mixd' is unknown; did you mean 'mixed'"),
    "k zero": ({"k": 0}, "setting k: .*greater than or equal to 1, got 0"),
    "k text": ({"k": "many"}, "setting k: .*valid integer.*got 'many'"),
    "alpha": ({"alpha": -1.0}, r"setting alpha: .*greater than 0, got -1\.0"),
    "no exponents": ({"exponents": []}, r"exponents must be different numbers above 0, got \[\]"),
    "exponent below 0": ({"exponents": [-1, 2]}, r"exponents must be different numbers above 0, got \[-1, 2\]"),
    "exponent twice": ({"exponents": [2, 2]}, "exponents must be different numbers above 0"),
    "exponent infinite": ({"exponents": [2, np.inf]}, "exponents must be different numbers above 0"),
    "exponents text": ({"exponents": "few"}, "exponents must be numbers above 0, got 'few'"),
    "exponents number": ({"exponents": 2.0}, r"exponents must be numbers above 0, got 2\.0"),
    "training field": ({"training": {"epoch": 1}}, "TrainingConfig: setting 'epoch' is unknown; did you mean 'epochs'"),
    "training value": (
        {"training": {"min_steps": 0, "epochs": 0}},
        "setting epochs: .*greater than or equal to 1, got 0",
    ),
    "training schedule": ({"training": {"schedule": "up"}}, "setting schedule: .*'constant' or 'cosine', got 'up'"),
    "training type": ({"training": 5}, "settings must be a TrainingConfig or a dict, got int"),
    "density field": ({"generator_config": {"hiden": 8}}, "MixedConfig: setting 'hiden' is unknown; did you mean"),
    "flow field": ({"generator": "maf", "generator_config": {"layer": 1}}, "setting 'layer' is unknown.*'layers'"),
    "density value": ({"generator_config": {"hidden": 0}}, "setting hidden: .*got 0"),
    "fit field": ({"fit_config": {"pass": 1}}, "FitConfig: setting 'pass' is unknown; did you mean 'passes'"),
    "fit value": ({"fit_config": {"passes": 0}}, "setting passes: .*got 0"),
    "fit exponents": ({"fit_config": {"exponents": (-1.0, 2.0)}}, "exponents"),
    "fit type": ({"fit_config": [1]}, "settings must be a FitConfig or a dict, got list"),
    "time": ({"max_seconds": 0}, "setting max_seconds: .*greater than 0, got 0"),
    "device": ({"device": "gpu"}, "device 'gpu' is unknown; use 'auto', 'cpu' or 'cuda'"),
    "device without weights": ({"device": "meta"}, "device 'meta' is not supported; use 'auto', 'cpu' or 'cuda'"),
    "seed below 0": ({"random_state": -1}, "random_state must be a whole number of at least 0 or None, got -1"),
    "seed fraction": ({"random_state": 1.5}, r"random_state must be a whole number of at least 0 or None, got 1\.5"),
    "schema": ({"schema": {"age": "integer"}}, r"schema must be a Schema, got dict; make one with Schema\.infer"),
    "no masks": ({"masks": []}, "masks is empty; give lists of features, or None for any subset"),
    "mask name": ({"masks": [["age"], ["jbo"]]}, "masks: feature 'jbo' is unknown; did you mean 'job'"),
    "mask text": (
        {"masks": ["age"]},
        r"masks must be lists of features, got 'age' among them; write masks=\[\['age'\]\]",
    ),
    "mask of all": (
        {"masks": [["age", "pay", "job"]]},
        "freezes every feature, so nothing could change; leave one out",
    ),
}


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a `fit` that must be refused: before anything is trained, with nothing written or kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DiCoFlex, "_fit", mock.Mock(side_effect=AssertionError("a refused fit was trained")))

    def run(error: type[Exception], match: str, X: Any, y: Any, model: DiCoFlex | None = None, **given: Any) -> None:
        model = model or DiCoFlex(random_state=0)
        with pytest.raises(error, match=match):
            model.fit(X, y, **given)
        assert not [name for name in vars(model) if name.endswith("_")]
        assert not list(tmp_path.iterdir())

    return run


@pytest.mark.parametrize("case", BAD_ROWS)
def test_rows_that_fit_refuses(case: str, refused: Callable[..., None]) -> None:
    rows, error, match = BAD_ROWS[case]
    never = mock.Mock(side_effect=AssertionError("the black box was asked"))
    refused(error, match, rows, LABELS, predict_proba=never)


@pytest.mark.parametrize("case", BAD_LABELS)
def test_labels_that_fit_refuses(case: str, refused: Callable[..., None]) -> None:
    y, match = BAD_LABELS[case]
    never = mock.Mock(side_effect=AssertionError("the black box was asked"))
    refused(DataError, match, ROWS, y, predict_proba=never)


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_settings_that_fit_refuses(case: str, refused: Callable[..., None]) -> None:
    given, match = BAD_SETTINGS[case]
    never = mock.Mock(side_effect=AssertionError("the black box was asked"))
    refused(SettingError, match, ROWS, LABELS, DiCoFlex(**given), predict_proba=never)


def test_schema_of_another_table_is_refused(refused: Callable[..., None]) -> None:
    other = Schema.infer(ROWS.rename(columns={"pay": "wage"}))
    refused(UserError, "lack the column 'wage'", ROWS, LABELS, DiCoFlex(schema=other))
    narrow = Schema.infer(ROWS.assign(age=40))
    refused(UserError, "'age'", ROWS, LABELS, DiCoFlex(schema=narrow))


ANSWERS = {
    "a column too many": (lambda f: np.full((len(f), 3), 1 / 3), r"shape \(60, 3\) for 60 rows and 2 labels.*classes="),
    "one column": (lambda f: np.full(len(f), 0.5), r"shape \(60,\) for 60 rows and 2 labels"),
    "a row too few": (lambda f: np.full((len(f) - 1, 2), 0.5), r"shape \(59, 2\) for 60 rows"),
    "scores": (lambda f: np.tile([3.0, -2.0], (len(f), 1)), "not probabilities: each row must sum to 1"),
    "missing": (lambda f: np.full((len(f), 2), np.nan), "not probabilities"),
    "other columns": (lambda f: np.eye(2)[(f["pay"] <= 0).astype(int)], r"another order.*pass classes=clf\.classes_"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_of_the_black_box_that_fit_refuses(case: str, refused: Callable[..., None]) -> None:
    answer, match = ANSWERS[case]
    predict_proba = mock.Mock(side_effect=answer)
    refused(BlackBoxError, match, ROWS, LABELS, predict_proba=predict_proba)
    assert predict_proba.call_count == 1


CLASSES = {
    "alone": (None, ["no", "yes"], SettingError, "give predict_proba too"),
    "a label lacks": (True, ["no", "maybe"], SettingError, "classes= lacks the label 'yes' of y; list every column"),
    "a label too many": (True, ["no", "maybe", "yes"], SettingError, "'maybe'.*no row of y has it"),
    "a label twice": (True, ["no", "yes", "yes"], SettingError, "'yes' twice"),
    "not callable": ("clf", None, BlackBoxError, r"must be a callable, got str; pass clf\.predict_proba"),
}


@pytest.mark.parametrize("case", CLASSES)
def test_classes_that_fit_refuses(case: str, refused: Callable[..., None]) -> None:
    given, classes, error, match = CLASSES[case]
    never = mock.Mock(side_effect=AssertionError("the black box was asked"))
    refused(error, match, ROWS, LABELS, predict_proba=never if given is True else given, classes=classes)


def test_classes_say_the_order_of_the_columns(quickly: Quickly) -> None:
    def yes_first(frame: pd.DataFrame) -> np.ndarray:
        yes = 1 / (1 + np.exp(-4 * frame["pay"].to_numpy()))
        return np.column_stack([yes, 1 - yes])

    by_name = quickly(ROWS, LABELS, predict_proba=yes_first, classes=np.array(["yes", "no"]))
    in_order = quickly(ROWS, LABELS, predict_proba=lambda f: yes_first(f)[:, ::-1])
    pd.testing.assert_frame_equal(by_name.sample(ROWS, n=2, random_state=0), in_order.sample(ROWS, n=2, random_state=0))


# -- refusals: queries ------------------------------------------------------------------------------------------------

UNSEEN = {"grade": pd.Categorical(["d"] * 8, categories=list("abcd"), ordered=True)}
BAD_QUERIES: dict[str, tuple[Callable[[pd.DataFrame], Any], dict[str, Any], str]] = {
    "no frame": (lambda q: q.to_numpy(), {}, "rows must be a pandas DataFrame with the training columns, got ndarray"),
    "a series": (lambda q: q.iloc[0], {}, "rows must be a pandas DataFrame with the training columns, got Series"),
    "no rows": (lambda q: q.head(0), {}, "rows is empty; give at least one row"),
    "a column lacks": (lambda q: q.drop(columns="age"), {}, r"lack the column 'age'; the model was fitted on \['age'"),
    "a column too many": (lambda q: q.assign(agee=1), {}, "'agee' is unknown; did you mean 'age'.*only the training"),
    "a column twice": (lambda q: pd.concat([q, q[["age"]]], axis=1), {}, r"column names repeat: \['age'\]"),
    "unseen category": (lambda q: q.assign(city="Bonn"), {}, "'city' has the value 'Bonn', never seen.*'Rome', 'Ulm'"),
    "unseen level of the dtype": (
        lambda q: q.assign(**UNSEEN),
        {},
        "'grade' has the value 'd', never seen in training",
    ),
    "unseen missing value": (lambda q: q.assign(price=np.nan), {}, "'price' has missing values.*fill them in"),
    "text for a number": (lambda q: q.assign(price="dear"), {}, "'price' .*not numbers.*pd.to_numeric"),
    "infinite": (lambda q: q.assign(price=np.inf), {}, "'price' holds infinite numbers; replace them"),
    "fractions": (lambda q: q.assign(visits=1.5), {}, "'visits' .*fractions.*round them"),
    "unknown frozen": (lambda q: q, {"frozen": ["agee"]}, "frozen feature 'agee' is unknown; did you mean 'age'"),
    "frozen text": (lambda q: q, {"frozen": "age"}, r"must be a list of features, got 'age'; write frozen=\['age'\]"),
    "frozen nothing": (lambda q: q, {"frozen": None}, r"must be a list of features, got None; write frozen="),
    "all frozen": (lambda q: q, {"frozen": "ALL"}, "nothing may change: every feature is frozen.*free at least one"),
    "unknown target": (lambda q: q, {"target": "yess"}, "target 'yess' is unknown; did you mean 'yes'"),
    "one unknown target": (lambda q: q, {"target": ["yes"] * 7 + [1]}, "target 1 is unknown; known: no, yes"),
    "missing target": (lambda q: q, {"target": np.nan}, "target nan is unknown; known: no, yes"),
    "target list in list": (lambda q: q.head(1), {"target": {"yes": 1}}, "target {'yes': 1} is unknown"),
    "too few targets": (
        lambda q: q,
        {"target": ["yes"] * 7},
        "target has 7 labels for 8 rows; give one, or one per row",
    ),
    "p above": (lambda q: q, {"p": 2.5}, r"p must lie in the trained range, 0\.01 to 2, got 2\.5"),
    "p below": (lambda q: q, {"p": 0.001}, r"p must lie in the trained range, 0\.01 to 2, got 0\.001"),
    "p missing": (lambda q: q, {"p": np.nan}, "p must lie in the trained range, .*got nan"),
    "p text": (lambda q: q, {"p": "2"}, "p must lie in the trained range, .*got '2'"),
    "p true": (lambda q: q, {"p": True}, "p must lie in the trained range, .*got True"),
    "confidence text": (lambda q: q, {"confidence": "0.8"}, r"confidence must lie between 0 and 1, got '0\.8'"),
    "confidence percent": (lambda q: q, {"confidence": 80}, "confidence must lie between 0 and 1, got 80"),
    "confidence missing": (lambda q: q, {"confidence": np.nan}, "confidence must lie between 0 and 1, got nan"),
}
METHODS = ["explain", "sample", "log_density"]


@pytest.fixture(scope="module")
def reloaded(judged: DiCoFlex, tmp_path_factory: pytest.TempPathFactory) -> DiCoFlex:
    path = tmp_path_factory.mktemp("model") / "m.dicoflex"
    judged.save(path)
    return load(path)


def call(model: DiCoFlex, method: str, rows: Any, others: pd.DataFrame, **given: Any) -> Any:
    return getattr(model, method)(rows, *([others] if method == "log_density" else []), **given)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", BAD_QUERIES)
def test_queries_that_are_refused(
    case: str, method: str, judged: DiCoFlex, reloaded: DiCoFlex, queries: pd.DataFrame, monkeypatch: Any
) -> None:
    make, given, match = BAD_QUERIES[case]
    if given.get("frozen") == "ALL":
        given = {"frozen": list(queries)}
    messages = []
    for model in (judged, reloaded):
        monkeypatch.setattr(model, "generator_", mock.Mock(side_effect=AssertionError("work was started")))
        with pytest.raises(QueryError, match=match) as caught:
            call(model, method, make(queries), queries, **given)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("method", ["explain", "sample"])
@pytest.mark.parametrize("n", [0, -3, 2.5, "3", None, True])
def test_numbers_of_rows_that_are_refused(n: Any, method: str, judged: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match=f"n must be a whole number of at least 1, got {n!r}"):
        call(judged, method, queries, queries, n=n)


@pytest.mark.parametrize("method", ["explain", "sample"])
@pytest.mark.parametrize("seed", [-1, 0.5, "0", True])
def test_seeds_that_are_refused(seed: Any, method: str, judged: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(SettingError, match=f"random_state must be a whole number of at least 0 or None, got {seed!r}"):
        call(judged, method, queries, queries, random_state=seed)


@pytest.mark.parametrize("method", METHODS)
def test_confidence_beyond_the_data_names_the_highest(
    method: str, judged: DiCoFlex, reloaded: DiCoFlex, queries: pd.DataFrame
) -> None:
    highest = judged.report_["confidence"]["yes"]["highest"]
    assert 0.5 < highest < 1
    for model in (judged, reloaded):
        with pytest.raises(
            QueryError, match=r"more than the training rows of 'yes' support; the highest is 0\.\d+"
        ) as e:
            call(model, method, queries, queries, target="yes", confidence=1.0)
        named = float(str(e.value).rsplit(" ", 1)[1])
        assert named == pytest.approx(highest, abs=2e-4)
        call(model, method, queries, queries, target="yes", confidence=named)


def test_highest_confidence_is_that_of_the_hundredth_row(
    judged: DiCoFlex, applicants: pd.DataFrame, labels: np.ndarray, black_box: BlackBox
) -> None:
    for i, label in enumerate(["no", "yes"]):
        sure = np.sort(black_box(applicants)[labels == label, i])[::-1]
        reached = sure[min(100, len(sure) // 2) - 1]
        assert judged.report_["confidence"][label]["highest"] == pytest.approx(min(reached, 0.99), abs=1e-4)
        assert judged.report_["confidence"][label]["default"] == pytest.approx(min(0.7, reached), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_confidence_needs_a_model_that_saw_probabilities(method: str, model: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match=r"fit\(X, y, predict_proba=clf\.predict_proba\), or leave confidence out"):
        call(model, method, queries, queries, confidence=0.8)


@pytest.mark.parametrize("method", METHODS)
def test_three_classes_need_a_target(method: str, three: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match=r"target is needed with 3 classes; choose from \['high', 'low', 'middle'\]"):
        call(three, method, queries, queries)


def test_rows_and_counterfactuals_must_pair_up(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match="rows has 8 entries and counterfactuals 5; give as many, or one row"):
        judged.log_density(queries, queries.head(), target="yes")
    with pytest.raises(QueryError, match="lack the column 'age'"):
        judged.log_density(queries, queries.drop(columns="age"), target="yes")


@pytest.mark.parametrize(
    ("check", "match"),
    [
        ("clf", r"check must be a callable, got str; pass clf\.predict"),
        (lambda f: np.full((len(f), 2), 0.5), r"check gave a matrix; .*such as clf\.predict"),
        (lambda _: ["yes"], r"check gave shape \(1,\) for \d+ rows; it must return one label per row"),
        (lambda f: np.full(len(f), "perhaps"), "check gave the label 'perhaps', which is not among the labels of y"),
    ],
)
def test_checks_that_are_refused(check: Any, match: str, judged: DiCoFlex, queries: pd.DataFrame) -> None:
    with pytest.raises(BlackBoxError, match=match):
        judged.explain(queries, target="yes", check=check)


def test_unfitted_use(tmp_path: Path, queries: pd.DataFrame) -> None:
    model = DiCoFlex()
    calls = [
        lambda: model.explain(queries),
        lambda: model.sample(queries),
        lambda: model.log_density(queries, queries),
        lambda: model.save(tmp_path / "m.dicoflex"),
    ]
    for use in calls:
        with pytest.raises(NotFittedError, match=r"not fitted yet; call \.fit\(X, y\), or load\(\) a model file"):
            use()
    assert not list(tmp_path.iterdir())


# -- the layout of what is returned -----------------------------------------------------------------------------------


def test_sample_gives_exactly_n_in_the_layout_of_the_rows(
    model: DiCoFlex, applicants: pd.DataFrame, queries: pd.DataFrame
) -> None:
    draws = model.sample(queries, target="yes", n=12, random_state=0)
    assert_layout(draws, applicants)
    assert_within(draws, model.schema_, queries.iloc[np.repeat(range(8), 12)])
    assert draws.index.get_level_values("row").tolist() == np.repeat(queries.index, 12).tolist()
    assert draws.index.get_level_values("cf").tolist() == list(range(12)) * len(queries)


def test_explain_gives_up_to_n_in_the_layout_of_the_rows(
    model: DiCoFlex, applicants: pd.DataFrame, queries: pd.DataFrame
) -> None:
    cfs = model.explain(queries, target="yes", n=4, random_state=0)
    assert_layout(cfs.frame, applicants)
    assert_within(cfs.frame, model.schema_, queries.iloc[cfs.positions])
    pd.testing.assert_frame_equal(cfs.queries, queries)
    assert cfs.info.index.equals(cfs.frame.index)
    counts = pd.Series(cfs.positions).value_counts().reindex(range(len(queries)), fill_value=0)
    assert (counts <= 4).all()
    short = cfs.shortfall.set_index("row")["got"]
    assert counts[counts < 4].tolist() == short.loc[queries.index[counts < 4]].tolist()


def test_draws_are_distinct_and_never_the_query(model: DiCoFlex, queries: pd.DataFrame) -> None:
    for draws in (
        model.sample(queries, target="yes", n=20, random_state=0),
        model.sample(queries, target="yes", n=20, p=0.01, filter=False, random_state=0),
        model.explain(queries, target="yes", n=5, random_state=0).frame,
    ):
        assert not draws.assign(row=draws.index.get_level_values("row")).duplicated().any()
        assert differences(draws, queries.loc[draws.index.get_level_values("row")]).any(axis=1).all()


INDEXES = {
    "numbers": pd.RangeIndex(10, 18),
    "text": pd.Index(list("hgfedcba"), name="who"),
    "repeated": pd.Index([7, 7, 7, 1, 1, 2, 2, 2]),
    "all the same": pd.Index(["x"] * 8),
    "fractions": pd.Index(np.linspace(0, 1, 8)),
    "dates": pd.date_range("2024-01-01", periods=8, name="day"),
    "dates with zone": pd.date_range("2024-01-01", periods=8, tz="Europe/Berlin"),
    "categories": pd.CategoricalIndex(list("abcdabcd")),
    "tuples": pd.MultiIndex.from_product([["a", "b"], range(4)], names=["site", "case"]),
    "repeated tuples": pd.MultiIndex.from_tuples([("a", 1)] * 8),
    "mixed": pd.Index([1, "1", 2.5, True, "x", (1, 2), None, 3], dtype=object, tupleize_cols=False),
}


@pytest.mark.parametrize("case", INDEXES)
def test_index_labels_are_kept(case: str, mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.set_axis(INDEXES[case])
    labels = list(rows.index)
    draws = mixed.sample(rows, target="yes", n=3, random_state=0)
    plain = mixed.sample(queries, target="yes", n=3, random_state=0)
    pd.testing.assert_frame_equal(draws.reset_index(drop=True), plain.reset_index(drop=True))
    assert draws.index.names == ["row", "cf"]
    found = draws.index.get_level_values("row").tolist()
    assert [None if pd.api.types.is_scalar(v) and pd.isna(v) else v for v in found] == [
        v for v in labels for _ in "123"
    ]
    assert draws.index.get_level_values("cf").tolist() == [0, 1, 2] * 8
    cfs = mixed.explain(rows, target="yes", n=2, random_state=0)
    assert cfs.positions.tolist() == sorted(cfs.positions.tolist())
    assert cfs.queries.index.equals(rows.index)
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()


def test_rows_of_other_dtypes_come_back_in_those_of_training(
    mixed: DiCoFlex, applicants: pd.DataFrame, queries: pd.DataFrame
) -> None:
    """As read from a CSV file: wider numbers, text for categories, columns in another order."""
    rows = queries.astype({"score": "float64", "visits": "int64", "age": "float64", "area": "int64", "grade": str})
    shuffled = rows[rows.columns[::-1]]
    draws = mixed.sample(shuffled, target="yes", n=3, random_state=0)
    assert_layout(draws, applicants)
    pd.testing.assert_frame_equal(draws, mixed.sample(queries, target="yes", n=3, random_state=0))


def test_value_that_its_dtype_rounds_is_not_a_change(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.assign(score=0.1)
    cfs = mixed.explain(rows, target="yes", n=5, p=0.01, frozen=["score"], random_state=0)
    assert (cfs.frame["score"] == np.float32(0.1)).all()
    assert "score" not in set(cfs.changes()["feature"])
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()


@pytest.mark.parametrize("labels", [[False, True], [0, 1], [-1.0, 1.0], ["no", "yes"], [2, "two"]])
def test_labels_of_any_type(labels: list[Any], quickly: Quickly, tmp_path: Path) -> None:
    rows = ROWS[["age", "pay"]]
    model = quickly(rows, pd.Series([labels[int(v > 0)] for v in rows["pay"]], dtype=object))
    assert model.classes_.tolist() == sorted(labels, key=lambda v: (type(v).__name__, v))
    cfs = model.explain(rows.head(3), target=labels[1], n=2, random_state=0)
    assert set(cfs.info["target"]) == {labels[1]}
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex").explain(rows.head(3), target=labels[1], n=2, random_state=0)
    pd.testing.assert_frame_equal(cfs.info, again.info)
    assert [type(t) for t in json.loads(cfs.to_json())["settings"]["targets"]] == [type(labels[1])] * 3


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.Categorical])
def test_target_per_row(kind: Any, mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    targets = ["yes", "no"] * 4
    cfs = mixed.explain(queries, target=kind(targets), n=2, random_state=0)
    assert cfs.info["target"].tolist() == [targets[i] for i in cfs.positions]
    assert cfs.settings["targets"] == targets


def test_other_class_is_the_default_target(judged: DiCoFlex, queries: pd.DataFrame, says: BlackBox) -> None:
    now = says(queries)
    by_stand_in = judged.explain(queries, n=2, random_state=0).settings["targets"]
    assert np.mean(np.array(by_stand_in) != now) > 0.8
    assert judged.explain(queries, n=2, check=says, random_state=0).settings["targets"] == [
        "no" if label == "yes" else "yes" for label in now
    ]


# -- frozen -----------------------------------------------------------------------------------------------------------

FROZEN = [["gain", "score"], ["job", "city", "grade", "area", "member"], ["age", "price", "visits", "score"]]


def odd_queries(queries: pd.DataFrame) -> pd.DataFrame:
    """Missing values, zeros with a sign, numbers far outside of what training saw."""
    age = queries["age"].copy()
    age.iloc[:3] = [pd.NA, 0, 150]
    job = queries["job"].copy()
    job.iloc[0] = None
    score = queries["score"].copy()
    score.iloc[:3] = np.array([-0.0, 1e30, -1e30], dtype="float32")
    visits = queries["visits"].copy()
    visits.iloc[:2] = np.array([-128, 127], dtype="int8")
    return queries.assign(
        age=age, job=job, score=score, visits=visits, gain=[-0.0, 0.0, -1e9, 1e300, 5e-324, 0.1, 1 / 3, 2e5],
        price=[-0.0, 0.0, 7.123456789, -5.0, 1e15, 5.25, 24.75, 100.0],
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("frozen", FROZEN, ids=str)
def test_frozen_columns_are_equal_bit_for_bit(frozen: list[str], model: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = odd_queries(queries)
    draws = model.sample(rows, target="yes", n=6, frozen=frozen, random_state=0)
    cfs = model.explain(rows, target="yes", n=3, frozen=frozen, random_state=0)
    for frame in (draws, cfs.frame):
        assert_layout(frame, queries)
        own = rows.loc[frame.index.get_level_values("row")]
        assert all(same_bits(frame[name], own[name]) for name in frozen)
        assert_within(frame, model.schema_, own)
    assert not set(cfs.changes()["feature"]) & set(frozen)
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()
    assert cfs.settings["frozen"] == frozen


def test_frozen_numbers_beyond_the_limits_are_not_counted_as_changes(model: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.assign(gain=1e6)
    cfs = model.explain(rows, target="yes", n=3, frozen=["gain"], random_state=0)
    number = [f.name for f in model.schema_.features if f.is_number]
    assert len(cfs.frame)
    assert (cfs.info["proximity"] < 10 * len(number)).all()
    assert (cfs.info["n_changed"] >= 1).all()
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()


def test_frozen_takes_any_collection_of_names(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    expected = mixed.sample(queries, target="yes", n=3, frozen=["age", "city"], random_state=0)
    for frozen in (("age", "city"), {"age": 1, "city": 2}, pd.Index(["city", "age"]), np.array(["age", "city", "age"])):
        got = mixed.sample(queries, target="yes", n=3, frozen=frozen, random_state=0)
        pd.testing.assert_frame_equal(got, expected)


def test_columns_named_by_numbers(quickly: Quickly) -> None:
    rows = ROWS.set_axis([0, 1, 2], axis=1)
    model = quickly(rows, LABELS)
    for frozen in ([0, 2], np.array([0, 2])):
        draws = model.sample(rows.head(4), n=3, frozen=frozen, random_state=0)
        assert (draws[0].to_numpy() == np.repeat(rows[0].head(4).to_numpy(), 3)).all()
    with pytest.raises(UserError, match="'0' is unknown"):
        model.sample(rows, frozen=["0"])


def test_missing_objects_keep_their_kind(quickly: Quickly) -> None:
    """None, nan and NA in object columns: frozen ones are the query's, drawn ones those of training."""
    kinds = {"none": None, "nan": np.nan, "na": pd.NA}
    rng = np.random.default_rng(0)
    columns = {
        k: pd.Series(["x" if rng.random() < 0.5 else m for _ in range(N)], dtype=object) for k, m in kinds.items()
    }
    rows = ROWS[["pay"]].assign(**columns)
    model = quickly(rows, LABELS)
    draws = model.sample(rows.head(10), n=5, random_state=0)
    frozen = model.sample(rows.head(10), n=5, frozen=list(kinds), random_state=0)
    for name, missing in kinds.items():
        assert draws[name].dtype == object
        assert {id(v) for v in draws[name][draws[name].isna()]} <= {id(missing)}
        assert same_bits(frozen[name], rows[name].loc[frozen.index.get_level_values("row")])


# -- what explain knows of its answers --------------------------------------------------------------------------------


def test_info_by_hand(judged: DiCoFlex, applicants: pd.DataFrame, queries: pd.DataFrame) -> None:
    cfs = judged.explain(queries, target="yes", n=4, p=0.25, random_state=3)
    assert list(cfs.info.columns) == ["target", "log_density", "n_changed", "proximity", "probability", "valid"]
    own = queries.iloc[cfs.positions]
    squares = np.zeros(len(own))
    for name in ["age", "gain", "price", "score", "visits"]:
        known = applicants[name].dropna().astype(float)
        scaled = [
            (f[name].astype("Float64").to_numpy(float, na_value=known.mean()) / known.std(ddof=0))
            for f in (own, cfs.frame)
        ]
        squares += (scaled[0] - scaled[1]) ** 2
    assert cfs.info["n_changed"].tolist() == differences(cfs.frame, own).sum(axis=1).tolist()
    np.testing.assert_allclose(cfs.info["proximity"], np.sqrt(squares), rtol=1e-6)
    density = judged.log_density(own, cfs.frame, target="yes", p=0.25)
    np.testing.assert_allclose(cfs.info["log_density"], density, atol=1e-4)
    stand_in = judged.surrogate_.probabilities(judged.encoding_.encode(cfs.frame))[:, 1]
    np.testing.assert_allclose(cfs.info["probability"], stand_in)
    assert (cfs.info["probability"] >= 0.7 - 1e-9).all()
    assert cfs.info["valid"].dtype == "boolean"
    assert cfs.info["valid"].isna().all()


def test_changes_lead_from_the_query_to_the_answer(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    cfs = judged.explain(queries, target="yes", n=3, random_state=0)
    rebuilt = queries.loc[cfs.frame.index.get_level_values("row")].set_axis(cfs.frame.index)
    for change in cfs.changes().itertuples():
        before = rebuilt.loc[(change.row, change.cf), change.feature]
        assert (pd.isna(before) and pd.isna(change.before)) or before == change.before
        rebuilt.loc[(change.row, change.cf), change.feature] = change.after
    pd.testing.assert_frame_equal(rebuilt, cfs.frame)


def test_densities_of_draws_are_those_of_log_density(model: DiCoFlex, queries: pd.DataFrame) -> None:
    cfs = model.explain(queries, target="yes", n=3, p=1.0, frozen=["city"], random_state=0)
    own = queries.iloc[cfs.positions]
    density = model.log_density(own, cfs.frame, target="yes", p=1.0, frozen=["city"])
    np.testing.assert_allclose(cfs.info["log_density"], density, atol=1e-3, rtol=1e-5)
    one = model.log_density(queries.head(1), cfs.frame, target="yes")
    assert one.shape == (len(cfs.frame),)


def test_settings_tell_how_to_repeat_the_call(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    cfs = judged.explain(queries, target="yes", n=3, p=0.25, confidence=0.8)
    repeat = {k: cfs.settings[k] for k in ("n", "p", "frozen", "confidence", "random_state", "novel")}
    again = judged.explain(queries, target=cfs.settings["targets"], **repeat)
    pd.testing.assert_frame_equal(cfs.frame, again.frame)
    assert cfs.settings["model"] == judged.fingerprint_


def test_confidence_is_what_the_stand_in_sees(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    for confidence in (0.5, 0.9):
        cfs = judged.explain(queries, target="yes", n=5, confidence=confidence, random_state=0)
        assert (cfs.info["probability"] >= confidence).all()


def test_filter_can_be_switched_off(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    def doubtful(draws: pd.DataFrame) -> float:
        return float(np.mean(judged.surrogate_.probabilities(judged.encoding_.encode(draws))[:, 1] < 0.7))

    given = {"target": "yes", "n": 50, "random_state": 0}
    assert doubtful(judged.sample(queries, **given)) <= doubtful(judged.sample(queries, filter=False, **given))
    assert doubtful(judged.sample(queries, filter=False, **given)) > 0


def test_novel_draws_are_no_training_rows(quickly: Quickly) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.integers(0, 6, 150), "b": rng.integers(0, 6, 150), "c": rng.choice(["x", None], 150)})
    model = quickly(rows, np.where(rows["a"] > 2, "high", "low"))
    known = set(rows_of(rows))
    plain = model.sample(rows.head(20), n=10, random_state=0)
    novel = model.sample(rows.head(20), n=10, novel=True, filter=False, random_state=0)
    assert set(rows_of(plain)) & known
    assert not set(rows_of(novel)) & known
    cfs = model.explain(rows.head(20), n=3, novel=True, random_state=0)
    assert not set(rows_of(cfs.frame)) & known


# -- fewer than asked for ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow(quickly: Quickly) -> tuple[DiCoFlex, pd.DataFrame]:
    """A table of which only a switch is free once the number is frozen."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"level": rng.integers(0, 5, 200), "switch": rng.random(200) < 0.5})
    return quickly(rows, np.where(rows["switch"], "on", "off"), steps=300), rows.head(4)


def test_explain_never_pads(narrow: tuple[DiCoFlex, pd.DataFrame]) -> None:
    model, rows = narrow
    targets = np.where(rows["switch"], "off", "on")
    cfs = model.explain(rows, target=targets, n=10, frozen=["level"], random_state=0)
    assert len(cfs.frame) == 4
    assert (cfs.frame["switch"].to_numpy() != rows["switch"].to_numpy()).all()
    assert list(cfs.shortfall.columns) == ["row", "wanted", "got", "reason"]
    assert cfs.shortfall[["row", "wanted", "got"]].to_numpy().tolist() == [[i, 10, 1] for i in range(4)]
    assert cfs.shortfall["reason"].str.contains("no more different rows .*; free a feature").all()


def test_sample_repeats_rather_than_return_fewer(narrow: tuple[DiCoFlex, pd.DataFrame]) -> None:
    model, rows = narrow
    draws = model.sample(rows, target="on", n=10, frozen=["level"], random_state=0)
    assert len(draws) == 40
    assert (draws["switch"].to_numpy() != np.repeat(rows["switch"].to_numpy(), 10)).all()


def test_nothing_to_return(narrow: tuple[DiCoFlex, pd.DataFrame], says: BlackBox) -> None:
    """All combinations are training rows, so none is novel."""
    model, rows = narrow
    cfs = model.explain(rows, target="on", n=3, novel=True, random_state=0)
    assert len(cfs.frame) == len(cfs.info) == len(cfs.changes()) == 0
    assert_layout(cfs.frame, rows)
    assert cfs.shortfall["got"].tolist() == [0] * 4
    assert str(cfs)
    assert json.loads(cfs.to_json())["shortfall"]
    with pytest.raises(
        QueryError, match=r"row 0: every draw equals the row itself or a training row; .*leave novel out"
    ):
        model.sample(rows, target="on", n=3, novel=True, random_state=0)


def test_check_keeps_only_what_it_confirms(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    seen: list[pd.DataFrame] = []

    def check(frame: pd.DataFrame) -> np.ndarray:
        seen.append(frame)
        return np.where(frame["member"], "yes", "no")

    cfs = judged.explain(queries, target="yes", n=3, frozen=["gain"], check=check, random_state=0)
    assert len(cfs.frame)
    assert cfs.frame["member"].all()
    assert cfs.info["valid"].all()
    assert 1 <= len(seen) <= CHECK_ROUNDS
    pd.testing.assert_series_equal(seen[0].dtypes, queries.dtypes)
    assert set(rows_of(cfs.frame)) <= set(rows_of(pd.concat(seen)))


def test_check_sees_frozen_values_as_they_are(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    def check(frame: pd.DataFrame) -> np.ndarray:
        assert (frame["gain"] == 1e6).all()
        return np.full(len(frame), "yes")

    assert judged.explain(queries.assign(gain=1e6), target="yes", frozen=["gain"], check=check).info["valid"].all()


def test_check_that_always_says_no(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    check = mock.Mock(side_effect=lambda frame: np.full(len(frame), "no"))
    cfs = judged.explain(queries, target="yes", n=3, check=check, random_state=0)
    assert check.call_count == CHECK_ROUNDS
    assert len(cfs.frame) == 0
    assert cfs.shortfall["row"].tolist() == queries.index.tolist()
    refused = cfs.shortfall["reason"].str.extract(r"check refused (\d+) candidates in 5 rounds")[0].astype(int)
    assert refused.sum() == sum(len(c.args[0]) for c in check.call_args_list)


def test_check_asks_again_only_for_rows_that_are_short(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    sizes = []

    def check(frame: pd.DataFrame) -> np.ndarray:
        sizes.append(len(frame))
        return np.where(frame["city"] == "Ulm", "yes", "no")

    rows = queries.assign(city=["Rome"] + ["Ulm"] * 7)
    cfs = judged.explain(rows, target="yes", n=3, frozen=["city"], check=check, random_state=0)
    assert cfs.shortfall["row"].tolist() == [rows.index[0]]
    assert len(sizes) == CHECK_ROUNDS
    assert max(sizes[1:]) < sizes[0] / 4


# -- the same seed ----------------------------------------------------------------------------------------------------


def explained(model: DiCoFlex, rows: pd.DataFrame, **given: Any) -> pd.DataFrame:
    cfs = model.explain(rows, target="yes", n=3, **given)
    return pd.concat([cfs.frame, cfs.info[["log_density", "proximity", "probability"]]], axis=1)


def sampled(model: DiCoFlex, rows: pd.DataFrame, **given: Any) -> pd.DataFrame:
    return model.sample(rows, target="yes", n=7, **given)


@pytest.mark.parametrize("how", [explained, sampled])
def test_batching_does_not_matter(how: Callable[..., pd.DataFrame], model: DiCoFlex, queries: pd.DataFrame) -> None:
    given = {"p": 0.25, "frozen": ["age"], "random_state": 5}
    together = how(model, queries, **given)
    alone = pd.concat([how(model, queries.iloc[[i]], **given) for i in range(len(queries))])
    pd.testing.assert_frame_equal(alone, together, check_exact=True)
    shuffle = np.random.default_rng(0).permutation(len(queries))
    for order in (np.arange(len(queries))[::-1], shuffle, np.array([0, 0, 3])):
        expected = pd.concat([together.xs(queries.index[i], level="row", drop_level=False) for i in order])
        pd.testing.assert_frame_equal(how(model, queries.iloc[order], **given), expected, check_exact=True)


def test_batching_does_not_matter_with_check(judged: DiCoFlex, queries: pd.DataFrame, says: BlackBox) -> None:
    given = {"check": says, "confidence": 0.6, "random_state": 5}
    together = explained(judged, queries, **given)
    alone = pd.concat([explained(judged, queries.iloc[[i]], **given) for i in range(len(queries))])
    pd.testing.assert_frame_equal(alone, together, check_exact=True)


def test_seeds_differ(model: DiCoFlex, queries: pd.DataFrame) -> None:
    a, b, c = (sampled(model, queries, random_state=seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(a, b)
    assert not a.equals(c)
    assert not sampled(model, queries).equals(sampled(model, queries))


def test_threads_do_not_matter(model: DiCoFlex, queries: pd.DataFrame) -> None:
    expected = sampled(model, queries, random_state=0)
    before = torch.get_num_threads()
    try:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        torch.set_num_threads(before + 1)
        pd.testing.assert_frame_equal(sampled(model, queries, random_state=0), expected)
    finally:
        numba.set_num_threads(1)
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", GENERATORS)
def test_fit_is_repeatable(name: str, applicants: pd.DataFrame, labels: np.ndarray, queries: pd.DataFrame,
                           models: Callable[[str], DiCoFlex], quickly: Quickly) -> None:  # fmt: skip
    np.random.seed(7)  # noqa: NPY002  the state of the callers' generators must not matter, nor be touched
    torch.manual_seed(7)
    before = np.random.get_state()[1].copy(), torch.random.get_rng_state()  # noqa: NPY002
    again = quickly(applicants, labels, name)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert torch.equal(torch.random.get_rng_state(), before[1])
    first = models(name)
    for key, array in first._content()[1].items():
        np.testing.assert_array_equal(array, again._content()[1][key])
    pd.testing.assert_frame_equal(sampled(first, queries, random_state=0), sampled(again, queries, random_state=0))


def test_other_seed_gives_another_model(applicants: pd.DataFrame, labels: np.ndarray, mixed: DiCoFlex,
                                        queries: pd.DataFrame, quickly: Quickly) -> None:  # fmt: skip
    other = quickly(applicants, labels, random_state=1)
    assert other.fingerprint_ != mixed.fingerprint_
    assert not sampled(other, queries, random_state=0).equals(sampled(mixed, queries, random_state=0))


def test_fit_with_a_black_box_is_repeatable(quickly: Quickly) -> None:
    def predict_proba(frame: pd.DataFrame) -> np.ndarray:
        yes = 1 / (1 + np.exp(-4 * frame["pay"].to_numpy()))
        return np.column_stack([1 - yes, yes])

    given = {"predict_proba": predict_proba, "fit_config": {"passes": 1, "rounds": 1, "own_draws": 400}}
    a, b = (quickly(ROWS, LABELS, **given) for _ in range(2))
    pd.testing.assert_frame_equal(a.sample(ROWS, n=3, random_state=0), b.sample(ROWS, n=3, random_state=0))


# -- settings and reports ---------------------------------------------------------------------------------------------


def test_scikit_learn_rules(mixed: DiCoFlex) -> None:
    model = DiCoFlex("maf", k=3, training={"min_steps": 0, "epochs": 1})
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(clone(mixed), "generator_")
    assert mixed.n_features_in_ == 10
    assert mixed.feature_names_in_.tolist() == mixed.schema_.names
    assert mixed.classes_.tolist() == ["no", "yes"]


def test_settings_as_objects_and_as_dicts(quickly: Quickly) -> None:
    as_dicts = quickly(ROWS, LABELS, k=4, fit_config={"passes": 1, "rounds": 0}, training={"min_steps": 0, "epochs": 1})
    config = FitConfig(passes=1, rounds=0)
    as_objects = quickly(ROWS, LABELS, k=4, fit_config=config, training={"min_steps": 0, "epochs": 1})
    for key, array in as_dicts._content()[1].items():
        np.testing.assert_array_equal(array, as_objects._content()[1][key])
    assert quickly(ROWS, LABELS, training=TrainingConfig(epochs=1, patience=1)).history_


def test_paper_preset() -> None:
    setting = DiCoFlex.paper()._settings()
    assert (setting.fit.k, setting.fit.alpha, setting.fit.exponents) == (16, 10.0, (0.01, 0.08, 0.25, 1.0, 2.0))
    training = setting.training
    assert (training.epochs, training.learning_rate, training.patience) == (1000, 1e-4, 300)
    config = setting.generator.model_dump()
    assert DiCoFlex.paper().generator == "maf"
    assert (config["layers"], config["hidden_features"]) == (5, 32)
    assert DiCoFlex.paper(max_seconds=5)._settings().training.max_seconds == 5


def test_report_counts_the_calls_of_the_black_box(applicants: pd.DataFrame, labels: np.ndarray, black_box: BlackBox,
                                                  quickly: Quickly) -> None:  # fmt: skip
    counted = mock.Mock(side_effect=black_box)
    model = quickly(applicants, labels, predict_proba=counted, fit_config={"passes": 1, "rounds": 1, "own_draws": 400})
    assert model.report_["black_box_calls"] == counted.call_count
    assert model.report_["black_box_rows"] == sum(len(c.args[0]) for c in counted.call_args_list)
    for asked in counted.call_args_list:
        pd.testing.assert_series_equal(asked.args[0].dtypes, applicants.dtypes)
    counted.reset_mock()
    model.explain(applicants.head(3), target="yes", n=2)
    counted.assert_not_called()


def test_report_without_a_black_box(mixed: DiCoFlex, applicants: pd.DataFrame) -> None:
    assert mixed.report_["black_box_calls"] == mixed.report_["black_box_rows"] == 0
    assert mixed.report_["rows"] == len(applicants)
    assert mixed.report_["confidence"] == {}
    assert json.dumps(mixed.report_, allow_nan=False)


def test_exponents_set_the_range_of_p(quickly: Quickly) -> None:
    model = quickly(ROWS, LABELS, exponents=[0.5])
    assert len(model.sample(ROWS.head(2), n=2, p=0.5)) == 4
    with pytest.raises(QueryError, match=r"trained range, 0\.5 to 0\.5, got 1\.0"):
        model.sample(ROWS.head(2), p=1.0)
    assert len(quickly(ROWS, LABELS, exponents=np.array([2, 1])).sample(ROWS.head(2), n=2, p=1.7)) == 4


TINY = {
    "two rows": (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), ["no", "yes"]),
    "one column": (pd.DataFrame({"a": np.linspace(0, 1, 30)}), np.arange(30) > 14),
    "one switch": (pd.DataFrame({"a": [True, False] * 10}), [1, 0] * 10),
    "a rare class": (ROWS, ["rare"] + ["common"] * (N - 1)),
    "two rare classes": (ROWS, ["b", "c"] + ["a"] * (N - 2)),
    "a constant column": (ROWS.assign(one=1, same="x", half=0.5), LABELS),
    "a column of missing levels": (ROWS.assign(gone=pd.Series([None] * N, dtype=object)), LABELS),
    "many classes": (ROWS, np.arange(N) % 12),
}


@pytest.mark.parametrize("case", TINY)
@pytest.mark.parametrize("name", ["mixed", "maf", "kde"])
def test_tables_that_hardly_are_one(name: str, case: str, quickly: Quickly, tmp_path: Path) -> None:
    rows, labels = TINY[case]
    model = quickly(rows, labels, name)
    query = rows.tail(1)
    target = model.classes_.tolist()[0]
    draws = model.sample(query, target=target, n=4, random_state=0)
    assert_layout(draws, rows)
    assert_within(draws, model.schema_)
    assert len(draws) == 4
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex").sample(query, target=target, n=4, random_state=0)
    pd.testing.assert_frame_equal(draws, again)


# -- interruptions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 5])
@pytest.mark.parametrize("name", ["mixed", "maf"])
def test_interrupted_fit_is_usable(
    name: str, steps: int, applicants: pd.DataFrame, labels: np.ndarray, queries: pd.DataFrame, tmp_path: Path,
    quickly: Quickly, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    kind = GENERATORS[name]
    honest, calls = kind.loss, []

    def loss(self: Any, *given: Any) -> Any:
        if torch.is_grad_enabled():
            calls.append(1)
            if len(calls) == steps + 1:
                raise KeyboardInterrupt
        return honest(self, *given)

    monkeypatch.setattr(kind, "loss", loss)
    model = quickly(applicants, labels, name, training={"min_steps": 0, "epochs": 50, "batch_size": 2048},
                    fit_config={"passes": 2, "rounds": 1, "own_draws": 200})  # fmt: skip
    assert "interrupted" in model.report_["training_ended"]
    assert len(calls) == steps + 1, "training went on after it was interrupted"
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex")
    pd.testing.assert_frame_equal(sampled(model, queries, random_state=0), sampled(again, queries, random_state=0))


def test_time_budget(
    applicants: pd.DataFrame, labels: np.ndarray, quickly: Quickly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that moves a sixteenth of a second whenever training looks at it."""
    ticks = itertools.count(step=1 / 16)
    monkeypatch.setattr(training, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    model = quickly(
        applicants, labels, training={"min_steps": 0, "epochs": 100_000, "patience": 100_000}, max_seconds=0.5
    )
    assert model.report_["training_ended"] == "the 0.5 s were used up"
    assert 0.5 <= model.history_[-1]["seconds"] <= 1.0
    assert len(model.history_) <= 8


# -- model files ------------------------------------------------------------------------------------------------------


def test_saved_and_loaded(model: DiCoFlex, queries: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "m.dicoflex"
    model.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.dicoflex"]
    again = load(str(path))
    for how in (explained, sampled):
        expected = how(model, queries, p=0.25, frozen=["job"], random_state=11)
        got = how(again, queries, p=0.25, frozen=["job"], random_state=11)
        pd.testing.assert_frame_equal(got, expected, check_exact=True)
    draws = sampled(model, queries.head(1), random_state=0)
    density = model.log_density(queries.head(1), draws, target="yes")
    np.testing.assert_array_equal(again.log_density(queries.head(1), draws, target="yes"), density)
    assert again.fingerprint_ == model.fingerprint_
    assert again.report_ == model.report_
    assert again.schema_ == model.schema_
    assert again.classes_.tolist() == model.classes_.tolist()
    again.save(tmp_path / "twice.dicoflex")
    assert (tmp_path / "twice.dicoflex").read_bytes() == path.read_bytes()


def test_saved_and_loaded_with_confidence(judged: DiCoFlex, reloaded: DiCoFlex, queries: pd.DataFrame) -> None:
    given = {"confidence": 0.8, "novel": True, "random_state": 0}
    pd.testing.assert_frame_equal(explained(judged, queries, **given), explained(reloaded, queries, **given))


def test_saving_after_a_setting_was_changed(applicants: pd.DataFrame, labels: np.ndarray, queries: pd.DataFrame,
                                            quickly: Quickly, tmp_path: Path) -> None:  # fmt: skip
    """`set_params` is about the next fit; the model at hand stays what it is."""
    model = quickly(applicants, labels, "kde").set_params(generator="mixed", exponents=(1.0,))
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex")
    pd.testing.assert_frame_equal(sampled(again, queries, random_state=0), sampled(model, queries, random_state=0))


def test_model_file_holds_no_pickle(model: DiCoFlex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.dicoflex"
    model.save(path)
    data = path.read_bytes()
    assert not zipfile.is_zipfile(path)
    with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError, TypeError)):
        pickle.loads(data)
    size = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + size])
    plain = {"F64", "F32", "I64", "I32", "I16", "U64", "U8", "BOOL"}
    assert {entry["dtype"] for name, entry in table.items() if name != "__metadata__"} <= plain
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, mock.Mock(side_effect=AssertionError("unpickled")))
    monkeypatch.setattr(torch, "load", mock.Mock(side_effect=AssertionError("unpickled")))
    load(path)


def test_truncated_file(mixed: DiCoFlex, tmp_path: Path) -> None:
    path = tmp_path / "m.dicoflex"
    mixed.save(path)
    data = path.read_bytes()
    header = int.from_bytes(data[:8], "little")
    for size in (0, 1, 7, 8, 9, header // 2, header + 7, header + 8, header + 9, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(ModelFileError, match=r"m\.dicoflex .*(save|make)"):
            load(path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.dicoflex"]


def test_altered_file(mixed: DiCoFlex, tmp_path: Path) -> None:
    path = tmp_path / "m.dicoflex"
    mixed.save(path)
    data = bytearray(path.read_bytes())
    for at in (-1, -1000, len(data) // 2):
        changed = data.copy()
        changed[at] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(ModelFileError, match=r"altered.*save the model again"):
            load(path)


FOREIGN = {
    "text": b"age,job\n31,cook\n",
    "pickle": pickle.dumps({"a": 1}),
    "json": b'{"__metadata__": {}}',
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "zip": b"PK\x03\x04" + bytes(100),
    "ones": b"\xff" * 100,
}


@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_file(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.dicoflex"
    path.write_bytes(FOREIGN[case])
    with pytest.raises(ModelFileError, match=r"not a dicoflex model file.*make one with \.save\(\)"):
        load(path)


def test_foreign_safetensors_file(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(3)}, tmp_path / "x.dicoflex")
    with pytest.raises(ModelFileError, match=r"not a dicoflex model file.*make one with \.save\(\)"):
        load(tmp_path / "x.dicoflex")


def test_paths_that_are_no_files(mixed: DiCoFlex, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"can't be read: .*check the path"):
        load(tmp_path / "absent.dicoflex")
    with pytest.raises(ModelFileError, match=r"can't be read: .*check the path"):
        load(tmp_path)
    with pytest.raises(ModelFileError, match=r"can't be written: .*folder that exists"):
        mixed.save(tmp_path / "absent" / "m.dicoflex")
    assert not list(tmp_path.iterdir())


def without(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda header, arrays: (header if name in header else arrays).pop(name)  # type: ignore[return-value]


def put(path: list[Any], value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        inner: Any = header
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value

    return change


def cut(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _, arrays: arrays.update({name: arrays[name][:-1]})


DAMAGE = {
    "no generator": without("generator"),
    "unknown generator": put(["generator"], "gan"),
    "other generator": put(["generator"], "maf"),
    "generator of no type": put(["generator"], ["mixed"]),
    "unknown setting": put(["generator_config", "depth"], 3),
    "wrong setting": put(["generator_config", "hidden"], 7),
    "no schema": put(["encoding"], {}),
    "schema of no features": put(["encoding", "schema", "features"], []),
    "unknown kind": put(["encoding", "schema", "features", 0, "kind"], "fuzzy"),
    "short mean": put(["encoding", "mean"], [0.0]),
    "mean of text": put(["encoding", "mean"], ["a"]),
    "no classes": without("classes"),
    "a class too few": put(["classes"], ["yes"]),
    "a class too many": put(["classes"], ["a", "b", "c"]),
    "no exponents": put(["exponents"], []),
    "unknown stand-in": put(["stand_in"], "oracle"),
    "no report": without("report"),
    "report of text": put(["report"], "fine"),
    "no confidences": without("confidence.usual"),
    "a confidence too few": cut("confidence.usual"),
    "no known rows": without("known"),
    "a step too few": cut("generator.grid.step"),
    "a cell too few": cut("generator.grid.low"),
    "a weight too few": cut("generator.net.trunk.bias"),
    "no weights": without("generator.net.trunk.bias"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_file_with_a_wrong_header_or_wrong_shapes(case: str, mixed: DiCoFlex, tmp_path: Path) -> None:
    """Files whose fingerprint is right, as a faulty program would write them."""
    header, arrays = (json.loads(json.dumps(mixed._content()[0])), dict(mixed._content()[1]))
    DAMAGE[case](header, arrays)
    path = tmp_path / "m.dicoflex"
    model_file.write(path, header, arrays)
    with pytest.raises(ModelFileError):
        load(path)


def test_file_of_another_version(mixed: DiCoFlex, tmp_path: Path) -> None:
    header, arrays = mixed._content()
    with mock.patch.object(model_file, "VERSION", 99):
        model_file.write(tmp_path / "m.dicoflex", header, arrays)
    with pytest.raises(ModelFileError, match="format version 99, this dicoflex reads 1; fit and save it again"):
        load(tmp_path / "m.dicoflex")


# -- properties -------------------------------------------------------------------------------------------------------


def column_of(kind: str, n: int, rng: np.random.Generator) -> Any:
    """A column of one of the sorts that a table may have."""
    holes = rng.random(n) < 0.2
    return {
        "int64": lambda: rng.integers(-5, 50, n),
        "uint8": lambda: rng.integers(0, 200, n).astype("uint8"),
        "whole floats": lambda: np.where(holes, np.nan, rng.integers(0, 9, n)),
        "float64": lambda: np.where(holes, np.nan, rng.normal(size=n) * 10.0 ** rng.integers(-5, 5)),
        "float32": lambda: np.where(rng.random(n) < 0.4, 0.0, rng.exponential(size=n)).astype("float32"),
        "Int64": lambda: pd.array(np.where(holes, None, rng.integers(0, 4, n)), dtype="Int64"),
        "Float64": lambda: pd.array(np.where(holes, None, rng.normal(size=n)), dtype="Float64"),
        "bool": lambda: rng.random(n) < 0.5,
        "boolean": lambda: pd.array(np.where(holes, None, rng.random(n) < 0.5), dtype="boolean"),
        "text": lambda: pd.Series(np.where(holes, None, rng.choice(list("abc"), n)), dtype="str"),
        "object": lambda: pd.Series(rng.choice(np.array([1, "1", True, 2.5], dtype=object), n), dtype=object),
        "category": lambda: pd.Categorical(np.where(holes, None, rng.choice([3, 1, 2], n)), categories=[3, 2, 1, 0]),
        "ordered": lambda: pd.Categorical(rng.choice(list("xyz"), n), categories=list("zyx"), ordered=True),
        "constant": lambda: np.full(n, 3),
    }[kind]()


KINDS = [
    *("int64", "uint8", "whole floats", "float64", "float32", "Int64", "Float64"),
    *("bool", "boolean", "text", "object", "category", "ordered", "constant"),
]


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=5),
    seed=st.integers(0, 10**6),
    generator=st.sampled_from(list(GENERATORS)),
    p=st.floats(0.01, 2.0),
    data=st.data(),
)
def test_any_table(
    kinds: list[str], seed: int, generator: str, p: float, data: st.DataObject, quickly: Quickly
) -> None:
    rng = np.random.default_rng(seed)
    n = 40
    rows = pd.DataFrame({f"{kind} {i}": column_of(kind, n, rng) for i, kind in enumerate(["float64", *kinds])})
    rows.index = pd.Index(rng.integers(0, 20, n), name="number")
    first = rows.iloc[:, 0].rank().fillna(0).to_numpy()
    labels = np.array(["a", "b", "c"])[np.minimum(first // 14, rng.integers(1, 3)).astype(int)]
    frozen = data.draw(st.lists(st.sampled_from(list(rows.columns[1:])), unique=True))
    model = quickly(
        rows, labels, generator, training={"min_steps": 0, "epochs": 1}, fit_config={"passes": 1, "rounds": 0}
    )
    query = rows.iloc[rng.integers(0, n, 3)]
    draws = model.sample(query, target="b", n=5, p=p, frozen=frozen, random_state=0)
    cfs = model.explain(query, target="b", n=2, p=p, frozen=frozen, random_state=0)
    assert len(draws) == 15
    assert draws.index.get_level_values("row").tolist() == np.repeat(query.index, 5).tolist()
    for frame, own in ((draws, query.iloc[np.repeat(range(3), 5)]), (cfs.frame, query.iloc[cfs.positions])):
        assert_layout(frame, rows)
        assert_within(frame, model.schema_, own)
        assert all(same_bits(frame[name], own[name]) for name in frozen)
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()
    assert (cfs.info["n_changed"] > 0).all()
    alone = [model.sample(query.iloc[[i]], target="b", n=5, p=p, frozen=frozen, random_state=0) for i in range(3)]
    pd.testing.assert_frame_equal(pd.concat(alone), draws, check_exact=True)


def test_schema_overrides_what_is_inferred(quickly: Quickly) -> None:
    schema = Schema.infer(ROWS, kinds={"age": "categorical"}, limits={"pay": (-10.0, 10.0)})
    model = quickly(ROWS, LABELS, schema=schema)
    draws = model.sample(ROWS.head(5), n=20, random_state=0)
    assert set(draws["age"]) <= set(ROWS["age"])
    assert_layout(draws, ROWS)
    with pytest.raises(SchemaError, match="narrower"):
        Schema.infer(ROWS, limits={"age": (30, 31)})
