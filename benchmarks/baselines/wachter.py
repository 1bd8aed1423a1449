"""Wachter, Mittelstadt and Russell (2017): gradient search in the space of the rows themselves."""

from __future__ import annotations

__all__ = ["Wachter"]

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.baselines.base import Answers, Clock, Needs, Problem, answer_in_batches
from benchmarks.baselines.descent import Descent, Schedule, cross_entropy
from dicoflex.table.encoding import Values


@dataclass
class Wachter:
    """Least weight · cross-entropy of the target + d(x, x'), where d is L1 over MAD.

    Numbers move and levels stay, as in the paper's comparison: one-hot columns are no space to take small steps in.
    The article has the squared error of the score; for a probability near 0 its gradient vanishes, and on Adult a
    third of the queries then stay without a valid answer.
    """

    name: ClassVar[str] = "wachter"
    needs: ClassVar[Needs] = "gradients"
    many: ClassVar[bool] = False

    schedule: Schedule = field(default_factory=Schedule)
    restarts: int = 3

    def fit(self, problem: Problem, *, seed: int = 0, seconds: float | None = None) -> Self:  # noqa: ARG002
        """Take the black box's gradient and the scale of each number."""
        self.problem_, self.seed_ = problem, seed
        self.descent_ = Descent.of(problem, self.name, miss=cross_entropy, schedule=self.schedule)
        free = ~problem.encoding.is_onehot & ~problem.kept_reals
        # A step is then as long for every number in the units of the distance.
        self.unit_ = torch.from_numpy(free).float() / self.descent_.distance.weights
        self.low_, self.high_ = _limits(problem)
        return self

    def answer(self, queries: pd.DataFrame, targets: Any, *, n: int = 1, seconds: float | None = None) -> Answers:  # noqa: ARG002
        """One answer for each query, valid or the surest found."""
        return answer_in_batches(self.problem_, queries, targets, self._solve, size=128, seconds=seconds)

    def _solve(self, query: Values, wanted: NDArray[np.int64], clock: Clock) -> list[Values] | None:
        """A search from the query, and others from training rows of the target class where it ended in a dead end."""
        answers = self._search(query, wanted, clock, start=query)
        rng = np.random.default_rng(self.seed_)
        for _ in range(self.restarts):
            stuck = [] if answers is None else self._stuck(answers, wanted)
            if not len(stuck):
                break
            again = self._search(query[stuck], wanted[stuck], clock, start=self._others(wanted[stuck], rng))
            if again is None:
                return None
            for i, row in zip(stuck, again, strict=True):
                answers[i] = row
        return answers

    def _stuck(self, answers: list[Values], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.flatnonzero(self.problem_.judge(np.concatenate(answers)).argmax(axis=1) != wanted)

    def _others(self, wanted: NDArray[np.int64], rng: np.random.Generator) -> Values:
        labels = self.problem_.labels
        return self.problem_.values[[rng.choice(np.flatnonzero(labels == self.problem_.classes[k])) for k in wanted]]

    def _search(self, query: Values, wanted: NDArray[np.int64], clock: Clock, *, start: Values) -> list[Values] | None:
        to_reals = self.problem_.encoding.to_reals
        origin = torch.from_numpy(to_reals(query))

        def decode(move: Tensor) -> Tensor:
            return (origin + move * self.unit_).clamp(self.low_, self.high_)

        move = (torch.from_numpy(to_reals(start)) - origin) * self.descent_.distance.weights
        return self.descent_.run(query, wanted, clock, start=move, decode=decode)


def _limits(problem: Problem) -> tuple[Tensor, Tensor]:
    """The least and the greatest value of each real."""
    encoding = problem.encoding
    low, high = np.zeros(encoding.n_reals), np.ones(encoding.n_reals)
    for j, (feature, block) in enumerate(zip(encoding.schema.features, encoding.blocks, strict=True)):
        if feature.is_number:
            low[block.start] = (feature.minimum - encoding.mean[j]) / encoding.scale[j]
            high[block.start] = (feature.maximum - encoding.mean[j]) / encoding.scale[j]
    return torch.from_numpy(low).float(), torch.from_numpy(high).float()
