"""Rows of a caller, encoded once, with a mask of the values that training never had.

What is unseen is a level that no training row has, or a missing value of a feature that never lacks one. A number
beyond all that were seen is a number like others.
"""

from __future__ import annotations

__all__ = ["EncodedRows", "encode_cells", "encode_frame", "places_for_unseen", "said_of_unseen"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import UnseenError
from dicoflex.table.columns import code_lookup, same_dtype
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.feature import Feature, Level
from dicoflex.table.marginals import Marginals
from dicoflex.table.plain_rows import PlainRows, Row
from dicoflex.table.schema import Schema
from dicoflex.values import is_half_read, is_missing, plain, typed

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LONGEST_SHOWN = 60
Places = Callable[[], Floats]


@dataclass(frozen=True)
class EncodedRows:
    """Rows, encoded once, with a mask of the values that training never had.

    values: the matrix to reckon with; another value stands in the place of an unseen one. unseen: which cells hold one.
    given: the rows as they came: cells, or a frame with the columns, order and dtypes of training, but a column with an
    unseen value is one of objects. frame: the rows that are reckoned with, in the training dtypes; None for cells.
    """

    values: Values
    unseen: Bools
    given: pd.DataFrame | Sequence[Row]
    frame: pd.DataFrame | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def has_unseen(self) -> Bools:
        """Which rows hold an unseen value."""
        return np.asarray(self.unseen.any(axis=1))

    @property
    def shown(self) -> pd.DataFrame:
        """The rows as they came, as a frame."""
        assert isinstance(self.given, pd.DataFrame)
        return self.given

    @property
    def labels(self) -> range | pd.Index:
        """What each row is called: its index label, or its place."""
        return range(len(self)) if self.frame is None else self.frame.index

    def value(self, i: int, j: int) -> Any:
        """The value of feature j in row i, as it came."""
        return self.given.iloc[i, j] if isinstance(self.given, pd.DataFrame) else self.given[i][j]


def places_for_unseen(encoding: Encoding, marginals: Marginals | None) -> Floats:
    """What stands, feature by feature, in the place of an unseen value: no answer takes it.

    Of a level, that it is missing, or the level that the fewest rows have. Of a number, the mean, off its grid.
    """
    features = encoding.schema.features
    return np.array([_place(f, float(encoding.mean[j]), j, marginals) for j, f in enumerate(features)])


def _place(feature: Feature, mean: float, j: int, marginals: Marginals | None) -> float:
    if feature.is_number:
        return float(np.floor(mean)) + 0.5 if feature.is_whole else mean
    if feature.missing:
        return float(len(feature.levels))
    return float(len(feature.levels) - 1 if marginals is None else np.argmin(marginals.counts(j)))


def said_of_unseen(schema: Schema, j: int, value: Any) -> str:
    """What a reason says of an unseen value of feature j.

    >>> said_of_unseen(Schema.infer(pd.DataFrame({"job": ["cook", "nurse"]})), 0, "astronaut")
    "job 'astronaut' was never seen in training"
    """
    name, least = schema.names[j], schema.min_count
    rarely = f" or in fewer than {least} rows" if least > 1 else ""
    if is_missing(value):
        return f"{name} is missing, which it never was in training{rarely}"
    text = repr(plain(value))
    shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
    return f"{name} {shown} was never seen in training{rarely}"


def encode_frame(encoding: Encoding, frame: pd.DataFrame, places: Places | None = None) -> EncodedRows:
    """The rows of a frame; what does not fit is a `QueryError`.

    places: what stands in the place of unseen values; without it, these don't fit.
    """
    encoding.check_columns(frame)
    try:
        conformed, values = encoding.conform(frame)
        return EncodedRows(values, np.zeros(values.shape, dtype=bool), conformed, conformed)
    except UnseenError:
        if places is None:
            raise
    features = encoding.schema.features
    unseen = np.column_stack([_unseen_in(feature, frame[feature.name]) for feature in features])
    columns = {f.name: _filled(f, frame[f.name], unseen[:, j]) for j, f in enumerate(features)}
    known, values = encoding.conform(pd.DataFrame(columns, index=frame.index))
    given = {f.name: _as_given(known[f.name], frame[f.name], unseen[:, j]) for j, f in enumerate(features)}
    return EncodedRows(np.where(unseen, places(), values), unseen, pd.DataFrame(given, index=frame.index), known)


def encode_cells(rows: PlainRows, cells: Sequence[Row], places: Places | None = None) -> EncodedRows:
    """The rows of plain cells; what does not fit is a `QueryError`, as `encode_frame` has it."""
    try:
        values = rows.encode(cells)
        return EncodedRows(values, np.zeros(values.shape, dtype=bool), cells)
    except UnseenError:
        if places is None:
            raise
    features = rows.encoding.schema.features
    tests = [_test(feature) for feature in features]
    unseen = np.array([[test(cell) for test, cell in zip(tests, row, strict=True)] for row in cells], dtype=bool)
    fillers = [_filler(feature) for feature in features]
    filled = [[fillers[j] if unseen[i, j] else cell for j, cell in enumerate(row)] for i, row in enumerate(cells)]
    return EncodedRows(np.where(unseen, places(), rows.encode(filled)), unseen, cells)


def _filled(feature: Feature, column: pd.Series, unseen: Bools) -> pd.Series:
    """A column with a seen value where it has unseen ones."""
    if not unseen.any():
        return column
    cells, filler = column.astype(object).to_numpy(copy=True), _filler(feature)
    cells[unseen] = filler
    declared = isinstance(column.dtype, pd.CategoricalDtype) and (filler is None or filler in column.dtype.categories)
    return pd.Series(cells, column.index, dtype=column.dtype if declared else object)


def _as_given(known: pd.Series, own: pd.Series, unseen: Bools) -> pd.Series:
    """A column in its dtype of training, or, with the unseen values back in their places, one of objects.

    A column whose categories declare the unseen values beside those of training stays as it came.
    """
    if not unseen.any():
        return known
    if isinstance(own.dtype, pd.CategoricalDtype) and same_dtype(known.dtype, own.dtype):
        return own
    cells = known.astype(object).to_numpy(copy=True)
    cells[unseen] = own.astype(object).to_numpy()[unseen]
    return pd.Series(cells, known.index, dtype=object)


def _unseen_in(feature: Feature, column: pd.Series) -> Bools:
    """Where a column has a value that training never had."""
    if feature.is_number:
        return column.isna().to_numpy() & (not feature.missing)
    test = _test(feature)
    told: dict[Any, bool] = {}
    cells = [plain(cell) for cell in column.astype(object)]
    return np.array([_remembered(told, test, cell) for cell in cells], dtype=bool)


def _remembered(told: dict[Any, bool], test: Callable[[Any], bool], cell: Any) -> bool:
    """What a test says of a cell, asked once for each value."""
    if not isinstance(cell, Level):
        return test(cell)
    key = typed(cell)
    if key not in told:
        told[key] = test(cell)
    return told[key]


def _test(feature: Feature) -> Callable[[Any], bool]:
    """Says whether a plain value of a feature is unseen; of what no column can hold, that it is not.

    Nor is "5" where 5 is a level: who sends that means the level, and is to be told.
    """
    lookup, texts = code_lookup(feature.levels), set(map(str, feature.levels))

    def is_unseen(cell: Any) -> bool:
        if is_missing(cell):
            return not feature.missing
        if feature.is_number or not isinstance(cell, Level) or is_half_read(cell):
            return False
        return typed(cell) not in lookup and ("any", cell) not in lookup and str(cell) not in texts

    return is_unseen


def _filler(feature: Feature) -> Any:
    """A value that training had."""
    if not feature.is_number:
        return feature.levels[0] if feature.levels else None
    return int(feature.minimum or 0) if feature.is_whole else feature.minimum
