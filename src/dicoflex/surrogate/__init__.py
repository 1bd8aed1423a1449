"""A small copy of the black box, kept as plain arrays in the model file: the surrogate.

Two kinds compete while learning: a multilayer perceptron and boosted trees. The one that agrees better with the black
box on held-out rows is kept; on few labels alone both are, and count together. Two further kinds are made by copying
the black box itself, where that was asked for: a network in double precision, and trees whose votes are averaged.
"""

from __future__ import annotations

__all__ = ["Both", "Forest", "Network", "Perceptron", "ScoreSurrogate", "Surrogate", "Votes", "restore"]

from typing import Any, ClassVar, Protocol

from dicoflex import _core
from dicoflex._types import Arrays, Floats
from dicoflex.errors import ModelFileError
from dicoflex.surrogate.both import Both
from dicoflex.surrogate.perceptron import Network, Perceptron
from dicoflex.surrogate.trees import Forest, Votes
from dicoflex.table.encoding import Encoding, Values

KINDS: dict[str, Any] = {kind.kind: kind for kind in (Perceptron, Forest, Both, Votes, Network)}


class Surrogate(Protocol):
    """What the library asks of a surrogate."""

    kind: ClassVar[str]

    @property
    def core(self) -> _core.Surrogate:
        """What the core runs."""

    def probabilities(self, values: Values) -> Floats:
        """Probabilities of the classes for encoded rows (n, classes); a row's don't depend on the others."""

    def arrays(self) -> Arrays:
        """All that `restore` needs."""


class ScoreSurrogate(Surrogate, Protocol):
    """A surrogate with one output, for a black box that gives scores."""

    def scores(self, values: Values) -> Floats:
        """Its output for encoded rows."""

    def aimed(self, slope: Floats, offset: Floats) -> Surrogate:
        """The classifier whose classes have the logits `slope` * output + `offset`."""


def restore(kind: str, encoding: Encoding, n_classes: int, arrays: Arrays) -> Surrogate:
    """The surrogate that `arrays` was taken from; arrays that are absent or don't fit are a `ModelFileError`."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelFileError(
            f"the model file has a surrogate of unknown kind {str(kind)[:40]!r}; fit again and save it"
        )
    model: Surrogate = KINDS[kind].from_arrays(encoding, n_classes, arrays)
    return model
