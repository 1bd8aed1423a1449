"""Whether what a result says of its answers is so: whose they are, that they differ, their target and their numbers."""

from __future__ import annotations

__all__ = ["as_kept", "record_lines", "with_dtypes"]

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.origin import Origin
from dicoflex.errors import QueryError
from dicoflex.values import is_missing, plain, typed

Bools = NDArray[np.bool_]
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


def record_lines(
    queries: pd.DataFrame,
    kept: pd.DataFrame,
    frame: pd.DataFrame,
    info: pd.DataFrame,
    positions: NDArray[np.int64],
    *,
    targets: Sequence[Any] = (),
    origin: Origin | None = None,
) -> dict[str, Bools]:
    """The line "record" of a certificate, and a line for each part of it that does not hold of all answers.

    queries: the rows to compare with; kept: those that the result kept, which may be the same.
    """
    before, after = _cells(kept), _cells(frame.reindex(columns=kept.columns))
    own = [before[i] for i in positions]
    parts = {
        "row": _rows_hold(queries, before, frame, positions),
        "distinct": _distinct(after, positions),
        "changed": np.array([one != other for one, other in zip(own, after, strict=True)], dtype=bool),
        "target": _targets_hold(info, targets, positions),
        "numbers": _numbers_hold(info, _counted(own, after) if origin is None else {}),
    }
    if origin is not None:
        told = _recounted(origin, kept, frame, positions)
        parts["target"] &= _equal(info["target"], told.pop("target", info["target"]))
        parts["numbers"] &= _numbers_hold(info, told) & _marks_hold(info, origin.checked) & bool(told)
    whole = np.all(list(parts.values()), axis=0) if len(frame) else np.zeros(0, dtype=bool)
    return {LINE: whole, **{f"{LINE}: {name}": holds for name, holds in parts.items() if not holds.all()}}


def _recounted(
    origin: Origin, kept: pd.DataFrame, frame: pd.DataFrame, positions: NDArray[np.int64]
) -> dict[str, Any]:  # fmt: skip
    """What the model says of the answers; nothing where there are values among them that it does not know."""
    try:
        return origin.recount(kept, frame, positions)
    except QueryError:
        return {}


def _rows_hold(
    queries: pd.DataFrame, kept: list[tuple[Any, ...]], frame: pd.DataFrame, positions: NDArray[np.int64]
) -> Bools:
    """Which answers stand under their row's label, and were made for that very row."""
    own = queries.index.to_flat_index().take(positions)
    named = _equal(frame.index.get_level_values(0), own)
    same = np.array([_is_same(one, other) for one, other in zip(_cells(queries), kept, strict=True)], dtype=bool)
    result: Bools = named & same[positions]
    return result


def _is_same(given: tuple[Any, ...], kept: tuple[Any, ...]) -> bool:
    """Whether a row as given is the row as kept: a number may have another type there, but no other value."""
    return all(a == b or (not isinstance(b[1], str) and a[1] == b[1]) for a, b in zip(given, kept, strict=True))


def _distinct(rows: list[tuple[Any, ...]], positions: NDArray[np.int64]) -> Bools:
    """Which answers no other answer to the same row equals."""
    keys = list(zip(positions.tolist(), rows, strict=True))
    times = Counter(keys)
    return np.array([times[key] == 1 for key in keys], dtype=bool)


def _targets_hold(info: pd.DataFrame, targets: Sequence[Any], positions: NDArray[np.int64]) -> Bools:
    """Which answers have the target that was asked for by their row."""
    if len(targets) == 0:
        return np.ones(len(info), dtype=bool)
    return _equal(info["target"], [targets[i] for i in positions])


def _counted(own: list[tuple[Any, ...]], answers: list[tuple[Any, ...]]) -> dict[str, Any]:
    pairs = zip(own, answers, strict=True)
    return {"n_changed": np.array([sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairs], dtype=float)}


def _numbers_hold(info: pd.DataFrame, told: Mapping[str, Any]) -> Bools:
    """Which answers have the numbers that were worked out again; infinite and missing ones count as such."""
    holds = np.ones(len(info), dtype=bool)
    for name, numbers in told.items():
        if name in info:
            said = info[name].to_numpy(dtype=float, na_value=np.nan)
            holds &= np.isclose(said, np.asarray(numbers, dtype=float), rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
    return holds


def _marks_hold(info: pd.DataFrame, checked: bool) -> Bools:
    """Which answers are marked valid where a callable confirmed them all, and not marked where none was asked."""
    marks = info["valid"].astype(object)
    return np.array([mark is True or mark is np.True_ if checked else is_missing(mark) for mark in marks], dtype=bool)


def _equal(said: Any, told: Any) -> Bools:
    return np.array([_key(a) == _key(b) for a, b in zip(said, told, strict=True)], dtype=bool)


def _cells(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as tuples of keys under which missing equals missing, and 1, 1.0 and True differ."""
    columns = [[_key(value) for value in frame.iloc[:, j].astype(object)] for j in range(frame.shape[1])]
    return list(zip(*columns, strict=True)) if columns else [()] * len(frame)


def _key(value: Any) -> tuple[str, Any]:
    value = plain(value)
    return ("missing", None) if is_missing(value) else typed(value)
