"""One exact dependency: a feature linear in others, a product, an amount times a rate, or settled by a value."""

from __future__ import annotations

__all__ = ["Dependency"]

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict

from dicoflex.table.schema import Schema

MOST_DECIMALS = 15


class Dependency(BaseModel):
    """Feature `follows` is settled by those in `of`: linear (weights, constant), a product, or a table by value.

    With a rate, it is the first of them times what a table has for the second, in a straight line between two `keys`:
    as an instalment is a loan times what its interest makes of it. Where there is a third, a feature of levels, each of
    those, in `levels`, has a part of the table.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["linear", "product", "rate", "lookup"]
    follows: int
    of: tuple[int, ...]
    weights: tuple[float, ...] = ()
    constant: float = 0.0
    keys: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    levels: tuple[int, ...] = ()
    decimals: int = 12

    def fits(self, schema: Schema) -> bool:
        """Whether all features are the schema's and whatever the kind needs is there, finite and sized."""
        numbers = [self.constant, *self.weights, *self.keys, *self.values]
        inside = all(0 <= j < len(schema) for j in (self.follows, *self.of)) and self.follows not in self.of
        sized = {
            "linear": len(self.weights) == len(self.of) > 0,
            "product": len(self.of) == 2,
            "rate": len(self.of) in (2, 3) and self._is_table(),
            "lookup": len(self.of) == 1 and len(self.keys) == len(self.values) > 0,
        }
        levels = self._has_levels(schema) if inside and sized[self.kind] else False
        return levels and 0 <= self.decimals <= MOST_DECIMALS and all(map(math.isfinite, numbers))

    def _is_table(self) -> bool:
        """Whether levels and keys stand in order, each pair once, with a value each."""
        entries = list(zip(self.levels, self.keys, strict=False))
        return len(self.levels) == len(self.keys) == len(self.values) > 0 and entries == sorted(set(entries))

    def _has_levels(self, schema: Schema) -> bool:
        """Whether a table leads to levels, or from levels, that its feature has, and arithmetic is of numbers alone."""
        feature = schema.features[self.follows]
        if self.kind == "rate" and len(self.of) == 3:
            by = schema.features[self.of[2]]
            if by.is_number or not all(level in range(by.n_states) for level in self.levels):
                return False
            return all(schema.features[j].is_number for j in (self.follows, *self.of[:2]))
        if self.kind == "lookup":
            return feature.is_number or all(value in range(feature.n_states) for value in self.values)
        return all(schema.features[j].is_number for j in (self.follows, *self.of))

    def describe(self, schema: Schema) -> str:
        """The dependency in words."""
        name, of = schema.names[self.follows], [schema.names[j] for j in self.of]
        if self.kind == "lookup":
            return f"{name} follows from {of[0]}"
        if self.kind == "product":
            return f"{name} = {of[0]} × {of[1]}"
        if self.kind == "rate":
            return f"{name} = {of[0]} × a rate by {' and '.join(map(str, of[1:]))}"
        terms = [str(n) if w == 1 else f"{w:g} × {n}" for w, n in zip(self.weights, of, strict=True)]
        constant = f" {'+' if self.constant > 0 else '-'} {abs(self.constant):g}" if self.constant else ""
        return f"{name} = {' + '.join(terms)}{constant}"
