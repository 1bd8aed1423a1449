"""Odd rows to plant among training rows: each column as usual, and the columns drawn apart from each other."""

from __future__ import annotations

__all__ = ["odd_rows"]

import numpy as np
import pandas as pd


def odd_rows(frame: pd.DataFrame, n: int, *, random_state: int | None = None) -> pd.DataFrame:
    """`n` rows of values of `frame`, every column shuffled by itself, none of them a row of `frame`.

    Plant them among the training rows before `fit`; if they come back among answers, others might.

    >>> rows = pd.DataFrame({"age": range(100), "job": ["cook", "nurse"] * 50})
    >>> planted = odd_rows(rows, 3, random_state=0)
    >>> len(planted), planted.merge(rows).empty
    (3, True)
    """
    rng = np.random.default_rng(random_state)
    columns = {name: frame[name].iloc[rng.integers(0, len(frame), 4 * n)].reset_index(drop=True) for name in frame}
    drawn = pd.DataFrame(columns)[list(frame.columns)].drop_duplicates()
    known = pd.MultiIndex.from_frame(frame.astype(object).fillna("missing").astype(str))
    new = ~pd.MultiIndex.from_frame(drawn.astype(object).fillna("missing").astype(str)).isin(known)
    return drawn[new].head(n).reset_index(drop=True).astype(frame.dtypes)
