"""Boosted trees as flat arrays: they follow black boxes made of trees."""

from __future__ import annotations

__all__ = ["Forest"]

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dicoflex.runtime.compiled import compiled
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Encoding, Values

THREADED = 256
Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Forest:
    """Boosted trees as flat arrays: a node goes left where its feature is at most its threshold.

    start: the first node of each tree; trees of one round stand together, one per score.
    """

    kind: ClassVar[str] = "trees"
    start: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Floats
    baseline: Floats

    def probabilities(self, values: Values, *, each: int = 1) -> Floats:  # noqa: ARG002
        """The trees' scores through a logistic (two classes) or a softmax."""
        scores = np.tile(self.baseline, (len(values), 1))
        links = self.start, self.feature, self.threshold, self.missing_left, self.left, self.right, self.value
        in_threads(lambda low, high: _add_trees(low, high, values, *links, scores), len(values), least=THREADED)
        if scores.shape[1] == 1:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        return _softmax(scores)

    def arrays(self) -> Arrays:
        """The flat arrays by name."""
        return {name: getattr(self, name) for name in FOREST_ARRAYS}

    @classmethod
    def from_arrays(cls, encoding: Encoding, arrays: Arrays) -> Forest:
        """The forest with these arrays, refused where a node points outside of them."""
        for name, dtype in FOREST_ARRAYS.items():
            if arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise ValueError(f"its array {name!r} is not a list of {dtype.__name__}")
        forest = cls(**{name: arrays[name] for name in FOREST_ARRAYS})
        nodes = (forest.feature, forest.threshold, forest.missing_left, forest.left, forest.right, forest.value)
        if len({len(array) for array in nodes}) != 1 or len(forest.baseline) == 0 or not forest._well_linked():
            raise ValueError("its trees are not well formed")
        if (forest.feature >= len(encoding.schema)).any():
            raise ValueError("its trees ask for a feature that the schema does not have")
        return forest

    def _well_linked(self) -> bool:
        """Whether every link stays inside the arrays and points forward, so that each walk ends."""
        inner = np.flatnonzero(self.feature >= 0)
        links = np.concatenate([self.left[inner], self.right[inner]])
        inside = (links < len(self.feature)).all() and ((self.start >= 0) & (self.start < len(self.feature))).all()
        return bool(inside and (links > np.tile(inner, 2)).all())


FOREST_ARRAYS: dict[str, type[np.generic]] = {
    "start": np.int64,
    "feature": np.int32,
    "threshold": np.float64,
    "missing_left": np.bool_,
    "left": np.int32,
    "right": np.int32,
    "value": np.float64,
    "baseline": np.float64,
}


def _softmax(scores: Floats) -> Floats:
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    total: Floats = shifted / shifted.sum(axis=1, keepdims=True)
    return total


@compiled(nogil=True)
def _add_trees(low, high, values, start, feature, threshold, missing_left, left, right, value, scores):  # type: ignore[no-untyped-def]
    """Add every tree's value to the scores of rows low to high."""
    n_scores = scores.shape[1]
    for i in range(low, high):
        for tree in range(len(start)):
            node = start[tree]
            while feature[node] >= 0:
                x = values[i, feature[node]]
                go_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                node = left[node] if go_left else right[node]
            scores[i, tree % n_scores] += value[node]
