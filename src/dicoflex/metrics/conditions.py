"""Whether an answer is what was asked for: valid, within what was frozen, possible, no copy."""

from __future__ import annotations

__all__ = [
    "agreement",
    "broken",
    "copies",
    "impossible",
    "share_of_copies",
    "target_probability",
    "validity",
    "violations",
]

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dicoflex.errors import DataError, named
from dicoflex.metrics.frames import (
    MISSING,
    Flags,
    Reals,
    as_labels,
    check_columns,
    differs,
    joint_codes,
    level_codes,
    mean_or_nan,
    query_positions,
    reals,
)
from dicoflex.table.feature import Feature, Kind
from dicoflex.table.schema import Schema
from dicoflex.targets import Interval, OneOf


def validity(predicted: ArrayLike | pd.Series, targets: Any) -> float:
    """The share of counterfactuals that got the label asked for: mean of [predicted_i = target_i].

    targets: one label per counterfactual, or one label for all; an interval of scores, or several labels, hold
    what is in them. Both are matched by position, not by index.

    >>> validity(["yes", "no", "yes", "yes"], "yes")
    0.75
    """
    return mean_or_nan(agreement(predicted, targets))


def target_probability(probabilities: ArrayLike, classes: Sequence[Any], targets: Any) -> Reals:
    """The classification probability of each counterfactual: the black box's probability of the label asked for.

    probabilities: what `predict_proba` gave, a column per class. targets: one label per row, or one label for all.

    >>> target_probability([[0.2, 0.8], [0.9, 0.1]], ["no", "yes"], "yes").tolist()
    [0.8, 0.1]
    """
    table = np.asarray(probabilities, dtype=float).reshape(-1, len(classes))
    known, wanted = joint_codes([pd.Series(list(classes), dtype=object), as_labels(targets, len(table))])
    absent = np.flatnonzero(~np.isin(wanted, known))
    if len(absent):
        raise DataError(named("target", as_labels(targets, len(table))[absent[0]], classes))
    place = np.argsort(known)[np.searchsorted(np.sort(known), wanted)]
    chosen: Reals = table[np.arange(len(table)), place]
    return chosen


def violations(queries: pd.DataFrame, counterfactuals: pd.DataFrame, frozen: Sequence[Any]) -> int:
    """How many cells of the frozen features differ from the query: sum over i and frozen j of [x'_ij ≠ x_ij]."""
    check_columns(frozen, queries, counterfactuals)
    positions = query_positions(queries, counterfactuals)
    return sum(int(differs(queries, counterfactuals, positions, name).sum()) for name in frozen)


def broken(
    queries: pd.DataFrame,
    counterfactuals: pd.DataFrame,
    schema: Schema,
    *,
    frozen: Sequence[Any] = (),
    increase: Sequence[Any] = (),
    decrease: Sequence[Any] = (),
) -> pd.DataFrame:
    """A frame of booleans, indexed as the counterfactuals: True where a condition on that feature is broken.

    A column per feature that has a condition: x' ≠ x where it is frozen, x' < x where it may only increase, x' > x
    where it may only decrease. Ordered levels compare by their order. Becoming missing, or known, breaks a direction
    too.

    >>> queries = pd.DataFrame({"age": [30], "sex": ["f"]})
    >>> cfs = pd.DataFrame({"age": [25], "sex": ["f"]}, index=pd.MultiIndex.from_tuples([(0, 0)], names=["row", "cf"]))
    >>> broken(queries, cfs, Schema.infer(queries), frozen=["sex"], increase=["age"]).iloc[0].to_dict()
    {'sex': False, 'age': True}
    """
    check_columns([*frozen, *increase, *decrease], queries, counterfactuals)
    positions = query_positions(queries, counterfactuals)
    flags = {name: differs(queries, counterfactuals, positions, schema[name]) for name in frozen}
    for names, sign in ((increase, 1.0), (decrease, -1.0)):
        for name in names:
            before, after = (sign * _ranks(frame[name], schema[name]) for frame in (queries, counterfactuals))
            wrong = ~(after >= before[positions]) & ~(np.isnan(after) & np.isnan(before[positions]))
            flags[name] = flags.get(name, False) | wrong
    return pd.DataFrame(flags, index=counterfactuals.index, dtype=bool)


def impossible(counterfactuals: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """A frame of booleans, like the counterfactuals: True where a value can't occur in the table.

    Such are numbers outside the limits of the schema, fractions of a whole number, levels that are unknown, and
    missing values of a feature that has none.
    """
    check_columns(schema.names, counterfactuals)
    flags = {f.name: _cannot_be(counterfactuals[f.name], f) for f in schema.features}
    return pd.DataFrame(flags, index=counterfactuals.index)


def share_of_copies(frame: pd.DataFrame, train: pd.DataFrame, schema: Schema) -> float:
    """The share of rows that equal some training row in every feature.

    >>> train = pd.DataFrame({"age": [30, 40], "job": ["cook", "nurse"]})
    >>> share_of_copies(pd.DataFrame({"age": [30, 40], "job": ["cook", "cook"]}), train, Schema.infer(train))
    0.5
    """
    return mean_or_nan(copies(frame, train, schema))


def copies(frame: pd.DataFrame, train: pd.DataFrame, schema: Schema) -> Flags:
    """For each row of `frame`, whether it equals some training row in every feature."""
    check_columns(schema.names, frame, train)
    ids = np.zeros(len(frame) + len(train), dtype=np.int64)
    for feature in schema.features:
        codes = np.concatenate(joint_codes([frame[feature.name], train[feature.name]], feature)) - MISSING
        # Numbering the pairs anew after each feature keeps the products small enough to be exact.
        ids = pd.factorize(ids * (int(codes.max(initial=0)) + 1) + codes)[0].astype(np.int64)
    return np.isin(ids[: len(frame)], ids[len(frame) :])


def _ranks(column: pd.Series, feature: Feature) -> Reals:
    """Numbers as they are, and ordered levels as their places; NaN where missing or unknown."""
    if feature.is_number:
        return reals(column)
    if feature.kind is Kind.CATEGORICAL:
        raise DataError(f"feature {feature.name!r} has levels without order: it has no direction; freeze it instead")
    places = level_codes(column, feature)
    return np.where((places < 0) | (places >= len(feature.levels)), np.nan, places)


def _cannot_be(column: pd.Series, feature: Feature) -> Flags:
    if not feature.is_number:
        codes = level_codes(column, feature)
        return np.where(codes == MISSING, not feature.missing, codes >= len(feature.levels))
    values = reals(column)
    low, high = feature.minimum or 0.0, feature.maximum or 0.0
    outside: Flags = ~((values >= low) & (values <= high))
    if feature.is_whole:
        outside |= values % 1 != 0
    return np.where(np.isnan(values), not feature.missing, outside)


def agreement(predicted: ArrayLike | pd.Series, targets: Any) -> Flags:
    """Where the predicted label is the target, or the score lies in it; never where it is missing."""
    if isinstance(targets, Interval | OneOf):
        targets = [targets] * len(np.asarray(predicted))
    if not pd.api.types.is_scalar(targets) and any(isinstance(one, Interval | OneOf) for one in targets):
        pairs = zip(np.asarray(predicted).tolist(), targets, strict=True)
        return np.array([one.holds(said) if isinstance(one, Interval | OneOf) else said == one for said, one in pairs])
    labels = pd.Series(np.asarray(predicted, dtype=object))
    if not pd.api.types.is_scalar(targets) and len(targets) != len(labels):
        raise DataError(
            f"{len(labels)} predicted labels but {len(targets)} targets; give one target each, or one for all"
        )
    got, asked = joint_codes([labels, as_labels(targets, len(labels))])
    agrees: Flags = (got == asked) & (got != MISSING)
    return agrees
