"""Features that follow from others, as programs: set after the rest of a row was drawn, or whenever it moves."""

from __future__ import annotations

__all__ = ["Consequences"]

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dicoflex import _core
from dicoflex._types import Bools, Ints
from dicoflex.constraints.rules.tree import Expression
from dicoflex.limits.programs import Programs, Writer
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature, dtype_of
from dicoflex.table.schema import Schema

WHOLE, SINGLE, HALF, DOUBLE = range(4)


class Consequences(NamedTuple):
    """Programs, in an order in which they can be run, the features that they set, and how those store a number.

    A value that a feature can't have leaves the row unsettled: it is refused.
    """

    programs: Programs
    feature: Ints
    stored: Ints
    may_miss: Bools

    @classmethod
    def of(cls, expressions: Mapping[Any, Expression], schema: Schema) -> Consequences:
        """What the expressions say, by feature, in the order in which they can be worked out."""
        writer = Writer(schema)
        features = [schema[name] for name in expressions]
        for feature, made in zip(features, expressions.values(), strict=True):
            writer.result(made.tree, feature)
            writer.end()
        return cls(
            writer.programs(),
            np.array([schema.position(name) for name in expressions], dtype=np.int64),
            np.array([_stored(feature) for feature in features], dtype=np.int64),
            np.array([feature.is_number and feature.missing for feature in features], dtype=bool),
        )

    def mask(self, n_features: int) -> Bools:
        """Which features follow."""
        follows = np.zeros(n_features, dtype=bool)
        follows[self.feature] = True
        return follows

    def checked(self, n_features: int) -> _core.Consequences:
        """The consequences as the core runs them, on rows of so many features."""
        programs = self.programs.checked(n_features)
        return _core.Consequences(programs, self.feature, self.stored, self.may_miss, n_features=n_features)

    def settle(self, values: Values, query: Values) -> Bools:
        """Let features of the rows follow, in place; which rows are settled."""
        settled = np.ones(len(values), dtype=bool)
        if len(self.feature):
            _core.settle(self.checked(values.shape[1]), values=values, query=query, settled=settled)
        return settled

    def broken(self, values: Values, query: Values) -> Bools:
        """Which rows have a feature that does not follow."""
        if len(self.feature) == 0:
            return np.zeros(len(values), dtype=bool)
        moved = np.array(values, order="C")
        settled = self.settle(moved, query)
        same = (moved == values) | (np.isnan(moved) & np.isnan(values))
        broken: Bools = ~(settled & same.all(axis=1))
        return broken


def _stored(feature: Feature) -> int:
    """How a column holds a number; levels are whole codes."""
    if not feature.is_number or feature.is_whole:
        return WHOLE
    name = str(dtype_of(feature.dtype)).lower()
    if "float16" in name or "half" in name:
        return HALF
    return SINGLE if "float32" in name or name == "float[pyarrow]" else DOUBLE
