"""A small copy of the black box, kept as plain arrays in the model file: the stand-in.

Two kinds compete while learning: a multilayer perceptron and boosted trees. The one that agrees better with the black
box on held-out rows is kept; on few labels alone both are, and count together.
"""

from __future__ import annotations

__all__ = ["BLOCK", "Both", "Forest", "Perceptron", "ScoreStandIn", "StandIn", "restore"]

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dicoflex.errors import ModelFileError
from dicoflex.stand_in.both import Both
from dicoflex.stand_in.perceptron import Perceptron
from dicoflex.stand_in.trees import Forest
from dicoflex.table.encoding import Encoding, Values

BLOCK = 256
Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
KINDS: dict[str, Any] = {kind.kind: kind for kind in (Perceptron, Forest, Both)}


class StandIn(Protocol):
    """What the library asks of a stand-in."""

    kind: ClassVar[str]

    def probabilities(self, values: Values, *, each: int = 1) -> Floats:
        """Probabilities of the classes for encoded rows (n, classes).

        Rows may be worked on `each` at a time, from the first on: with as many rows per query, a row's answer can't
        depend on other queries, to the last bit.
        """

    def arrays(self) -> Arrays:
        """All that `restore` needs."""


class ScoreStandIn(StandIn, Protocol):
    """A stand-in with one output, for a black box that gives scores."""

    def scores(self, values: Values, *, each: int = 1) -> Floats:
        """Its output for encoded rows."""

    def aimed(self, slope: Floats, offset: Floats) -> StandIn:
        """The classifier whose classes have the logits `slope` * output + `offset`."""


def restore(kind: str, encoding: Encoding, n_classes: int, arrays: Arrays) -> StandIn:
    """The stand-in that `arrays` was taken from; arrays that are absent or don't fit are a `ModelFileError`."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelFileError(f"the model file has a stand-in of unknown kind {str(kind)[:40]!r}; fit again and save it")
    model: StandIn = KINDS[kind].from_arrays(encoding, n_classes, arrays)
    return model
