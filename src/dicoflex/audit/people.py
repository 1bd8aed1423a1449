"""The rows of an audit, as the model sees them: members and others, encoded."""

from __future__ import annotations

__all__ = ["People", "encoded"]

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dicoflex.errors import DataError
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.survey import unnamed

LEAST_ROWS = 100
MOST_STRANGERS = 500


@dataclass(frozen=True)
class People:
    """Members and others (a row each, encoded), and rows of strangers that an attacker has besides.

    left_out: how many rows have a value that the model does not know.
    """

    members: Values
    others: Values
    strangers: Values
    left_out: int

    @classmethod
    def of(cls, model: Model, train: pd.DataFrame, held_out: pd.DataFrame, *, seed: int) -> People:
        """A fourth of the held-out rows are strangers, 500 at most; the rest stand against the members."""
        members, others = encoded(model, train), encoded(model, held_out)
        if min(len(members), len(others)) < LEAST_ROWS:
            raise DataError(
                f"an audit needs {LEAST_ROWS} training and as many held-out rows that the model knows all values of, "
                f"got {len(members)} and {len(others)}"
            )
        order = np.random.default_rng(seed).permutation(len(others))
        cut = min(len(others) // 4, MOST_STRANGERS)
        left_out = len(train) + len(held_out) - len(members) - len(others)
        return cls(members, others[order[cut:]], others[order[:cut]], left_out)


def encoded(model: Model, frame: pd.DataFrame) -> Values:
    """The rows of a frame of which the model knows all values."""
    lacking = [name for name in model.schema.names if name not in frame.columns]
    if lacking:
        raise DataError(f"the rows lack the column {lacking[0]!r} of the model; give tables with its columns")
    known = ~np.any([unnamed(frame[feature.name], feature) for feature in model.schema.features], axis=0)
    return model.encoding.encode(frame.loc[known, model.schema.names])
