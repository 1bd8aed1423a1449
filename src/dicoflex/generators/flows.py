"""The paper's density: a conditional normalising flow over scaled numbers and one-hot levels (MAF, NICE, RealNVP).

A flow f maps a row's reals x' to noise z, given the context c, and has the density (change of variables)

    p(x' | x, y', p, m) = N(f(x'; c); 0, I) * |det df/dx'|,        c = [x, y', p, m]

x: the query's reals. y': the target class, one-hot. p: the sparsity exponent. m: 1 at the reals of frozen features.
f is a chain of transforms, each of which reads all of c and maps one number at a time by an affine function,

    z_i = x'_i * exp(alpha_i) + mu_i

    MAF        alpha_i and mu_i are functions of x'_{<i} in the transform's order, and of c
    RealNVP    of the half of x' that the transform leaves as it is, and of c
    NICE       mu_i as in RealNVP, alpha_i = 0; one learned alpha per real at the end of the chain

so log |det df/dx'| is the sum of all alpha_i. zuko holds the weights and gives the gradient. Densities and draws of a
fitted flow go through one compiled pass in float64 instead: a matrix product may round differently when the batch
has another shape, and a query's draws may not depend on its neighbours in the batch.

Departures from the paper, with the reason:

- The likelihood is that of the reals plus Gaussian noise: `noise` on one-hot columns (dequantisation) and a little
  `number_noise` on numbers. Without it the density of a point mass, such as 0 in a capital gain, has no upper bound.
- |alpha_i| < log 1000, zuko's bound alpha = a / (1 + |a| / log 1000) on the network's output a, for stability.
- "5 hidden layers" can mean the chain or its networks; it is read as a chain of 5 transforms, whose networks have
  `hidden_layers` layers of 32 units.
- MAF's orders are random and its units spread over them (`_spread_degrees`): with orders up and down and 32 units, the
  middle ones of 66 reals would be read by no unit of any transform."""

from __future__ import annotations

__all__ = ["FlowConfig", "Maf", "MafConfig", "Nice", "NiceConfig", "RealNvp", "RealNvpConfig"]

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from math import log, pi
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dicoflex._types import Arrays
from dicoflex.errors import ModelFileError
from dicoflex.generators.base import PAPER_FIT, PAPER_TRAINING, Context, GeneratorConfig, Table, one_hot
from dicoflex.generators.flow_pass import (
    NOISE,
    SCALING,
    TRANSFORM,
    FlowConfig,
    Program,
    Shapes,
    by_transform,
    condition,
    couplings,
    hyper,
    network_of,
    pack,
    run,
)
from dicoflex.generators.on_reals import blocks, dequantise, settle
from dicoflex.limits.limits import Limits
from dicoflex.model_file.taking import refuse_others, taken
from dicoflex.runtime.randomness import uniforms
from dicoflex.table.encoding import Encoding, Values

if TYPE_CHECKING:
    import torch

    from dicoflex.generators.flow_network import Flow


class MafConfig(FlowConfig):
    """Settings of the masked autoregressive flow."""


class NiceConfig(FlowConfig):
    """Settings of the flow with additive coupling."""


class RealNvpConfig(FlowConfig):
    """Settings of the flow with affine coupling."""


class _Flow(ABC):
    """What the three flows share: all but the arrays of their transforms."""

    name: ClassVar[str]
    Config: ClassVar[type[GeneratorConfig]]
    is_judged: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False
    fit_defaults: ClassVar[dict[str, Any]] = PAPER_FIT
    training_defaults: ClassVar[dict[str, Any]] = PAPER_TRAINING

    def __init__(
        self,
        encoding: Encoding,
        n_classes: int,
        config: GeneratorConfig,
        *,
        seed: int = 0,
        arrays: Arrays | None = None,
    ) -> None:
        if not isinstance(config, FlowConfig):
            raise TypeError(f"the settings of {self.name!r} are a {self.Config.__name__}, got {type(config).__name__}")
        self.config: GeneratorConfig = config
        self.encoding = encoding
        self.n_classes = n_classes
        self._settings = config
        self._arrays = arrays
        self._flow = self._fresh(seed) if arrays is None else None

    @property
    def _n_context(self) -> int:
        return 2 * self.encoding.n_reals + self.n_classes + 1

    def _fresh(self, seed: int) -> Flow:
        from dicoflex.generators.flow_network import fresh

        return fresh(self.name, self.encoding.n_reals, self._n_context, self._settings, seed=seed)

    @property
    def flow(self) -> Flow:
        """zuko's flow with the present weights; from now on it holds them. To answer, none is needed."""
        if self._flow is None:
            from dicoflex.generators.flow_network import holding

            self._flow = holding(self._fresh(0), self._arrays or {})
            self._arrays = None
        return self._flow

    @staticmethod
    @abstractmethod
    def _transforms(n_reals: int, n_context: int, config: FlowConfig) -> Iterator[Shapes]:
        """The arrays of each transform of such a flow, by zuko's names."""

    @classmethod
    def create(cls, table: Table, config: GeneratorConfig, *, seed: int) -> Self:
        """An untrained flow for `table`, with weights drawn from `seed`."""
        return cls(table.encoding, table.n_classes, config, seed=seed)

    @classmethod
    def restore(cls, encoding: Encoding, n_classes: int, config: GeneratorConfig, state: Arrays) -> Self:
        """The flow that `state` was taken from; wrong names, dtypes or shapes are a `ModelFileError`."""
        restored = cls(encoding, n_classes, config, arrays=state)
        settings = restored._settings
        if settings.layers * (settings.hidden_layers + 1) > len(state):
            raise ModelFileError("the model file has fewer arrays than its settings say layers; fit and save again")
        wanted: Shapes = dict.fromkeys(NOISE, (np.float32, (encoding.n_reals,)))
        for i, own in enumerate(cls._transforms(encoding.n_reals, restored._n_context, settings)):
            wanted |= {f"{TRANSFORM}{i}.{name}": expected for name, expected in own.items()}
        for name, (dtype, shape) in wanted.items():
            taken(state, name, dtype, shape)
        refuse_others(state, wanted)
        restored._program()
        return restored

    def state(self) -> Arrays:
        """Weights, masks and orders by zuko's names."""
        return {name: array.copy() for name, array in self._present().items()}

    def _present(self) -> Arrays:
        if self._flow is None:
            return self._arrays or {}
        from dicoflex.generators.flow_network import arrays_of

        return arrays_of(self._flow)

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """The weights of all networks."""
        yield from self.flow.parameters()

    def to(self, device: torch.device) -> Self:
        """Move the weights to `device`; densities and draws are computed on the CPU wherever the weights are."""
        self.flow.to(device)
        return self

    def loss(self, context: Context, answers: Values, generator: torch.Generator) -> torch.Tensor:
        """The mean negative log likelihood of the answers' reals plus noise, with a gradient; always finite."""
        from dicoflex.generators.flow_network import loss

        device = next(iter(self.parameters())).device
        noise, number_noise = self._settings.noise, self._settings.number_noise
        x = dequantise(self.encoding, answers, noise, number_noise, generator=generator).to(device)
        return loss(self.flow, x, x.new_tensor(self._conditions(context)))

    def log_prob(
        self, context: Context, answers: Values, of: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:  # fmt: skip
        """The log density at the answers' reals without noise, per unit of standardised numbers and one-hot columns."""
        program = self._program()
        context, density = context if of is None else context.take(of), np.empty(len(answers))
        for at, _ in blocks(len(context), 1):
            z = self.encoding.to_reals(answers[at]).astype(np.float64)
            hidden = condition(program, self._conditions(context.take(at)))
            log_det = run(program, hidden, z, 1, False)
            density[at] = -0.5 * (z**2 + log(2 * pi)).sum(axis=1) + log_det
        return np.where(np.isnan(density), -np.inf, density)

    def sample(
        self,
        context: Context,
        n: int,
        keys: NDArray[np.uint64],
        first: int | NDArray[np.int64],
        limits: Limits | None = None,
    ) -> tuple[Values, None]:
        """Draws x' = f^-1(z; c), z standard normal from each key's stream: (len(context), n, d).

        Their densities are left to `log_prob`: that of x' is not that of the row which x' is decoded to.
        """
        program = self._program()
        width = self.encoding.n_reals
        start = np.broadcast_to(first, len(context))
        draws = np.empty((len(context), n, len(self.encoding.schema)))
        for at, turn in blocks(len(context), n):
            some, count = context.take(at), turn.stop - turn.start
            reals = ndtri(uniforms(keys[at], (start[at] + turn.start) * width, count * width)).reshape(-1, width)
            run(program, condition(program, self._conditions(some)), reals, count, True)
            within = None if limits is None else limits.take(at)
            draws[at, turn] = settle(self.encoding, some, reals.reshape(len(some), count, width), within)
        return draws, None

    def _conditions(self, context: Context) -> NDArray[np.float32]:
        """The paper's context vector c = [x, y', p, m], one row per query; a confidence is no part of it."""
        onehot = one_hot(context.target, self.n_classes)
        p = context.p[:, None].astype(np.float32)
        m = self.encoding.real_mask(context.frozen).astype(np.float32)
        return np.concatenate([self.encoding.to_reals(context.query), onehot, p, m], axis=1)

    def _program(self) -> Program:
        """The present weights, laid out for the core."""
        width = self.encoding.n_reals
        transforms = by_transform(self._present())
        chain = [pack(network_of(own, width, self._n_context, self._settings), width) for own in transforms]
        return Program(*(np.ascontiguousarray(np.stack(arrays)) for arrays in zip(*chain, strict=True)))


class Maf(_Flow):
    """The paper's choice: a masked autoregressive flow (Papamakarios et al. 2017), in a random order per transform."""

    name: ClassVar[str] = "maf"
    Config: ClassVar[type[GeneratorConfig]] = MafConfig

    @staticmethod
    def _transforms(n_reals: int, n_context: int, config: FlowConfig) -> Iterator[Shapes]:
        for _ in range(config.layers):
            if n_reals == 1:
                yield hyper(n_context, 2, config)
            else:
                order = {"order": (np.int64, (n_reals,))}
                yield order | hyper(n_reals + n_context, 2 * n_reals, config, masked=True)


class RealNvp(_Flow):
    """A flow with affine coupling (Dinh et al. 2017), on even and odd reals in turn."""

    name: ClassVar[str] = "realnvp"
    Config: ClassVar[type[GeneratorConfig]] = RealNvpConfig

    @staticmethod
    def _transforms(n_reals: int, n_context: int, config: FlowConfig) -> Iterator[Shapes]:
        yield from couplings(n_reals, n_context, config, parameters=2)


class Nice(_Flow):
    """A flow with additive coupling and one scale per real at the end (Dinh et al. 2014)."""

    name: ClassVar[str] = "nice"
    Config: ClassVar[type[GeneratorConfig]] = NiceConfig

    @staticmethod
    def _transforms(n_reals: int, n_context: int, config: FlowConfig) -> Iterator[Shapes]:
        yield from couplings(n_reals, n_context, config, parameters=1)
        yield dict.fromkeys(SCALING, (np.float32, (n_reals,)))
