"""The classifier to explain, seen through its callable: checked answers, counted calls, the training dtypes."""

from __future__ import annotations

__all__ = ["BlackBox", "Opened", "agreed", "column_order", "opened", "wrapped"]

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import BlackBoxError, SettingError
from dicoflex.models import wrap
from dicoflex.models.calls import CallConfig, Caller, caller_of
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.inference import check_frame
from dicoflex.table.native import PANDAS, Native
from dicoflex.targets import on_decision_scale
from dicoflex.values import is_number, plain

WEAK = 0.8
MOST_WEAK = 5


@dataclass
class BlackBox:
    """`predict_proba` behind the encoding: encoded rows in, probabilities of the sorted labels out."""

    predict_proba: Callable[[pd.DataFrame], Any] | Caller
    encoding: Encoding
    n_classes: int
    order: list[int] | None = None
    """Which column belongs to each of the sorted labels; None: that of its place."""
    threshold: float | None = None
    """The probability from which on the second of two labels is given; None: a half."""
    caller: Caller = field(init=False)

    def __post_init__(self) -> None:
        self.caller = caller_of(self.predict_proba, "predict_proba")

    def answers(self, values: Values) -> NDArray[np.float64]:
        """The black box's probabilities (n, classes), asked for in bounded chunks."""
        size = self.caller.config.chunk
        parts = [self._ask(values[i : i + size]) for i in range(0, len(values), size)]
        return np.concatenate(parts) if parts else np.zeros((0, self.n_classes))

    def _ask(self, values: Values) -> NDArray[np.float64]:
        answer = self.caller(self.encoding.decode(values))
        if self.order is not None:
            if answer.ndim != 2 or answer.shape[1] != len(self.order):
                raise BlackBoxError(
                    f"predict_proba gave shape {answer.shape}, but classes= names {len(self.order)} columns"
                )
            answer = answer[:, self.order]
        if answer.shape != (len(values), self.n_classes):
            raise BlackBoxError(
                f"predict_proba gave an array of shape {answer.shape} for {len(values)} rows and {self.n_classes} "
                f"labels; it must have one column per label in y, in sorted order or as classes= says"
            )
        if not np.isfinite(answer).all() or (answer < -1e-6).any() or np.abs(answer.sum(axis=1) - 1).max() > 1e-2:
            raise BlackBoxError("predict_proba gave values that are not probabilities: each row must sum to 1")
        return answer if self.threshold is None else on_decision_scale(answer, float(self.threshold))


def wrapped(
    predict_proba: Callable[[pd.DataFrame], Any] | Caller | None,
    classes: Sequence[Any] | None,
    names: list[Any],
    encoding: Encoding,
    threshold: float | None = None,
) -> BlackBox | None:
    """The black box behind `predict_proba`, its columns in the order of the sorted labels `names`; None without one.

    threshold: the probability from which on the second of two labels is given, where it is not a half.
    """
    if predict_proba is None:
        for name, given in (("classes", classes), ("threshold", threshold)):
            if given is not None:
                raise SettingError(f"{name}= speaks of the columns of predict_proba; give predict_proba too")
        return None
    if not callable(predict_proba):
        raise BlackBoxError(
            f"predict_proba must be a callable, got {type(predict_proba).__name__}; pass clf.predict_proba"
        )
    if threshold is not None:
        _check_threshold(threshold, names)
    order = None if classes is None else column_order(classes, names)
    return BlackBox(predict_proba, encoding, len(names), order, threshold)


@dataclass(frozen=True)
class Opened:
    """What a model that is given as an object has: the callable for its probabilities or for its scores, and the labels
    of the columns of the former."""

    predict_proba: Caller | None = None
    predict: Caller | None = None
    classes: list[Any] | None = None

    def labels(self, X: pd.DataFrame, threshold: float | None = None) -> NDArray[Any] | None:
        """The label that the model gives each row; None where it gives scores."""
        if self.predict_proba is None or self.classes is None:
            return None
        check_frame(X)
        self.predict_proba.check_budget(2 * len(X))
        said = _decided(self.predict_proba(X), threshold)
        labels: NDArray[Any] = np.asarray(pd.Series(self.classes).take(said))
        return labels


def _decided(answer: NDArray[np.float64], threshold: float | None) -> NDArray[np.int64]:
    """The column of each row's label."""
    if threshold is None or answer.shape[1:] != (2,):
        likeliest: NDArray[np.int64] = answer.argmax(axis=1)
        return likeliest
    # At the threshold itself the second label is given.
    return (answer[:, 1] >= threshold).astype(np.int64)


def _check_threshold(threshold: Any, names: list[Any]) -> None:
    """Refuse what is not a probability, and a threshold for other than two labels."""
    if not is_number(threshold) or not 0 < threshold < 1:
        raise SettingError(f"threshold must lie between 0 and 1, got {threshold!r}; it is a probability")
    if len(names) != 2:
        raise SettingError(
            f"threshold={threshold:g} is of the probability of the second of two labels, and there are {len(names)}; "
            "leave it out"
        )


def opened(model: Any, calls: CallConfig | None = None, native: Native = PANDAS) -> Opened:
    """A fitted model, which `wrap` knows, as a black box: its `predict_proba`; else `predict`, for labels or scores.

    calls: how it is called. native: the kind of frame that it takes.

    Raises
    ------
    SettingError
        Where the object has neither, or was not fitted.
    """
    model = wrap(model)
    try:
        classes = getattr(model, "classes_", None)
        proba = getattr(model, "predict_proba", None)
    except AttributeError:
        classes = proba = None
    if classes is None:
        if proba is not None:
            raise SettingError(
                f"model= is a {type(model).__name__} without classes_: it was not fitted, or it does not say what its "
                "columns are; fit it, or give predict_proba= and classes="
            )
        return Opened(predict=_called(model.predict, "model.predict", calls, native))
    names = [plain(one) for one in classes]
    said = _certain(model.predict, names) if proba is None else proba
    name = "model.predict" if proba is None else "model.predict_proba"
    return Opened(_called(said, name, calls, native), classes=names)


def _called(function: Any, name: str, calls: CallConfig | None, native: Native) -> Caller:
    """A model's method as it is called: as the caller says, or else as a wrapped model does itself."""
    if not isinstance(function, Caller):
        return Caller(function, name, calls, native)
    return Caller(function.function, function.name, calls or function.config)  # it reads any kind of frame


def _certain(predict: Callable[[Any], Any], names: list[Any]) -> Callable[[Any], Any]:
    """Probabilities of 0 and 1 from labels."""

    def certain(frame: Any) -> NDArray[np.float64]:
        said = np.asarray(predict(frame))
        said = said if said.ndim < 2 else said[:, 0]
        return np.array([[float(plain(label) == name) for name in names] for label in said]).reshape(-1, len(names))

    return certain


def column_order(classes: Sequence[Any] | None, names: list[Any]) -> list[int]:
    """Which column of the black box belongs to each of the sorted labels; that of its place, without `classes`."""
    if classes is None:
        return list(range(len(names)))
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


def agreed(
    black_box: BlackBox, values: Values, labels: NDArray[np.int64], names: list[Any]
) -> NDArray[np.float64]:  # fmt: skip
    """The black box's answers for the training rows; refused where they contradict the labels.

    They do where they agree with less than half of them, and where the columns in another order agree better than
    chance would have it. Weak agreement with a class is told in a warning.
    """
    black_box.caller.check_budget(len(values))
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
