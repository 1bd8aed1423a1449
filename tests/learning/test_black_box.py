from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex.answers.check import check_labels
from dicoflex.errors import BlackBoxError
from dicoflex.learning import black_box
from dicoflex.learning.black_box import BlackBox
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

    BlackBox(predict_proba, encoding, 2).probabilities(encoding.encode(FRAME))
    pd.testing.assert_frame_equal(seen[0], FRAME)


def test_it_is_asked_in_chunks_and_counted(encoding: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(black_box, "CHUNK", 2)
    values = encoding.encode(FRAME)
    sizes: list[int] = []

    def predict_proba(rows: pd.DataFrame) -> np.ndarray:
        sizes.append(len(rows))
        share = rows["age"].fillna(0).to_numpy(dtype=float) / 100
        return np.column_stack([share, 1 - share])

    box = BlackBox(predict_proba, encoding, 2)
    answer = box.probabilities(values)
    assert sizes == [2, 2, 1]
    assert (box.calls, box.rows) == (3, 5)
    np.testing.assert_allclose(answer[:, 0], [0.31, 0.52, 0.0, 0.18, 0.44])
    box.probabilities(values[:1])
    assert (box.calls, box.rows) == (4, 6)


def test_no_rows_are_no_question(encoding: Encoding) -> None:
    box = BlackBox(halves, encoding, 2)
    assert box.probabilities(encoding.encode(FRAME)[:0]).shape == (0, 2)
    assert (box.calls, box.rows) == (0, 0)


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame, np.ndarray.tolist, lambda a: a.astype("float32")])
def test_answers_may_be_any_array(encoding: Encoding, wrap: Any) -> None:
    box = BlackBox(lambda rows: wrap(halves(rows)), encoding, 2)
    answer = box.probabilities(encoding.encode(FRAME))
    assert answer.dtype == np.float64
    np.testing.assert_array_equal(answer, 0.5)


def test_three_classes(encoding: Encoding) -> None:
    box = BlackBox(lambda rows: np.tile([0.2, 0.3, 0.5], (len(rows), 1)), encoding, 3)
    assert box.probabilities(encoding.encode(FRAME)).shape == (5, 3)


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
        BlackBox(lambda _: answer, encoding, 2).probabilities(encoding.encode(FRAME))
    assert "predict_proba gave" in str(caught.value)
    assert remedy in str(caught.value)


def test_rounding_is_forgiven(encoding: Encoding) -> None:
    answer = np.tile([1.0 + 1e-7, -1e-7], (5, 1))
    assert BlackBox(lambda _: answer, encoding, 2).probabilities(encoding.encode(FRAME)).shape == (5, 2)


def test_its_own_errors_pass_through(encoding: Encoding) -> None:
    def broken(rows: pd.DataFrame) -> np.ndarray:
        raise ValueError("no such model")

    with pytest.raises(ValueError, match="no such model") as caught:
        BlackBox(broken, encoding, 2).probabilities(encoding.encode(FRAME))
    assert not isinstance(caught.value, BlackBoxError)


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
    "probabilities": (np.full((5, 2), 0.5), "pass a callable that returns labels, such as clf.predict"),
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
