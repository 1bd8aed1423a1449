"""The network of the default density while it is trained, in torch."""

from __future__ import annotations

__all__ = ["MixedNetwork"]

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dicoflex.generators.mixed.cells import Grid, Located
from dicoflex.generators.mixed.weights import Conditioning, MixedConfig, Weights
from dicoflex.runtime.own_torch import own_numbers
from dicoflex.runtime.threads import one_torch_thread
from dicoflex.values import differ


class _Running(torch.autograd.Function):
    """Running sums along the first axis, in place: torch's own would copy and flip the largest array of a step."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        for j in range(1, len(x)):
            x[j] += x[j - 1]
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(_: Any, *grads: torch.Tensor) -> torch.Tensor:
        grad = grads[0].clone()
        for j in range(len(grad) - 2, -1, -1):
            grad[j] += grad[j + 1]
        return grad


class MixedNetwork(nn.Module):
    """Logits of all factors at once, in the order drawn (d, n, states); so are `inner`, `outer` and their biases.

    A feature sees relu(context + sum of what is told of the features before it); what is told of a feature is a row of
    `prefix` for its cell, one for its place in the cell, and one if it was kept.
    """

    padding: torch.Tensor
    offset: torch.Tensor
    slope_offset: torch.Tensor
    order: torch.Tensor
    wide: torch.Tensor
    wide_before: torch.Tensor

    def __init__(self, grid: Grid, n_classes: int, config: MixedConfig) -> None:
        super().__init__()
        d, hidden, head = grid.n_features, config.hidden, config.head
        wide_cells = int(grid.size[grid.wide].sum())
        n_settings = d + n_classes + len(config.exponents) + len(config.confidences)
        spread = d**-0.5
        self.query = nn.Parameter(torch.randn(grid.n_cells, hidden) * spread)
        self.query_slope = nn.Parameter(torch.zeros(wide_cells, hidden))
        self.settings = nn.Parameter(torch.randn(n_settings, hidden) * spread)
        self.trunk = nn.Linear(hidden, hidden)
        self.prefix = nn.Parameter(torch.randn(grid.n_cells, hidden) * spread)
        self.prefix_slope = nn.Parameter(torch.zeros(wide_cells, hidden))
        self.prefix_kept = nn.Parameter(torch.randn(d, hidden) * spread)
        self.inner = nn.Parameter(torch.randn(d, hidden, head) * (2.0 / hidden) ** 0.5)
        self.inner_bias = nn.Parameter(torch.zeros(d, head))
        widest = int(grid.size.max()) + 1
        self.outer = nn.Parameter(torch.randn(d, head, widest) * head**-0.5)
        self.outer_bias = nn.Parameter(torch.zeros(d, widest))
        fixed = {
            "padding": np.arange(widest) > grid.size[grid.order, None],
            "offset": grid.offset[:-1],
            "slope_offset": grid.slope_offset,
            "order": grid.order,
            "wide": np.flatnonzero(grid.wide),
            "wide_before": np.flatnonzero(grid.wide[grid.order[:-1]]),
        }
        for name, array in fixed.items():
            self.register_buffer(name, torch.as_tensor(array), persistent=False)

    @classmethod
    def fresh(cls, grid: Grid, n_classes: int, config: MixedConfig, *, seed: int) -> MixedNetwork:
        """An untrained network; the caller's random numbers are left alone."""
        with own_numbers(seed):
            return cls(grid, n_classes, config)

    @classmethod
    def of(cls, grid: Grid, n_classes: int, config: MixedConfig, weights: Weights) -> MixedNetwork:
        """The network with these weights."""
        network = cls.fresh(grid, n_classes, config, seed=0)
        with one_torch_thread():
            network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        return network

    def arrays(self) -> Weights:
        """The weights as arrays of their own: torch may free or move its memory."""
        return {name: np.array(value.detach().cpu().numpy(), order="C") for name, value in self.state_dict().items()}

    def log_states(self, grid: Grid, asked: Conditioning, answers: Located) -> torch.Tensor:
        """The log probability of each feature's state, in the order drawn (n, d); 0 for one that can't change."""
        own, order = asked.own, grid.order
        kept = ~differ(answers.values, own.values)
        closed = _closed(kept[:, order], asked.stuck[:, order])

        def tensor(array: NDArray[Any]) -> torch.Tensor:
            return torch.as_tensor(array, device=self.query.device)

        logits = self(
            tensor(own.cell),
            tensor(own.where.astype(np.float32)),
            tensor(asked.settings),
            tensor(answers.cell),
            tensor(answers.where.astype(np.float32)),
            tensor(kept.astype(np.float32)),
        )
        dead = self.padding[:, None, :].repeat(1, len(kept), 1)
        dead.scatter_(2, tensor(own.cell[:, order].T)[:, :, None] + 1, tensor(own.alone[:, order].T)[:, :, None])
        dead[:, :, 0] |= tensor(closed.T)
        # A weight that is not finite must not make the loss so: the batch is then worth nothing, not the run.
        logits = torch.nan_to_num(logits, nan=0.0, posinf=1e4, neginf=-1e4).masked_fill(dead, -1e9)
        state = tensor(np.where(kept, 0, answers.cell + 1)[:, order].T)
        chosen = torch.log_softmax(logits, dim=2).gather(2, state[:, :, None])[:, :, 0]
        # A value that few rows have may lie in no cell, and then in that of the query alone: no draw is it, and it
        # teaches nothing.
        chosen = chosen.masked_fill(dead.gather(2, state[:, :, None])[:, :, 0], 0.0)
        return chosen.T.masked_fill(tensor(asked.stuck[:, order]), 0.0)

    def forward(
        self,
        own: torch.Tensor,
        own_where: torch.Tensor,
        settings: torch.Tensor,
        cell: torch.Tensor,
        where: torch.Tensor,
        kept: torch.Tensor,
    ) -> torch.Tensor:
        context = nn.functional.embedding_bag(self.offset + own, self.query, mode="sum") + settings @ self.settings
        if len(self.wide):
            slopes = (self.slope_offset + own)[:, self.wide]
            context = context + nn.functional.embedding_bag(
                slopes, self.query_slope, mode="sum", per_sample_weights=own_where[:, self.wide]
            )
        context = torch.relu(context)
        context = context + torch.relu(self.trunk(context))
        before = torch.cat([context[None], self._told(cell, where, kept)])
        h = torch.relu(_Running.apply(before))  # type: ignore[no-untyped-call]
        g = torch.relu(torch.baddbmm(self.inner_bias[:, None, :], h, self.inner))
        return torch.baddbmm(self.outer_bias[:, None, :], g, self.outer)

    def _told(self, cell: torch.Tensor, where: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        """What the features but the last tell those after them, in the order drawn (d - 1, n, hidden)."""
        before = self.order[:-1]
        told = nn.functional.embedding((self.offset + cell)[:, before].T, self.prefix)
        told = torch.addcmul(told, kept[:, before].T[:, :, None], self.prefix_kept[before, None, :])
        wide = before[self.wide_before]
        if len(wide):
            slope = nn.functional.embedding((self.slope_offset + cell)[:, wide].T, self.prefix_slope)
            told = told.index_add(0, self.wide_before, slope * where[:, wide].T[:, :, None])
        return told


def _closed(kept: NDArray[np.bool_], stuck: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where keeping is ruled out: at the last feature that can change, when all before it were kept."""
    free = ~stuck
    last = free & (np.cumsum(free[:, ::-1], axis=1)[:, ::-1] == 1)
    changed_before = np.cumsum(free & ~kept, axis=1) - (free & ~kept) > 0
    closed: NDArray[np.bool_] = last & ~changed_before
    return closed
