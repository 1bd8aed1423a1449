"""Records held by a pointer: fields are read as they were, tuples within tuples too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dicoflex.runtime.compiled import compiled, lean
from dicoflex.runtime.held import held


class Inner(NamedTuple):
    values: Any
    count: int


class Outer(NamedTuple):
    inner: Inner
    on: bool
    table: Any


@lean()
def _read(record, out):  # type: ignore[no-untyped-def]
    if record.on:
        for i in range(record.inner.count):
            out[i] = record.inner.values[i] + record.table[i, 1]


@compiled()
def _asked(record, out):  # type: ignore[no-untyped-def]
    _read(held(record), out)


def test_fields_are_those_of_the_tuple() -> None:
    out = np.zeros(3)
    _asked(Outer(Inner(np.array([1.0, 2.0, 3.0]), 2), True, np.arange(6.0).reshape(3, 2)), out)
    assert out.tolist() == [2.0, 5.0, 0.0]


def test_a_switch_that_is_off_stays_off() -> None:
    out = np.zeros(1)
    _asked(Outer(Inner(np.ones(1), 1), False, np.zeros((1, 2))), out)
    assert out.tolist() == [0.0]
