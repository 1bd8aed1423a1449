"""A flow while it is trained: zuko's transforms and networks, their weights and the gradient of the likelihood."""

from __future__ import annotations

__all__ = ["Flow", "arrays_of", "fresh", "holding", "loss"]

from collections.abc import Callable
from math import log, pi

import torch
from zuko.flows import MAF, NICE, RealNVP
from zuko.flows.autoregressive import MaskedAutoregressiveTransform
from zuko.lazy import Flow, LazyTransform, UnconditionalTransform
from zuko.transforms import AdditiveTransform, MonotonicAffineTransform

from dicoflex._types import Arrays
from dicoflex.generators.flow_pass import FlowConfig
from dicoflex.runtime.own_torch import own_numbers
from dicoflex.runtime.threads import one_torch_thread

HOPELESS = 1e8


def fresh(name: str, n_reals: int, n_context: int, config: FlowConfig, *, seed: int) -> Flow:
    """The flow called `name` over `n_reals` reals, given a context of `n_context` numbers, with weights from `seed`."""
    with own_numbers(seed):
        return BUILDERS[name](n_reals, n_context, config).float()


def holding(flow: Flow, arrays: Arrays) -> Flow:
    """The flow, with the weights that some arrays are."""
    with one_torch_thread():
        flow.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
    return flow


def arrays_of(flow: Flow) -> Arrays:
    """Weights, masks and orders by zuko's names."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in flow.state_dict().items()}


def loss(flow: Flow, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """The mean negative log likelihood of reals, given contexts, with a gradient; always finite.

    Rows whose density overflows are left out before the forward pass: masking them after it would still send
    0 * inf = NaN through the gradient. If none is left the loss is a large constant without a gradient.
    """
    log_density = _log_density(flow, x, c)
    finite = torch.isfinite(log_density)
    if not finite.any():
        return torch.full((), HOPELESS, dtype=torch.float32, device=x.device, requires_grad=True)
    if not finite.all():
        log_density = _log_density(flow, x[finite], c[finite])
    return -log_density.clamp(min=-HOPELESS).mean()


def _log_density(flow: Flow, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """log N(f(x; c); 0, I) + log |det df/dx|."""
    z, log_det = flow(c).transform.call_and_ladj(x)
    log_density: torch.Tensor = -0.5 * (z**2 + log(2 * pi)).sum(-1) + log_det
    return log_density


# -- the three chains ------------------------------------------------------------------------------------------------


def _maf(n_reals: int, n_context: int, config: FlowConfig) -> Flow:
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


def _realnvp(n_reals: int, n_context: int, config: FlowConfig) -> Flow:
    hidden = [config.hidden_features] * config.hidden_layers
    return RealNVP(n_reals, n_context, transforms=config.layers, hidden_features=hidden)


def _nice(n_reals: int, n_context: int, config: FlowConfig) -> Flow:
    hidden = [config.hidden_features] * config.hidden_layers
    additive = {"univariate": AdditiveTransform, "shapes": [()]}
    flow = NICE(n_reals, n_context, transforms=config.layers, hidden_features=hidden, **additive)
    scaling = UnconditionalTransform(MonotonicAffineTransform, torch.zeros(n_reals), torch.zeros(n_reals))
    flow.transform.transforms.append(scaling)
    return flow


BUILDERS: dict[str, Callable[[int, int, FlowConfig], Flow]] = {"maf": _maf, "realnvp": _realnvp, "nice": _nice}
