"""Exact dependencies: a feature that is linear in others, a product, an amount times a rate, or settled by a value.

They are found on all training rows, with a tolerance for rounding; a rate may be another in one row of two hundred. In
an answer the dependent feature follows: it is never chosen, and stays the query's where nothing that it depends on
changed.
"""

from __future__ import annotations

__all__ = ["Dependencies"]

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.errors import ModelFileError
from dicoflex.table.dependency import Dependency
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema

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
