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
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Floats
from dicoflex.generators.base import Context, GeneratorConfig, Table
from dicoflex.generators.mixed.cells import EACH, Grid, Located
from dicoflex.generators.mixed.kernels import density_of, draw, score
from dicoflex.generators.mixed.weights import Conditioning, MixedConfig, Weights, shapes
from dicoflex.limits.limits import Limits
from dicoflex.model_file.taking import refuse_others, taken
from dicoflex.table.encoding import Encoding, Values
from dicoflex.values import differ

if TYPE_CHECKING:
    import torch

    from dicoflex.generators.mixed.network import MixedNetwork


class Mixed:
    """See the module's text; the weights are trained, `grid` is settled by the training rows.

    The weights are plain arrays, or stand in a torch network while they are trained. `codes` says by which numbers each
    target is told: for classes, a one at the place of its own.
    """

    name: ClassVar[str] = "mixed"
    Config: ClassVar[type[GeneratorConfig]] = MixedConfig
    is_judged: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = False
    fit_defaults: ClassVar[dict[str, Any]] = {}
    training_defaults: ClassVar[dict[str, Any]] = {
        "epochs": 14,
        "batch_size": 1024,
        "learning_rate": 4e-3,
        "schedule": "cosine",
        "patience": 300,
        "weight_decay": 0.2,
        "min_steps": 600,
    }

    def __init__(self, grid: Grid, n_classes: int, config: MixedConfig, weights: Weights | None = None) -> None:
        self.grid, self.n_classes = grid, n_classes
        self.config: MixedConfig = config
        self.codes = np.eye(n_classes, dtype=np.float32)
        self._weights = weights
        self._network: MixedNetwork | None = None
        self._density: _core.Density | None = None
        self._last: tuple[bytes, Located] | None = None

    @classmethod
    def create(cls, table: Table, config: GeneratorConfig, *, seed: int) -> Self:
        """An untrained density whose cells follow the rows of `table`."""
        from dicoflex.generators.mixed.network import MixedNetwork

        assert isinstance(config, MixedConfig)
        sizes = {"max_cells": config.max_cells, "min_count": table.min_count}
        model = cls(Grid.build(table.encoding, table.values, **sizes), table.n_classes, config)
        model._network = MixedNetwork.fresh(model.grid, table.n_classes, config, seed=seed)
        return model

    @classmethod
    def restore(
        cls, encoding: Encoding, n_classes: int, config: GeneratorConfig, state: dict[str, NDArray[Any]]
    ) -> Self:
        """The density that `state` was taken from; arrays that don't fit are a `ModelFileError`."""
        assert isinstance(config, MixedConfig)
        grid = Grid.from_state(state, encoding.schema)
        wanted = shapes(grid, n_classes, config)
        weights = {name: taken(state, f"net.{name}", np.float32, shape) for name, shape in wanted.items()}
        refuse_others(state, [*grid.state(), *(f"net.{name}" for name in wanted)])
        return cls(grid, n_classes, config, weights)

    def state(self) -> dict[str, NDArray[Any]]:
        """The grid's and the network's arrays."""
        return {**self.grid.state(), **{f"net.{name}": array for name, array in self._arrays().items()}}

    def __getstate__(self) -> dict[str, Any]:
        """Plain arrays alone: nothing of torch's, and nothing of the core's, goes to another process."""
        return self.__dict__ | {"_weights": self._arrays(), "_network": None, "_density": None, "_last": None}

    def _arrays(self) -> Weights:
        if self._network is not None:
            return self._network.arrays()
        assert self._weights is not None
        return self._weights

    # -- training -----------------------------------------------------------------------------------------------

    @property
    def network(self) -> MixedNetwork:
        """The network with the present weights; from now on it holds them."""
        from dicoflex.generators.mixed.network import MixedNetwork

        if self._network is None:
            self._network = MixedNetwork.of(self.grid, self.n_classes, self.config, self._arrays())
        return self._network

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """The network's weights."""
        return self.network.parameters()

    def to(self, device: torch.device) -> Self:
        """Move the network to `device`."""
        self.network.to(device)
        self._density = None
        return self

    def loss(self, context: Context, answers: Values, generator: torch.Generator) -> torch.Tensor:  # noqa: ARG002
        """The mean negative log probability of the answers' states.

        What is left out, the density inside the cells, does not depend on any weight. Nothing is noised, so
        `generator` is not used.
        """
        self._density = None
        states = self.network.log_states(self.grid, self._conditions(context), self.grid.locate(answers))
        return -states.sum(dim=1).mean()

    # -- answering ----------------------------------------------------------------------------------------------

    def log_prob(self, context: Context, answers: Values, of: NDArray[np.int64] | None = None) -> Floats:
        """The exact log density: counting measure on levels, atoms and runs, length in original units on intervals."""
        asked, found = self._conditions(context), self.grid.locate(answers)
        own = EACH if of is None or len(context) == 1 else of
        kept = ~differ(answers, context.query[own])
        states = score(self._core_density(), asked, np.arange(len(answers)) if of is None else of, found, kept)
        inside = np.where(kept, 0.0, -self.grid.log_size(found.cell, asked.own, own)).sum(axis=1)
        possible = kept | (found.exact & ~asked.stuck[own])
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
        """Draws and their log densities, by ancestral sampling; see `kernels`."""
        return draw(
            self.grid, self._core_density(), self._conditions(context), n, keys=keys, first=first, limits=limits
        )

    def aimed(self, code: NDArray[np.float32], n_classes: int, target: int) -> Self:
        """A density of `n_classes` whose class `target` is what `code` tells this one; the others mean nothing."""
        weights, d = self._arrays(), self.grid.n_features
        own = weights["settings"]
        told = np.zeros((n_classes, own.shape[1]), dtype=np.float32)
        told[target] = code @ own[d : d + self.n_classes]
        settings = np.concatenate([own[:d], told, own[d + self.n_classes :]])
        return type(self)(self.grid, n_classes, self.config, {**weights, "settings": settings})

    def _conditions(self, context: Context) -> Conditioning:
        return Conditioning.of(self.config, self.codes, context, self._located(context.query))

    def _located(self, query: Values) -> Located:
        """Where queries lie among the cells; a single one is drawn for several times, so the last one is kept."""
        if len(query) != 1:
            return self.grid.locate(query)
        key, last = query.tobytes(), self._last
        if last is None or last[0] != key:
            last = self._last = key, self.grid.locate(query.copy())
        return last[1]

    def _core_density(self) -> _core.Density:
        """The present weights, laid out for the core; kept until a training step or a move changes them."""
        if self._density is None:
            self._density = density_of(self._arrays(), self.grid)
        return self._density
