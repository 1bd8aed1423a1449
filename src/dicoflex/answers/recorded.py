"""What a result says of its answers: where they came from, and whether it is so, worked out again."""

from __future__ import annotations

__all__ = ["Claims", "Origin", "Source", "as_kept", "as_stored", "claims_of", "info_of", "keys_of", "with_dtypes"]

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex._types import Bools, Floats, Ints
from dicoflex.answers.aiming import score_of
from dicoflex.errors import QueryError
from dicoflex.generators.base import Context
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.plain_rows import cells_of
from dicoflex.table.schema import Schema
from dicoflex.table.unseen import encode_frame
from dicoflex.targets import OneOf
from dicoflex.values import differ, is_missing, plain, typed
from dicoflex.views.cards import SCORE


@dataclass(frozen=True)
class Source:
    """A model that answered some tasks, and what it was conditioned on for each.

    free: whether their log densities are those of the model before constraints; a sampler that looks ahead tells how
    likely a draw was under them. has_unseen: whether the rows hold values that training never had.
    """

    model: Model
    context: Context
    free: bool
    has_unseen: bool = False

    def labels(self) -> list[Any]:
        """The label that the surrogate gives each row; None where it never saw the like of it."""
        if self.has_unseen:
            return [None] * len(self.context)
        labels = self.model.labels
        return [labels[i] for i in self.model.surrogate.probabilities(self.context.query).argmax(axis=1)]

    def needed(self) -> list[tuple[float, float]]:
        """Per task the confidence that answers must have, and the share of retrained models that would accept them."""
        model, context = self.model, self.context
        if not model.has_confidence:
            return [(np.nan, np.nan)] * len(context)
        pairs = list(zip(context.target.tolist(), context.confidence.tolist(), strict=True))
        kept = model.survival
        return [(sure, np.nan if kept is None else float(kept.share_at(label, sure))) for label, sure in pairs]

    def log_density(self, position: int, rows: pd.DataFrame) -> Floats:
        """The log density of rows as answers to the task at `position`."""
        values = self.model.encoding.encode(rows)
        context = self.context.take(slice(position, position + 1)).repeat(len(values))
        return self.model.generator.log_prob(context, values)

    def recount(self, own: Values, values: Values, positions: Ints, uncounted: Bools) -> dict[str, Any]:
        """What `info` should say of the answers `values` to the rows `own`, all worked out anew."""
        context = replace(self.context.take(positions), query=own)
        said = self.model.surrogate.probabilities(values)[np.arange(len(values)), context.target]
        density = self.model.generator.log_prob(context, values)
        columns = info_of(
            self.model, own, values, context.target, log_density=density, probability=said, uncounted=uncounted
        )
        if self.model.coherence is not None:
            rows = self.model.coherence.density
            columns["plausibility"] = rows.plausibility(rows.judge(values)[0], context.target)
        return columns if self.free else {name: columns[name] for name in columns if name != "log_density"}


@dataclass(frozen=True)
class Origin:
    """What answered some rows.

    model: as it was asked, before it was aimed at a score. sources: what answered. home: of each row the number of the
    source of its first task, and the position there; -1 where it has none. source: the same of each answer; None where
    no row has several tasks. checked: whether a callable confirmed the answers. uncounted: which features follow from
    others, and don't count as changes.
    """

    model: Model
    sources: Sequence[Source]
    home: Ints
    source: Ints | None
    checked: bool
    uncounted: Bools

    def of_query(self, position: int) -> tuple[Source, int]:
        """What is asked about a row, and the position of its task there."""
        number, place = self.home[position]
        if number < 0:
            raise QueryError("nothing was asked for this row, as the model does not support its target; see shortfall")
        return self.sources[number], int(place)

    def labels(self) -> list[Any]:
        """The label that the surrogate gives each row; None where it was not asked, or never saw the like of it."""
        return self._of_rows([source.labels() for source in self.sources], None)

    def needed(self) -> list[tuple[float, float]]:
        """Per row the confidence that its answers must have, and the share of retrained models that would accept them.

        NaN where a model was fitted on labels alone, or its survival was not estimated.
        """
        return self._of_rows([source.needed() for source in self.sources], (np.nan, np.nan))

    def _of_rows(self, known: Sequence[Sequence[Any]], absent: Any) -> list[Any]:
        return [known[number][place] if number >= 0 else absent for number, place in self.home.tolist()]

    def density(self, position: int) -> Callable[[pd.DataFrame], Floats]:
        """The log density of rows as counterfactuals of the row at `position`."""
        source, place = self.of_query(position)
        return partial(source.log_density, place)

    def recount(self, own: Values, values: Values, positions: Ints) -> dict[str, Any]:
        """What `info` should say of the answers `values` to the rows `own` at their places, all worked out anew."""
        source = self.home[positions] if self.source is None else self.source
        columns: dict[str, Any] = {}
        for number, one in enumerate(self.sources):
            mine = np.flatnonzero(source[:, 0] == number)
            for name, column in one.recount(own[mine], values[mine], source[mine, 1], self.uncounted).items():
                columns.setdefault(name, np.empty(len(values), dtype=object))[mine] = column
        return columns if self.model.score is None else {**columns, SCORE: score_of(self.model, values)}

    def coherent(self, own: Values, values: Values) -> Bools:
        """Which answers have no pair of values that no training row has and their row has not, and keep dependencies.

        own: the row that each answers.
        """
        assert self.model.coherence is not None
        return ~self.model.coherence.broken(values, own)

    def encoded(
        self, queries: pd.DataFrame, frame: pd.DataFrame, positions: Ints
    ) -> tuple[Values, Values] | None:  # fmt: skip
        """Each answer's row and each answer as the model has them; None where it does not know a value of an answer."""
        encoding = self.model.encoding
        try:
            rows = encode_frame(encoding, queries, lambda: self.model.places_for_unseen)
            return rows.values[positions], encoding.encode(frame)
        except QueryError:
            return None


def info_of(
    model: Model,
    own: Values,
    values: Values,
    target: Ints,
    *,
    log_density: Floats,
    probability: Floats,
    uncounted: Bools,
) -> dict[str, Any]:
    """What is told of answers `values` to the rows `own`, column by column."""
    before, after = model.encoding.standardise(own), model.encoding.standardise(values)
    return {
        "target": model.classes[target],
        "log_density": log_density,
        "n_changed": (differ(values, own) & ~uncounted).sum(axis=1),
        "proximity": np.sqrt(((before - after) ** 2).sum(axis=1)),
        "probability": probability,
    }


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
