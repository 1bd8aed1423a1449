"""Features that follow from others, as programs: set after the rest of a row was drawn, or whenever it moves."""

from __future__ import annotations

__all__ = ["Consequences", "follow_on"]

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.constraints.rules.tree import Expression
from dicoflex.limits.programs import STACK, Programs, Writer, run
from dicoflex.runtime.compiled import compiled, lean
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature, dtype_of
from dicoflex.table.schema import Schema

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

WHOLE, SINGLE, HALF, DOUBLE = range(4)
HALF_DIGITS = 2048.0


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

    def settle(self, values: Values, query: Values) -> Bools:
        """Let features of the rows follow, in place; which rows are settled."""
        settled = np.ones(len(values), dtype=bool)
        if len(self.feature):
            _settle(values, np.ascontiguousarray(query), self, settled)
        return settled

    def broken(self, values: Values, query: Values) -> Bools:
        """Which rows have a feature that does not follow."""
        if len(self.feature) == 0:
            return np.zeros(len(values), dtype=bool)
        moved = np.array(values)
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


@compiled(error_model="numpy")
def _settle(values, query, consequences, settled):  # type: ignore[no-untyped-def]
    stack = np.empty(STACK)
    for i in range(len(values)):
        settled[i] = follow_on(values[i], query[i], consequences, stack)


@lean(error_model="numpy")
def follow_on(row, query, consequences, stack):  # type: ignore[no-untyped-def]
    """Let features of one row follow, in place; whether each has a value that it can have."""
    settled = True
    for k in range(len(consequences.feature)):
        j = consequences.feature[k]
        made = _held(run(k, row, query, consequences.programs, stack), consequences.stored[k])
        if np.isfinite(made) or (np.isnan(made) and consequences.may_miss[k]):
            row[j] = made
        else:
            row[j], settled = query[j], False
    return settled


@lean(error_model="numpy")
def _held(value, stored):  # type: ignore[no-untyped-def]
    """A number as a column of its type holds it."""
    if stored == WHOLE:
        return np.rint(value)
    if stored == SINGLE:
        return np.float64(np.float32(value))
    if stored == HALF and value != 0.0 and np.isfinite(value):
        unit = 2.0 ** (np.floor(np.log2(abs(value))) + 1.0) / HALF_DIGITS
        return np.rint(value / unit) * unit
    return value
