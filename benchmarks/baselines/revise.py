"""ReViSE (Joshi et al. 2019): gradient search in the latent space of a variational autoencoder."""

from __future__ import annotations

__all__ = ["Revise"]

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.baselines.base import Answers, Clock, Needs, Problem, answer_in_batches
from benchmarks.baselines.descent import Descent, Schedule, cross_entropy
from benchmarks.baselines.vae import PlainVae, trained
from dicoflex.table.encoding import Values


@dataclass
class Revise:
    """Least weight · cross-entropy of the target + d(x, G(z)), from z at the query's own latent mean."""

    name: ClassVar[str] = "revise"
    needs: ClassVar[Needs] = "gradients"
    many: ClassVar[bool] = False

    steps: int = 6000
    beta: float = 0.1
    schedule: Schedule = field(default_factory=Schedule)

    def fit(self, problem: Problem, *, seed: int = 0, seconds: float | None = None) -> Self:
        """Train the autoencoder on the training rows."""
        self.problem_ = problem
        self.descent_ = Descent.of(problem, self.name, miss=cross_entropy, schedule=self.schedule)
        self.vae_ = trained(
            lambda layout: PlainVae(layout, problem.kept_reals),
            problem,
            beta=self.beta,
            steps=self.steps,
            seed=seed,
            seconds=seconds,
        )
        return self

    def answer(self, queries: pd.DataFrame, targets: Any, *, n: int = 1, seconds: float | None = None) -> Answers:  # noqa: ARG002
        """One answer for each query, valid or the surest found."""
        return answer_in_batches(self.problem_, queries, targets, self._solve, size=128, seconds=seconds)

    def _solve(self, query: Values, wanted: NDArray[np.int64], clock: Clock) -> list[Values] | None:
        origin = torch.from_numpy(self.problem_.encoding.to_reals(query))
        kept = torch.from_numpy(self.problem_.kept_reals)

        def decode(latent: Tensor) -> Tensor:
            return torch.where(kept, origin, self.vae_.layout.relax(self.vae_.decode(latent, origin)))

        return self.descent_.run(query, wanted, clock, start=self.vae_.encode(origin)[0], decode=decode)
