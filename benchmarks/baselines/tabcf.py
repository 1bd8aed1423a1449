"""TABCF (Panagiotou et al. 2024): gradient search in the latent space of a transformer autoencoder.

Each feature is a token; the latent point has a few coordinates per token. Levels come out of the decoder through a
straight-through Gumbel-softmax, so that the black box sees one level and the search still gets a gradient.
"""

from __future__ import annotations

__all__ = ["Tabcf", "TokenVae"]

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.baselines.base import Answers, Clock, Needs, Problem, answer_in_batches
from benchmarks.baselines.descent import Descent, Schedule, hinge
from benchmarks.baselines.vae import Layout, Vae, trained
from dicoflex.table.encoding import Values


class TokenVae(Vae):
    """Tokens of the features, mixed by attention before and after a latent point with `latent` coordinates each."""

    def __init__(self, layout: Layout, *, width: int = 16, latent: int = 4, layers: int = 2) -> None:
        super().__init__(layout)
        self.tokens = len(layout.blocks)
        self.tokenise = _PerFeature(layout, width)
        self.encoder = _transformer(width, layers)
        self.to_latent = nn.Linear(width, 2 * latent)
        self.from_latent = nn.Linear(latent, width)
        self.places = nn.Parameter(0.1 * torch.randn(self.tokens, width))
        self.decoder = _transformer(width, layers)
        self.detokenise = _PerFeature(layout, width, back=True)

    def encode(self, reals: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of each row's latent point."""
        tokens = self.tokenise(reals).unflatten(1, (self.tokens, -1))
        mean, log_variance = self.to_latent(self.encoder(tokens)).chunk(2, dim=2)
        return mean.flatten(1), log_variance.flatten(1).clamp(-10.0, 10.0)

    def decode(self, latent: Tensor, known: Tensor) -> Tensor:  # noqa: ARG002
        """The raw output at some latent points."""
        tokens = self.from_latent(latent.unflatten(1, (self.tokens, -1))) + self.places
        return self.detokenise(self.decoder(tokens).flatten(1))


class _PerFeature(nn.Module):
    """A linear layer from each feature's block of reals to its token of `width`, or back."""

    def __init__(self, layout: Layout, width: int, *, back: bool = False) -> None:
        super().__init__()
        mask = torch.zeros(layout.width, len(layout.blocks) * width)
        for i, block in enumerate(layout.blocks):
            mask[block, i * width : (i + 1) * width] = 1.0
        mask = mask.T.contiguous() if back else mask
        self.register_buffer("mask", mask)
        self.weight = nn.Parameter(mask * torch.randn(mask.shape) / (width**0.5 if back else 1.0))
        self.bias = nn.Parameter(torch.zeros(mask.shape[1]))

    def forward(self, inputs: Tensor) -> Tensor:
        """All blocks at once: what does not belong together has weight zero."""
        return inputs @ (self.weight * self.mask) + self.bias


def _transformer(width: int, layers: int) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(width, 1, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


@dataclass
class Tabcf:
    """Least weight · hinge loss of the target + d(x, G(z)), from z at the query's own latent mean.

    The divergence has next to no weight in training, as in the article: the query must come back from its latent point.
    """

    name: ClassVar[str] = "tabcf"
    needs: ClassVar[Needs] = "gradients"
    many: ClassVar[bool] = False

    steps: int = 3000
    beta: float = 0.01
    heat: float = 1.0
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=400, rate=0.4))

    def fit(self, problem: Problem, *, seed: int = 0, seconds: float | None = None) -> Self:
        """Train the autoencoder on the training rows."""
        self.problem_, self.seed_ = problem, seed
        self.descent_ = Descent.of(problem, self.name, miss=hinge, schedule=self.schedule)
        self.vae_ = trained(TokenVae, problem, beta=self.beta, steps=self.steps, batch=128, seed=seed, seconds=seconds)
        return self

    def answer(self, queries: pd.DataFrame, targets: Any, *, n: int = 1, seconds: float | None = None) -> Answers:  # noqa: ARG002
        """One answer for each query, valid or the surest found."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed_)
            return answer_in_batches(self.problem_, queries, targets, self._solve, size=128, seconds=seconds)

    def _solve(self, query: Values, wanted: NDArray[np.int64], clock: Clock) -> list[Values] | None:
        origin = torch.from_numpy(self.problem_.encoding.to_reals(query))
        kept, layout = torch.from_numpy(self.problem_.kept_reals), self.vae_.layout

        def decode(latent: Tensor) -> Tensor:
            return torch.where(kept, origin, layout.draw(self.vae_.decode(latent, origin), heat=self.heat))

        def settled(latent: Tensor) -> Tensor:
            return layout.relax(self.vae_.decode(latent, origin))

        start = self.vae_.encode(origin)[0]
        return self.descent_.run(query, wanted, clock, start=start, decode=decode, settled=settled)
