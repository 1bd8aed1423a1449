"""A network of any depth in double precision, as arrays: the exact copy of a linear model or of a perceptron.

`Perceptron` is learned, and so may be small, of single precision, and blind beyond ten deviations. A copy may not: it
reads numbers as they are, and computes what the model that was copied computes.
"""

from __future__ import annotations

__all__ = ["ACTIVATIONS", "Network"]

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from dicoflex import _core
from dicoflex._types import Floats, Ints
from dicoflex.model_file.taking import Arrays, refuse, refuse_others, taken
from dicoflex.surrogate.forward import by_feature, probabilities
from dicoflex.table.encoding import Encoding, Values

ACTIVATIONS = ("identity", "relu", "tanh", "logistic")
MOST_LAYERS = 100


@dataclass(frozen=True)
class Network:
    """Layers of a network on the one-hot table, whose numbers are not scaled.

    size: how many reals, hidden units layer by layer, and scores there are; one score stands for two classes. weight,
    bias: those of all layers, one after the other, rows of weights by what they read. activation: the place of the
    hidden units' function among `ACTIVATIONS`.
    """

    kind: ClassVar[str] = "network"
    encoding: Encoding
    size: Ints
    weight: Floats
    bias: Floats
    activation: Ints

    def probabilities(self, values: Values) -> Floats:
        """The scores through a logistic (two classes) or a softmax."""
        return probabilities(self.core, values, self.n_classes)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return max(2, int(self.size[-1]))

    @cached_property
    def core(self) -> _core.Surrogate:
        """The network as the core runs it."""
        network = _core.Network(
            **by_feature(self.encoding),
            size=self.size,
            weight=self.weight,
            bias=self.bias,
            activation=int(self.activation[0]),
        )
        return _core.Surrogate(n_classes=self.n_classes, network=network)

    def arrays(self) -> Arrays:
        """The arrays by name."""
        return {name: getattr(self, name) for name in NETWORK_ARRAYS}

    @classmethod
    def from_arrays(cls, encoding: Encoding, n_classes: int, arrays: Arrays) -> Network:
        """The network with these arrays; those that don't fit the table, the classes or each other are refused."""
        size = taken(arrays, "size", np.int64, (None,))
        if not 2 <= len(size) <= MOST_LAYERS or (size < 1).any() or (size > 2**31).any():
            refuse("size", "is not a list of layers")
        if size[0] != encoding.n_reals or size[-1] != (1 if n_classes == 2 else n_classes):
            refuse("size", "fits another table or other classes")
        # Whole numbers of Python: sizes that somebody made up must not wrap around.
        sizes = [int(n) for n in size]
        n_weights = sum(a * b for a, b in pairwise(sizes))
        activation = taken(arrays, "activation", np.int64, (1,))
        if not 0 <= activation[0] < len(ACTIVATIONS):
            refuse("activation", "names no function that there is")
        weight = taken(arrays, "weight", np.float64, (n_weights,))
        bias = taken(arrays, "bias", np.float64, (sum(sizes[1:]),))
        refuse_others(arrays, NETWORK_ARRAYS)
        return cls(encoding, size, weight, bias, activation)


NETWORK_ARRAYS = ("size", "weight", "bias", "activation")
