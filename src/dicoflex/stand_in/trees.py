"""Boosted trees as flat arrays: they follow black boxes made of trees."""

from __future__ import annotations

__all__ = ["Forest"]

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dicoflex.model_file.taking import Arrays, refuse, refuse_others, taken
from dicoflex.runtime.compiled import compiled
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Encoding, Values

THREADED = 256
Floats = NDArray[np.float64]


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
        scores = self._sums(values)
        if scores.shape[1] == 1:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        return _softmax(scores)

    def scores(self, values: Values, *, each: int = 1) -> Floats:  # noqa: ARG002
        """What trees with one score say."""
        return self._sums(values)[:, 0]

    def _sums(self, values: Values) -> Floats:
        scores = np.tile(self.baseline, (len(values), 1))
        links = self.start, self.feature, self.threshold, self.missing_left, self.left, self.right, self.value
        in_threads(lambda low, high: _add_trees(low, high, values, *links, scores), len(values), least=THREADED)
        return scores

    def aimed(self, slope: Floats, offset: Floats) -> Forest:
        """The classifier whose classes have the logits `slope` * score + `offset`, of trees with one score.

        With two classes the second's logit alone is kept; with more, every tree stands there once per class.
        """
        logits = slope * self.baseline[0] + offset
        if len(slope) == 2:
            return replace(self, value=self.value * (slope[1] - slope[0]), baseline=logits[1:] - logits[:1])
        edges = np.append(self.start, len(self.feature))
        copies = [(t, by) for t in range(len(self.start)) for by in slope]
        nodes = np.concatenate([np.arange(edges[t], edges[t + 1]) for t, _ in copies])
        sizes = np.array([edges[t + 1] - edges[t] for t, _ in copies])
        start = np.cumsum([0, *sizes[:-1]])
        shift = np.repeat(start - np.array([edges[t] for t, _ in copies]), sizes)
        return Forest(
            start=start.astype(np.int64), feature=self.feature[nodes], threshold=self.threshold[nodes],
            missing_left=self.missing_left[nodes], left=(self.left[nodes] + shift).astype(np.int32),
            right=(self.right[nodes] + shift).astype(np.int32),
            value=self.value[nodes] * np.repeat([by for _, by in copies], sizes), baseline=logits,
        )  # fmt: skip

    def arrays(self) -> Arrays:
        """The flat arrays by name."""
        return {name: getattr(self, name) for name in FOREST_ARRAYS}

    @classmethod
    def from_arrays(cls, encoding: Encoding, n_classes: int, arrays: Arrays) -> Forest:
        """The forest with these arrays, refused where a walk could leave its tree or not end."""
        n = len(taken(arrays, "feature", np.int32, (None,)))
        lengths = {"start": None, "baseline": 1 if n_classes == 2 else n_classes}
        # A threshold may be infinite: all that is there goes left.
        forest = cls(
            **{
                name: taken(arrays, name, dtype, (lengths.get(name, n),), finite=name != "threshold")
                for name, dtype in FOREST_ARRAYS.items()
            }
        )
        refuse_others(arrays, FOREST_ARRAYS)
        if (forest.feature >= len(encoding.schema)).any():
            refuse("feature", "asks for a feature that the schema does not have")
        if np.isnan(forest.threshold).any():
            refuse("threshold", "holds numbers that are none")
        forest._check_links()
        return forest

    def _check_links(self) -> None:
        """Refuse trees that overlap, and links that leave a tree or don't point forward: no walk is longer than it."""
        n = len(self.feature)
        edges = np.concatenate([self.start, [n]])
        if edges[0] != 0 or (np.diff(edges) < 1).any():
            refuse("start", "has trees that overlap or are empty")
        inner = np.flatnonzero(self.feature >= 0)
        ends = edges[np.searchsorted(self.start, inner, side="right")]
        for name, links in (("left", self.left[inner]), ("right", self.right[inner])):
            if (links <= inner).any() or (links >= ends).any():
                refuse(name, "points out of its tree, or back")


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
