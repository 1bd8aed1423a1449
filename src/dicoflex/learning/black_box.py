"""The classifier to explain, seen through its callable: checked answers, counted calls, the training dtypes."""

from __future__ import annotations

__all__ = ["BlackBox", "check_labels"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import BlackBoxError
from dicoflex.table.encoding import Encoding, Values

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


def check_labels(
    check: Callable[[pd.DataFrame], Any], rows: pd.DataFrame, classes: Sequence[Any]
) -> NDArray[np.object_]:
    """The labels that `check` gives to `rows`; an answer that is not one known label per row is an error."""
    answer = np.asarray(check(rows))
    if answer.ndim == 2 and answer.shape[1] == len(classes) and len(classes) > 1:
        raise BlackBoxError("check gave a matrix; pass a callable that returns labels, such as clf.predict")
    if answer.shape != (len(rows),):
        raise BlackBoxError(f"check gave shape {answer.shape} for {len(rows)} rows; it must return one label per row")
    unknown = sorted(set(answer.tolist()) - set(classes), key=str)
    if unknown:
        raise BlackBoxError(f"check gave the label {unknown[0]!r}, which is not among the labels of y: {list(classes)}")
    return answer.astype(object)
