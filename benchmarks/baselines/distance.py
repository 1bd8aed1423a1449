"""How far an answer is from its query: the distance of Wachter et al. (2017), with a term for levels."""

from __future__ import annotations

__all__ = ["Distance"]

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from benchmarks.baselines.base import Problem


@dataclass(frozen=True)
class Distance:
    """A weighted L1 distance on reals: |a - b| / MAD for a number, 1 for another level (half in each one-hot column).

    MAD is the training rows' median absolute deviation from the median. Where more than half of them share one value it
    is 0, and the standard deviation, which is 1 in these units, stands in.
    """

    weights: Tensor

    @classmethod
    def of(cls, problem: Problem) -> Distance:
        """The distance in the units of a problem's training rows."""
        reals = problem.reals.numpy()
        deviation = np.median(np.abs(reals - np.median(reals, axis=0)), axis=0)
        weights = 1.0 / np.where(deviation > 0.0, deviation, 1.0)
        return cls(torch.from_numpy(np.where(problem.encoding.is_onehot, 0.5, weights)).float())

    def __call__(self, reals: Tensor, others: Tensor) -> Tensor:
        """The distance between rows at the same place."""
        return ((reals - others).abs() * self.weights).sum(dim=-1)
