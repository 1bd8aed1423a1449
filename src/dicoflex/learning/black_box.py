"""The classifier to explain, seen through its callable: checked answers, counted calls, the training dtypes."""

from __future__ import annotations

__all__ = ["BlackBox", "agreed", "wrapped"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import BlackBoxError, SettingError
from dicoflex.table.encoding import Encoding, Values
from dicoflex.values import plain

CHUNK = 100_000


@dataclass
class BlackBox:
    """`predict_proba` behind the encoding: encoded rows in, probabilities of the sorted labels out."""

    predict_proba: Callable[[pd.DataFrame], Any]
    encoding: Encoding
    n_classes: int
    calls: int = 0
    rows: int = 0

    def probabilities(self, values: Values) -> NDArray[np.float64]:
        """The black box's probabilities (n, classes), asked for in bounded chunks."""
        parts = [self._ask(values[i : i + CHUNK]) for i in range(0, len(values), CHUNK)]
        return np.concatenate(parts) if parts else np.zeros((0, self.n_classes))

    def _ask(self, values: Values) -> NDArray[np.float64]:
        self.calls += 1
        self.rows += len(values)
        answer = _numbers(self.predict_proba(self.encoding.decode(values)))
        if answer.shape != (len(values), self.n_classes):
            raise BlackBoxError(
                f"predict_proba gave an array of shape {answer.shape} for {len(values)} rows and {self.n_classes} "
                f"labels; it must have one column per label in y, in sorted order or as classes= says"
            )
        if not np.isfinite(answer).all() or (answer < -1e-6).any() or np.abs(answer.sum(axis=1) - 1).max() > 1e-2:
            raise BlackBoxError("predict_proba gave values that are not probabilities: each row must sum to 1")
        return answer


def _numbers(answer: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        raise BlackBoxError(
            f"predict_proba gave a {type(answer).__name__} that is not numbers; pass a callable that returns "
            "probabilities, such as clf.predict_proba"
        ) from None


def wrapped(
    predict_proba: Callable[[pd.DataFrame], Any] | None,
    classes: Sequence[Any] | None,
    names: list[Any],
    encoding: Encoding,
) -> BlackBox | None:
    """The black box behind `predict_proba`, its columns in the order of the sorted labels `names`; None without one."""
    if predict_proba is None:
        if classes is not None:
            raise SettingError("classes= says what the columns of predict_proba are; give predict_proba too")
        return None
    if not callable(predict_proba):
        raise BlackBoxError(
            f"predict_proba must be a callable, got {type(predict_proba).__name__}; pass clf.predict_proba"
        )
    if classes is None:
        return BlackBox(predict_proba, encoding, len(names))
    return BlackBox(_reordered(predict_proba, _order(classes, names)), encoding, len(names))


def _order(classes: Sequence[Any], names: list[Any]) -> list[int]:
    """Which column of the black box belongs to each of the sorted labels."""
    columns = [plain(c) for c in classes]
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise SettingError(f"classes= lacks the label {lacking[0]!r} of y; list every column of predict_proba")
    unseen = [column for i, column in enumerate(columns) if column not in names or column in columns[:i]]
    if unseen:
        raise SettingError(
            f"classes= has {unseen[0]!r} twice, or no row of y has it; fit on rows of every class, each listed once"
        )
    return [columns.index(name) for name in names]


def _reordered(predict_proba: Callable[[pd.DataFrame], Any], order: list[int]) -> Callable[[pd.DataFrame], Any]:
    def reordered(frame: pd.DataFrame) -> NDArray[np.float64]:
        answer = np.asarray(predict_proba(frame), dtype=np.float64)
        if answer.ndim != 2 or answer.shape[1] != len(order):
            raise BlackBoxError(f"predict_proba gave shape {answer.shape}, but classes= names {len(order)} columns")
        picked: NDArray[np.float64] = answer[:, order]
        return picked

    return reordered


def agreed(
    black_box: BlackBox, values: Values, labels: NDArray[np.int64], names: list[Any]
) -> NDArray[np.float64]:  # fmt: skip
    """The black box's answers for the training rows; refused where they contradict the labels."""
    answers = black_box.probabilities(values)
    agree = float(np.mean(answers.argmax(axis=1) == labels))
    if agree < 0.5:
        raise BlackBoxError(
            f"predict_proba agrees with y on only {agree:.0%} of the rows: its columns are probably in another order "
            f"than {names}; pass classes=clf.classes_, and labels that the black box itself gave"
        )
    return answers
