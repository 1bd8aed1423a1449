"""The rows to learn from, without those of rare values, and what one pass over all rows yields.

A row is left out for a level, or a missing value, that fewer than the schema's `min_count` rows have.
"""

from __future__ import annotations

__all__ = ["Rows", "Whole", "rare_rows", "take_rows", "unnamed"]

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex._types import Floats, Ints
from dicoflex.errors import DataError
from dicoflex.table.columns import code_lookup, factorize
from dicoflex.table.encoding import Encoding, Values, check_limits
from dicoflex.table.feature import Feature, Level
from dicoflex.table.rarity import to_digits
from dicoflex.table.remembered import Hashes, Remembered, row_hashes
from dicoflex.table.schema import Schema
from dicoflex.table.subsample import stratified
from dicoflex.values import differ, typed

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


CHUNK = 65_536
Whole = Callable[[], Iterable[pd.DataFrame]]
"""Gives all rows of a table that is too large to be a frame, as frames, one after the other."""


@dataclass(frozen=True)
class Rows:
    """The rows to learn from, encoded, with their class numbers; and all rows remembered, taken or not, if wanted.

    left_out: how many rows have a value that the schema does not name because too few rows have it. place: where each
    row stood in the frame. n: how many rows the table has. clipped: which rows hold a limit in place of a number beyond
    it.
    """

    encoding: Encoding
    values: Values
    labels: Ints
    remembered: Remembered | None = None
    left_out: int = 0
    place: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    clipped: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n: int = 0


def take_rows(
    frame: pd.DataFrame,
    schema: Schema,
    labels: Ints,
    *,
    most: int,
    seed: int,
    row_key: bytes | None = None,
    min_count: int = 1,
    whole: Whole | None = None,
) -> Rows:
    """All rows of `frame`, or about `most` of them by class, with one for everything that a column can hold.

    row_key: the key to remember all rows under; None remembers none. min_count: with more than one, means and
    deviations are rounded. Rows that the schema leaves out for being rare are not taken, and numbers beyond limits that
    it drew in are taken as the limits. whole: all rows, where `frame` is a sample of them that shows what they hold;
    all of the sample is taken, and means, deviations and remembered rows are those of all rows.

    >>> frame = pd.DataFrame({"a": range(1000)})
    >>> schema = Schema.infer(frame, kinds={"a": "integer"})
    >>> rows = take_rows(frame, schema, np.arange(1000) % 2, most=100, seed=0)
    >>> len(rows.values), rows.values.min(), rows.values.max()
    (100, np.float64(0.0), np.float64(999.0))
    """
    n = len(frame)
    rare, kept = rare_rows(frame, schema), np.arange(n)
    if rare:
        check_left_out(rare, n, schema.min_count)
        kept = np.flatnonzero(~np.any(list(rare.values()), axis=0))
        frame, labels = frame.iloc[kept], labels[kept]
    if whole is not None:
        rows = _of_whole(frame, schema, labels, row_key, whole())
    elif len(frame) <= most:
        rows = _all(frame, schema, labels, row_key)
    else:
        rows = _some(frame, schema, labels, most, seed, row_key)
    left_out, n = (rows.left_out, rows.n) if whole is not None else (n - len(frame), n)
    encoding = rows.encoding if min_count == 1 else _rounded(rows.encoding)
    return replace(rows, encoding=encoding.declaring(frame), left_out=left_out, n=n, place=kept[rows.place])


def _rounded(encoding: Encoding) -> Encoding:
    return replace(encoding, mean=to_digits(encoding.mean), scale=to_digits(encoding.scale))


def _all(frame: pd.DataFrame, schema: Schema, labels: Ints, row_key: bytes | None) -> Rows:
    values = Encoding.unit(schema).encode(frame)
    check_limits(schema, values)
    remembered = None if row_key is None else Remembered.of([row_hashes(values, row_key)], row_key)
    values, clipped = _within(schema, values)
    encoding = Encoding.of_values(schema, values)
    return Rows(encoding, values, labels, remembered, place=np.arange(len(values)), clipped=clipped)


def _some(frame: pd.DataFrame, schema: Schema, labels: Ints, most: int, seed: int, row_key: bytes | None) -> Rows:
    survey = _Survey(schema, row_key)
    for low in range(0, len(frame), CHUNK):
        survey.add(frame.iloc[low : low + CHUNK])
    chosen = stratified(labels, most=most, seed=seed, needed=survey.shown.values())
    values = survey.encoding.encode(frame.iloc[chosen])
    # The sample holds the least and the greatest numbers, so limits that are too narrow for any row are refused here.
    check_limits(schema, values)
    encoding = Encoding(schema, survey.mean, survey.scale)
    remembered = None if row_key is None else Remembered.of(survey.hashes, row_key)
    values, clipped = _within(schema, values)
    return Rows(encoding, values, labels[chosen], remembered, place=chosen, clipped=clipped)


def _of_whole(
    frame: pd.DataFrame, schema: Schema, labels: Ints, row_key: bytes | None, chunks: Iterable[pd.DataFrame]
) -> Rows:  # fmt: skip
    """All rows of a sample, with what one pass over all rows of the table tells."""
    survey, n = _Survey(schema, row_key), 0
    for chunk in chunks:
        n += len(chunk)
        lost = [unnamed(chunk[feature.name], feature) for feature in schema.features if schema.min_count > 1]
        survey.add(chunk[schema.names].iloc[np.flatnonzero(~np.any(lost, axis=0))] if lost else chunk[schema.names])
    values = survey.encoding.encode(frame)
    check_limits(schema, values)
    encoding = Encoding(schema, survey.mean, survey.scale)
    remembered = None if row_key is None else Remembered.of(survey.hashes, row_key)
    values, clipped = _within(schema, values)
    places = np.arange(len(values))
    return Rows(encoding, values, labels, remembered, n - survey.seen, place=places, clipped=clipped, n=n)


def _within(schema: Schema, values: Values) -> tuple[Values, Ints]:
    """The values with numbers taken no further than their limits, and which rows that changes."""
    if schema.min_count == 1:
        return values, np.zeros(0, dtype=np.int64)
    least = [f.minimum if f.is_number else -np.inf for f in schema.features]
    greatest = [f.maximum if f.is_number else np.inf for f in schema.features]
    within = np.clip(values, np.array(least, dtype=float), np.array(greatest, dtype=float))
    return within, np.flatnonzero(differ(within, values).any(axis=1))


class _Survey:
    """What one pass over all rows tells: means and deviations, and the first row for each thing that a column holds.

    Such a thing is a level, the least and the greatest number, and a missing value.
    """

    def __init__(self, schema: Schema, row_key: bytes | None) -> None:
        d = len(schema)
        self.encoding = Encoding.unit(schema)
        self.row_key = row_key
        self.hashes: list[Hashes] = []
        self.seen = 0
        self.shown: dict[tuple[int, Any], int] = {}
        self.count, self.mean, self.squares = np.zeros(d), np.zeros(d), np.zeros(d)
        self.least, self.greatest = np.full(d, np.inf), np.full(d, -np.inf)

    def add(self, frame: pd.DataFrame) -> None:
        """Look at the next rows."""
        values = self.encoding.encode(frame)
        if self.row_key is not None:
            self.hashes.append(np.unique(row_hashes(values, self.row_key)))
        if self.encoding.schema.min_count > 1:
            check_limits(self.encoding.schema, values)
        values, _ = _within(self.encoding.schema, values)
        for j, feature in enumerate(self.encoding.schema.features):
            if feature.is_number:
                self._look_at_numbers(j, values[:, j])
            else:
                codes, at = np.unique(values[:, j], return_index=True)
                for code, i in zip(codes.tolist(), at.tolist(), strict=True):
                    self.shown.setdefault((j, code), self.seen + i)
        self.seen += len(values)

    def _look_at_numbers(self, j: int, column: Floats) -> None:
        absent = np.isnan(column)
        if absent.any():
            self.shown.setdefault((j, "missing"), self.seen + int(absent.argmax()))
        if absent.all():
            return
        low, high = int(np.nanargmin(column)), int(np.nanargmax(column))
        if column[low] < self.least[j]:
            self.least[j], self.shown[j, "least"] = column[low], self.seen + low
        if column[high] > self.greatest[j]:
            self.greatest[j], self.shown[j, "greatest"] = column[high], self.seen + high
        self._merge(j, column[~absent])

    def _merge(self, j: int, present: Floats) -> None:
        """Means and squares of two parts make those of the whole (Chan, Golub and LeVeque 1983)."""
        mean, before, total = present.mean(), self.count[j], self.count[j] + len(present)
        apart = mean - self.mean[j]
        self.squares[j] += ((present - mean) ** 2).sum() + apart**2 * before * len(present) / total
        self.mean[j] += apart * len(present) / total
        self.count[j] = total

    @property
    def scale(self) -> Floats:
        """The standard deviations to divide by; 1 where all values are one."""
        deviation = np.sqrt(self.squares / np.maximum(self.count, 1.0))
        return np.where((self.least < self.greatest) & (deviation > 0.0), deviation, 1.0)
