"""A flow's weights as plain arrays, by zuko's names, and its pass on single points by the core, forward and back.

A file's arrays are compared with these shapes before anything is made of them, and a restored flow answers from the
arrays alone: zuko would need room that grows with the square of the reals.
"""

from __future__ import annotations

__all__ = [
    "NOISE",
    "SCALING",
    "TRANSFORM",
    "FlowConfig",
    "FlowLayers",
    "Program",
    "Shapes",
    "by_transform",
    "condition",
    "couplings",
    "hyper",
    "network_of",
    "pack",
    "run",
]

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dicoflex import _core
from dicoflex._types import Arrays
from dicoflex.errors import ModelFileError
from dicoflex.generators.base import GeneratorConfig
from dicoflex.model_file.taking import refuse
from dicoflex.runtime.threads import in_threads


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


def pack(network: FlowLayers, width: int) -> Program:
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


class FlowLayers(NamedTuple):
    """A transform's network in one form for all: reals in the order of the steps, then the context, go in; D shifts,
    then D scales come out, again by step. Weights are masked; a mask says what may depend on what."""

    sequence: NDArray[np.int64]
    weights: list[NDArray[np.float64]]
    masks: list[NDArray[np.bool_]]
    biases: list[NDArray[np.float64]]


def condition(program: Program, contexts: NDArray[np.float32]) -> NDArray[np.float64]:
    """What each context adds to the first hidden layer of every transform: (n, l, u)."""
    n_transforms, _, units = program.context.shape
    hidden, flow = np.empty((len(contexts), n_transforms, units)), _core.Flow(*program)
    in_threads(lambda low, high: flow.condition(contexts, low=low, high=high, hidden=hidden), len(contexts))
    return hidden


def run(
    program: Program, hidden: NDArray[np.float64], points: NDArray[np.float64], draws: int, inverse: bool
) -> NDArray[np.float64]:
    """Take `points` (n * draws, D) through the flow or back, in place; the log determinants of the way forward."""
    log_det, flow = np.zeros(len(points)), _core.Flow(*program)

    def work(low: int, high: int) -> None:
        flow.pass_points(hidden, draws=draws, inverse=inverse, low=low, high=high, points=points, log_det=log_det)

    in_threads(work, len(points))
    return log_det


Shapes = dict[str, tuple[Any, tuple[int, ...]]]
TRANSFORM = "transform.transforms."
SCALING = ("_0", "_1")
NOISE = ("base.loc", "base.scale")  # zuko's names for 0 and 1


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


def couplings(n_reals: int, n_context: int, config: FlowConfig, *, parameters: int) -> Iterator[Shapes]:
    """The arrays of a chain of couplings, each of which leaves the even or the odd reals as they are, in turn."""
    for i in range(config.layers):
        kept = int(_kept(i, n_reals).sum())
        if n_reals == 1:
            yield hyper(n_context, parameters, config)
        else:
            mask = {"mask": (np.bool_, (n_reals,))}
            yield mask | hyper(kept + n_context, (n_reals - kept) * parameters, config)


def hyper(inputs: int, outputs: int, config: FlowConfig, *, masked: bool = False) -> Shapes:
    """The arrays of a transform's network; every second of its layers has weights."""
    sizes = [inputs, *[config.hidden_features] * config.hidden_layers, outputs]
    found: Shapes = {}
    for i, (before, after) in enumerate(pairwise(sizes)):
        found[f"hyper.{2 * i}.weight"] = np.float32, (after, before)
        found[f"hyper.{2 * i}.bias"] = np.float32, (after,)
        if masked:
            found[f"hyper.{2 * i}.mask"] = np.bool_, (after, before)
    return found


def by_transform(arrays: Arrays) -> list[Arrays]:
    """The arrays of each transform, by their names in it, in the order of the chain."""
    found: dict[int, Arrays] = {}
    for name, array in arrays.items():
        if name.startswith(TRANSFORM):
            number, _, own = name.removeprefix(TRANSFORM).partition(".")
            found.setdefault(int(number), {})[own] = array
    return [found[i] for i in sorted(found)]


def network_of(arrays: Arrays, width: int, n_context: int, config: FlowConfig) -> FlowLayers:
    """The network of one of zuko's transforms, with zeros for what it leaves out."""
    units, layers = config.hidden_features, config.hidden_layers
    sizes = [width + n_context, *[units] * layers, 2 * width]
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    network = FlowLayers(
        sequence=np.arange(width),
        weights=[np.zeros(shape) for shape in shapes],
        masks=[np.zeros(shape, dtype=bool) for shape in shapes],
        biases=[np.zeros(shape[0]) for shape in shapes],
    )
    if SCALING[0] in arrays:
        network.biases[-1][:] = np.concatenate([arrays[name] for name in SCALING])
        return network
    inputs, outputs, sequence = _wiring(arrays, width)
    step = np.argsort(sequence)
    n_parameters = len(arrays[f"hyper.{2 * layers}.bias"]) // len(outputs)
    columns = [np.concatenate([step[inputs], np.arange(width, width + n_context)]), *[np.arange(units)] * layers]
    last = (step[outputs][:, None] + width * np.arange(n_parameters)).ravel()
    for i, (row, column) in enumerate(zip([*columns[1:], last], columns, strict=True)):
        mask = arrays.get(f"hyper.{2 * i}.mask", np.True_)
        network.weights[i][np.ix_(row, column)] = np.where(mask, arrays[f"hyper.{2 * i}.weight"], 0.0)
        network.masks[i][np.ix_(row, column)] = mask
        network.biases[i][row] = arrays[f"hyper.{2 * i}.bias"]
    return network._replace(sequence=sequence)


def _wiring(arrays: Arrays, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The reals that a transform's network reads, those that it gives a shift for, and the order of its inverse."""
    everything = np.arange(width)
    if "mask" in arrays:
        kept = arrays["mask"]
        if not any(np.array_equal(kept, _kept(i, width)) for i in (0, 1)):
            refuse("mask", "keeps other reals than every second one")
        return everything[kept], everything[~kept], np.concatenate([everything[kept], everything[~kept]])
    if "order" in arrays:
        if not np.array_equal(np.sort(arrays["order"]), everything):
            refuse("order", "names a real twice or not at all")
        return everything, everything, np.argsort(arrays["order"], kind="stable")
    # A table with one real has nothing to be autoregressive about: zuko makes a network of the context alone.
    return everything[:0], everything, everything


def _kept(i: int, width: int) -> NDArray[np.bool_]:
    """The reals that coupling number i leaves as they are."""
    kept: NDArray[np.bool_] = np.arange(width) % 2 == i % 2
    return kept
