"""The rows that a schema leaves out: those with a level, or a missing value, that fewer than its `min_count` have."""

from __future__ import annotations

__all__ = ["check_left_out", "rare_rows", "unnamed"]

import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import DataError
from dicoflex.table.columns import code_lookup, factorize
from dicoflex.table.feature import Feature, Level
from dicoflex.table.schema import Schema
from dicoflex.values import typed

Flags = NDArray[np.bool_]
MOST_LEFT_OUT = 0.5
MANY_LEFT_OUT = 0.05


def rare_rows(frame: pd.DataFrame, schema: Schema) -> dict[object, Flags]:
    """By feature, which rows have a value that the schema does not name because too few rows have it.

    A value that as many rows have as would be named is not rare: the schema is another table's, and encoding says so.
    """
    if schema.min_count == 1:
        return {}
    found = {feature.name: _rare(frame[feature.name], feature, schema.min_count) for feature in schema.features}
    return {name: rare for name, rare in found.items() if rare.any()}


def _rare(column: pd.Series, feature: Feature, min_count: int) -> Flags:
    absent = column.isna().to_numpy()
    rare = unnamed(column, feature)
    if absent.sum() >= min_count:
        rare &= ~absent
    if rare[~absent].any():
        codes, values = factorize(column[~absent])
        rare[~absent] &= (np.bincount(codes, minlength=len(values)) < min_count)[codes]
    return rare


def unnamed(column: pd.Series, feature: Feature) -> Flags:
    """Which rows have a level that a feature does not name, or no value where it must have one."""
    absent = column.isna().to_numpy()
    found = absent.copy() if not feature.missing else np.zeros(len(column), dtype=bool)
    if feature.is_number or absent.all():
        return found
    codes, values = factorize(column[~absent])
    lookup = code_lookup(feature.levels)
    named = [isinstance(v, Level) and (typed(v) in lookup or ("any", v) in lookup) for v in values]
    found[~absent] = ~np.array(named, dtype=bool)[codes]
    return found


def check_left_out(by_feature: dict[object, Flags], n: int, min_count: int) -> None:
    """Refuse a table of which most rows would be left out, and warn of one that loses many."""
    share = np.any(list(by_feature.values()), axis=0).sum() / n
    if share <= MANY_LEFT_OUT:
        return
    worst = max(by_feature, key=lambda name: int(by_feature[name].sum()))
    text = (
        f"{share:.0%} of the rows have a value that fewer than {min_count} rows have, most in column {worst!r}, "
        "and such rows are left out; group its rare values, leave the column out, or say min_count=1 if the model file "
        "may name them"
    )
    if share > MOST_LEFT_OUT:
        raise DataError(text)
    warnings.warn(text, stacklevel=2)
