"""A callable that labels rows, asked whether answers are what they should be."""

from __future__ import annotations

__all__ = ["Check", "check_labels"]

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import BlackBoxError

Check = Callable[[pd.DataFrame], Any]


def check_labels(
    check: Callable[[pd.DataFrame], Any], rows: pd.DataFrame, classes: Sequence[Any]
) -> NDArray[np.object_]:
    """The labels that `check` gives to `rows`; an answer that is not one known label per row is an error."""
    answer = np.asarray(check(rows))
    if answer.ndim == 2 and answer.shape[1] == len(classes) and len(classes) > 1:
        raise BlackBoxError("check gave a matrix; pass a callable that returns labels, such as clf.predict")
    if answer.shape != (len(rows),):
        raise BlackBoxError(f"check gave shape {answer.shape} for {len(rows)} rows; it must return one label per row")
    labels = answer.tolist()
    odd = next((label for label in labels if not isinstance(label, Hashable)), None)
    if odd is not None:
        raise BlackBoxError(
            f"check gave a {type(odd).__name__}; pass a callable that returns labels, such as clf.predict"
        )
    unknown = sorted(set(labels) - set(classes), key=str)
    if unknown:
        raise BlackBoxError(f"check gave the label {unknown[0]!r}, which is not among the labels of y: {list(classes)}")
    return answer.astype(object)
