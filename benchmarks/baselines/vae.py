"""Variational autoencoders of mixed rows: their blocks of reals, likelihood and training, and the usual network.

A decoder's output is *raw*: a mean for each number, logits for each one-hot block. Numbers have a Gaussian likelihood
with one learned deviation each, levels a categorical one.
"""

from __future__ import annotations

__all__ = ["Layout", "PlainVae", "Vae", "trained"]

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.baselines.base import Clock, Problem, one_thread
from dicoflex.table.encoding import Encoding

LEAST_LOG_DEVIATION = -4.0  # a number that is reproduced exactly would have no finite likelihood


class Layout:
    """Which reals are numbers and which make up one-hot blocks, and what a decoder's raw output says about each."""

    def __init__(self, encoding: Encoding) -> None:
        self.width = encoding.n_reals
        self.blocks = encoding.blocks
        self.numbers = torch.from_numpy(~encoding.is_onehot)
        parts = []
        for feature, block in zip(encoding.schema.features, encoding.blocks, strict=True):
            if feature.is_number:
                parts.append(slice(block.start, block.start + 1))
            if not feature.is_number or feature.missing:
                parts.append(slice(block.start + int(feature.is_number), block.stop))
        self.parts = parts

    def relax(self, raw: Tensor) -> Tensor:
        """Reals with a probability for each level."""
        return self._by_block(raw, lambda logits: logits.softmax(dim=-1))

    def draw(self, raw: Tensor, *, heat: float) -> Tensor:
        """Reals with one level drawn per block, through which gradients pass as through a softmax (Gumbel-softmax)."""
        return self._by_block(raw, lambda logits: functional.gumbel_softmax(logits, tau=heat, hard=True))

    def surprise(self, raw: Tensor, reals: Tensor, log_deviation: Tensor) -> Tensor:
        """Per real, its part of the negative log likelihood: summed over a row, that of the row."""
        scaled = (reals - raw) * torch.exp(-log_deviation)
        of_number = 0.5 * scaled**2 + log_deviation
        of_level = -reals * self._by_block(raw, lambda logits: logits.log_softmax(dim=-1))
        return torch.where(self.numbers, of_number, of_level)

    def _by_block(self, raw: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
        pieces = [raw[:, part] if self.numbers[part.start] else change(raw[:, part]) for part in self.parts]
        return torch.cat(pieces, dim=1)


class Vae(nn.Module, ABC):
    """What training and search ask of an autoencoder."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.log_deviation = nn.Parameter(torch.zeros(layout.width))

    @abstractmethod
    def encode(self, reals: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of each row's latent point."""

    @abstractmethod
    def decode(self, latent: Tensor, known: Tensor) -> Tensor:
        """The raw output at some latent points; `known` are rows whose immutable reals it may look at."""


class PlainVae(Vae):
    """Two perceptrons; with immutable reals, the decoder is told them and need not learn them (a conditional VAE)."""

    def __init__(self, layout: Layout, kept: NDArray[np.bool_], *, latent: int = 16, hidden: int = 128) -> None:
        super().__init__(layout)
        self.latent = latent
        self.kept = torch.from_numpy(kept)
        self.encoder = _perceptron(layout.width, hidden, 2 * latent)
        self.decoder = _perceptron(latent + int(kept.sum()), hidden, layout.width)

    def encode(self, reals: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of each row's latent point."""
        mean, log_variance = self.encoder(reals).chunk(2, dim=1)
        return mean, log_variance.clamp(-10.0, 10.0)

    def decode(self, latent: Tensor, known: Tensor) -> Tensor:
        """The raw output at some latent points, given the immutable reals of `known`."""
        return self.decoder(torch.cat([latent, known[:, self.kept]], dim=1))


def _perceptron(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, outputs)
    )


def trained(
    build: Callable[[Layout], Vae],
    problem: Problem,
    *,
    beta: float,
    steps: int,
    batch: int = 256,
    rate: float = 2e-3,
    seed: int,
    seconds: float | None,
) -> Vae:
    """An autoencoder of the training rows, after `steps` of Adam with a rate that falls as a cosine, or fewer in time.

    beta: the weight of the divergence from the prior. Immutable reals need not be reproduced.
    """
    clock = Clock(seconds, problem.now)
    reals, free = problem.reals, torch.from_numpy(~problem.kept_reals).float()
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        vae = build(Layout(problem.encoding))
        optimiser = torch.optim.Adam(vae.parameters(), lr=rate)
        for step in range(steps):
            done = max(step / steps, clock.share)
            if done >= 1.0:
                break
            optimiser.param_groups[0]["lr"] = rate * 0.5 * (1.0 + math.cos(math.pi * done))
            loss = _loss(vae, reals[torch.randint(len(reals), (min(batch, len(reals)),))], free, beta)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return vae.requires_grad_(False).eval()


def _loss(vae: Vae, rows: Tensor, free: Tensor, beta: float) -> Tensor:
    """The negative evidence lower bound of a batch, per row."""
    mean, log_variance = vae.encode(rows)
    raw = vae.decode(mean + torch.randn_like(mean) * (0.5 * log_variance).exp(), rows)
    surprise = (vae.layout.surprise(raw, rows, vae.log_deviation.clamp(min=LEAST_LOG_DEVIATION)) * free).sum(dim=1)
    divergence = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
    return (surprise + beta * divergence).mean()
