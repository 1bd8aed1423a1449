"""The paper's q-hat itself: the nearest training rows of the target class, as they are."""

from __future__ import annotations

__all__ = ["Oracle"]

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.baselines.base import Answers, Clock, Needs, Problem, answer_in_batches
from dicoflex.neighbours import Pool, nearest
from dicoflex.table.encoding import Values


@dataclass
class Oracle:
    """K nearest neighbours under the paper's d_{p,m}; its mask is soft, so that immutable features may differ."""

    name: ClassVar[str] = "oracle"
    needs: ClassVar[Needs] = "labels"
    many: ClassVar[bool] = True

    p: float = 2.0

    def fit(self, problem: Problem, *, seed: int = 0, seconds: float | None = None) -> Self:  # noqa: ARG002
        """Group the training rows by class."""
        self.problem_ = problem
        labels = problem.class_numbers(problem.labels, len(problem.labels))
        self.pool_ = Pool.group(problem.encoding.parts(problem.values), labels, len(problem.classes))
        return self

    def answer(self, queries: pd.DataFrame, targets: Any, *, n: int = 1, seconds: float | None = None) -> Answers:
        """The `n` nearest rows of each query's target class."""

        def solve(values: Values, wanted: NDArray[np.int64], _clock: Clock) -> list[Values]:
            found = nearest(
                self.problem_.encoding.parts(values),
                self.pool_,
                target=wanted,
                p=np.full(len(values), self.p),
                mask=np.tile(self.problem_.kept, (len(values), 1)),
                k=n,
            )
            return [self.problem_.values[rows[rows >= 0]] for rows in found.rows]

        return answer_in_batches(self.problem_, queries, targets, solve, size=256, seconds=seconds)
