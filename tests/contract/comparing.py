"""What the tests of the contract share: a small table, how results are compared, and two ways of asking."""

from __future__ import annotations

__all__ = [
    "LABELS",
    "ROWS",
    "BlackBox",
    "N",
    "Quickly",
    "assert_layout",
    "assert_within",
    "differences",
    "explained",
    "rows_of",
    "same_bits",
    "sampled",
]

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dicoflex import DiCoFlex, Schema

Quickly = Callable[..., DiCoFlex]
BlackBox = Callable[[pd.DataFrame], np.ndarray]

N = 60


def small_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(20, 60, N), "pay": rng.normal(size=N), "job": rng.choice(["a", "b"], N)})


ROWS = small_table()
LABELS = np.where(ROWS["pay"] > 0, "yes", "no")


def explained(model: DiCoFlex, rows: pd.DataFrame, **given: Any) -> pd.DataFrame:
    cfs = model.explain(rows, target="yes", n=3, **given)
    return pd.concat([cfs.frame, cfs.info[["log_density", "proximity", "probability"]]], axis=1)


def sampled(model: DiCoFlex, rows: pd.DataFrame, **given: Any) -> pd.DataFrame:
    return model.sample(rows, target="yes", n=7, **given)


def same_bits(left: pd.Series, right: pd.Series) -> bool:
    """Whether two columns are equal to the last bit: -0.0 is not 0.0, NaN is NaN, None is not NaN."""
    if left.dtype != right.dtype or len(left) != len(right):
        return False
    if isinstance(left.dtype, np.dtype) and left.dtype != object:
        return left.to_numpy().tobytes() == right.to_numpy().tobytes()
    pairs = zip(left.astype(object), right.astype(object), strict=True)
    return all(a is b if pd.isna(a) or pd.isna(b) else type(a) is type(b) and a == b for a, b in pairs)


def assert_layout(frame: pd.DataFrame, X: pd.DataFrame) -> None:
    assert list(frame.columns) == list(X.columns)
    pd.testing.assert_series_equal(frame.dtypes, X.dtypes)
    assert frame.index.names == ["row", "cf"]


def differences(frame: pd.DataFrame, own: pd.DataFrame) -> np.ndarray:
    """Where the rows of `frame` differ from those of `own` at the same places; missing equals missing."""
    columns = []
    for name in frame.columns:
        pairs = zip(frame[name].astype(object), own[name].astype(object), strict=True)
        columns.append([not (pd.isna(a) and pd.isna(b)) and (pd.isna(a) or pd.isna(b) or a != b) for a, b in pairs])
    return np.array(columns, dtype=bool).T.reshape(len(frame), -1)


def rows_of(frame: pd.DataFrame) -> list[str]:
    """Every row as one text, to look rows up."""
    return ["|".join(map(repr, row)) for row in frame.astype(object).itertuples(index=False)]


def assert_within(frame: pd.DataFrame, schema: Schema, own: pd.DataFrame | None = None) -> None:
    """No value that training did not have, unless it is that of the row in `own`: limits, grids, levels, missing."""
    changed = np.ones(frame.shape, dtype=bool) if own is None else differences(frame, own)
    for feature in schema.features:
        column = frame[feature.name][changed[:, list(frame.columns).index(feature.name)]]
        present = column.dropna()
        assert feature.missing or len(present) == len(column)
        if feature.is_number:
            numbers = present.to_numpy(dtype=float)
            assert np.isfinite(numbers).all()
            assert (numbers >= feature.minimum).all()
            assert (numbers <= feature.maximum).all()
            assert feature.kind != "integer" or (numbers == np.rint(numbers)).all()
        else:
            assert set(present) <= set(feature.levels)
