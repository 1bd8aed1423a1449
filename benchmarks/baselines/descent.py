"""Gradient search for one answer per query, many queries at once; each method brings its own space and loss."""

from __future__ import annotations

__all__ = ["Descent", "Schedule", "cross_entropy", "hinge"]

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.baselines.base import Clock, Problem
from benchmarks.baselines.distance import Distance
from dicoflex.table.encoding import Values


@dataclass(frozen=True)
class Schedule:
    """Steps of Adam, and how the weight of being valid against being near changes on the way.

    As in Wachter et al. (2017) the weight grows until the answer is valid. Here it also falls while the answer is, so
    that the search comes back towards the query; the nearest valid row on the way is the answer.
    """

    steps: int = 600
    rate: float = 0.05
    weight: float = 1.0
    growth: float = 1.05
    fall: float = 0.98


Loss = Callable[[Tensor, Tensor], Tensor]
Decode = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Descent:
    """Least weight · miss(f(x'), target) + d(x, x') over the points of a space, where f is the black box.

    miss: from logits and targets to a loss that is least when the target wins.
    """

    problem: Problem
    network: nn.Module
    distance: Distance
    miss: Loss
    schedule: Schedule

    @classmethod
    def of(cls, problem: Problem, method: str, *, miss: Loss, schedule: Schedule) -> Descent:
        """The search of a method; a black box without a gradient is refused in its name."""
        return cls(problem, problem.gradients(method), Distance.of(problem), miss, schedule)

    def run(
        self,
        query: Values,
        wanted: NDArray[np.int64],
        clock: Clock,
        *,
        start: Tensor,
        decode: Decode,
        settled: Decode | None = None,
    ) -> list[Values] | None:
        """Per query the nearest valid row that was passed, or the surest one if none was valid; None if time is up.

        decode: from the searched space to reals, with a gradient. settled: the same without noise.
        """
        point = start.clone().requires_grad_()
        optimiser = torch.optim.Adam([point], lr=self.schedule.rate)
        origin, target = self._reals(query), torch.from_numpy(wanted)
        weight = torch.full((len(query),), self.schedule.weight)
        best = _Best(query)
        for _ in range(self.schedule.steps):
            if clock.is_out:
                return None
            reals = decode(point)
            loss = weight * self.miss(self.network(reals), target) + self.distance(reals, origin)
            optimiser.zero_grad()
            loss.sum().backward()
            optimiser.step()
            valid = self._look(best, query, (settled or decode)(point.detach()), origin, target)
            weight = self._next(weight, valid)
        return [row[None] for row in best.rows]

    def _look(self, best: _Best, query: Values, reals: Tensor, origin: Tensor, target: Tensor) -> Tensor:
        """Offer what a caller would see of some reals, rounded and with one level per block; which rows are valid."""
        rows = self.problem.settle(reals, query)
        shown = self._reals(rows)
        margin = lead(self.network(shown), target)
        best.offer(rows, margin, self.distance(shown, origin))
        return margin > 0.0

    def _next(self, weight: Tensor, valid: Tensor) -> Tensor:
        return (weight * torch.where(valid, self.schedule.fall, self.schedule.growth)).clamp(1e-3, 1e6)

    def _reals(self, values: Values) -> Tensor:
        return torch.from_numpy(self.problem.encoding.to_reals(values))


class _Best:
    """The best row so far of each query: valid before not, then near for valid ones and sure for the others."""

    def __init__(self, query: Values) -> None:
        self.rows = query.copy()
        self.cost = torch.full((len(query),), torch.inf, dtype=torch.float64)

    def offer(self, rows: Values, margin: Tensor, distance: Tensor) -> None:
        """Keep those of `rows` that are better than what is there."""
        # A valid row must be better than any other one, however far it is: distances stay below this.
        cost = torch.where(margin > 0.0, distance.double(), 1e12 - margin.double())
        better = cost < self.cost
        self.rows[better.numpy()] = rows[better.numpy()]
        self.cost = torch.where(better, cost, self.cost)


def lead(logits: Tensor, target: Tensor) -> Tensor:
    """By how much the target's logit is above the best of the others."""
    own = logits.gather(1, target[:, None])
    others = logits.scatter(1, target[:, None], -torch.inf)
    return own[:, 0] - others.max(dim=1).values


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """The surprise of each row's target."""
    return functional.cross_entropy(logits, target, reduction="none")


def hinge(logits: Tensor, target: Tensor) -> Tensor:
    """How much the target's lead falls short of 1."""
    return torch.relu(1.0 - lead(logits, target))
