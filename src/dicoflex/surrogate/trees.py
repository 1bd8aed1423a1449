"""Boosted trees as flat arrays: they follow black boxes made of trees."""

from __future__ import annotations

__all__ = ["Forest", "Votes"]

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Arrays, Floats
from dicoflex.model_file.taking import refuse, refuse_others, taken
from dicoflex.surrogate.forward import probabilities, scores
from dicoflex.table.encoding import Encoding, Values


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

    def probabilities(self, values: Values) -> Floats:
        """The trees' scores through a logistic (two classes) or a softmax."""
        return probabilities(self.core, values, self.n_classes)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return max(2, len(self.baseline))

    @property
    def averaged(self) -> float:
        """Over how many trees a score is averaged; 0 where it is their sum, and a logit."""
        return 0.0

    @cached_property
    def core(self) -> _core.Surrogate:
        """The trees as the core runs them."""
        return _core.Surrogate(n_classes=self.n_classes, trees=self.part)

    @cached_property
    def part(self) -> _core.Trees:
        """The trees as a part of what the core runs."""
        return _core.Trees(
            start=self.start,
            feature=self.feature,
            threshold=self.threshold,
            missing_left=self.missing_left,
            left=self.left,
            right=self.right,
            value=self.value,
            baseline=self.baseline,
            averaged=self.averaged,
        )

    def scores(self, values: Values) -> Floats:
        """What trees with one score say."""
        return scores(self.core, values, len(self.baseline))[:, 0]

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


class Votes(Forest):
    """Trees whose values are probabilities that are averaged, as those of a random forest are.

    With two classes the second's probability alone is kept; with more, every tree stands there once per class.
    """

    kind: ClassVar[str] = "votes"

    @property
    def averaged(self) -> float:
        """How many trees a score has."""
        return len(self.start) / len(self.baseline)

    @classmethod
    def from_arrays(cls, encoding: Encoding, n_classes: int, arrays: Arrays) -> Votes:
        """The trees with these arrays; refused, too, where classes have not the same trees, or values are no shares."""
        votes = super().from_arrays(encoding, n_classes, arrays)
        assert isinstance(votes, Votes)
        if len(votes.start) % len(votes.baseline) or len(votes.start) == 0:
            refuse("start", "has not as many trees for every class")
        if not ((votes.value >= 0) & (votes.value <= 1)).all() or votes.baseline.any():
            refuse("value", "holds numbers that are not probabilities, or those of 'baseline' are not 0")
        return votes
