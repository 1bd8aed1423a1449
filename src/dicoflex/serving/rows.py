"""Rows as they are sent: values by name, each compared with what its feature may be."""

from __future__ import annotations

__all__ = ["LONGEST_ID", "Id", "RowReader", "Rows", "as_json_has_it", "refuse"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dicoflex.errors import named
from dicoflex.serving.engine import Cells
from dicoflex.serving.problems import MOST_ERRORS, Problem
from dicoflex.table.feature import MAX_NUMBER, Feature
from dicoflex.table.schema import Schema

Id = str | int
Errors = list[tuple[str, str]]
LONGEST_ID = 200


@dataclass(frozen=True)
class Rows:
    """Rows as the engine takes them, what each is called, and what was sent of them."""

    cells: list[Cells]
    ids: list[Id]
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

    def wrong(self, cell: Any) -> str | None:
        """What is wrong with a value; None where nothing is."""
        if cell is None:
            return None if self.feature.missing else "is null, and no training row lacks it"
        if not self.feature.is_number:
            known = as_json_has_it(cell) in self.levels
            return None if known else f"is none of its levels: {self.feature.values_text()}"
        if type(cell) not in (int, float):
            return "is no number"
        if not self.least <= cell <= self.greatest:
            return f"is beyond what {self.feature.dtype} holds"
        return "is no whole number" if self.feature.is_whole and cell % 1 else None


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

    def read(self, sent: list[Any], *, first: int = 0, where: str = "/rows") -> Rows:
        """Rows as sent, `{"id": …, "values": {…}}` each; what does not fit is told with its place.

        first: the number of the first of them, where they are a part of more.
        """
        errors: Errors = []
        cells, ids = [], []
        for i, row in enumerate(sent, start=first):
            values, name = _parts(row, i, f"{where}/{i}", errors)
            ids.append(name)
            cells.append(self.cells(values, f"{where}/{i}/values", errors))
            if len(errors) >= MOST_ERRORS:
                break
        refuse(errors)
        return Rows(cells, ids, sent)

    def cells(self, values: Mapping[str, Any], where: str, errors: Errors) -> Cells:
        """A row's values in the order of the features; an absent one is an error, null is a missing value."""
        cells = []
        for column in self.columns:
            if column.name not in values:
                errors.append((f"{where}/{column.name}", "is absent; null would be a missing value"))
                continue
            cell = values[column.name]
            if wrong := column.wrong(cell):
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


def _parts(row: Any, i: int, where: str, errors: Errors) -> tuple[Any, Id]:
    if not isinstance(row, dict) or not isinstance(row.get("values"), dict):
        errors.append((where, 'is no object with "values"'))
        return {}, i
    name = row.get("id", i)
    if type(name) not in (str, int) or len(str(name)) > LONGEST_ID:
        errors.append((f"{where}/id", "is no short text or whole number"))
    if len(row) > 1 + ("id" in row):
        other = next(key for key in row if key not in ("id", "values"))
        errors.append((f"{where}/{other}", "is unknown; a row has an id and values"))
    return row["values"], name


def as_json_has_it(value: Any) -> tuple[str, Any]:
    """A value with what JSON takes it for: 1, "1" and true are told apart, and 1 and 1.0 are not."""
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, int | float):
        return "number", value
    return ("text", value) if isinstance(value, str) else ("other", type(value).__name__)
