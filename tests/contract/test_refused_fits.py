"""What `fit` refuses: before anything is trained, with the thing, the rule, the value and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from comparing import LABELS, ROWS, N, Quickly
from dicoflex import DiCoFlex, Schema
from dicoflex.errors import BlackBoxError, DataError, SettingError, UserError

DAYS = pd.date_range("2020-01-01", periods=N)


def repeated_columns() -> pd.DataFrame:
    return ROWS.set_axis(["age", "pay", "pay"], axis=1)


BAD_ROWS = {
    "array": (
        ROWS.to_numpy()[0],
        DataError,
        r"an array of two dimensions, got ndarray; wrap arrays with pd\.DataFrame",
    ),
    "no rows": (ROWS.head(0), DataError, "the frame is empty: 0 rows and 3 columns; give at least one of each"),
    "no columns": (ROWS[[]], DataError, "the frame is empty: 60 rows and 0 columns; give at least one of each"),
    "repeated column": (repeated_columns(), DataError, r"column names repeat: \['pay'\]; rename them"),
    "odd column name": (ROWS.rename(columns={"pay": ("p", 1)}), DataError, "must be text or whole numbers.*rename"),
    "dates": (ROWS.assign(day=DAYS), DataError, r"'day' holds dates .*such as X\['day'\]\.dt\.year, or drop it"),
    "durations": (ROWS.assign(day=DAYS - DAYS[0]), DataError, "'day' holds durations .*turn it into numbers"),
    "periods": (ROWS.assign(day=DAYS.to_period()), DataError, "'day' holds dates .*turn it into numbers"),
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
    trained = mock.Mock(side_effect=AssertionError("a refused fit was trained"))
    monkeypatch.setattr("dicoflex.learning.fitting.fit_judged", trained)
    monkeypatch.setattr("dicoflex.learning.fitting.fit_plain", trained)

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
    refused(UserError, "X lacks the column 'wage' of the schema", ROWS, LABELS, DiCoFlex(schema=other))
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
