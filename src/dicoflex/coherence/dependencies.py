"""Exact dependencies: a feature that is linear in others, a product, an amount times a rate, or settled by a value.

They are found on all training rows, with a tolerance for rounding; a rate may be another in one row of two hundred.
In an answer the dependent feature follows: it is never chosen, and stays the query's where nothing that it depends
on changed.
"""

from __future__ import annotations

__all__ = ["Dependencies", "Dependency"]

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from dicoflex import _core
from dicoflex.errors import ModelFileError
from dicoflex.table.encoding import Values
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


LINEAR, PRODUCT, RATE, LOOKUP = 0, 1, 2, 3
KINDS = {"linear": LINEAR, "product": PRODUCT, "rate": RATE, "lookup": LOOKUP}


@dataclass(frozen=True)
class Dependencies:
    """All dependencies of a table, in an order in which they can be followed; no feature follows twice or in a ring."""

    found: tuple[Dependency, ...]
    n_features: int

    @cached_property
    def followers(self) -> NDArray[np.bool_]:
        """Which features follow from others."""
        mask = np.zeros(self.n_features, dtype=bool)
        mask[[one.follows for one in self.found]] = True
        return mask

    def broken(self, values: Values, query: Values) -> NDArray[np.bool_]:
        """Which rows break one; a dependent feature whose sources are the query's own may stay the query's."""
        out = np.zeros(len(values), dtype=bool)
        if self.found:
            self.core.find_broken(values, query, out)
        return out

    def settle(self, values: Values, query: Values) -> NDArray[np.bool_]:
        """Let dependent features of the rows follow, in place; which rows are settled."""
        settled = np.ones(len(values), dtype=bool)
        if self.found:
            self.core.settle(values, query, settled)
        return settled

    def without(self, features: Iterable[int]) -> Dependencies:
        """The dependencies less those of some features."""
        gone = set(features)
        return Dependencies(tuple(one for one in self.found if one.follows not in gone), self.n_features)

    @cached_property
    def core(self) -> _core.Dependencies:
        """The dependencies as the core follows them: entry i has sources source[at[i]:at[i + 1]], weights alike."""
        found = self.found
        return _core.Dependencies(
            kind=np.array([KINDS[one.kind] for one in found], dtype=np.int64),
            follows=np.array([one.follows for one in found], dtype=np.int64),
            at=np.cumsum([0, *(len(one.of) for one in found)]),
            source=np.array([j for one in found for j in one.of], dtype=np.int64),
            weight=np.array([w for one in found for w in (one.weights or (0.0,) * len(one.of))], dtype=np.float64),
            constant=np.array([one.constant for one in found], dtype=np.float64),
            scale=np.array([10.0**one.decimals for one in found], dtype=np.float64),
            table_at=np.cumsum([0, *(len(one.keys) for one in found)]),
            key=np.array([key for one in found for key in one.keys], dtype=np.float64),
            value=np.array([value for one in found for value in one.values], dtype=np.float64),
            level=np.array([level for one in found for level in (one.levels or (0,) * len(one.keys))], dtype=np.int64),
            n_features=self.n_features,
        )

    def told(self, schema: Schema) -> list[tuple[Any, str]]:
        """The name of each dependent feature, and in words what it follows from."""
        return [(schema.names[one.follows], one.describe(schema)) for one in self.found]

    def state(self) -> list[dict[str, Any]]:
        """The dependencies as plain JSON."""
        return [one.model_dump(mode="json", exclude_defaults=True) for one in self.found]

    @classmethod
    def restore(cls, schema: Schema, state: Any) -> Dependencies:
        """The dependencies that `state` was taken from; refused where they don't fit the schema."""
        if not isinstance(state, list) or len(state) > len(schema):
            raise ModelFileError("the model file's dependencies are no list of them; save the model again")
        try:
            found = tuple(Dependency.model_validate_json(json.dumps(one)) for one in state)
        except ValueError as error:
            raise ModelFileError(f"the model file has a dependency that is none ({error}); save it again") from None
        followers = {one.follows for one in found}
        fine = len(followers) == len(found) and all(one.fits(schema) and not followers & set(one.of) for one in found)
        if not fine:
            raise ModelFileError("the model file has dependencies that don't fit its schema; save the model again")
        return cls(found, len(schema))
