"""Records of CSV files: found by their bytes, so that a part can be read without what stands before it, and as text."""

from __future__ import annotations

__all__ = ["Records", "Scan", "open_records", "scan_records"]

import gzip
import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from dicoflex.errors import DataError

BLOCK = 1 << 20
QUOTE, NEWLINE, RETURN = ord('"'), ord("\n"), ord("\r")
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Scan:
    """What a look at a CSV file's line ends tells: its header and names, its rows, and bytes to begin at."""

    header: bytes
    names: list[str]
    rows: int
    firsts: tuple[int, ...]
    offsets: tuple[int, ...]


def scan_records(stream: Any, path: str, *, every: int) -> Scan:
    """Count the records of a CSV file and note where each `every`-th begins; of a compressed one only where all do."""
    packed = path.lower().endswith(".gz")
    ends = _record_ends(gzip.GzipFile(fileobj=stream) if packed else stream)
    head = next(ends, None)
    if head is None:
        raise DataError(f"{path} is empty; a CSV file begins with a line of names")
    rows, firsts, offsets, last = 0, [0], [int(head[0][1])], int(head[0][1])
    for records in _chain(head[1:], ends):
        for k in range((-rows) % every, len(records), every):
            if rows + k and not packed:
                firsts.append(rows + k)
                offsets.append(int(records[k][0]))
        rows += len(records)
    with_header = _header(stream, last, packed)
    return Scan(with_header, _names(with_header, path), rows, tuple(firsts), tuple(offsets))


def _chain(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


def _record_ends(stream: Any) -> Iterator[Any]:
    """Where records begin and end, block by block: a line end within quotes ends none, and empty lines are none."""
    begin, at, inside, before = 0, 0, 0, NEWLINE
    pending = False
    while block := stream.read(BLOCK):
        data = np.frombuffer(block, dtype=np.uint8)
        within = (np.cumsum(data == QUOTE) + inside) & 1
        ends = np.flatnonzero((data == NEWLINE) & (within == 0))
        starts = np.append(begin - at, ends[:-1] + 1) if len(ends) else ends
        # A line that holds nothing, or a carriage return alone.
        short = ends - starts
        previous = np.where(ends > 0, data[np.maximum(ends - 1, 0)], before)
        real = (short > 1) | ((short == 1) & (previous != RETURN))
        if len(ends):
            begin = at + int(ends[-1]) + 1
            found = np.column_stack([starts + at, ends + at + 1])[real]
            if len(found):
                yield found
        inside, at, before = int(within[-1]), at + len(data), int(data[-1])
        pending = begin < at
    if pending:
        yield np.array([[begin, at]])


def _header(stream: Any, end: int, packed: bool) -> bytes:
    stream.seek(0)
    content = gzip.GzipFile(fileobj=stream) if packed else stream
    return bytes(content.read(end)).removeprefix(BOM).strip(b"\r\n") + b"\n"


def _names(header: bytes, path: str) -> list[str]:
    try:
        names = csv.read_csv(io.BytesIO(header), csv.ReadOptions(use_threads=False)).column_names
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise DataError(f"{path} can't be read as CSV ({error}); save it as UTF-8 with a header line") from None
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}: column names repeat: {repeated}; rename them so that each is unique")
    return [str(name) for name in names]


@dataclass(frozen=True)
class Records:
    """What is known of a CSV file: its path, its header and its columns."""

    path: str
    header: bytes
    names: list[str]


def open_records(stream: Any, records: Records, *, offset: int, stop: int | None) -> _Opened:
    """The records of a CSV file from one byte on to before another."""
    if records.path.lower().endswith(".gz"):
        content: Any = gzip.GzipFile(fileobj=stream)
        content.seek(offset)
        return _Opened(content.read, records)
    stream.seek(offset)
    return _Opened(lambda: bytes(stream.read(None if stop is None else stop - offset)), records)


@dataclass(frozen=True)
class _Opened:
    content: Any
    records: Records

    def between(
        self, first: int, stop: int, names: list[str], rows: int
    ) -> Iterator[tuple[pa.Table, dict[int, str]]]:  # fmt: skip
        """The records from one number on to before another, as tables of text, and by place those that are no rows."""
        table, wrong = self._read()
        for low in range(first, min(stop, table.num_rows), rows):
            high = min(low + rows, stop)
            part = table.slice(low, high - low).select(names)
            yield part, {i - low: why for i, why in wrong.items() if low <= i < high}

    def _read(self) -> tuple[pa.Table, dict[int, str]]:
        """All records; one with other than the header's number of cells is a row of nulls."""
        content = self.content()
        with suppress(pa.ArrowInvalid, UnicodeDecodeError):
            return self._parsed(content, None), {}
        wrong: dict[int, str] = {}

        def skip(row: Any) -> str:
            wrong[row.number - 2] = f"the row has {row.actual_columns} cells, and the header {row.expected_columns}"
            return "skip"

        try:
            table = self._parsed(content, skip)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise DataError(f"{self.records.path} can't be read as CSV ({error}); save it as UTF-8") from None
        places = np.setdiff1d(np.arange(table.num_rows + len(wrong)), list(wrong))
        order = np.full(table.num_rows + len(wrong), -1)
        order[places] = np.arange(table.num_rows)
        return table.take(pa.array(order, mask=order < 0)), wrong

    def _parsed(self, content: bytes, handler: Any) -> pa.Table:
        return csv.read_csv(
            io.BytesIO(self.records.header + content),
            csv.ReadOptions(use_threads=False),
            csv.ParseOptions(newlines_in_values=True, invalid_row_handler=handler),
            csv.ConvertOptions(column_types=dict.fromkeys(self.records.names, pa.string()), strings_can_be_null=False),
        )
