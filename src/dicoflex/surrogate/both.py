"""Two opinions at once: the mean of a perceptron and of boosted trees, which differ where few rows leave it open."""

from __future__ import annotations

__all__ = ["Both"]

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dicoflex import _core
from dicoflex._types import Arrays, Floats
from dicoflex.model_file.taking import refuse_others
from dicoflex.surrogate.forward import probabilities
from dicoflex.surrogate.perceptron import Perceptron
from dicoflex.surrogate.trees import Forest
from dicoflex.table.encoding import Encoding, Values


@dataclass(frozen=True)
class Both:
    """A perceptron and trees that saw the same rows; sure only where both are."""

    kind: ClassVar[str] = "both"
    net: Perceptron
    trees: Forest

    def probabilities(self, values: Values) -> Floats:
        """The mean of the two."""
        return probabilities(self.core, values, len(self.net.layers[-1][1]))

    @cached_property
    def core(self) -> _core.Surrogate:
        """Both as the core runs them."""
        return _core.Surrogate(
            n_classes=len(self.net.layers[-1][1]),
            perceptron=self.net.part,
            trees=self.trees.part,
        )

    def arrays(self) -> Arrays:
        """The arrays of both, by name."""
        return {f"net.{k}": a for k, a in self.net.arrays().items()} | {
            f"trees.{k}": a for k, a in self.trees.arrays().items()
        }

    @classmethod
    def from_arrays(cls, encoding: Encoding, n_classes: int, arrays: Arrays) -> Both:
        """The two with these arrays; those that don't fit are refused."""
        parts = {
            kind: {k.removeprefix(f"{kind}."): a for k, a in arrays.items() if k.startswith(f"{kind}.")}
            for kind in ("net", "trees")
        }
        refuse_others(arrays, [f"{kind}.{k}" for kind, own in parts.items() for k in own])
        return cls(
            Perceptron.from_arrays(encoding, n_classes, parts["net"]),
            Forest.from_arrays(encoding, n_classes, parts["trees"]),
        )
