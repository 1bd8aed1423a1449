"""A flow's pass on single points, forward and back, by the core."""

from __future__ import annotations

__all__ = ["Network", "Program", "condition", "pack", "run"]

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.errors import ModelFileError
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


def pack(network: Network, width: int) -> Program:
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


class Network(NamedTuple):
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
