"""The files of a batch and the parts that they are cut into: from footers and line ends, without reading the rows."""

from __future__ import annotations

__all__ = ["PART_ROWS", "Source", "SourceFile", "Span"]

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from dicoflex.batch.csv_records import Records, open_records, scan_records
from dicoflex.batch.places import Place
from dicoflex.errors import DataError, named
from dicoflex.table.files import TABLE_ENDINGS, parquet_errors

PART_ROWS = 50_000
MARKED = 10_000
"""Of how many records of a CSV file it is noted where one begins."""
READERS = 16
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class SourceFile:
    """A file of rows: its path below the source, size and rows, and where reading can begin.

    firsts: the numbers of the rows at which it can; offsets: their bytes in a CSV file, or their row groups. folders:
    what its path says of all its rows, as in `country=DE/`. columns: the file's own columns with their types.
    """

    path: str
    size: int
    rows: int
    firsts: tuple[int, ...]
    offsets: tuple[int, ...]
    columns: pa.Schema
    folders: dict[str, str | None] = field(default_factory=dict)
    header: bytes = b""

    @property
    def is_parquet(self) -> bool:
        """Whether the file is Parquet; else it is CSV."""
        return self.path.lower().endswith(".parquet")

    def start(self, row: int) -> tuple[int, int]:
        """The last place at or before a row where reading can begin: the number of its row, and its offset."""
        i = bisect_right(self.firsts, row) - 1
        return self.firsts[i], self.offsets[i]


@dataclass(frozen=True)
class Span:
    """A part of the work: the rows from `first` to before `stop` of the file number `file`."""

    file: int
    first: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.first

    @property
    def name(self) -> str:
        """The name of the part's files: the same in every run.

        >>> Span(3, 0, 50_000).name
        'part-00003-000000000000-000000050000'
        """
        return f"part-{self.file:05d}-{self.first:012d}-{self.stop:012d}"

    def halves(self) -> tuple[Span, Span]:
        """The two halves of a part of more than one row."""
        middle = (self.first + self.stop) // 2
        return Span(self.file, self.first, middle), Span(self.file, middle, self.stop)


@dataclass(frozen=True)
class Source:
    """Files of rows in one place, in the order of their paths."""

    place: Place
    files: tuple[SourceFile, ...]

    @classmethod
    def of(cls, place: Place) -> Source:
        """What a place holds: Parquet and CSV files, perhaps in folders such as `country=DE/`."""
        single = next(iter(place.files()), None)
        if single is not None and single[0] == "":
            base, _, name = place.uri.rpartition("/")
            query = name.partition("?")
            place, listed = Place(base + query[1] + query[2]), [(query[0], single[1])]
        else:
            listed = [one for one in place.files() if one[0].lower().endswith(TABLE_ENDINGS)]
        if not listed:
            raise DataError(f"{place.uri} holds no rows; the files' names must end in {', '.join(TABLE_ENDINGS)}")
        if not listed[0][0].lower().endswith(TABLE_ENDINGS):
            raise DataError(f"{listed[0][0]}: the file ending says what it holds; use {', '.join(TABLE_ENDINGS)}")
        with ThreadPoolExecutor(READERS) as pool:
            return cls(place, tuple(pool.map(lambda one: _described(place, *one), listed)))

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self.files)

    def columns(self, names: Sequence[str]) -> pa.Schema:
        """The columns of these names with their types, which all files must have."""
        for file in self.files:
            known = [*file.columns.names, *file.folders]
            lacking = [name for name in names if name not in known]
            if lacking:
                raise DataError(f"{file.path}: {named('column', lacking[0], known)}")
        first = self.files[0]
        return pa.schema([(n, first.columns.field(n).type if n in first.columns.names else pa.string()) for n in names])

    def all_columns(self) -> list[str]:
        """The columns of the first file and of its folders, without a stored index of pandas."""
        first = self.files[0]
        index = {
            name for name in (first.columns.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)
        }
        return [*(name for name in first.columns.names if name not in index), *first.folders]

    def extra(self, names: Sequence[str]) -> list[str]:
        """The columns besides these, which are not read."""
        known = {name for file in self.files for name in (*file.columns.names, *file.folders)}
        return sorted(known - set(names))

    def spans(self, rows: int = PART_ROWS) -> list[Span]:
        """The parts of at most so many rows, in order; a compressed CSV file is one part."""
        found = []
        for i, file in enumerate(self.files):
            step = file.rows if file.path.lower().endswith(".gz") else rows
            found += [Span(i, first, min(first + step, file.rows)) for first in range(0, file.rows, max(step, 1))]
        return found

    def read(self, span: Span, names: Sequence[str], rows: int) -> Iterator[tuple[pa.Table, dict[int, str]]]:
        """The rows of a part as tables of at most so many rows, and the lines among them that are no rows, and why."""
        file = self.files[span.file]
        own = [name for name in names if name in file.columns.names]
        with self.place.read(file.path) as stream:
            if file.is_parquet:
                with parquet_errors(file.path):
                    for table in _parquet_tables(stream, file, span, own, rows):
                        yield self._whole(file, table, names), {}
            else:
                records = Records(file.path, file.header, file.columns.names)
                skipped, offset = file.start(span.first)
                after = bisect_right(file.firsts, span.stop - 1)
                stop = file.offsets[after] if after < len(file.offsets) else None
                found = open_records(stream, records, offset=offset, stop=stop)
                for table, wrong in found.between(span.first - skipped, span.stop - skipped, own, rows):
                    yield self._whole(file, table, names), wrong

    def texts(self, span: Span) -> set[str]:
        """The columns of a part whose values are written as text: all of a CSV file, and those of its folders."""
        file = self.files[span.file]
        return {*file.folders, *(() if file.is_parquet else file.columns.names)}

    def _whole(self, file: SourceFile, table: pa.Table, names: Sequence[str]) -> pa.Table:
        """A table with the columns that the file's folders stand for."""
        for name in names:
            if name not in table.column_names:
                value = pa.scalar(file.folders[name], type=pa.string())
                table = table.append_column(name, pa.repeat(value, table.num_rows))
        return table.select(list(names))


def _described(place: Place, path: str, size: int) -> SourceFile:
    folders = _folders(path)
    with place.read(path) as stream:
        if path.lower().endswith(".parquet"):
            with parquet_errors(path):
                footer = pq.ParquetFile(stream)
                counts = [footer.metadata.row_group(i).num_rows for i in range(footer.metadata.num_row_groups)]
                firsts = tuple(sum(counts[:i]) for i in range(len(counts))) or (0,)
                groups = tuple(range(len(firsts)))
                return SourceFile(path, size, sum(counts), firsts, groups, footer.schema_arrow, folders)
        found = scan_records(stream, path, every=MARKED)
        names = pa.schema([(name, pa.string()) for name in found.names])
        return SourceFile(path, size, found.rows, found.firsts, found.offsets, names, folders, found.header)


def _folders(path: str) -> dict[str, str | None]:
    """What the folders of a path say: `year=2024/country=DE/x.parquet`.

    >>> _folders("year=2024/country=a%20b/x.parquet")
    {'year': '2024', 'country': 'a b'}
    """
    pairs = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    return {unquote(name): None if value == NO_VALUE else unquote(value) for name, _, value in pairs}


def _parquet_tables(stream: Any, file: SourceFile, span: Span, names: list[str], rows: int) -> Iterator[pa.Table]:
    """The rows of a part of a Parquet file, from the row groups that hold them."""
    at, group = file.start(span.first)
    last = bisect_right(file.firsts, span.stop - 1)
    # Dictionaries are read as such: each text is decoded once.
    text = [name for name in names if pa.types.is_string(file.columns.field(name).type)]
    reader = pq.ParquetFile(stream, read_dictionary=text)
    for batch in reader.iter_batches(rows, row_groups=list(range(group, last)), columns=names):
        low, high = max(span.first - at, 0), min(span.stop - at, batch.num_rows)
        at += batch.num_rows
        if low < high:
            yield pa.Table.from_batches([batch.slice(low, high - low)])
