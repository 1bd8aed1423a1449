"""Encoded answers as the frame that a caller sees, and what a callable says of them."""

from __future__ import annotations

__all__ = ["accepted", "confirmed", "frame_of"]

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.check import Check, said_by
from dicoflex.answers.numbering import index_of
from dicoflex.answers.query import Query
from dicoflex.model import Model
from dicoflex.table.encoding import Kept, Values
from dicoflex.values import differ

Ints = NDArray[np.int64]


def frame_of(model: Model, query: Query, values: Values, which: Ints) -> pd.DataFrame:
    """Answers to the queries `which` as a frame; frozen values and kept numbers are the rows' own, bit for bit."""
    own = query.context.query
    # A level's code is all that there is to it, but a frozen one is still the row's own object.
    kept = query.frozen | ~model.encoding.is_exact(own)
    cells = Kept(query.frame, which, ~differ(values, own[which]) & kept[which])
    return model.encoding.decode(values, index_of(query.frame.index, which), kept=cells)


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
