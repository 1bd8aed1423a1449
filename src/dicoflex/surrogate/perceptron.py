"""Perceptrons on the one-hot table, as arrays: learned ones, and exact copies of linear models and perceptrons.

`Perceptron` is learned, and so may be small, of single precision, and blind beyond ten deviations. A copy may not:
it reads numbers as they are, and computes what the model that was copied computes.
"""

from __future__ import annotations

__all__ = ["ACTIVATIONS", "BOUND", "Network", "Perceptron"]

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Arrays, Floats, Ints
from dicoflex.model_file.taking import refuse, refuse_others, taken
from dicoflex.surrogate.forward import by_feature, probabilities, scores
from dicoflex.table.encoding import Encoding, Values

BOUND = 10.0
"""Standardised numbers are held within ten deviations: one absurd value must not swamp the others."""


@dataclass(frozen=True)
class Perceptron:
    """Two hidden layers of rectifiers on the one-hot table."""

    kind: ClassVar[str] = "mlp"
    encoding: Encoding
    layers: list[tuple[NDArray[np.float32], NDArray[np.float32]]]

    def probabilities(self, values: Values) -> Floats:
        """Softmax of the last layer."""
        return probabilities(self.core, values, len(self.layers[-1][1]))

    @cached_property
    def core(self) -> _core.Surrogate:
        """The perceptron as the core runs it."""
        n_scores = len(self.layers[-1][1])
        return _core.Surrogate(n_classes=max(2, n_scores), perceptron=self.part)

    @cached_property
    def part(self) -> _core.Perceptron:
        """The perceptron as a part of what the core runs."""
        (w0, b0), (w1, b1), (w2, b2) = self.layers
        scaling = {"mean": self.encoding.mean, "scale": self.encoding.scale}
        return _core.Perceptron(
            **by_feature(self.encoding), **scaling, w0=w0, b0=b0, w1=w1, b1=b1, w2=w2, b2=b2
        )  # fmt: skip

    def cooled(self, temperature: float) -> Perceptron:
        """The same perceptron with its scores divided: less sure of itself above a temperature of 1."""
        *inner, (weight, bias) = self.layers
        by = np.float32(temperature)
        return Perceptron(self.encoding, [*inner, (weight / by, bias / by)])

    def scores(self, values: Values) -> Floats:
        """What a perceptron with one output says."""
        return scores(self.core, values, 1)[:, 0]

    def aimed(self, slope: Floats, offset: Floats) -> Perceptron:
        """The classifier whose classes have the logits `slope` * output + `offset`, of a perceptron with one output."""
        *inner, (weight, bias) = self.layers
        by = slope.astype(np.float32)
        logits = (bias * slope + offset).astype(np.float32)
        return Perceptron(self.encoding, [*inner, (np.ascontiguousarray(weight * by), logits)])

    def arrays(self) -> Arrays:
        """Weights and biases by layer."""
        return {
            f"{name}{i}": layer[j] for i, layer in enumerate(self.layers) for j, name in enumerate(("weight", "bias"))
        }

    @classmethod
    def from_arrays(cls, encoding: Encoding, n_classes: int, arrays: Arrays) -> Perceptron:
        """The perceptron with these weights; those that don't fit the table, the classes or each other are refused."""
        layers, width = [], encoding.n_reals
        for i, size in enumerate((None, None, n_classes)):
            bias = taken(arrays, f"bias{i}", np.float32, (size,))
            if len(bias) == 0:
                refuse(f"bias{i}", "is empty")
            layers.append((taken(arrays, f"weight{i}", np.float32, (width, len(bias))), bias))
            width = len(bias)
        refuse_others(arrays, [f"{name}{i}" for i in range(3) for name in ("weight", "bias")])
        return cls(encoding, layers)


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
