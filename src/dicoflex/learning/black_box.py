"""The classifier to explain, seen through its callable: checked answers, counted calls, the training dtypes."""

from __future__ import annotations

__all__ = ["BlackBox", "agreed", "wrapped"]

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import BlackBoxError, SettingError
from dicoflex.table.encoding import Encoding, Values
from dicoflex.values import plain

CHUNK = 100_000
WEAK = 0.8
MOST_WEAK = 5


@dataclass
class BlackBox:
    """`predict_proba` behind the encoding: encoded rows in, probabilities of the sorted labels out."""

    predict_proba: Callable[[pd.DataFrame], Any]
    encoding: Encoding
    n_classes: int
    calls: int = 0
    rows: int = 0

    def answers(self, values: Values) -> NDArray[np.float64]:
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
    if hasattr(answer, "detach"):
        # A tensor that gradients are kept for is no array yet.
        answer = answer.detach().cpu()
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
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise SettingError(f"classes= lists the labels of predict_proba's columns, got {classes!r}; give clf.classes_")
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
        answer = _numbers(predict_proba(frame))
        if answer.ndim != 2 or answer.shape[1] != len(order):
            raise BlackBoxError(f"predict_proba gave shape {answer.shape}, but classes= names {len(order)} columns")
        picked: NDArray[np.float64] = answer[:, order]
        return picked

    return reordered


def agreed(
    black_box: BlackBox, values: Values, labels: NDArray[np.int64], names: list[Any]
) -> NDArray[np.float64]:  # fmt: skip
    """The black box's answers for the training rows; refused where they contradict the labels.

    They do where they agree with less than half of them, and where the columns in another order agree better than
    chance would have it. Weak agreement with a class is told in a warning.
    """
    answers = black_box.answers(values)
    said = answers.argmax(axis=1)
    counts = np.bincount(labels * len(names) + said, minlength=len(names) ** 2).reshape(len(names), -1)
    order = _better_order(counts)
    if order is not None:
        _refuse_order(counts, order, names)
    agree = counts.trace() / len(labels)
    if agree < 0.5:
        raise BlackBoxError(
            f"predict_proba agrees with y on only {agree:.0%} of the rows: its columns are probably in another order "
            f"than {names}; pass classes=clf.classes_, and labels that the black box itself gave"
        )
    _warn_of_weak(counts, names)
    return answers


def _better_order(counts: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The column that each label should have, where that agrees better with y than the columns as they are.

    counts: of each label's rows, how many each column is the highest of. Rows on which the two orders differ are like
    tosses of a coin if neither is better; more than two deviations beyond half of them are no chance.
    """
    from scipy.optimize import linear_sum_assignment

    _, order = linear_sum_assignment(counts, maximize=True)
    moved = order != np.arange(len(order))
    theirs, ours = (int(counts[moved, column].sum()) for column in (order[moved], np.flatnonzero(moved)))
    return order if theirs - ours > 2 * np.sqrt(theirs + ours) else None


def _refuse_order(counts: NDArray[np.int64], order: NDArray[np.int64], names: list[Any]) -> None:
    """Say in which order the columns agree better: label i stands in column order[i]."""
    columns: list[Any] = [None] * len(names)
    for name, column in zip(names, order, strict=True):
        columns[column] = name
    now, then = counts.trace() / counts.sum(), counts[np.arange(len(names)), order].sum() / counts.sum()
    raise BlackBoxError(
        f"predict_proba agrees with y on only {now:.0%} of the rows, and on {then:.0%} with its columns in another "
        f"order than {names}; pass classes=clf.classes_, which seem to be {columns}"
    )


def _warn_of_weak(counts: NDArray[np.int64], names: list[Any]) -> None:
    """Warn where the black box gives a class's rows another label too often."""
    share = counts.diagonal() / np.maximum(counts.sum(axis=1), 1)
    weak = [f"{share[i]:.0%} of {names[i]!r}" for i in np.argsort(share, kind="stable") if share[i] < WEAK]
    if weak:
        listed = ", ".join(weak[:MOST_WEAK]) + (", …" if len(weak) > MOST_WEAK else "")
        warnings.warn(
            f"predict_proba agrees with y on only {counts.trace() / counts.sum():.0%} of the rows ({listed}); "
            "counterfactuals will be those of predict_proba: give the labels that it gives, clf.predict(X)",
            stacklevel=2,
        )
