"""Record batches in, answers, shortfall and errors out: what every engine runs on its rows."""

from __future__ import annotations

__all__ = ["BatchExplainer", "Explained", "check_columns", "explain_batches", "frame_of_table", "keys_of", "seeded"]

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dicoflex.answers import asking
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.engine import CANDIDATES, most_rows
from dicoflex.answers.plain import answer_plain
from dicoflex.answers.query import bind
from dicoflex.answers.tasks import check_goals
from dicoflex.batch.tables import Tables, column
from dicoflex.batch.text_cells import values_of_texts
from dicoflex.errors import ConstraintError, QueryError, named
from dicoflex.explainer import Explainer, load
from dicoflex.model import Model
from dicoflex.request import ERROR, Request
from dicoflex.table.misfits import misfits
from dicoflex.table.plain_rows import cells_of, plain_row

ROWS = 2_000
"""Rows that are explained at once: from some hundred on, more are no quicker, and memory grows with them."""
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Explained:
    """What came of some rows, as Arrow tables.

    answers: an answer a row. shortfall: the rows that got fewer than asked for, with status and reason. errors: the
    rows that could not be read, with the reason. rows: how many rows there were. statuses: how many rows had which
    status.
    """

    answers: pa.Table
    shortfall: pa.Table
    errors: pa.Table
    rows: int
    statuses: dict[str, int]


def explain_batches(
    explainer: Explainer | str | os.PathLike[str],
    batches: Iterable[pa.RecordBatch],
    request: Request,
    *,
    id: str | None = None,
) -> Iterator[Explained]:
    """Explain the rows of record batches, batch by batch, in memory that does not grow.

    Parameters
    ----------
    explainer : Explainer or path
        The model to ask, or its file.
    batches : iterable of RecordBatch
        Rows with the model's columns; others are ignored. Tables will do.
    request : Request
        What to ask. Without a seed it is 0, so that a second run gives the same answers.
    id : str, optional
        The column that names a row. By default rows are numbered, from 0, in a column `row`.

    Yields
    ------
    Explained
        The answers to the rows of one batch, or of a part of it. An answer depends on its row and on the request, and
        not on the other rows.

    Raises
    ------
    QueryError
        If the request does not fit the model, or the batches lack a column.

    Examples
    --------
    >>> from dicoflex import DiCoFlex
    >>> rows = pd.DataFrame({"hours": [20, 25, 30, 35, 40, 45, 50, 55] * 8, "remote": [True, False] * 32})
    >>> labels = (rows["hours"] > 37).map({True: "yes", False: "no"})
    >>> explainer = DiCoFlex(random_state=0, max_seconds=2).fit(rows, labels)
    >>> batches = pa.Table.from_pandas(rows).to_batches(max_chunksize=16)
    >>> found = list(explain_batches(explainer, batches, Request(target="yes", n=2)))
    >>> sum(one.rows for one in found), found[0].answers.column_names[:4]
    (64, ['row', 'cf', 'hours', 'remote'])
    """
    model = (explainer if isinstance(explainer, Explainer) else load(explainer)).model_
    asker: BatchExplainer | None = None
    first = 0
    for batch in batches:
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        if asker is None:
            asker = BatchExplainer(Tables(model, seeded(request), keys_of(table.schema, id)))
        for part in asker.cut(table):
            keys = asker.keys_in(part, first)
            first += part.num_rows
            yield asker.explain(keys, frame_of_table(part, model))


def seeded(request: Request) -> Request:
    """The request with a seed, by default 0: a second run must give the same answers."""
    return request if request.seed is not None else request.model_copy(update={"seed": 0})


def keys_of(schema: pa.Schema, id: str | None) -> pa.Schema:
    """The columns that name a row in a table of this schema."""
    if id is None:
        return pa.schema([("row", pa.int64())])
    if id not in schema.names:
        raise QueryError(named("id column", id, schema.names))
    return pa.schema([_flat(schema.field(id))])


def _flat(field: pa.Field) -> pa.Field:
    """A field without dictionaries: files and Spark take it as it is."""
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return pa.field(field.name, type_)


class BatchExplainer:
    """Answers to frames of rows as Arrow tables, for one model and request; what can be refused is refused at once."""

    def __init__(self, tables: Tables) -> None:
        self.tables, self.model, self.request = tables, tables.model, tables.request
        if isinstance(self.request.target, tuple):
            raise QueryError("target is a list, one for each row, and a batch takes one for all; give one")
        bind(self.model, self.request)
        if self.request.target is not None or self.model.score is not None or len(self.model.labels) != 2:
            check_goals(self.model, [self.request.target])
        self.most = min(ROWS, most_rows(max(CANDIDATES, 4 * self.request.n)))

    def cut(self, table: pa.Table) -> Iterator[pa.Table]:
        """The table in parts that are explained at once."""
        for first in range(0, table.num_rows, self.most):
            yield table.slice(first, self.most)

    def keys_in(self, table: pa.Table, first: int) -> pa.Table:
        """What names the rows of a table, the first of which is number `first`."""
        keys = self.tables.keys
        if keys.names == ["row"] and "row" not in table.column_names:
            return pa.table({"row": np.arange(first, first + table.num_rows)}, schema=keys)
        return table.select(keys.names).cast(keys)

    def explain(self, keys: pa.Table, frame: pd.DataFrame) -> Explained:
        """What comes of the rows of a frame; `keys` has a row for each."""
        whys: dict[int, str] = {}
        kept = np.arange(len(frame))
        found: list[_Rows] = []
        if len(frame):
            try:
                found = self._found(kept, frame)
            except QueryError:
                model = self.model
                strict = self.request.handle_unknown == ERROR
                whys = misfits(model.encoding, frame, model.places_for_unseen, strict=strict)
                if not whys:
                    raise
                kept = np.setdiff1d(kept, list(whys))
                found = self._found(kept, frame.iloc[kept]) if len(kept) else []
        statuses = Counter(word for one in found for word in one.statuses)
        return Explained(
            self._joined("answers", [self._answers(keys, one) for one in found]),
            self._joined("shortfall", [self._shortfall(keys, one) for one in found]),
            self._errors(keys, whys),
            rows=len(frame),
            statuses=dict(statuses),
        )

    def refused(self, keys: pa.Table, whys: dict[int, str]) -> Explained:
        """What comes of rows that could not be read: by position in `keys`, why."""
        answers, shortfall = self._joined("answers", []), self._joined("shortfall", [])
        return Explained(answers, shortfall, self._errors(keys, whys), rows=len(whys), statuses={})

    def _found(self, places: Ints, frame: pd.DataFrame) -> list[_Rows]:
        """The answers to the rows at some places, in one piece where that can be."""
        rows = frame.set_axis(pd.RangeIndex(len(frame)))
        try:
            return [_Rows.of(places, asking.explain(self.model, rows, self.request))]
        except ConstraintError:
            # Raised where a row has no chance and no other row is answered with it.
            plain = answer_plain(self.model, [plain_row(row) for row in cells_of(rows)], self.request).rows
        hopeless = np.array([not one["counterfactuals"] for one in plain])
        if hopeless.all():
            return [_Rows.without_answers(places, plain)]
        if len(rows) == 1:
            raise AssertionError("a row with answers was refused")
        middle = len(rows) // 2
        halves = slice(None, middle), slice(middle, None)
        return [one for half in halves for one in self._found(places[half], rows.iloc[half])]

    def _answers(self, keys: pa.Table, rows: _Rows) -> pa.Table:
        tables, cfs = self.tables, rows.cfs
        if cfs is None or len(cfs) == 0:
            return tables.answers.empty_table()
        numbers = cfs.frame.index.get_level_values("cf").to_numpy()
        words = np.asarray(cfs.status, dtype=object)[cfs.positions]
        named_columns = {str(name): cfs.frame[name] for name in cfs.frame.columns}
        arrays = keys.take(rows.places[cfs.positions]).columns
        arrays += [pa.array(numbers)]
        arrays += [column(named_columns[name], type_) for name, type_ in tables.types.items()]
        arrays += [column(cfs.info[name].array, type_) for name, (_, type_) in tables.told.items()]
        arrays += [pa.array(words, type=pa.string())]
        return pa.Table.from_arrays(arrays, schema=tables.answers)

    def _shortfall(self, keys: pa.Table, rows: _Rows) -> pa.Table:
        arrays = keys.take(rows.places[rows.short]).columns
        words = [rows.statuses[i] for i in rows.short]
        wanted, got, why = zip(*rows.reasons, strict=True) if rows.reasons else ((), (), ())
        arrays += [pa.array(cells, type=field.type) for cells, field in
                   zip((words, wanted, got, why), list(self.tables.shortfall)[-4:], strict=True)]  # fmt: skip
        return pa.Table.from_arrays(arrays, schema=self.tables.shortfall)

    def _errors(self, keys: pa.Table, whys: dict[int, str]) -> pa.Table:
        reasons = pa.array(list(whys.values()), type=pa.string())
        places = pa.array(list(whys), type=pa.int64())
        return pa.Table.from_arrays([*keys.take(places).columns, reasons], schema=self.tables.errors)

    def _joined(self, name: str, parts: Sequence[pa.Table]) -> pa.Table:
        schema = getattr(self.tables, name)
        return pa.concat_tables(parts) if parts else schema.empty_table()


@dataclass(frozen=True)
class _Rows:
    """What was found for the rows at some places. short: which of them got fewer than asked for; reasons: wanted, got
    and why, for each of these."""

    places: Ints
    statuses: Sequence[str]
    short: Ints
    reasons: list[tuple[int, int, str]]
    cfs: Counterfactuals | None = None

    @classmethod
    def of(cls, places: Ints, cfs: Counterfactuals) -> _Rows:
        reasons = cfs.reasons
        return cls(places, cfs.status, np.fromiter(reasons, np.int64, len(reasons)), list(reasons.values()), cfs)

    @classmethod
    def without_answers(cls, places: Ints, plain: Sequence[dict[str, Any]]) -> _Rows:
        reasons = [(one["wanted"], one["got"], one["reason"]) for one in plain]
        return cls(places, [one["status"] for one in plain], np.arange(len(plain)), reasons)


def check_columns(model: Model, names: Collection[str]) -> None:
    """Refuse a table that lacks a column of the model's."""
    known = [str(name) for name in model.schema.names]
    lacking = [name for name in known if name not in names]
    if lacking:
        raise QueryError(f"rows lack the column {lacking[0]!r}; the model was fitted on {known}")


def frame_of_table(table: pa.Table, model: Model, texts: Collection[str] = ()) -> pd.DataFrame:
    """The model's columns of a table as a frame; whole numbers stay whole beside missing ones.

    texts: the columns whose values are written as text, as in a CSV file.
    """
    check_columns(model, table.column_names)
    columns = {}
    for feature in model.schema.features:
        array = table.column(str(feature.name)).combine_chunks()
        columns[feature.name] = values_of_texts(feature, array) if str(feature.name) in texts else _series(array)
    return pd.DataFrame(columns, copy=False)


def _series(array: Any) -> pd.Series:
    """A column; text is one of categories, so that each is looked up once."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = array.dictionary_encode()
    if pa.types.is_integer(array.type) and array.null_count:
        return pd.Series(array.to_pandas(types_mapper=lambda _: pd.Int64Dtype()))
    return pd.Series(array.to_pandas())
