from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from conftest import fit_quickly, predict, predict_proba
from dicoflex.answers.check import check_labels
from dicoflex.errors import BlackBoxError, DataError, SettingError
from dicoflex.learning import black_box
from dicoflex.learning.black_box import BlackBox, opened
from dicoflex.learning.labels import read_labels
from dicoflex.models import calls
from dicoflex.models.calls import CallConfig, Caller
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

FRAME = pd.DataFrame(
    {
        "age": pd.array([31, 52, None, 18, 44], dtype="Int64"),
        "job": pd.Series(["cook", "nurse", "cook", None, "cook"], dtype=object),
        "grade": pd.Categorical(list("abcab"), list("cba"), ordered=True),
    }
)


@pytest.fixture
def encoding() -> Encoding:
    return Encoding.fit(FRAME, Schema.infer(FRAME))


def halves(rows: pd.DataFrame) -> np.ndarray:
    return np.full((len(rows), 2), 0.5)


def test_it_is_asked_with_the_training_dtypes(encoding: Encoding) -> None:
    seen: list[pd.DataFrame] = []

    def predict_proba(rows: pd.DataFrame) -> np.ndarray:
        seen.append(rows)
        return halves(rows)

    BlackBox(predict_proba, encoding, 2).answers(encoding.encode(FRAME))
    pd.testing.assert_frame_equal(seen[0], FRAME)


def test_it_is_asked_in_chunks_and_counted(encoding: Encoding) -> None:
    values = encoding.encode(FRAME)
    sizes: list[int] = []

    def predict_proba(rows: pd.DataFrame) -> np.ndarray:
        sizes.append(len(rows))
        share = rows["age"].fillna(0).to_numpy(dtype=float) / 100
        return np.column_stack([share, 1 - share])

    box = BlackBox(Caller(predict_proba, "predict_proba", CallConfig(chunk=2)), encoding, 2)
    answer = box.answers(values)
    assert sizes == [2, 2, 1]
    assert (box.caller.calls, box.caller.rows) == (3, 5)
    np.testing.assert_allclose(answer[:, 0], [0.31, 0.52, 0.0, 0.18, 0.44])
    box.answers(values[:1])
    assert (box.caller.calls, box.caller.rows) == (4, 6)


def test_no_rows_are_no_question(encoding: Encoding) -> None:
    box = BlackBox(halves, encoding, 2)
    assert box.answers(encoding.encode(FRAME)[:0]).shape == (0, 2)
    assert (box.caller.calls, box.caller.rows) == (0, 0)


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame, np.ndarray.tolist, lambda a: a.astype("float32")])
def test_answers_may_be_any_array(encoding: Encoding, wrap: Any) -> None:
    box = BlackBox(lambda rows: wrap(halves(rows)), encoding, 2)
    answer = box.answers(encoding.encode(FRAME))
    assert answer.dtype == np.float64
    np.testing.assert_array_equal(answer, 0.5)


def test_three_classes(encoding: Encoding) -> None:
    box = BlackBox(lambda rows: np.tile([0.2, 0.3, 0.5], (len(rows), 1)), encoding, 3)
    assert box.answers(encoding.encode(FRAME)).shape == (5, 3)


BAD_ANSWERS: dict[str, tuple[Any, str]] = {
    "labels": (["yes"] * 5, "such as clf.predict_proba"),
    "nothing": (None, "shape () for 5 rows and 2 labels; it must have one column per label"),
    "one column": (np.full((5, 1), 0.5), "shape (5, 1) for 5 rows and 2 labels; it must have one column per label"),
    "one number per row": (np.full(5, 0.5), "shape (5,)"),
    "three columns": (np.full((5, 3), 1 / 3), "shape (5, 3) for 5 rows and 2 labels"),
    "too few rows": (np.full((4, 2), 0.5), "shape (4, 2) for 5 rows"),
    "rows of different length": ([[0.5, 0.5], [1.0]], "such as clf.predict_proba"),
    "scores": (np.tile([3.0, -2.0], (5, 1)), "each row must sum to 1"),
    "less than all": (np.full((5, 2), 0.4), "each row must sum to 1"),
    "one row that is off": (np.vstack([halves(FRAME)[:4], [[0.5, 0.6]]]), "each row must sum to 1"),
    "NaN": (np.full((5, 2), np.nan), "each row must sum to 1"),
    "infinite": (np.tile([np.inf, -np.inf], (5, 1)), "each row must sum to 1"),
    "below zero": (np.tile([1.5, -0.5], (5, 1)), "each row must sum to 1"),
}


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_answers_that_are_no_probabilities(case: str, encoding: Encoding) -> None:
    answer, remedy = BAD_ANSWERS[case]
    with pytest.raises(BlackBoxError) as caught:
        BlackBox(lambda _: answer, encoding, 2).answers(encoding.encode(FRAME))
    assert "predict_proba gave" in str(caught.value)
    assert remedy in str(caught.value)


def test_rounding_is_forgiven(encoding: Encoding) -> None:
    answer = np.tile([1.0 + 1e-7, -1e-7], (5, 1))
    assert BlackBox(lambda _: answer, encoding, 2).answers(encoding.encode(FRAME)).shape == (5, 2)


class Flaky:
    """A model behind a network, which fails in some of its calls."""

    def __init__(self, *failing: int) -> None:
        self.failing, self.calls = failing, 0

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        self.calls += 1
        if self.calls in self.failing:
            raise OSError("503 Service Unavailable")
        return halves(rows)


def test_its_errors_name_the_call_and_the_remedy(encoding: Encoding) -> None:
    box = BlackBox(Caller(Flaky(2), "predict_proba", CallConfig(chunk=2)), encoding, 2)
    with pytest.raises(BlackBoxError, match=r"failed in call 2, of 2 rows, after 2 rows .*503.*'retries': 5") as told:
        box.answers(encoding.encode(FRAME))
    assert isinstance(told.value.__cause__, OSError)


def test_calls_that_fail_are_repeated_after_longer_and_longer_waits(
    encoding: Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(calls.time, "sleep", waits.append)
    flaky = Flaky(2, 3, 4)
    box = BlackBox(Caller(flaky, "predict_proba", CallConfig(chunk=2, retries=3, wait=0.5)), encoding, 2)
    assert len(box.answers(encoding.encode(FRAME))) == 5
    assert waits == [0.5, 1.0, 2.0]
    assert (box.caller.calls, box.caller.rows, flaky.calls) == (3, 5, 6)
    flaky.calls = 1
    box = BlackBox(Caller(flaky, "predict_proba", CallConfig(retries=1)), encoding, 2)
    with pytest.raises(BlackBoxError, match="it was tried 2 times"):
        box.answers(encoding.encode(FRAME))


def test_a_budget_is_never_exceeded(encoding: Encoding) -> None:
    caller = Caller(halves, "predict_proba", CallConfig(most_rows=10))
    box = BlackBox(caller, encoding, 2)
    box.answers(encoding.encode(FRAME))
    assert caller.affordable == 3
    box.answers(encoding.encode(FRAME))
    with pytest.raises(BlackBoxError, match="10 rows were asked, and 5 more exceed calls: most_rows=10"):
        box.answers(encoding.encode(FRAME))
    with pytest.raises(SettingError, match=r"most_rows=10 has no room for the table.*give at least 115"):
        Caller(halves, "predict_proba", CallConfig(most_rows=10)).check_budget(92)


# -- check -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "classes"),
    [
        (["no", "yes", "no", "no", "yes"], ["no", "yes"]),
        (np.array([0, 1, 1, 0, 2]), [0, 1, 2]),
        (np.array([True, False, True, True, True]), [False, True]),
        (pd.Series([0, 1, 1, 0, 1], index=[9, 8, 7, 6, 5]), [0, 1]),
        (np.array([0.0, 1.0, 1.0, 0.0, 1.0]), [0, 1]),
        (pd.Series(["a", "b", "a", "a", "a"], dtype="category"), ["a", "b"]),
    ],
)
def test_labels_are_given_back(answer: Any, classes: list[Any]) -> None:
    labels = check_labels(lambda _: answer, FRAME, classes)
    assert labels.dtype == object
    assert labels.tolist() == list(answer)


BAD_LABELS: dict[str, tuple[Any, str]] = {
    "no probabilities": (np.full((5, 2), 0.7), "sums up to 1.4; probabilities are not negative and sum up to 1"),
    "a column": (np.zeros((5, 1)), "check gave shape (5, 1) for 5 rows; it must return one label per row"),
    "too few": (["no"] * 4, "check gave shape (4,) for 5 rows; it must return one label per row"),
    "one label": ("no", "check gave shape () for 5 rows"),
    "an unknown label": (
        ["no"] * 4 + ["maybe"],
        "check gave the label 'maybe', which is not among the labels of y: ['no'",
    ),
    "numbers for names": ([0, 1, 0, 1, 0], "check gave the label 0"),
    "a missing label": (np.array(["no"] * 4 + [None], dtype=object), "check gave the label None"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
def test_labels_that_can_not_be_used(case: str) -> None:
    answer, remedy = BAD_LABELS[case]
    with pytest.raises(BlackBoxError) as caught:
        check_labels(lambda _: answer, FRAME, ["no", "yes"])
    assert remedy in str(caught.value)


# -- agreement with y --------------------------------------------------------------------------------------------

NAMES = ["accept", "maybe", "reject"]


def rows_and_labels(n: int = 400) -> tuple[Encoding, np.ndarray, np.ndarray]:
    """Rows whose number says which of three labels they have: 64, 19 and 17 in a hundred."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(n).round(4)})
    encoding = Encoding.fit(frame, Schema.infer(frame))
    labels = np.where(frame["x"] < 0.64, 2, np.where(frame["x"] < 0.83, 1, 0))
    return encoding, encoding.encode(frame), labels


def columns_in_order(order: list[str]) -> Any:
    """A black box that is right about every row, its columns in this order."""

    def predict_proba(rows: pd.DataFrame) -> np.ndarray:
        x = rows["x"].to_numpy()
        label = np.where(x < 0.64, 2, np.where(x < 0.83, 1, 0))
        return (0.1 / 3 + 0.9 * np.eye(3)[label])[:, [NAMES.index(name) for name in order]]

    return predict_proba


def test_two_swapped_columns_are_refused_with_the_order_that_agrees() -> None:
    """0.1.0 (9aa4d8c) took them where a third class has the majority: validity .14 and .10, and not a word."""
    encoding, values, labels = rows_and_labels()
    swapped = BlackBox(columns_in_order(["maybe", "accept", "reject"]), encoding, 3)
    with pytest.raises(BlackBoxError, match=r"agrees with y on only 59%.*on 100% with .*\['maybe', 'accept', 'reject'"):
        black_box.agreed(swapped, values, labels, NAMES)


def test_columns_that_go_round_are_told_in_the_order_that_classes_wants() -> None:
    encoding, values, labels = rows_and_labels()
    order = ["reject", "accept", "maybe"]
    with pytest.raises(BlackBoxError, match=r"classes=clf\.classes_, which seem to be \['reject', 'accept', 'maybe"):
        black_box.agreed(BlackBox(columns_in_order(order), encoding, 3), values, labels, NAMES)
    told = black_box.wrapped(columns_in_order(order), order, NAMES, encoding)
    assert told is not None
    assert black_box.agreed(told, values, labels, NAMES).shape == (400, 3)


def test_weak_agreement_with_a_class_is_told_with_the_figure() -> None:
    """0.1.0 (9aa4d8c) looked at all rows together, and took 55 % without a word."""
    encoding, values, labels = rows_and_labels()
    rng = np.random.default_rng(1)
    other = np.where((labels == 1) & (rng.random(len(labels)) < 0.4), 2, labels)
    box = BlackBox(columns_in_order(NAMES), encoding, 3)
    with pytest.warns(UserWarning, match=r"agrees with y on only \d\d% of the rows \(\d\d% of 'reject'|'maybe'"):
        black_box.agreed(box, values, np.where(rng.random(len(labels)) < 0.4, 1, other), NAMES)
    with pytest.warns(UserWarning, match=r"95% of the rows \(80% of 'accept'\); .*clf\.predict\(X\)"):
        black_box.agreed(box, values, np.where((labels == 1) & (rng.random(400) < 0.3), 0, labels), NAMES)


def test_full_agreement_and_rows_that_are_few_are_no_matter(recwarn: pytest.WarningsRecorder) -> None:
    encoding, values, labels = rows_and_labels()
    black_box.agreed(BlackBox(columns_in_order(NAMES), encoding, 3), values, labels, NAMES)
    assert black_box._better_order(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 8]])) is None
    assert not recwarn


def test_tensors_that_gradients_are_kept_for_are_answers(encoding: Encoding) -> None:
    """0.1.0 (9aa4d8c) failed with a RuntimeError."""
    torch = pytest.importorskip("torch")
    box = BlackBox(lambda rows: torch.full((len(rows), 2), 0.5, requires_grad=True), encoding, 2)
    np.testing.assert_array_equal(box.answers(encoding.encode(FRAME)), 0.5)


@pytest.mark.parametrize("classes", [5, "no", 0.5])
def test_classes_that_are_no_list(classes: Any, encoding: Encoding) -> None:
    """0.1.0 (9aa4d8c) failed with a TypeError."""
    with pytest.raises(SettingError, match=r"lists the labels of predict_proba's columns, got .*; give clf\.classes_"):
        black_box.wrapped(halves, classes, ["no", "yes"], encoding)


@pytest.mark.parametrize("pair", [(1, True), (1, 1.0), (0, False)])
def test_labels_that_are_equal_and_not_the_same(pair: tuple[Any, Any]) -> None:
    """0.1.0 (9aa4d8c) made one class of 1 and True, in silence."""
    with pytest.raises(DataError, match=r"y holds both .* and .*; give labels of one type"):
        read_labels(pd.Series([*pair, "x"], dtype=object), 3)


# -- the owner's threshold -----------------------------------------------------------------------------------------


def by_owner(frame: pd.DataFrame) -> np.ndarray:
    return np.where(predict_proba(frame)[:, 1] >= 0.8, "yes", "no")


def test_a_threshold_is_the_decision(applicants: pd.DataFrame) -> None:
    model = fit_quickly(applicants, by_owner(applicants), predict_proba=predict_proba, threshold=0.8, steps=400)
    assert model.report_["threshold"] == model.model_.threshold == 0.8
    refused = applicants[by_owner(applicants) == "no"].head(20)
    cfs = model.explain(refused, target="yes", n=2, confidence="just", check=predict_proba, random_state=0)
    assert len(cfs) > 0
    assert (by_owner(cfs.frame) == "yes").all()
    # Whom the model finds likelier than not, but the owner refuses, gets answers.
    between = applicants[(predict(applicants) == "yes") & (by_owner(applicants) == "no")].head(5)
    found = model.explain(between, target="yes", n=1, check=predict_proba, random_state=0)
    assert "already" not in found.status


def test_the_labels_of_a_model_go_by_the_threshold(applicants: pd.DataFrame) -> None:
    clf = SimpleNamespace(predict_proba=predict_proba, predict=predict, classes_=["no", "yes"])
    assert opened(clf).labels(applicants, 0.8).tolist() == by_owner(applicants).tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threshold": 80}, "threshold must lie between 0 and 1, got 80"),
        ({"threshold": 0.5, "predict_proba": None}, "threshold= speaks of the columns of predict_proba"),
    ],
)
def test_thresholds_that_are_refused(given: dict[str, Any], message: str, applicants: pd.DataFrame) -> None:
    with pytest.raises(SettingError, match=message):
        fit_quickly(applicants, predict(applicants), **{"predict_proba": predict_proba, **given})
