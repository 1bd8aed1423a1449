"""What the surrogate says of rows, class by class."""

from __future__ import annotations

__all__ = ["probability"]

import pandas as pd

from dicoflex.model import Model


def probability(model: Model, rows: pd.DataFrame) -> pd.DataFrame:
    """The probability of each class, one column each, for rows with the training columns, under their own index."""
    model.encoding.check_columns(rows)
    _, values = model.encoding.conform(rows)
    found = model.surrogate.probabilities(values)
    return pd.DataFrame(found, index=rows.index, columns=pd.Index(model.labels, tupleize_cols=False))
