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
from collections.abc import Iterable
from math import log, pi
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import ndtri
from zuko.flows import MAF, NICE, RealNVP
from zuko.flows.autoregressive import MaskedAutoregressiveTransform
from zuko.flows.coupling import GeneralCouplingTransform
from zuko.lazy import Flow, LazyTransform, UnconditionalTransform
from zuko.transforms import AdditiveTransform, MonotonicAffineTransform

from dicoflex.errors import ModelFileError, named
from dicoflex.generators.base import PAPER_FIT, PAPER_TRAINING, Context, GeneratorConfig, Table
from dicoflex.generators.flow_pass import Network, Program, condition, pack, run
from dicoflex.generators.on_reals import blocks, dequantise, settle
from dicoflex.limits.limits import Limits
from dicoflex.runtime.own_torch import own_numbers
from dicoflex.runtime.randomness import uniforms
from dicoflex.runtime.threads import one_torch_thread
from dicoflex.table.encoding import Encoding, Values

HOPELESS = 1e8


class FlowConfig(GeneratorConfig):
    """Settings of a flow; the defaults are the paper's.

    layers: transforms in the chain. hidden_features, hidden_layers: width and depth of each transform's network.
    noise, number_noise: standard deviation of the noise on one-hot columns and on standardised numbers in training.
    """

    layers: int = Field(5, ge=1)
    hidden_features: int = Field(32, ge=1)
    hidden_layers: int = Field(2, ge=1)
    noise: float = Field(0.1, ge=0.0)
    number_noise: float = Field(0.01, ge=0.0)


class MafConfig(FlowConfig):
    """Settings of the masked autoregressive flow."""


class NiceConfig(FlowConfig):
    """Settings of the flow with additive coupling."""


class RealNvpConfig(FlowConfig):
    """Settings of the flow with affine coupling."""


class _Flow(ABC):
    """What the three flows share: all but the chain of transforms, which `_build` makes."""

    name: ClassVar[str]
    Config: ClassVar[type[GeneratorConfig]]
    is_judged: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False
    fit_defaults: ClassVar[dict[str, Any]] = PAPER_FIT
    training_defaults: ClassVar[dict[str, Any]] = PAPER_TRAINING

    def __init__(self, encoding: Encoding, n_classes: int, config: GeneratorConfig, *, seed: int) -> None:
        if not isinstance(config, FlowConfig):
            raise TypeError(f"the settings of {self.name!r} are a {self.Config.__name__}, got {type(config).__name__}")
        self.config: GeneratorConfig = config
        self.encoding = encoding
        self.n_classes = n_classes
        self._settings = config
        n_context = 2 * encoding.n_reals + n_classes + 1
        with own_numbers(seed):
            self.flow = self._build(encoding.n_reals, n_context, config).float()

    @staticmethod
    @abstractmethod
    def _build(n_reals: int, n_context: int, config: FlowConfig) -> Flow:
        """zuko's flow over `n_reals` reals, given a context of `n_context` numbers."""

    @classmethod
    def create(cls, table: Table, config: GeneratorConfig, *, seed: int) -> Self:
        """An untrained flow for `table`, with weights drawn from `seed`."""
        return cls(table.encoding, table.n_classes, config, seed=seed)

    @classmethod
    def restore(
        cls, encoding: Encoding, n_classes: int, config: GeneratorConfig, state: dict[str, NDArray[Any]]
    ) -> Self:
        """The flow that `state` was taken from; wrong names or shapes are a `ModelFileError`."""
        restored = cls(encoding, n_classes, config, seed=0)
        own = restored.flow.state_dict()
        for name in state:
            if name not in own:
                raise ModelFileError(f"the model file does not fit a {cls.name!r} model: {named('array', name, own)}")
        for name, tensor in own.items():
            if name not in state:
                raise ModelFileError(f"the model file lacks the array {name!r} of a {cls.name!r} model")
            if state[name].shape != tuple(tensor.shape):
                text = f"array {name!r} in the model file has shape {state[name].shape}, not {tuple(tensor.shape)}"
                raise ModelFileError(f"{text} as its schema and settings say; fit and save again")
            with one_torch_thread():
                tensor.copy_(torch.from_numpy(np.array(state[name])))
        restored._program()
        return restored

    def state(self) -> dict[str, NDArray[Any]]:
        """Weights, masks and orders by zuko's names."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.flow.state_dict().items()}

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """The weights of all networks."""
        yield from self.flow.parameters()

    def to(self, device: torch.device) -> Self:
        """Move the weights to `device`; densities and draws are computed on the CPU wherever the weights are."""
        self.flow.to(device)
        return self

    def loss(self, context: Context, answers: Values, generator: torch.Generator) -> torch.Tensor:
        """The mean negative log likelihood of the answers' reals plus noise, with a gradient; always finite.

        Rows whose density overflows are left out before the forward pass: masking them after it would still send
        0 * inf = NaN through the gradient. If none is left the loss is a large constant without a gradient.
        """
        device = next(iter(self.parameters())).device
        x = dequantise(
            self.encoding, answers, self._settings.noise, self._settings.number_noise, generator=generator
        ).to(device)
        c = torch.from_numpy(self._conditions(context)).to(device)
        log_density = self._log_density(x, c)
        finite = torch.isfinite(log_density)
        if not finite.any():
            return torch.full((), HOPELESS, dtype=torch.float32, device=device, requires_grad=True)
        if not finite.all():
            log_density = self._log_density(x[finite], c[finite])
        return -log_density.clamp(min=-HOPELESS).mean()

    def _log_density(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """log N(f(x; c); 0, I) + log |det df/dx|."""
        z, log_det = self.flow(c).transform.call_and_ladj(x)
        log_density: torch.Tensor = -0.5 * (z**2 + log(2 * pi)).sum(-1) + log_det
        return log_density

    def log_prob(self, context: Context, answers: Values) -> NDArray[np.float64]:
        """The log density at the answers' reals without noise, per unit of standardised numbers and one-hot columns."""
        program = self._program()
        density = np.empty(len(context))
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
        onehot = np.eye(self.n_classes, dtype=np.float32)[context.target]
        p = context.p[:, None].astype(np.float32)
        m = self.encoding.real_mask(context.frozen).astype(np.float32)
        return np.concatenate([self.encoding.to_reals(context.query), onehot, p, m], axis=1)

    def _program(self) -> Program:
        """The present weights, laid out for the compiled pass."""
        width, n_context = self.encoding.n_reals, 2 * self.encoding.n_reals + self.n_classes + 1
        networks = [_network(t, width, n_context, self._settings) for t in self.flow.transform.transforms]
        chain = [pack(network, width) for network in networks]
        return Program(*(np.ascontiguousarray(np.stack(arrays)) for arrays in zip(*chain, strict=True)))


class Maf(_Flow):
    """The paper's choice: a masked autoregressive flow (Papamakarios et al. 2017), in a random order per transform."""

    name: ClassVar[str] = "maf"
    Config: ClassVar[type[GeneratorConfig]] = MafConfig

    @staticmethod
    def _build(n_reals: int, n_context: int, config: FlowConfig) -> Flow:
        hidden = [config.hidden_features] * config.hidden_layers
        flow = MAF(n_reals, n_context, transforms=config.layers, hidden_features=hidden, randperm=True)
        for transform in flow.transform.transforms:
            if isinstance(transform, MaskedAutoregressiveTransform):
                _spread_degrees(transform, n_reals, config)
        return flow


def _spread_degrees(transform: LazyTransform, n_reals: int, config: FlowConfig) -> None:
    """Give the hidden units degrees from 0 to D - 1 in equal steps; a unit of degree g reads the reals of order < g.

    zuko counts degrees up from 0, one unit each, so that with fewer units than reals nothing reads the later reals.
    """
    order = transform.order.clone()
    degree = torch.linspace(0, n_reals - 1, config.hidden_features).round()
    first, *middle, last = [layer for layer in transform.hyper if hasattr(layer, "mask")]
    first.mask[:, :n_reals] = order < degree[:, None]
    for layer in middle:
        layer.mask[:] = degree <= degree[:, None]
    last.mask[:] = degree <= order.repeat_interleave(2)[:, None]


class RealNvp(_Flow):
    """A flow with affine coupling (Dinh et al. 2017), on even and odd reals in turn."""

    name: ClassVar[str] = "realnvp"
    Config: ClassVar[type[GeneratorConfig]] = RealNvpConfig

    @staticmethod
    def _build(n_reals: int, n_context: int, config: FlowConfig) -> Flow:
        hidden = [config.hidden_features] * config.hidden_layers
        return RealNVP(n_reals, n_context, transforms=config.layers, hidden_features=hidden)


class Nice(_Flow):
    """A flow with additive coupling and one scale per real at the end (Dinh et al. 2014)."""

    name: ClassVar[str] = "nice"
    Config: ClassVar[type[GeneratorConfig]] = NiceConfig

    @staticmethod
    def _build(n_reals: int, n_context: int, config: FlowConfig) -> Flow:
        hidden = [config.hidden_features] * config.hidden_layers
        additive = {"univariate": AdditiveTransform, "shapes": [()]}
        flow = NICE(n_reals, n_context, transforms=config.layers, hidden_features=hidden, **additive)
        scaling = UnconditionalTransform(MonotonicAffineTransform, torch.zeros(n_reals), torch.zeros(n_reals))
        flow.transform.transforms.append(scaling)
        return flow


def _network(transform: LazyTransform, width: int, n_context: int, config: FlowConfig) -> Network:
    """The network of one of zuko's transforms, with zeros for what it leaves out."""
    units, layers = config.hidden_features, config.hidden_layers
    sizes = [width + n_context, *[units] * layers, 2 * width]
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    network = Network(
        sequence=np.arange(width),
        weights=[np.zeros(shape) for shape in shapes],
        masks=[np.zeros(shape, dtype=bool) for shape in shapes],
        biases=[np.zeros(shape[0]) for shape in shapes],
    )
    if isinstance(transform, UnconditionalTransform):
        network.biases[-1][:] = torch.cat(list(transform.parameters())).detach().cpu().numpy()
        return network
    inputs, outputs, sequence = _wiring(transform, width)
    step = np.argsort(sequence)
    linears = [layer for layer in transform.hyper if hasattr(layer, "weight")]
    n_parameters = len(linears[-1].bias) // len(outputs)
    columns = [np.concatenate([step[inputs], np.arange(width, width + n_context)]), *[np.arange(units)] * layers]
    last = (step[outputs][:, None] + width * np.arange(n_parameters)).ravel()
    for i, (layer, row, column) in enumerate(zip(linears, [*columns[1:], last], columns, strict=True)):
        mask = layer.mask.cpu().numpy() if hasattr(layer, "mask") else True
        network.weights[i][np.ix_(row, column)] = np.where(mask, layer.weight.detach().cpu().numpy(), 0.0)
        network.masks[i][np.ix_(row, column)] = mask
        network.biases[i][row] = layer.bias.detach().cpu().numpy()
    return network._replace(sequence=sequence)


def _wiring(transform: LazyTransform, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The reals that a transform's network reads, those that it gives a shift for, and the order of its inverse."""
    everything = np.arange(width)
    if isinstance(transform, GeneralCouplingTransform):
        kept = transform.mask.cpu().numpy()
        return everything[kept], everything[~kept], np.concatenate([everything[kept], everything[~kept]])
    if isinstance(transform, MaskedAutoregressiveTransform):
        return everything, everything, np.argsort(transform.order.cpu().numpy(), kind="stable")
    # A table with one real has nothing to be autoregressive about: zuko makes a network of the context alone.
    return everything[:0], everything, everything
