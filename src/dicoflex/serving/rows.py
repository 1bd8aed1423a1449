"""Rows as they are sent: values by name, each compared with what its feature may be."""

from __future__ import annotations

__all__ = ["GREATEST_ID", "LONGEST_ID", "Id", "RowReader", "Rows", "as_json_has_it", "refuse"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dicoflex.errors import named
from dicoflex.serving.engine import Cells
from dicoflex.serving.problems import MOST_ERRORS, Problem
from dicoflex.table.feature import MAX_NUMBER, Feature, Level
from dicoflex.table.schema import Schema

Id = str | int
Errors = list[tuple[str, str]]
LONGEST_ID = 200
GREATEST_ID = 2**53 - 1
LONGEST_LEVEL = 200
PARTS = ("id", "values", "target")


@dataclass(frozen=True)
class Rows:
    """Rows as the engine takes them, what each is called, the label that each asks for, and what was sent of them."""

    cells: list[Cells]
    ids: list[Id]
    targets: list[Any]
    sent: list[Any]


@dataclass(frozen=True)
class _Column:
    """A feature as values of it are checked: its name in JSON, its levels by type, or its least and greatest number."""

    name: str
    feature: Feature
    levels: frozenset[tuple[str, Any]]
    least: float
    greatest: float

    @classmethod
    def of(cls, feature: Feature) -> _Column:
        least, greatest = feature.bounds if feature.is_number else (0.0, 0.0)
        levels = frozenset(map(as_json_has_it, feature.levels))
        return cls(str(feature.name), feature, levels, max(least, -MAX_NUMBER), min(greatest, MAX_NUMBER))

    def wrong(self, cell: Any, *, unseen: bool = False) -> str | None:
        """What is wrong with a value, None where nothing is; unseen: what training never had is fine."""
        if cell is None:
            return None if self.feature.missing or unseen else "is null, and no training row lacks it"
        if not self.feature.is_number:
            known = as_json_has_it(cell) in self.levels or (unseen and self._may_be_new(cell))
            return None if known else f"is none of its levels: {self.feature.values_text()}"
        if type(cell) not in (int, float):
            return "is no number"
        if not self.least <= cell <= self.greatest:
            return f"is beyond what {self.feature.dtype} holds"
        return "is no whole number" if self.feature.is_whole and cell % 1 else None

    def _may_be_new(self, cell: Any) -> bool:
        """Whether a value could be a level that training never had: short, and not "5" where 5 is a level."""
        text = str(cell) if isinstance(cell, Level) else ""
        return 0 < len(text) <= LONGEST_LEVEL and text not in {str(level) for _, level in self.levels}


class RowReader:
    """Reads the rows that are sent for one model.

    >>> import pandas as pd
    >>> reader = RowReader(Schema.infer(pd.DataFrame({"age": [30, 41], "job": ["cook", "nurse"]})))
    >>> reader.read([{"id": "A-17", "values": {"job": "cook", "age": 33}}]).cells
    [[33, 'cook']]
    """

    def __init__(self, schema: Schema) -> None:
        self.columns = [_Column.of(feature) for feature in schema.features]
        self.names = {column.name for column in self.columns}

    def read(self, sent: list[Any], *, first: int = 0, where: str = "/rows", unseen: bool = False) -> Rows:
        """Rows as sent, `{"id": …, "values": {…}, "target": …}` each; what does not fit is told with its place.

        first: the number of the first of them, where they are a part of more. unseen: whether they may hold levels and
        nulls that training never had.
        """
        errors: Errors = []
        cells, ids, targets = [], [], []
        for i, row in enumerate(sent, start=first):
            values, name, target = _parts(row, i, f"{where}/{i}", errors)
            ids.append(name)
            targets.append(target)
            cells.append(self.cells(values, f"{where}/{i}/values", errors, unseen=unseen))
            if len(errors) >= MOST_ERRORS:
                break
        refuse(errors)
        return Rows(cells, ids, targets, sent)

    def cells(self, values: Mapping[str, Any], where: str, errors: Errors, *, unseen: bool = False) -> Cells:
        """A row's values in the order of the features; an absent one is an error, null is a missing value."""
        cells = []
        for column in self.columns:
            if column.name not in values:
                errors.append((f"{where}/{column.name}", "is absent; null would be a missing value"))
                continue
            cell = values[column.name]
            if wrong := column.wrong(cell, unseen=unseen):
                errors.append((f"{where}/{column.name}", wrong))
            cells.append(cell)
        if len(cells) < len(values):
            other = next(name for name in values if name not in self.names)
            errors.append((f"{where}/{other}", named("feature", other, sorted(self.names))))
        return cells


def refuse(errors: Errors) -> None:
    """Tell all that is wrong with some rows, if anything is."""
    if errors:
        raise Problem("invalid-rows", f"{errors[0][0]}: {errors[0][1]}", errors=errors)


def _parts(row: Any, i: int, where: str, errors: Errors) -> tuple[Any, Id, Any]:
    """The values of a row, what it is called, and the label that it asks for, None where it names none."""
    if not isinstance(row, dict) or not isinstance(row.get("values"), dict):
        errors.append((where, 'is no object with "values"'))
        return {}, i, None
    other = next((key for key in row if key not in PARTS), None)
    if other is not None:
        errors.append((f"{where}/{other}", "is unknown; a row has an id, values and perhaps a target"))
    target = row.get("target")
    if target is None and "target" in row:
        errors.append((f"{where}/target", "is null; leave it out for the target of all rows"))
    return row["values"], _id(row.get("id", i), where, errors), target


def _id(given: Any, where: str, errors: Errors) -> Id:
    whole = int(given) if isinstance(given, float) and given.is_integer() else given
    if type(whole) is int and abs(whole) <= GREATEST_ID:
        return whole
    if type(whole) is not str or len(whole) > LONGEST_ID:
        errors.append((f"{where}/id", "is no short text or whole number"))
        return 0
    return whole


def as_json_has_it(value: Any) -> tuple[str, Any]:
    """A value with what JSON takes it for: 1, "1" and true are told apart, and 1 and 1.0 are not."""
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, int | float):
        return "number", value
    return ("text", value) if isinstance(value, str) else ("other", type(value).__name__)
