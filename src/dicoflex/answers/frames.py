"""Encoded answers as the frame that a caller sees, and what a callable says of them."""

from __future__ import annotations

__all__ = ["accepted", "confirmed", "decoded", "frame_of", "index_of", "numbers_within"]

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex._types import Bools, Ints
from dicoflex.answers.check import Check, said_by
from dicoflex.answers.query import Query
from dicoflex.model import Model
from dicoflex.table.encoding import Encoding, Kept, Values
from dicoflex.values import differ


def index_of(labels: pd.Index, query: Ints) -> pd.MultiIndex:
    """The index (row, cf) of answers to the queries with these numbers, in order, whose rows have these labels.

    >>> index_of(pd.Index([7, 9]), np.array([0, 0, 1])).tolist()
    [(7, 0), (7, 1), (9, 0)]
    """
    number = numbers_within(query)
    names = ["row", "cf"]
    if _is_level(labels) and len(query) and (np.diff(query, prepend=-1, append=len(labels)) <= 1).all():
        levels: list[Any] = [labels, np.arange(number.max() + 1)]
        codes: list[Any] = [query, number]
        return pd.MultiIndex(levels, codes, names=names, verify_integrity=False)
    flat = pd.Index(labels.to_flat_index().take(query), tupleize_cols=False)
    return pd.MultiIndex.from_arrays([flat, number], names=names)


def _is_level(labels: pd.Index) -> bool:
    """Whether the labels can be a level of an index as they are, which saves looking for the distinct ones."""
    return labels.nlevels == 1 and labels.is_monotonic_increasing and labels.is_unique and not labels.hasnans


def numbers_within(query: Ints) -> Ints:
    """0, 1, 2, … within each run of equal query numbers.

    >>> numbers_within(np.array([4, 4, 7]))
    array([0, 1, 0])
    """
    start = np.flatnonzero(np.diff(query, prepend=-1))
    return np.arange(len(query)) - np.repeat(start, np.diff(np.append(start, len(query))))


def frame_of(model: Model, query: Query, values: Values, which: Ints) -> pd.DataFrame:
    """Answers to the queries `which` as a frame; frozen values and kept numbers are the rows' own, bit for bit."""
    own = query.context.query
    # A level's code is all that there is to it, but a frozen one is still the row's own object.
    kept = query.frozen | ~model.encoding.is_exact(own)
    return decoded(model.encoding, query.frame, own, kept, values, which)


def decoded(
    encoding: Encoding, frame: pd.DataFrame, own: Values, kept: Bools, values: Values, which: Ints
) -> pd.DataFrame:  # fmt: skip
    """Answers to the rows `which` as a frame: what is `kept` and did not change is the row's own, bit for bit.

    frame, own: the rows, and their matrix.
    """
    cells = Kept(frame, which, ~differ(values, own[which]) & kept[which])
    return encoding.decode(values, index_of(frame.index, which), kept=cells)


def confirmed(model: Model, query: Query, values: Values, which: Ints, check: Check) -> NDArray[np.bool_]:
    """Which answers `check` gives the target of their query, and the confidence that was asked for if it tells any."""
    return accepted(model, query, values, which, check)[0]


def accepted(
    model: Model, query: Query, values: Values, which: Ints, check: Check
) -> tuple[NDArray[np.bool_], bool]:  # fmt: skip
    """What `confirmed` has, and whether `check` gives probabilities; without rows it is not asked."""
    if len(values) == 0:
        return np.zeros(0, dtype=bool), False
    shown = frame_of(model, query, values, which).reset_index(drop=True)
    target = query.context.target[which]
    said = said_by(check, shown, model.labels, model.threshold)
    good: NDArray[np.bool_] = said.labels == np.asarray(model.classes.astype(object)[target])
    if said.probability is None:
        return good, False
    return good & (said.probability[np.arange(len(values)), target] >= query.context.confidence[which]), True
