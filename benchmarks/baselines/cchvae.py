"""C-CHVAE (Pawelczyk et al. 2020): growing spheres in the latent space of a conditional autoencoder."""

from __future__ import annotations

__all__ = ["Cchvae"]

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.baselines.base import Answers, Clock, Needs, Problem, answer_in_batches
from benchmarks.baselines.distance import Distance
from benchmarks.baselines.vae import PlainVae, trained
from dicoflex.table.encoding import Values


@dataclass
class Cchvae:
    """Rows decoded from ever wider shells around the query's latent mean, given its immutable features.

    Every shell gets `draws` points per query; a query leaves the search with the shell in which it has `n` different
    valid rows, of which the nearest are its answers. The immutable features condition encoder and decoder.
    """

    name: ClassVar[str] = "cchvae"
    needs: ClassVar[Needs] = "predictions"
    many: ClassVar[bool] = True

    steps: int = 6000
    beta: float = 0.1
    draws: int = 200
    shell: float = 0.25
    shells: int = 80

    def fit(self, problem: Problem, *, seed: int = 0, seconds: float | None = None) -> Self:
        """Train the autoencoder on the training rows."""
        self.problem_, self.seed_ = problem, seed
        self.distance_ = Distance.of(problem)
        self.vae_ = trained(
            lambda layout: PlainVae(layout, problem.kept_reals),
            problem,
            beta=self.beta,
            steps=self.steps,
            seed=seed,
            seconds=seconds,
        )
        return self

    def answer(self, queries: pd.DataFrame, targets: Any, *, n: int = 1, seconds: float | None = None) -> Answers:
        """Up to `n` different valid answers for each query, nearest first."""
        generator = torch.Generator().manual_seed(self.seed_)

        def solve(query: Values, wanted: NDArray[np.int64], clock: Clock) -> list[Values] | None:
            return self._solve(query, wanted, clock, n=n, generator=generator)

        return answer_in_batches(self.problem_, queries, targets, solve, size=50, seconds=seconds)

    def _solve(
        self, query: Values, wanted: NDArray[np.int64], clock: Clock, *, n: int, generator: torch.Generator
    ) -> list[Values] | None:
        origin = torch.from_numpy(self.problem_.encoding.to_reals(query))
        centre, _ = self.vae_.encode(origin)
        found = [np.empty((0, query.shape[1])) for _ in query]
        for shell in range(self.shells):
            if clock.is_out:
                return None
            open_ = np.array([i for i, rows in enumerate(found) if len(rows) < n])
            if not len(open_):
                break
            at = np.repeat(open_, self.draws)
            points = centre[at] + self._ring(len(at), shell, generator)
            rows = self.problem_.settle(self.vae_.layout.relax(self.vae_.decode(points, origin[at])), query[at])
            valid = self.problem_.judge(rows).argmax(axis=1) == wanted[at]
            for i in open_:
                found[i] = np.unique(np.concatenate([found[i], rows[valid & (at == i)]]), axis=0)
        return [self._nearest(rows, origin[i], n) for i, rows in enumerate(found)]

    def _ring(self, count: int, shell: int, generator: torch.Generator) -> Tensor:
        """Points of a shell around the origin: any direction, and a radius uniform between its two bounds."""
        direction = torch.randn(count, self.vae_.latent, generator=generator)
        radius = self.shell * (shell + torch.rand(count, 1, generator=generator))
        return radius * direction / direction.norm(dim=1, keepdim=True)

    def _nearest(self, rows: Values, origin: Tensor, n: int) -> Values:
        reals = torch.from_numpy(self.problem_.encoding.to_reals(rows))
        return rows[self.distance_(reals, origin).argsort()[:n].numpy()]
