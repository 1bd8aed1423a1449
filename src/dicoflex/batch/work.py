"""One part of a batch: its rows are read, explained and written to files that appear as a whole."""

from __future__ import annotations

__all__ = ["MODULUS", "TABLES", "Job", "PartResult"]

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dicoflex.batch.explaining import BatchExplainer, Explained, frame_of_table
from dicoflex.batch.places import Place
from dicoflex.batch.sources import Source, Span
from dicoflex.batch.tables import Tables, digest
from dicoflex.model import Model
from dicoflex.request import Request

TABLES = ("errors", "shortfall", "answers")
"""The folders of the output; a part's answers are written last, so that they say that it is done."""
MARK = b"dicoflex"
MODULUS = 2**64


@dataclass(frozen=True)
class PartResult:
    """What came of a part: how many rows and entries of each table, and a number for their content.

    seconds: how long it took. memory: the most bytes that its process has held.
    """

    rows: int
    answers: int
    shortfall: int
    errors: int
    statuses: dict[str, int]
    content: int
    seconds: float = 0.0
    memory: int = 0

    def mark(self) -> bytes:
        """What the part's file keeps of it: the same in every run."""
        kept = {name: value for name, value in asdict(self).items() if name not in ("seconds", "memory")}
        return json.dumps(kept, sort_keys=True).encode()


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know to work off parts; it can be sent to another process or machine.

    row_key: the key of a model's remembered rows, where novel answers are asked for.
    """

    model: Model
    request: Request
    source: Source
    out: Place
    id: str | None = None
    row_key: bytes | None = field(default=None, repr=False)

    @cached_property
    def names(self) -> list[str]:
        """The columns to read."""
        return [*([] if self.id is None else [self.id]), *map(str, self.model.schema.names)]

    @cached_property
    def explainer(self) -> BatchExplainer:
        """What answers; made once in each process."""
        columns = self.source.columns(self.names)
        fields = [("file", pa.string()), ("row", pa.int64())] if self.id is None else [columns.field(self.id)]
        model = self.model if self.row_key is None else self.model.opened(self.row_key)
        return BatchExplainer(Tables(model, self.request, pa.schema(fields)))

    def run(self, span: Span) -> PartResult:
        """Work off one part."""
        return self.written(span, self.explained(span))

    def explained(self, span: Span) -> Iterator[Explained]:
        """What comes of the rows of a part, some at a time."""
        asker, first = self.explainer, span.first
        texts = self.source.texts(span)
        for table, wrong in self.source.read(span, self.names, asker.most):
            keys = self._keys(span, table, first)
            first += table.num_rows
            if wrong:
                kept = np.setdiff1d(np.arange(table.num_rows), list(wrong))
                yield asker.refused(keys, wrong)
                table, keys = table.take(kept), keys.take(kept)
            if table.num_rows:
                yield asker.explain(keys, frame_of_table(table, self.model, texts))

    def _keys(self, span: Span, table: pa.Table, first: int) -> pa.Table:
        if self.id is not None:
            return table.select([self.id]).cast(self.explainer.tables.keys)
        path = pa.repeat(self.source.files[span.file].path, table.num_rows)
        return pa.table({"file": path, "row": np.arange(first, first + table.num_rows)})

    def given_up(self, span: Span, why: str) -> PartResult:
        """Write a part without answers: none of its rows can be explained."""
        ((table, _),) = self.source.read(span, self.names, len(span))
        found = self.explainer.refused(self._keys(span, table, span.first), dict.fromkeys(range(len(span)), why))
        return self.written(span, iter([found]))

    def written(self, span: Span, found: Iterator[Explained]) -> PartResult:
        """Write what came of a part; an empty table but that of answers has no file."""
        started, counts, content = time.perf_counter(), Counter[str](), 0
        statuses: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(prefix="dicoflex-") as folder, ExitStack() as stack:
            writers: dict[str, Any] = {}
            for name in TABLES:
                schema = getattr(self.explainer.tables, name)
                writers[name] = stack.enter_context(pq.ParquetWriter(Path(folder) / name, schema))
            for one in found:
                for seed, name in enumerate(TABLES):
                    table = getattr(one, name)
                    counts[name] += table.num_rows
                    content = (content + digest(table, seed)) % MODULUS
                    if table.num_rows:
                        writers[name].write_table(table)
                counts["rows"] += one.rows
                statuses.update(one.statuses)
            result = PartResult(
                rows=counts["rows"], **{name: counts[name] for name in TABLES}, statuses=dict(sorted(statuses.items())),
                content=content, seconds=time.perf_counter() - started, memory=peak_memory(),
            )  # fmt: skip
            writers["answers"].add_key_value_metadata({MARK: result.mark()})
            stack.close()
            for name in TABLES:
                if counts[name] or name == "answers":
                    self.out.put(Path(folder) / name, f"{name}/{span.name}.parquet")
        return result

    def done(self, span: Span) -> PartResult | None:
        """What came of a part that an earlier run finished; None where none did."""
        path = f"answers/{span.name}.parquet"
        if not self.out.exists(path):
            return None
        try:
            with self.out.read(path) as stream:
                mark = (pq.ParquetFile(stream).metadata.metadata or {}).get(MARK)
        except (pa.ArrowInvalid, OSError):
            return None
        return None if mark is None else PartResult(**json.loads(mark))


def peak_memory() -> int:
    """The most bytes that this process has held; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
