"""Scores to learn from: what a column or a callable says of rows, checked."""

from __future__ import annotations

__all__ = ["Predict", "ScoreBox", "is_score", "read_scores"]

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import BlackBoxError, DataError
from dicoflex.models.calls import Caller, caller_of
from dicoflex.score import Score
from dicoflex.table.encoding import Encoding, Values

Floats = NDArray[np.float64]
Predict = Callable[[pd.DataFrame], Any]
MOST_CLASSES = 20
"""More different numbers than these are scores; where they are labels, `predict_proba` says so."""
LEAST_DIFFERENT = 5


@dataclass
class ScoreBox:
    """`predict` behind the encoding: encoded rows in, ranks of their scores out."""

    predict: Predict | Caller
    encoding: Encoding
    score: Score
    caller: Caller = field(init=False)

    def __post_init__(self) -> None:
        self.caller = caller_of(self.predict, "predict")

    def answers(self, values: Values) -> Floats:
        """The ranks of the black box's scores, asked for in bounded chunks."""
        size = self.caller.config.chunk
        chunks = (values[i : i + size] for i in range(0, len(values), size))
        parts = [_predicted(self.caller, self.encoding.decode(chunk)) for chunk in chunks]
        return self.score.rank(np.concatenate(parts)) if parts else np.zeros(0)


def is_score(y: Any) -> bool:
    """Whether `y` holds scores: numbers, and more different ones than there are labels.

    >>> is_score([0.5 * i for i in range(30)]), is_score([0, 1] * 15), is_score(["a"] * 30)
    (True, False, False)
    """
    if isinstance(y, pd.Series):
        is_number = pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)
        return bool(is_number and y.nunique() > MOST_CLASSES)
    try:
        column = np.asarray(y)
    except ValueError:
        # Lists of different lengths are no column; who reads labels says so.
        return False
    return column.ndim == 1 and column.dtype.kind in "iuf" and len(np.unique(column)) > MOST_CLASSES


def read_scores(X: pd.DataFrame, y: Any, predict: Caller | None) -> Floats:
    """The score of every row: what `predict` says, or else `y`; a `DataError` where that is no number per row."""
    if predict is not None:
        predict.check_budget(len(X))
        scores = _predicted(predict, X.copy())
    else:
        scores = _column(y, len(X))
    different = len(np.unique(scores))
    if different < LEAST_DIFFERENT:
        raise DataError(
            f"the scores have {different} different values, and at least {LEAST_DIFFERENT} are needed to ask for an "
            "interval; fit(X, labels) explains classes"
        )
    return scores


def _column(y: Any, n_rows: int) -> Floats:
    try:
        scores = np.asarray(pd.Series(y).to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise DataError(f"y holds no numbers ({str(y)[:40]!r}); give one score per row") from None
    if len(scores) != n_rows:
        raise DataError(f"y has {len(scores)} scores for {n_rows} rows; give one score per row")
    if not np.isfinite(scores).all():
        raise DataError(f"y has {int((~np.isfinite(scores)).sum())} missing or infinite scores; drop those rows")
    return scores


def _predicted(predict: Caller, frame: pd.DataFrame) -> Floats:
    scores = predict(frame)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.shape != (len(frame),):
        raise BlackBoxError(
            f"predict gave an array of shape {scores.shape} for {len(frame)} rows; it must return one score per row, "
            "such as lambda rows: clf.predict_proba(rows)[:, 1]"
        )
    if not np.isfinite(scores).all():
        raise BlackBoxError("predict gave scores that are missing or infinite; it must return a finite one per row")
    return scores
