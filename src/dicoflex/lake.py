"""Models of tables that are too large for one machine's memory: fitted from folders of Parquet files and URIs."""

from __future__ import annotations

__all__ = ["Lake", "LakePlan", "fit_files", "plan_fit"]

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from dicoflex.runtime.extras import extra

with extra("batch", to="fit a model from files"):
    import pyarrow as pa

from dicoflex.batch.places import Place
from dicoflex.batch.sources import Source, Span
from dicoflex.errors import DataError
from dicoflex.estimator import DiCoFlex
from dicoflex.runtime.threads import thread_limit
from dicoflex.table.subsample import MOST_ROWS, Piece, sample_pieces

PIECE_ROWS = 1_000_000
"""Rows of a piece at most: each is surveyed by one thread."""
BATCH_ROWS = 65_536
TRIED = 65_536


@dataclass(frozen=True)
class LakePlan:
    """What a fit from files would do.

    files, rows, pieces: how many there are. features: the columns to learn from. sampled: the rows to learn from,
    about. seconds: how long both passes over the files would take, from a look at the first rows; the fit itself comes
    on top. memory: bytes that the pieces in work and the sample take, about.
    """

    files: int
    rows: int
    pieces: int
    features: Sequence[str]
    sampled: int
    seconds: float
    memory: int

    def __str__(self) -> str:
        return (
            f"{self.rows:,} rows in {self.files:,} files, {len(self.features)} features; about {self.sampled:,} rows "
            f"to learn from\nabout {self.seconds:,.0f} s and {self.memory / 1e6:,.0f} MB to read them, then the fit"
        )


def fit_files(
    source: str | os.PathLike[str],
    *,
    label: str,
    explainer: DiCoFlex | None = None,
    drop: Sequence[str] = (),
    most_rows: int = MOST_ROWS,
    workers: int | None = None,
    **given: Any,
) -> DiCoFlex:
    """Fit a model from all rows of files.

    The files are read twice. The first pass takes the rows to learn from: more of rare labels than their share, and
    some for every level, extreme and missing value, so that the schema is that of all rows. The second one takes means
    and deviations of all rows, and remembers them where that is wanted.

    Parameters
    ----------
    source : path or URI
        A folder of Parquet files, or one file; `s3://` and others are opened by `pyarrow.fs`. The names of folders
        such as `country=DE/` are columns.
    label : str
        The column with the answers of the classifier.
    explainer : DiCoFlex, optional
        How to fit; by default `DiCoFlex()`.
    drop : sequence of str
        Columns that are no features.
    most_rows : int
        How many rows to learn from; some more where they are needed to show what the columns hold.
    workers : int, optional
        Threads that read; by default as many as there are processors.
    **given : Any
        Further arguments of `DiCoFlex.fit`, such as `predict_proba` and `remember_rows`.

    Returns
    -------
    DiCoFlex
        The explainer, fitted. `report_["rows"]` counts all rows, to a multiple of `min_count` as all counts in a file.

    Raises
    ------
    DataError
        If there are no rows, or a column is unknown.

    Examples
    --------
    >>> import tempfile
    >>> rows = pd.DataFrame({"hours": [20, 25, 30, 35, 40, 45, 50, 55] * 8, "remote": [True, False] * 32})
    >>> rows["prediction"] = (rows["hours"] > 37).map({True: "yes", False: "no"})
    >>> folder = tempfile.mkdtemp()
    >>> rows.to_parquet(f"{folder}/rows.parquet", index=False)
    >>> explainer = fit_files(folder, label="prediction", explainer=DiCoFlex(random_state=0, max_seconds=2))
    >>> explainer.report_["rows"]
    65
    """
    lake = Lake.of(source, label, drop)
    asked = DiCoFlex() if explainer is None else explainer
    X, y = lake.sample(most_rows, seed=asked.random_state or 0, each=asked.min_count, workers=workers or thread_limit())
    asked.fit(X.reset_index(drop=True), y.reset_index(drop=True), whole=lake.frames, **given)
    asked.model_ = asked.model_.with_facts(label=label)
    return asked


def plan_fit(
    source: str | os.PathLike[str], *, label: str, drop: Sequence[str] = (), most_rows: int = MOST_ROWS
) -> LakePlan:  # fmt: skip
    """What `fit_files` would do, and how long reading would take; only the first rows are read."""
    lake = Lake.of(source, label, drop)
    started, tried, size = time.perf_counter(), 0, 0
    for batch in lake.batches(lake.spans[0]):
        tried, size = tried + batch.num_rows, size + batch.nbytes
        if tried >= TRIED:
            break
    piece = Piece(0, lambda: [batch])
    sample_pieces([piece], label, lake.names, most_rows=most_rows)
    seconds = (time.perf_counter() - started) / tried
    rows = lake.source.rows
    sampled = min(rows, most_rows)
    held = 3 * sampled + BATCH_ROWS * thread_limit()
    return LakePlan(
        files=len(lake.source.files),
        rows=rows,
        pieces=len(lake.spans),
        features=lake.names,
        sampled=sampled,
        seconds=2 * seconds * rows / thread_limit(),
        memory=int(held * size / tried),
    )


@dataclass(frozen=True)
class Lake:
    """Files of rows with labels: the features, the label, and the pieces to read."""

    source: Source
    names: list[str]
    label: str
    spans: list[Span]
    types: pa.Schema

    @classmethod
    def of(cls, source: str | os.PathLike[str], label: str, drop: Sequence[str] = ()) -> Lake:
        """The files of a place, whose columns are all features but the label and those to leave out."""
        found = Source.of(Place.of(source))
        other = next((file.path for file in found.files if not file.is_parquet), None)
        if other is not None:
            raise DataError(f"{other}: a fit from files reads Parquet; convert it, or fit on the table itself")
        known = found.all_columns()
        types = found.columns([label, *drop, *(name for name in known if name not in (label, *drop))])
        if found.rows == 0:
            raise DataError(f"{found.place.uri} has no rows; give a table with at least one")
        names = [name for name in known if name not in (label, *drop)]
        return cls(found, names, label, found.spans(PIECE_ROWS), _with_folders(found, types))

    def sample(self, most: int, *, seed: int, each: int, workers: int) -> tuple[pd.DataFrame, pd.Series]:
        """The rows to learn from; see `sample_pieces`."""
        firsts = self._firsts()
        pieces = [Piece(firsts[span.file] + span.first, partial(self.batches, span)) for span in self.spans]
        return sample_pieces(pieces, self.label, self.names, most_rows=most, seed=seed, each=each, workers=workers)

    def _firsts(self) -> list[int]:
        """The number of the first row of each file."""
        counts = [file.rows for file in self.source.files]
        return [sum(counts[:i]) for i in range(len(counts))]

    def frames(self) -> Iterator[pd.DataFrame]:
        """All rows, as frames."""
        for span in self.spans:
            for batch in self.batches(span):
                yield pa.Table.from_batches([batch]).select(self.names).to_pandas()

    def batches(self, span: Span) -> Iterator[Any]:
        """The rows of a piece."""
        wanted = [*self.names, self.label]
        # What pandas wrote of its dtypes goes along.
        metadata = self.source.files[0].columns.metadata
        schema = pa.schema([self.types.field(name) for name in wanted], metadata=metadata)
        for table, _ in self.source.read(span, wanted, BATCH_ROWS):
            arrays = [table.column(field.name).cast(field.type) for field in schema]
            yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=BATCH_ROWS)


def _with_folders(source: Source, types: pa.Schema) -> pa.Schema:
    """The types of all columns; those of folders are whole numbers where all of their values are written so."""
    fields = []
    for field in types:
        values = {file.folders[field.name] for file in source.files if field.name in file.folders}
        whole = values and all(value is not None and value.lstrip("-").isdigit() for value in values)
        fields.append(pa.field(field.name, pa.int64()) if whole else field)
    return pa.schema(fields)
