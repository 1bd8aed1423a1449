"""A flow's inverse pass, compiled."""

from __future__ import annotations

__all__ = ["Network", "Program", "condition", "pack", "run"]

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.errors import ModelFileError
from dicoflex.runtime.compiled import compiled
from dicoflex.runtime.threads import in_threads

LOG_SLOPE = log(1e-3)


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
    hidden = np.empty((len(contexts), n_transforms, units))
    in_threads(lambda low, high: _condition(low, high, program, contexts, hidden), len(contexts))
    return hidden


@compiled(nogil=True)
def _condition(low, high, program, contexts, hidden):  # type: ignore[no-untyped-def]
    n_transforms, n_context, units = program.context.shape
    for i in range(low, high):
        for k in range(n_transforms):
            hidden[i, k] = program.context_bias[k]
            for c in range(n_context):
                value = contexts[i, c]
                if value != 0.0:
                    for u in range(units):
                        hidden[i, k, u] += program.context[k, c, u] * value


def run(
    program: Program, hidden: NDArray[np.float64], points: NDArray[np.float64], draws: int, inverse: bool
) -> NDArray[np.float64]:
    """Take `points` (n * draws, D) through the flow or back, in place; the log determinants of the way forward."""
    log_det = np.zeros(len(points))
    in_threads(lambda low, high: _run(low, high, program, hidden, points, draws, inverse, log_det), len(points))
    return log_det


@compiled(nogil=True)
def _run(low, high, program, hidden, points, draws, inverse, log_det):  # type: ignore[no-untyped-def]
    n_transforms, layers, units = program.ready.shape
    width = program.sequence.shape[1]
    for i in range(low, high):
        before, out = np.empty((layers, units)), np.empty((2, width))
        known = np.empty(layers, np.int64)
        for k in range(n_transforms):
            at = n_transforms - 1 - k if inverse else k
            log_det[i] += _transform(program, at, hidden[i // draws, at], points[i], inverse, before, out, known)


@compiled()
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


@compiled()
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


@compiled()
def _add(total, weights, value, start):  # type: ignore[no-untyped-def]
    for u in range(start, len(total)):
        total[u] += weights[u] * value
