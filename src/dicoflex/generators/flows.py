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
  middle ones of 66 reals would be read by no unit of any transform.
"""

from __future__ import annotations

__all__ = [
    "FlowConfig",
    "Maf",
    "MafConfig",
    "Nice",
    "NiceConfig",
    "RealNvp",
    "RealNvpConfig",
    "blocks",
    "dequantise",
    "settle",
]

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from math import log, pi
from typing import Any, ClassVar, NamedTuple, Self

import numba
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
from dicoflex.generators.base import Context, GeneratorConfig, Table
from dicoflex.limits.limits import Limits
from dicoflex.runtime.randomness import uniforms
from dicoflex.table.encoding import Encoding, Values

LOG_SLOPE = log(1e-3)
BLOCK = 2**16
FAR = 1e12
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

    def __init__(self, encoding: Encoding, n_classes: int, config: GeneratorConfig, *, seed: int) -> None:
        if not isinstance(config, FlowConfig):
            raise TypeError(f"the settings of {self.name!r} are a {self.Config.__name__}, got {type(config).__name__}")
        self.config: GeneratorConfig = config
        self.encoding = encoding
        self.n_classes = n_classes
        self._settings = config
        n_context = 2 * encoding.n_reals + n_classes + 1
        # Only the generator of the CPU is seeded, and put back: a fit leaves the caller's random numbers alone.
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.default_generator.manual_seed(seed)
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
            return torch.full((), HOPELESS, device=device, requires_grad=True)
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
            hidden = _condition(program, self._conditions(context.take(at)))
            log_det = _run(program, hidden, z, 1, False)
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
            _run(program, _condition(program, self._conditions(some)), reals, count, True)
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
        chain = [_pack(network, width) for network in networks]
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


# -- between reals and rows, for every density on the reals ---------------------------------------------------------


def dequantise(
    encoding: Encoding, answers: Values, noise: float, number_noise: float, *, generator: torch.Generator
) -> torch.Tensor:
    """The answers' reals plus Gaussian noise: `noise` on one-hot columns, `number_noise` on numbers."""
    reals = torch.from_numpy(encoding.to_reals(answers)).to(generator.device)
    scale = torch.from_numpy(np.where(encoding.is_onehot, noise, number_noise).astype(np.float32))
    shocks = torch.randn(reals.shape, generator=generator, device=generator.device)
    return reals + scale.to(generator.device) * shocks


def settle(encoding: Encoding, context: Context, reals: NDArray[np.float64], limits: Limits | None) -> Values:
    """The rows (n, draws, d) nearest to some reals (n, draws, D): finite, within the schema, frozen as in the query.

    Under limits they are moved inside, one feature at a time; see `Limits.project`.

    Whatever the density did: a real that is no number is the query's own, and one too large to decode is cut off.
    """
    own = encoding.to_reals(context.query)[:, None, :]
    sane = np.clip(np.where(np.isnan(reals), own, reals), -FAR, FAR)
    values = encoding.from_reals(sane.reshape(-1, encoding.n_reals))
    which = np.repeat(np.arange(len(context)), reals.shape[1])
    values = np.where(context.frozen[which], context.query[which], values)
    if limits is not None:
        values = limits.project(values, context.query[which], which)
    return values.reshape(*reals.shape[:2], -1)


def blocks(n: int, draws: int, *, size: int = BLOCK) -> Iterator[tuple[slice, slice]]:
    """Slices of queries and of draws that cover all n * draws, at most `size` at a time, so that memory is bounded.

    >>> list(blocks(3, 2, size=4))
    [(slice(0, 2, None), slice(0, 2, None)), (slice(2, 3, None), slice(0, 2, None))]
    """
    count = max(1, min(draws, size))
    step = max(1, size // count)
    for low in range(0, n, step):
        for start in range(0, draws, count):
            yield slice(low, min(low + step, n)), slice(start, min(start + count, draws))


# -- the compiled pass ----------------------------------------------------------------------------------------------


class Program(NamedTuple):
    """A flow's weights in the order in which its inverse needs them.

    The inverse of an autoregressive transform finds one real per step. A hidden unit is *ready* at the first step at
    which all reals that it depends on are known. With the units sorted by that step, the inverse evaluates each unit
    once, where running the whole network for every real would do so D times.

    Axes: l transform, t step, u and v hidden units, m hidden layer, c entry of the context. A coupling is the same
    with many units ready at one step. All weights are masked; those of a hidden unit stand in one row, by receiver.
    """

    sequence: NDArray[np.int64]  # (l, t): the real that is found at step t
    ready: NDArray[np.int64]  # (l, m, u): the step at which a unit is ready
    context: NDArray[np.float64]  # (l, c, u)
    context_bias: NDArray[np.float64]  # (l, u)
    first: NDArray[np.float64]  # (l, t, u)
    hidden: NDArray[np.float64]  # (l, m, u, v)
    hidden_bias: NDArray[np.float64]  # (l, m, v)
    out: NDArray[np.float64]  # (l, u, 2, t): shift and scale
    out_bias: NDArray[np.float64]  # (l, 2, t)


def _pack(network: _Network, width: int) -> Program:
    """One transform's part of the program, without the leading axis; units are sorted by when they are ready."""
    weights, masks, biases = list(network.weights), list(network.masks), list(network.biases)
    known = np.zeros(weights[0].shape[1], dtype=np.int64)
    known[:width] = np.arange(1, width + 1)
    ready = []
    for m in range(len(weights) - 1):
        steps = (masks[m] * known).max(axis=1)
        rank = np.argsort(steps, kind="stable")
        weights[m], biases[m], known = weights[m][rank], biases[m][rank], steps[rank]
        weights[m + 1], masks[m + 1] = weights[m + 1][:, rank], masks[m + 1][:, rank]
        ready.append(known)
    if ((masks[-1] * known).max(axis=1) > np.tile(np.arange(width), 2)).any():
        raise ModelFileError("the masks in the model file let a real depend on itself; fit and save again")
    units = len(known)
    return Program(
        sequence=network.sequence,
        ready=np.stack(ready),
        context=weights[0][:, width:].T,
        context_bias=biases[0],
        first=weights[0][:, :width].T,
        hidden=np.reshape([w.T for w in weights[1:-1]], (-1, units, units)),
        hidden_bias=np.reshape(biases[1:-1], (-1, units)),
        out=weights[-1].reshape(2, width, units).transpose(2, 0, 1),
        out_bias=biases[-1].reshape(2, width),
    )


class _Network(NamedTuple):
    """A transform's network in one form for all: reals in the order of the steps, then the context, go in; D shifts,
    then D scales come out, again by step. Weights are masked; a mask says what may depend on what."""

    sequence: NDArray[np.int64]
    weights: list[NDArray[np.float64]]
    masks: list[NDArray[np.bool_]]
    biases: list[NDArray[np.float64]]


def _network(transform: LazyTransform, width: int, n_context: int, config: FlowConfig) -> _Network:
    """The network of one of zuko's transforms, with zeros for what it leaves out."""
    units, layers = config.hidden_features, config.hidden_layers
    sizes = [width + n_context, *[units] * layers, 2 * width]
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    network = _Network(
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


@numba.njit(cache=True, parallel=True)
def _condition(program, contexts):  # type: ignore[no-untyped-def]
    """What each context adds to the first hidden layer of every transform: (n, l, u)."""
    n_transforms, n_context, units = program.context.shape
    hidden = np.empty((len(contexts), n_transforms, units))
    for i in numba.prange(len(contexts)):
        for k in range(n_transforms):
            hidden[i, k] = program.context_bias[k]
            for c in range(n_context):
                value = contexts[i, c]
                if value != 0.0:
                    for u in range(units):
                        hidden[i, k, u] += program.context[k, c, u] * value
    return hidden


@numba.njit(cache=True, parallel=True)
def _run(program, hidden, points, draws, inverse):  # type: ignore[no-untyped-def]
    """Take `points` (n * draws, D) through the flow or back, in place; the log determinants of the way forward."""
    log_det = np.zeros(len(points))
    n_transforms, layers, units = program.ready.shape
    width = program.sequence.shape[1]
    for i in numba.prange(len(points)):
        before, out = np.empty((layers, units)), np.empty((2, width))
        known = np.empty(layers, np.int64)
        for k in range(n_transforms):
            at = n_transforms - 1 - k if inverse else k
            log_det[i] += _transform(program, at, hidden[i // draws, at], points[i], inverse, before, out, known)
    return log_det


@numba.njit(cache=True)
def _transform(program, at, start, point, inverse, before, out, known):  # type: ignore[no-untyped-def]
    """One transform on one point, in place: z = x * exp(alpha) + mu, or x = (z - mu) / exp(alpha), step by step."""
    sequence, first, ready = program.sequence[at], program.first[at], program.ready[at]
    hidden, weights = program.hidden[at], program.out[at]
    before[0] = start
    before[1:] = program.hidden_bias[at]
    out[:] = program.out_bias[at]
    known[:] = 0
    log_det = 0.0
    for t in range(len(point)):
        _wake(hidden, weights, ready, t, before, out, known)
        j = sequence[t]
        mu, alpha = out[0, t], out[1, t] / (1.0 + abs(out[1, t] / LOG_SLOPE))
        x = (point[j] - mu) / np.exp(alpha) if inverse else point[j]
        point[j] = x if inverse else x * np.exp(alpha) + mu
        log_det += alpha
        _add(before[0], first[t], x, known[0])
    return log_det


@numba.njit(cache=True)
def _wake(hidden, weights, ready, t, before, out, known):  # type: ignore[no-untyped-def]
    """Pass on the units that are ready at step `t`, layer by layer; `known` counts those done in each layer."""
    layers, units = before.shape
    for m in range(layers):
        u = known[m]
        while u < units and ready[m, u] <= t:
            active = before[m, u]
            if not active <= 0.0:  # the ReLU, and a NaN is passed on
                if m + 1 < layers:
                    _add(before[m + 1], hidden[m, u], active, known[m + 1])
                else:
                    _add(out[0], weights[u, 0], active, t)
                    _add(out[1], weights[u, 1], active, t)
            u += 1
        known[m] = u


@numba.njit(cache=True)
def _add(total, weights, value, start):  # type: ignore[no-untyped-def]
    for u in range(start, len(total)):
        total[u] += weights[u] * value
