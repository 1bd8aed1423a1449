"""A surrogate's answers to many rows, worked out in the core on several threads.

A row's answer depends on no other row: whichever rows it is asked with, it has the same bits.
"""

from __future__ import annotations

__all__ = ["by_feature", "probabilities", "scores"]

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Floats, Ints
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Encoding, Values

THREADED = 512


class RealPlaces(TypedDict):
    """How many codes each feature has, 0 of numbers; where its number and its levels stand among the reals, -1 for
    none; and whose levels are a number's pair: there, or missing."""

    codes: Ints
    number_at: Ints
    level_at: Ints
    is_pair: NDArray[np.bool_]


def by_feature(encoding: Encoding) -> RealPlaces:
    """Where features stand among the reals of an encoding."""
    d = len(encoding.schema)
    codes = np.array([0 if f.is_number else f.n_states for f in encoding.schema.features], dtype=np.int64)
    number_at, level_at, is_pair = np.full(d, -1), np.full(d, -1), np.zeros(d, dtype=bool)
    number_at[encoding.number_feature] = encoding.places[0]
    level_at[encoding.code_feature], is_pair[encoding.code_feature] = encoding.places[1], encoding.places[2]
    return {"codes": codes, "number_at": number_at, "level_at": level_at, "is_pair": is_pair}


def probabilities(core: _core.Surrogate, values: Values, n_classes: int) -> Floats:
    """The probabilities of the classes for encoded rows (n, classes)."""
    rows, out = np.ascontiguousarray(values), np.empty((len(values), n_classes))
    in_threads(lambda low, high: core.probabilities(rows, low, high, out), len(rows), least=THREADED)
    return out


def scores(core: _core.Surrogate, values: Values, n_scores: int) -> Floats:
    """The scores of a surrogate of one kind for encoded rows (n, scores)."""
    rows, out = np.ascontiguousarray(values), np.empty((len(values), n_scores))
    in_threads(lambda low, high: core.scores(rows, low, high, out), len(rows), least=THREADED)
    return out
