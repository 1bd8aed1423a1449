"""The model at hand: what a callable says of rows, labels or the probabilities of the classes."""

from __future__ import annotations

__all__ = ["Check", "Said", "answer_of", "check_labels", "said_by"]

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import BlackBoxError
from dicoflex.targets import on_decision_scale

Check = Callable[[pd.DataFrame], Any]
SLACK = 1e-3
"""How far the probabilities of a row may sum up to another number than one: some models give 32-bit floats."""


@dataclass(frozen=True)
class Said:
    """What a check says of rows: a label each, and the probabilities of the classes where it gives those."""

    labels: NDArray[np.object_]
    probability: NDArray[np.float64] | None = None


def answer_of(check: Check, rows: pd.DataFrame) -> NDArray[Any]:
    """What a check returns for rows, as an array; a `BlackBoxError` where it fails."""
    try:
        return np.asarray(check(rows))
    except Exception as error:
        raise BlackBoxError(
            f"check failed, asked about {len(rows)} rows: {type(error).__name__}: {error}; give a callable that takes "
            "rows like those that went into fit, such as clf.predict"
        ) from error


def said_by(check: Check, rows: pd.DataFrame, classes: Sequence[Any], threshold: float | None = None) -> Said:
    """What `check` says of `rows`: one known label per row, or a matrix with the probability of each class.

    Parameters
    ----------
    check : callable
        Such as `clf.predict` or `clf.predict_proba`; which of the two is recognised by what it returns.
    rows : DataFrame
        Rows like those that went into `fit`.
    classes : sequence
        The labels, in the order of the columns of a matrix.
    threshold : float, optional
        The probability from which on the second of two labels is given, where it is not a half.

    Returns
    -------
    Said
        The labels, by the greatest probability where probabilities were given.

    Raises
    ------
    BlackBoxError
        If the answer is neither, or there is none because the callable fails.
    """
    answer = answer_of(check, rows)
    if answer.ndim == 2 and answer.shape[1] == len(classes) and len(classes) > 1:
        given = on_decision_scale(_probabilities(answer, rows), threshold)
        return Said(np.array(classes, dtype=object)[given.argmax(axis=1)], given)
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
    return Said(answer.astype(object))


def check_labels(
    check: Check, rows: pd.DataFrame, classes: Sequence[Any], threshold: float | None = None
) -> NDArray[np.object_]:
    """The labels that `check` gives to `rows`, as `said_by` reads them."""
    return said_by(check, rows, classes, threshold).labels


def _probabilities(answer: NDArray[Any], rows: pd.DataFrame) -> NDArray[np.float64]:
    """A matrix as probabilities of the classes."""
    if len(answer) != len(rows):
        raise BlackBoxError(f"check gave shape {answer.shape} for {len(rows)} rows; it must return one row per row")
    if answer.dtype.kind not in "fiub" or not np.isfinite(given := answer.astype(np.float64)).all():
        raise BlackBoxError("check gave a matrix that is not of numbers; pass clf.predict or clf.predict_proba")
    total = given.sum(axis=1)
    odd = np.flatnonzero((given < -SLACK).any(axis=1) | (np.abs(total - 1.0) > SLACK))
    if len(odd):
        raise BlackBoxError(
            f"check gave a matrix of which row {odd[0]} sums up to {total[odd[0]]:.6g}; probabilities are not negative "
            "and sum up to 1: pass clf.predict or clf.predict_proba"
        )
    return given
