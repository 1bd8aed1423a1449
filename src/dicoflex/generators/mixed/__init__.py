"""The default density: autoregressive over features, mixed types, exact likelihood, with a *keep* state.

    p(x' | x, y', p, m, c) = prod_j p_j(x'_j | x'_{<j}, x, y', p, m, c)

Each factor is a softmax over the *states* of feature j. State 0 is "keep": x'_j is exactly x_j. The others are the
cells of a `Grid`, the query's own value taken out of them, so that changing and keeping exclude each other: a level,
an atom, one of a run of equally spaced numbers, or a point of an interval with constant density. A factor over
intervals is the derivative of a monotone piecewise linear spline, so the numbers are an autoregressive flow whose
splines have jumps where the data has point masses. Frozen features have no factor: they equal the query's and are
only conditioned on. A draw that kept all changeable features but the last must change that one: the query itself has
probability zero.

Features are drawn in the order of `Grid`: levels, then numbers, the least spread first. Most draws of a query then
begin alike, and the sampler does what they share once.

Departures from the paper: features, not one-hot columns, are the steps; levels are drawn as levels, without noise;
p and c enter through a piecewise linear embedding, so that any value between the trained ones can be asked for; c,
the least probability that the black box should give to y', is new.
"""

from __future__ import annotations

__all__ = ["Mixed", "MixedConfig"]

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import nn

from dicoflex.errors import ModelFileError
from dicoflex.generators.base import Context, GeneratorConfig, Table
from dicoflex.generators.mixed.cells import Grid
from dicoflex.generators.mixed.kernels import Net, draw, score
from dicoflex.limits.limits import Limits
from dicoflex.table.encoding import Encoding, Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class MixedConfig(GeneratorConfig):
    """Sizes of the density: `hidden` units see query and prefix, `head` units per feature shape its factor."""

    hidden: int = Field(default=96, ge=1)
    head: int = Field(default=32, ge=1)
    max_cells: int = Field(default=96, ge=2)
    exponents: tuple[float, ...] = (0.01, 0.08, 0.25, 1.0, 2.0)
    confidences: tuple[float, ...] = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


class Mixed:
    """See the module's text; `net` is trained, `grid` is settled by the training rows."""

    name: ClassVar[str] = "mixed"
    Config: ClassVar[type[GeneratorConfig]] = MixedConfig

    def __init__(self, grid: Grid, n_classes: int, config: MixedConfig) -> None:
        self.grid = grid
        self.config: GeneratorConfig = config
        self.exponents, self.confidences = config.exponents, config.confidences
        self.n_classes = n_classes
        self.net = _Net(grid, n_classes, config)
        self._net: Net | None = None

    @classmethod
    def create(cls, table: Table, config: GeneratorConfig, *, seed: int) -> Self:
        """An untrained density whose cells follow the rows of `table`."""
        assert isinstance(config, MixedConfig)
        grid = Grid.build(table.encoding, table.values, max_cells=config.max_cells)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(grid, table.n_classes, config)

    @classmethod
    def restore(
        cls, encoding: Encoding, n_classes: int, config: GeneratorConfig, state: dict[str, NDArray[Any]]
    ) -> Self:
        """The density that `state` was taken from."""
        assert isinstance(config, MixedConfig)
        grid = Grid.from_state(state, n_features=len(encoding.schema))
        model = cls(grid, n_classes, config)
        for name, own in model.state().items():
            if name not in state or state[name].shape != own.shape:
                raise ModelFileError(
                    f"the model file's array {name!r} is absent or has another shape than its header says"
                )
        unknown = sorted(set(state) - set(model.state()))
        if unknown:
            raise ModelFileError(f"the model file has an array {unknown[0]!r} that the generator does not know")
        weights = {k.removeprefix("net."): torch.from_numpy(v) for k, v in state.items() if k.startswith("net.")}
        model.net.load_state_dict(weights)
        return model

    def state(self) -> dict[str, NDArray[Any]]:
        """The grid's and the network's arrays."""
        weights = {f"net.{name}": value.detach().cpu().numpy().copy() for name, value in self.net.state_dict().items()}
        return {**self.grid.state(), **weights}

    def parameters(self) -> Iterable[nn.Parameter]:
        """The network's weights."""
        return self.net.parameters()

    def to(self, device: torch.device) -> Self:
        """Move the network to `device`."""
        self.net.to(device)
        self._net = None
        return self

    def loss(self, context: Context, answers: Values, generator: torch.Generator) -> torch.Tensor:  # noqa: ARG002
        """The mean negative log probability of the answers' states.

        What is left out, the density inside the cells, does not depend on any weight. Nothing is noised, so
        `generator` is not used.
        """
        self._net = None
        return -self._log_states(context, answers).sum(dim=1).mean()

    def log_prob(self, context: Context, answers: Values) -> Floats:
        """The exact log density: counting measure on levels, atoms and runs, length in original units on intervals."""
        own, own_where = self.grid.locate(context.query)
        cell, where = self.grid.locate(answers)
        kept = ~differ(answers, context.query)
        stuck = self._stuck(context)
        states = score(
            self.grid, self._packed(), self._settings(context), own, own_where, self._alone(context.query, own),
            stuck, cell, where, kept,
        )  # fmt: skip
        inside = np.where(kept, 0.0, -self.grid.log_size(cell, context.query)).sum(axis=1)
        possible = kept | (self.grid.holds(answers, cell) & ~stuck)
        total: Floats = np.where(possible.all(axis=1), states + inside, -np.inf)
        return total

    def sample(
        self,
        context: Context,
        n: int,
        keys: NDArray[np.uint64],
        first: int | NDArray[np.int64],
        limits: Limits | None = None,
    ) -> tuple[Values, Floats]:
        """Draws and their log densities, by ancestral sampling, compiled; see `mixed_sampler`."""
        own, where = self.grid.locate(context.query)
        alone = self._alone(context.query, own)
        return draw(
            self.grid, self._packed(), context, self._settings(context), own, where, alone, n, keys, first, limits
        )

    def _packed(self) -> Net:
        """The present weights, laid out for the sampler; kept until a training step or a move changes them."""
        if self._net is None:
            self._net = Net.pack(self.net.arrays(), self.grid)
        return self._net

    def _alone(self, query: Values, own: Ints) -> NDArray[np.bool_]:
        """Where the query's own cell holds nothing but the query's value."""
        at = self.grid.offset[:-1] + own
        alone: NDArray[np.bool_] = (self.grid.count[at] == 1) & self.grid.holds(query, own)
        return alone

    def _stuck(self, context: Context) -> NDArray[np.bool_]:
        """Where a feature can't change: it is frozen, or has no other value."""
        stuck: NDArray[np.bool_] = context.frozen | (self.grid.n_others(context.query) == 0)
        return stuck

    def _log_states(self, context: Context, answers: Values) -> torch.Tensor:
        """The log probability of each feature's state, in the order drawn (n, d); 0 for one that can't change."""
        own, own_where = self.grid.locate(context.query)
        cell, where = self.grid.locate(answers)
        kept = ~differ(answers, context.query)
        stuck = self._stuck(context)
        order = self.grid.order
        closed = _closed(kept[:, order], stuck[:, order])
        device = next(iter(self.net.parameters())).device

        def tensor(array: NDArray[Any]) -> torch.Tensor:
            return torch.as_tensor(array, device=device)

        settings = self._settings(context)
        logits = self.net(
            tensor(own),
            tensor(own_where.astype(np.float32)),
            tensor(settings),
            tensor(cell),
            tensor(where.astype(np.float32)),
            tensor(kept.astype(np.float32)),
        )
        dead = self.net.padding[:, None, :].repeat(1, len(own), 1)
        alone = self._alone(context.query, own)
        dead.scatter_(2, tensor(own[:, order].T)[:, :, None] + 1, tensor(alone[:, order].T)[:, :, None])
        dead[:, :, 0] |= tensor(closed.T)
        # A weight that is not finite must not make the loss so: the batch is then worth nothing, not the run.
        logits = torch.nan_to_num(logits, nan=0.0, posinf=1e4, neginf=-1e4).masked_fill(dead, -1e9)
        state = tensor(np.where(kept, 0, cell + 1)[:, order].T)
        chosen = torch.log_softmax(logits, dim=2).gather(2, state[:, :, None])[:, :, 0]
        return chosen.T.masked_fill(tensor(stuck[:, order]), 0.0)

    def _settings(self, context: Context) -> NDArray[np.float32]:
        """Everything but the query as one row of weights: frozen, target, and where p and c lie among their knots."""
        target = np.eye(self.n_classes)[context.target]
        p = _knots(np.log(context.p), np.log(self.exponents))
        confidence = _knots(context.confidence, self.confidences)
        return np.concatenate([context.frozen, target, p, confidence], axis=1).astype(np.float32)


def _closed(kept: NDArray[np.bool_], stuck: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where keeping is ruled out: at the last feature that can change, when all before it were kept."""
    free = ~stuck
    last = free & (np.cumsum(free[:, ::-1], axis=1)[:, ::-1] == 1)
    changed_before = np.cumsum(free & ~kept, axis=1) - (free & ~kept) > 0
    closed: NDArray[np.bool_] = last & ~changed_before
    return closed


def _knots(values: Floats, knots: Any) -> Floats:
    """Each value as weights of the knots (n, knots): linear interpolation between its two neighbours."""
    grid = np.asarray(knots, dtype=float)
    at = np.interp(values, grid, np.arange(len(grid)))
    return np.maximum(0.0, 1.0 - np.abs(at[:, None] - np.arange(len(grid))))


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


class _Net(nn.Module):
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

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights as contiguous arrays, for the compiled sampler."""
        return {k: np.ascontiguousarray(v.detach().cpu().numpy()) for k, v in self.named_parameters()}
