"""A multilayer perceptron on the one-hot table, as arrays: it follows smooth black boxes."""

from __future__ import annotations

__all__ = ["BOUND", "Perceptron"]

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dicoflex.model_file.taking import Arrays, refuse, refuse_others, taken
from dicoflex.runtime.compiled import compiled
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Encoding, Values

BOUND = 10.0
"""Standardised numbers are held within ten deviations: one absurd value must not swamp the others."""
THREADED = 2048
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Perceptron:
    """Two hidden layers of rectifiers on the one-hot table."""

    kind: ClassVar[str] = "mlp"
    encoding: Encoding
    layers: list[tuple[NDArray[np.float32], NDArray[np.float32]]]

    def probabilities(self, values: Values, *, each: int = 1) -> Floats:
        """Softmax of the last layer, by matrix products of `each` rows."""
        network, out = self._network, np.empty((len(values), len(self.layers[-1][1])))

        def work(low: int, high: int) -> None:
            _forward(low, high, each, values, *network, out)

        in_threads(work, -(-len(values) // each), least=max(1, THREADED // each))
        return out

    @cached_property
    def _network(self) -> tuple[NDArray[Any], ...]:
        """Where features stand among the reals, and the layers, as kernels read them."""
        encoding = self.encoding
        numbers, codes = encoding.number_feature, encoding.code_feature
        scaling = encoding.mean[numbers], encoding.scale[numbers]
        return numbers, *scaling, codes, *encoding.places, *(array for layer in self.layers for array in layer)

    def cooled(self, temperature: float) -> Perceptron:
        """The same perceptron with its scores divided: less sure of itself above a temperature of 1."""
        *inner, (weight, bias) = self.layers
        by = np.float32(temperature)
        return Perceptron(self.encoding, [*inner, (weight / by, bias / by)])

    def scores(self, values: Values, *, each: int = 1) -> Floats:
        """What a perceptron with one output says: the log odds of that output against 0."""
        *inner, (weight, bias) = self.layers
        nothing = np.zeros_like
        paired = [*inner, (np.concatenate([nothing(weight), weight], axis=1), np.concatenate([nothing(bias), bias]))]
        chances = Perceptron(self.encoding, paired).probabilities(values, each=each)
        odds: Floats = np.log(chances[:, 1]) - np.log(chances[:, 0])
        return odds

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


@compiled(nogil=True, error_model="numpy")
def _forward(  # type: ignore[no-untyped-def]
    low, high, each, values, numbers, mean, scale, codes, number_at, level_at, is_pair, w0, b0, w1, b1, w2, b2, out
):
    """The network on blocks low to high of `each` rows; the one-hot table, nearly all zeros, is never made."""
    first, second = np.empty((each, len(b0)), dtype=np.float32), np.empty((each, len(b1)), dtype=np.float32)
    last = np.empty((each, len(b2)), dtype=np.float32)
    bound, zero = np.float32(BOUND), np.float32(0.0)
    for start in range(low * each, min(high * each, len(out)), each):
        n = min(each, len(out) - start)
        for r in range(n):
            i = start + r
            for k in range(len(b0)):
                first[r, k] = b0[k]
            for c in range(len(numbers)):
                x = np.float32((values[i, numbers[c]] - mean[c]) / scale[c])
                x = zero if np.isnan(x) else min(max(x, -bound), bound)
                at = number_at[c]
                for k in range(len(b0)):
                    first[r, k] += x * w0[at, k]
            for c in range(len(codes)):
                code = values[i, codes[c]]
                at = level_at[c] + (np.int64(np.isnan(code)) if is_pair[c] else np.int64(code))
                for k in range(len(b0)):
                    first[r, k] += w0[at, k]
            for k in range(len(b0)):
                first[r, k] = max(first[r, k], zero)
        np.dot(first[:n], w1, second[:n])
        for r in range(n):
            for k in range(len(b1)):
                second[r, k] = max(second[r, k] + b1[k], zero)
        np.dot(second[:n], w2, last[:n])
        for r in range(n):
            top = last[r, 0] + b2[0]
            for k in range(1, len(b2)):
                top = max(top, last[r, k] + b2[k])
            total = 0.0
            for k in range(len(b2)):
                out[start + r, k] = np.exp(np.float64(last[r, k] + b2[k]) - np.float64(top))
                total += out[start + r, k]
            for k in range(len(b2)):
                out[start + r, k] /= total
