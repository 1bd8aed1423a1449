"""Whether what a result says of its answers is so: whose they are, that they differ, their target and their numbers."""

from __future__ import annotations

__all__ = ["Claims", "as_kept", "as_stored", "claims_of", "keys_of", "with_dtypes"]

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.origin import Origin
from dicoflex.errors import QueryError
from dicoflex.table.encoding import Values
from dicoflex.table.plain_rows import cells_of
from dicoflex.table.schema import Schema
from dicoflex.targets import OneOf
from dicoflex.values import is_missing, plain, typed

Bools = NDArray[np.bool_]
Keys = tuple[tuple[str, Any], ...]
Pair = tuple[Values, Values]
LINE = "record"
ABSOLUTE, RELATIVE = 1e-3, 1e-3
"""How far numbers may be off that are worked out again: draws are scored in single precision, in other blocks."""


def as_kept(rows: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """The caller's rows with the columns of those that the result kept, in their order; others are a `QueryError`."""
    if not isinstance(rows, pd.DataFrame):
        raise QueryError(f"rows must be the DataFrame that was explained, got {type(rows).__name__}")
    if len(rows) != len(kept) or set(rows.columns) != set(kept.columns):
        raise QueryError(
            f"rows has {len(rows)} rows and {rows.shape[1]} columns, and {len(kept)} rows of the columns "
            f"{list(kept.columns)} were explained; give those"
        )
    return rows[list(kept.columns)]


def with_dtypes(rows: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """The rows in the dtypes of those that the result kept; a column that can't have its dtype stays as it is."""
    columns = {}
    for name in kept.columns:
        try:
            columns[name] = rows[name].astype(kept[name].dtype)
        except (TypeError, ValueError, OverflowError):
            columns[name] = rows[name]
    return pd.DataFrame(columns, index=rows.index)


def as_stored(rows: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The rows with the numbers that narrow columns of the schema hold; what such a column would round stays as it is.

    A column of float32 holds .1 as another number than a float64 does, and both are written as .1.
    """
    made = rows.copy(deep=False)
    for feature in schema.features:
        if feature.narrow is not None and feature.name in rows.columns:
            cells = rows[feature.name].astype(object).to_numpy(copy=True)
            numbers = np.array([_number(cell) for cell in cells], dtype=np.float64)
            with np.errstate(over="ignore"):
                fits = np.isfinite(numbers) & ~feature.rounds(numbers)
            cells[fits] = numbers[fits].astype(feature.narrow).astype(np.float64)
            made[feature.name] = cells
    return made


def _number(cell: Any) -> float:
    """A cell as a float, NaN where it is not a number or too great for one."""
    try:
        return float(cell) if isinstance(cell, Real | Decimal) else np.nan
    except (OverflowError, ValueError):
        return np.nan


@dataclass(frozen=True)
class Claims:
    """What is told of answers. own, answers: the keys of each one's row's cells and of its own; see `keys_of`.

    places: the position of each one's row. held: which stand under their row's label, and were made for that very row.
    info: what is told, column by column. targets: the label that each one's row asked for; none are not compared.
    """

    own: Sequence[Keys]
    answers: Sequence[Keys]
    places: NDArray[np.int64]
    held: Bools
    info: Mapping[str, Sequence[Any]]
    targets: Sequence[Any] = ()

    def lines(self, origin: Origin | None, pair: Pair | None) -> dict[str, Bools]:
        """The line "record" of a certificate, and a line for each part of it that does not hold of all answers.

        pair: each answer's row and each answer as the origin's model has them, None where it does not know them.
        """
        parts = {
            "row": self.held,
            "distinct": _distinct(self.answers, self.places),
            "changed": np.array([a != b for a, b in zip(self.own, self.answers, strict=True)], dtype=bool),
            "target": _met(self.info["target"], self.targets if len(self.targets) else self.info["target"]),
            "numbers": self._numbers_hold(_counted(self.own, self.answers) if origin is None else {}),
        }
        if origin is not None:
            told = {} if pair is None else origin.recount(*pair, self.places)
            parts["target"] &= _equal(self.info["target"], told.pop("target", self.info["target"]))
            parts["numbers"] &= self._numbers_hold(told) & self._marks_hold(origin.checked) & bool(told)
        whole = np.all(list(parts.values()), axis=0) if len(self.answers) else np.zeros(0, dtype=bool)
        return {LINE: whole, **{f"{LINE}: {name}": holds for name, holds in parts.items() if not holds.all()}}

    def _numbers_hold(self, told: Mapping[str, Any]) -> Bools:
        """Which answers have the numbers that were worked out again; infinite and missing ones count as such.

        None stands where one was not worked out.
        """
        holds = np.ones(len(self.answers), dtype=bool)
        for name, numbers in told.items():
            if name in self.info:
                said = np.array([np.nan if is_missing(number) else number for number in self.info[name]], dtype=float)
                same = np.array(
                    [said[i] if number is None else number for i, number in enumerate(numbers)], dtype=float
                )
                holds &= np.isclose(said, same, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
        return holds

    def _marks_hold(self, checked: bool) -> Bools:
        """Which answers are marked valid where a callable confirmed them all, and not marked where none was asked."""
        marks = self.info["valid"]
        return np.array([mark is True or mark is np.True_ if checked else is_missing(mark) for mark in marks], bool)


def claims_of(
    queries: pd.DataFrame, kept: pd.DataFrame, frame: pd.DataFrame, info: pd.DataFrame, positions: NDArray[np.int64],
    targets: Sequence[Any],
) -> Claims:  # fmt: skip
    """What a result tells of its answers.

    queries: the rows to compare with; kept: those that the result kept, which may be the same. targets: the label that
    each of them asked for.
    """
    before = _cells(kept)
    return Claims(
        own=[before[i] for i in positions],
        answers=_cells(frame.reindex(columns=kept.columns)),
        places=positions,
        held=_rows_hold(queries, before, frame, positions),
        info={str(name): info[name].astype(object).tolist() for name in info.columns},
        targets=[targets[i] for i in positions] if len(targets) else (),
    )


def _rows_hold(queries: pd.DataFrame, kept: list[Keys], frame: pd.DataFrame, positions: NDArray[np.int64]) -> Bools:
    """Which answers stand under their row's label, and were made for that very row."""
    own = queries.index.to_flat_index().take(positions)
    named = _equal(frame.index.get_level_values(0), own)
    same = np.array([_is_same(one, other) for one, other in zip(_cells(queries), kept, strict=True)], dtype=bool)
    result: Bools = named & same[positions]
    return result


def _is_same(given: Keys, kept: Keys) -> bool:
    """Whether a row as given is the row as kept: a number may have another type there, but no other value."""
    return all(a == b or (not isinstance(b[1], str) and a[1] == b[1]) for a, b in zip(given, kept, strict=True))


def _distinct(rows: Sequence[Keys], positions: NDArray[np.int64]) -> Bools:
    """Which answers no other answer to the same row equals."""
    keys = list(zip(positions.tolist(), rows, strict=True))
    times = Counter(keys)
    return np.array([times[key] == 1 for key in keys], dtype=bool)


def _counted(own: Sequence[Keys], answers: Sequence[Keys]) -> dict[str, Any]:
    pairs = zip(own, answers, strict=True)
    return {"n_changed": np.array([sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairs], dtype=float)}


def _met(said: Any, wanted: Any) -> Bools:
    """Which labels are those asked for, or among them."""
    sets = [one.one_of if isinstance(one, OneOf) else (one,) for one in wanted]
    return np.array([_key(a) in [_key(b) for b in labels] for a, labels in zip(said, sets, strict=True)], dtype=bool)


def _equal(said: Any, told: Any) -> Bools:
    return np.array([_key(a) == _key(b) for a, b in zip(said, told, strict=True)], dtype=bool)


def _cells(frame: pd.DataFrame) -> list[Keys]:
    """The rows of a frame by their keys."""
    return [keys_of(row) for row in cells_of(frame)]


def keys_of(cells: Sequence[Any]) -> Keys:
    """A row as keys under which missing equals missing, and 1, 1.0 and True differ."""
    return tuple(map(_key, cells))


def _key(value: Any) -> tuple[str, Any]:
    value = plain(value)
    return ("missing", None) if is_missing(value) else typed(value)
