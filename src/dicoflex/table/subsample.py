"""Samples of tables that are too large to learn from whole: by class, and with all that the columns can hold.

A row's place in the sample is decided by a random number that is a hash of the row's number and the seed, so the same
rows are taken however the table is cut into chunks. Some of every class come first, then the rows whose random numbers
are least: classes that are common keep their shares, and rare ones get more than theirs.
"""

from __future__ import annotations

__all__ = ["MOST_ROWS", "Piece", "column_names", "count_rows", "sample_parquet", "sample_pieces", "stratified"]

import io
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex._types import Ints
from dicoflex.errors import DataError, SettingError, named
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.files import parquet_errors
from dicoflex.table.inference import MAX_LEVELS
from dicoflex.values import is_number

Keys = NDArray[np.uint64]

MOST_ROWS = 80_000
ROWS_OF_A_CLASS = 5_000
MOST_CLASSES = 1_000
FEW_VALUES = 100
CHUNK = 65_536
HIGHEST = np.iinfo(np.uint64).max


def stratified(labels: Ints, *, most: int, seed: int, needed: Iterable[int] = ()) -> Ints:
    """The positions of `most` rows to learn from, in order; of more than that only where `needed` are more.

    labels: class numbers. Up to 5,000 rows of every class are taken first, as far as they fill no more than half of
    the sample, then others at random. needed: positions that must be among them.

    >>> labels = np.array([0] * 990 + [1] * 10)
    >>> chosen = stratified(labels, most=100, seed=0, needed=[3])
    >>> len(chosen), int(labels[chosen].sum()), 3 in chosen
    (100, 10, True)
    """
    return _stratified(labels, _priority(np.arange(len(labels)), seed), most, np.fromiter(needed, np.int64))


def count_rows(path: str | os.PathLike[str]) -> int:
    """How many rows a Parquet file has, from its footer alone."""
    with parquet_errors(path):
        return int(_open(path).metadata.num_rows)


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a Parquet file, without those of a stored index, from its footer alone."""
    with parquet_errors(path):
        schema = _open(path).schema_arrow
        index = set(_index_columns(schema))
        return [name for name in schema.names if name not in index]


def sample_parquet(
    path: str | os.PathLike[str],
    label: Any,
    *,
    most_rows: int = MOST_ROWS,
    seed: int = 0,
    columns: Sequence[Any] | None = None,
) -> tuple[pd.DataFrame, pd.Series]:
    """The features and the labels of at most `most_rows` rows of a Parquet file, or of all where it has no more.

    The file is read once, in chunks; how much memory that takes does not depend on its length. Rows stand in the
    file's order, have the dtypes that `pandas.read_parquet` would give them and, unless the file holds an index, their
    numbers in the file as index. Rare labels keep more than their share.

    Among the rows is one for every level of every column, the least and the greatest of every column of numbers (all
    of its values where they are few), and one with a missing value where there are any. `Schema.infer` of the sample is
    therefore that of the whole table.

    label: the column of labels. columns: the features to read; None reads all but the label.
    """
    if isinstance(most_rows, bool) or not isinstance(most_rows, int | np.integer) or most_rows < 1:
        raise SettingError(f"most_rows must be a whole number of at least 1, got {most_rows!r}")
    with parquet_errors(path):
        file = _open(path)
        names = _names(path, file.schema_arrow, label, columns)
        index = _index_columns(file.schema_arrow)
        reservoir = _Reservoir(str(label), names, int(most_rows), seed)
        for batch in file.iter_batches(batch_size=CHUNK, columns=[*names, str(label), *index]):
            reservoir.add(batch)
        if reservoir.seen == 0:
            raise DataError(f"{path} has no rows; give a table with at least one")
        frame = _as_pandas(reservoir.result())
    if not index:
        frame.index = pd.Index(reservoir.rows)
    by_text = {str(name): name for name in frame.columns}
    return frame[[by_text[name] for name in names]], frame[by_text[str(label)]]


@dataclass(frozen=True)
class Piece:
    """Some rows of a large table, one after the other: the number of the first, and a callable that reads batches."""

    first: int
    batches: Callable[[], Iterable[Any]]


def sample_pieces(
    pieces: Sequence[Piece], label: str, names: Sequence[str], *, most_rows: int = MOST_ROWS, seed: int = 0,
    each: int = 1, workers: int = 1,
) -> tuple[pd.DataFrame, pd.Series]:  # fmt: skip
    """The features and the labels of at most `most_rows` rows of a table that is read in pieces.

    Parameters
    ----------
    pieces : sequence of Piece
        The table, cut anywhere, in order. They are read by several threads; the sample is that of one pass.
    label : str
        The column of labels.
    names : sequence of str
        The features.
    most_rows : int
        How many rows to take; more only to show what the columns hold.
    seed : int
        The same seed takes the same rows, however the table is cut.
    each : int
        How many rows to take for each level, extreme and missing value, if there are as many.
    workers : int
        Threads.

    Returns
    -------
    DataFrame, Series
        In the order of the rows, whose numbers are the index.
    """

    def read(piece: Piece) -> _Reservoir:
        reservoir = _Reservoir(label, list(names), most_rows, seed, first=piece.first, each=each)
        for batch in piece.batches():
            reservoir.add(batch)
        return reservoir

    with ThreadPoolExecutor(workers) as threads:
        first, *others = threads.map(read, pieces)
    for other in others:
        first.merge(other)
    frame = _as_pandas(first.result())
    frame.index = pd.Index(first.rows)
    return frame[list(names)], frame[label]


# -- choosing ---------------------------------------------------------------------------------------------------------


def _priority(rows: Ints, seed: int) -> Keys:
    """A random number per row, different for different rows: those with the least are taken."""
    return row_keys(rows[:, None].astype(np.float64), seed)


def _least(n_classes: int, most: int) -> int:
    """How many rows of a class are taken before its share is looked at."""
    return max(1, min(ROWS_OF_A_CLASS, most // (2 * n_classes)))


def _stratified(labels: Ints, priority: Keys, most: int, needed: Ints) -> Ints:
    chosen = np.zeros(len(labels), dtype=bool)
    chosen[needed] = True
    order = np.lexsort((priority, ~chosen))
    by_class = order[np.argsort(labels[order], kind="stable")]
    first = np.searchsorted(labels[by_class], labels[by_class])
    n_classes = len(np.unique(labels))
    chosen[by_class[np.arange(len(labels)) - first < _least(n_classes, most)]] = True
    others = order[~chosen[order]]
    chosen[others[: max(0, most - int(chosen.sum()))]] = True
    return np.flatnonzero(chosen)


def _bars(labels: Ints, priority: Keys, most: int, n_classes: int) -> Keys:
    """Per class the priority above which a row can't be taken any more, whatever follows."""
    bars = np.full(n_classes, HIGHEST, dtype=np.uint64)
    if len(labels) < most:
        return bars
    overall = np.partition(priority, most - 1)[most - 1]
    least = _least(n_classes, most)
    for c in range(n_classes):
        mine = priority[labels == c]
        if len(mine) >= least:
            bars[c] = max(overall, np.partition(mine, least - 1)[least - 1])
    return bars


class _Reservoir:
    """The rows seen so far that may still be taken, as Arrow tables, with their numbers, priorities and classes.

    What is left out never comes back: more rows or more classes only lower the bars.
    """

    def __init__(
        self, label: str, names: list[str], most: int, seed: int, *, first: int = 0, each: int = 1
    ) -> None:  # fmt: skip
        self.label, self.most, self.seed = label, most, seed
        self.shown = {name: _Shown(name, each) for name in names}
        self.classes: dict[Any, int] = {}
        self.seen = first
        self.parts: list[Any] = []
        self.rows, self.labels = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.priority = np.empty(0, dtype=np.uint64)
        self.bars = np.empty(0, dtype=np.uint64)

    def add(self, batch: Any) -> None:
        """Take what may be wanted of the next rows."""
        import pyarrow as pa

        rows = np.arange(self.seen, self.seen + batch.num_rows)
        labels, priority = self._classes_of(batch.column(self.label)), _priority(rows, self.seed)
        for name, shown in self.shown.items():
            shown.look(batch.column(name), self.seen)
        bars = np.append(self.bars, np.full(len(self.classes) - len(self.bars), HIGHEST, dtype=np.uint64))
        wanted = np.flatnonzero((priority <= bars[labels]) | np.isin(rows, self._needed()))
        self.seen += len(rows)
        self.parts.append(pa.Table.from_batches([batch]).take(wanted))
        self.rows = np.concatenate([self.rows, rows[wanted]])
        self.labels = np.concatenate([self.labels, labels[wanted]])
        self.priority = np.concatenate([self.priority, priority[wanted]])
        self._leave_out()

    def _leave_out(self) -> None:
        """Let go of rows that can't be taken any more, where there are many of them."""
        if len(self.rows) > 2 * self.most:
            self.bars = _bars(self.labels, self.priority, self.most, len(self.classes))
            self._keep(np.flatnonzero((self.priority <= self.bars[self.labels]) | np.isin(self.rows, self._needed())))

    def merge(self, other: _Reservoir) -> None:
        """Take in what was kept of the rows that come next: the sample is that of one pass over both."""
        numbers = np.array([self.classes.setdefault(value, len(self.classes)) for value in other.classes], np.int64)
        labels = numbers[other.labels] if len(other.labels) else other.labels
        if len(self.classes) > MOST_CLASSES:
            self._check_scores(next(iter(other.classes or self.classes)))
            self.labels, labels = np.zeros_like(self.labels), np.zeros_like(labels)
        for name, shown in self.shown.items():
            shown.merge(other.shown[name])
        self.parts += other.parts
        self.rows = np.concatenate([self.rows, other.rows])
        self.labels = np.concatenate([self.labels, labels])
        self.priority = np.concatenate([self.priority, other.priority])
        self._leave_out()

    def result(self) -> Any:
        """The sample as an Arrow table; `rows` are the numbers of its rows in the file."""
        needed = np.flatnonzero(np.isin(self.rows, self._needed()))
        self._keep(_stratified(self.labels, self.priority, self.most, needed))
        return self.parts[0]

    def _keep(self, index: Ints) -> None:
        import pyarrow as pa

        whole = pa.concat_tables(self.parts, promote_options="permissive")
        self.parts = [whole.unify_dictionaries().take(index)]
        self.rows, self.labels, self.priority = self.rows[index], self.labels[index], self.priority[index]

    def _needed(self) -> Ints:
        return np.array([row for shown in self.shown.values() for row in shown.needed()], dtype=np.int64)

    def _classes_of(self, column: Any) -> Ints:
        codes, values = _encoded(column)
        numbers = np.zeros(len(values), dtype=np.int64)
        for code in np.unique(codes).tolist():
            if values[code] is None or values[code] != values[code]:
                raise DataError(f"label column {self.label!r} has missing labels; drop those rows")
            numbers[code] = self.classes.setdefault(values[code], len(self.classes))
            if len(self.classes) > MOST_CLASSES:
                return self._as_scores(codes, values[code])
        return numbers[codes]

    def _as_scores(self, codes: Ints, value: Any) -> Ints:
        """One class for all, which so many different numbers are: each of their rows has the same chance."""
        self._check_scores(value)
        self.labels = np.zeros_like(self.labels)
        return np.zeros(len(codes), dtype=np.int64)

    def _check_scores(self, value: Any) -> None:
        if not is_number(value):
            raise DataError(
                f"label column {self.label!r} has more than {MOST_CLASSES} different values; "
                "labels are fewer, and scores are numbers"
            )


class _Shown:
    """The first rows for each thing that a column of a table holds: a level, a missing value, the least numbers, …

    each: how many rows are noted for each thing.
    """

    def __init__(self, name: str, each: int = 1) -> None:
        self.name, self.each = name, each
        self.rows: dict[Any, list[int]] = {}
        self.low: list[tuple[float, int]] = []
        self.high: list[tuple[float, int]] = []
        self.few = True

    def needed(self) -> list[int]:
        """The rows that show what the column holds."""
        ends = [row for _, row in (*self.low, *self.high)]
        return [*ends, *(row for rows in self.rows.values() for row in rows)]

    def look(self, column: Any, first: int) -> None:
        """Note what the next rows hold; the first of them is row `first` of the table."""
        from pyarrow import types as kinds

        if kinds.is_integer(column.type) or kinds.is_floating(column.type):
            self._look_at_numbers(column.to_numpy(zero_copy_only=False).astype(np.float64), first)
        elif any(test(column.type) for test in (kinds.is_dictionary, kinds.is_boolean, *_text_tests(kinds))):
            self._look_at_levels(column, first)
        else:
            self._note("missing", np.asarray(column.is_null()), first)

    def merge(self, other: _Shown) -> None:
        """Take in what the rows that come next hold."""
        for thing, rows in other.rows.items():
            self._add(thing, rows)
        self._set_ends([*self.low, *other.low], [*self.high, *other.high])
        self.few = self.few and other.few
        self._forget_many()
        self._check_levels()

    def _add(self, thing: Any, rows: list[int]) -> None:
        known = self.rows.setdefault(thing, [])
        known += rows[: self.each - len(known)]

    def _set_ends(self, low: list[tuple[float, int]], high: list[tuple[float, int]]) -> None:
        """The least and the greatest numbers with their rows; of equal ones the first."""
        self.low = sorted(low)[: self.each]
        self.high = sorted(high, key=lambda one: (-one[0], one[1]))[: self.each]

    def _look_at_numbers(self, values: NDArray[np.float64], first: int) -> None:
        absent = np.isnan(values)
        self._note("missing", absent, first)
        if absent.all():
            return
        with np.errstate(invalid="ignore"):
            # Floats without any fraction are taken for whole numbers.
            self._note("fraction", ~absent & (np.mod(values, 1.0) != 0.0), first)
        ends = [self._ends(values, first, sign) for sign in (1.0, -1.0)]
        self._set_ends([*self.low, *ends[0]], [*self.high, *ends[1]])
        if self.few:
            self._look_at_values(values, first)

    def _ends(self, values: NDArray[np.float64], first: int, sign: float) -> list[tuple[float, int]]:
        """The least of `sign` times the values, and their rows."""
        signed = sign * values
        if self.each == 1:
            places = [int(np.nanargmin(signed))]
        else:
            k = min(self.each, int((~np.isnan(signed)).sum()))
            bound = np.partition(signed, k - 1)[k - 1]
            among = np.flatnonzero(signed <= bound)
            places = among[np.argsort(signed[among], kind="stable")][:k].tolist()
        return [(float(values[i]), first + i) for i in places]

    def _look_at_values(self, values: NDArray[np.float64], first: int) -> None:
        """Numbers that are few may stand for categories, so each is shown; many are not."""
        for value, places in _first_places(values, self.each):
            if value == value:
                self._add(("value", value), [first + i for i in places])
        self._forget_many()

    def _forget_many(self) -> None:
        values = [thing for thing in self.rows if isinstance(thing, tuple) and thing[0] == "value"]
        if len(values) > FEW_VALUES or not self.few:
            self.few = False
            for thing in values:
                del self.rows[thing]

    def _look_at_levels(self, column: Any, first: int) -> None:
        codes, values = _encoded(column)
        for code, places in _first_places(codes, self.each):
            thing = "missing" if values[code] is None else ("level", values[code])
            self._add(thing, [first + i for i in places])
        self._check_levels()

    def _check_levels(self) -> None:
        if sum(isinstance(thing, tuple) and thing[0] == "level" for thing in self.rows) > MAX_LEVELS:
            raise DataError(
                f"column {self.name!r} has more than {MAX_LEVELS} categories; group the rare ones, or leave the "
                "column out with columns=[...]"
            )

    def _note(self, what: str, where: NDArray[np.bool_], first: int) -> None:
        if len(self.rows.get(what, ())) < self.each and where.any():
            self._add(what, (first + np.flatnonzero(where)[: self.each]).tolist())


def _first_places(values: NDArray[Any], each: int) -> list[tuple[Any, list[int]]]:
    """Each distinct value with the first places at which it stands, at most `each` of them."""
    if each == 1:
        distinct, at = np.unique(values, return_index=True)
        return [(value, [i]) for value, i in zip(distinct.tolist(), at.tolist(), strict=True)]
    distinct, inverse = np.unique(values, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    edges = np.searchsorted(inverse[order], np.arange(len(distinct) + 1))
    return [(v, order[edges[i] : min(edges[i] + each, edges[i + 1])].tolist()) for i, v in enumerate(distinct.tolist())]


# -- Parquet ----------------------------------------------------------------------------------------------------------


def _open(path: Any) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(Path(path))


def _names(path: Any, schema: Any, label: Any, columns: Sequence[Any] | None) -> list[str]:
    """The features to read, in order; the file's names are text."""
    index = _index_columns(schema)
    known = [name for name in schema.names if name not in index]
    if str(label) not in known:
        raise DataError(f"{path}: {named('label column', label, known)}")
    if columns is None:
        return [name for name in known if name != str(label)]
    for name in columns:
        if str(name) not in known:
            raise DataError(f"{path}: {named('column', name, known)}")
    names = [str(name) for name in columns]
    if str(label) in names:
        raise DataError(f"columns= lists the features, and {label!r} is the label; leave it out")
    return names


def _index_columns(schema: Any) -> list[str]:
    """The columns that pandas would make the frame's index."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in stored if isinstance(name, str)]


def _text_tests(kinds: Any) -> list[Any]:
    """What tells text; views are known to newer versions alone."""
    return [getattr(kinds, name) for name in ("is_string", "is_large_string", "is_string_view") if hasattr(kinds, name)]


def _encoded(column: Any) -> tuple[Ints, list[Any]]:
    """Codes of a column's values, and the values; a missing one is the last."""
    import pyarrow as pa

    coded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    values = coded.dictionary.to_pylist()
    codes = coded.indices.cast(pa.int64()).fill_null(len(values)).to_numpy(zero_copy_only=False)
    return codes, [*values, None]


def _as_pandas(table: Any) -> pd.DataFrame:
    """The table as pandas reads it from a file, by way of one in memory: dtypes can't differ from `read_parquet`'s."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    buffer.seek(0)
    return pd.read_parquet(buffer)
