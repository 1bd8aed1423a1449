"""A multilayer perceptron on the one-hot table, as arrays: it follows smooth black boxes."""

from __future__ import annotations

__all__ = ["BOUND", "Perceptron"]

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Floats
from dicoflex.model_file.taking import Arrays, refuse, refuse_others, taken
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
