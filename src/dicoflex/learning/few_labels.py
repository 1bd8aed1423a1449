"""A surrogate from labels alone: few rows make it too sure of itself, so it is cross-fitted and its sureness corrected.

Surrogates that each leave out a part of the rows say how sure one may be of rows that it has not seen. A temperature t
that makes those held-out labels likeliest divides the scores of the surrogate that has seen all rows:

    t = argmin_t  - sum_i log softmax(s_{-i}(x_i) / t)[y_i],    p(y | x) = softmax(s(x) / t)[y]

(Guo and others 2017, with cross-fitted scores). The parts' mean is the judge of answers to held-out rows.
"""

from __future__ import annotations

__all__ = ["FEW_ROWS", "LEAST_ROWS", "FewLabels", "Judge", "learn_few"]

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex.learning.surrogate import learn, learn_perceptron, learn_trees, round_splits
from dicoflex.surrogate import Both, Surrogate
from dicoflex.table.encoding import Encoding, Values

Floats = NDArray[np.float64]
Judge = Callable[[Values], Floats]
"""Encoded rows to the probabilities of the classes (n, classes)."""
FEW_ROWS = 2000
LEAST_ROWS = 40
PARTS = 5
WORSE = 0.1
TEMPERATURES = np.geomspace(1.0, 8.0, 25)
LEAST = 1e-9


@dataclass(frozen=True)
class FewLabels:
    """surrogate: the corrected one, to answer with. plain: the one that pairs are made with, which must only tell the
    labels apart. agreement: the share of labels that parts named right without having seen them. judge: their mean."""

    surrogate: Surrogate
    plain: Surrogate
    agreement: float
    judge: Judge


def learn_few(encoding: Encoding, values: Values, hard: Floats, *, seed: int, min_count: int = 1) -> FewLabels:
    """Surrogates from labels alone.

    min_count: with more than one, trees split at round numbers.
    """
    labels = hard.argmax(axis=1)
    parts, said, by_trees = _cross_fitted(encoding, values, hard, seed)
    net, trees = learn_perceptron(encoding, values, hard, seed), learn_trees(encoding, values, hard, seed)
    if min_count > 1:
        trees = round_splits(trees, encoding, values, min_count)
    agreement = float(np.mean(said.argmax(axis=1) == labels))
    cooled = net.cooled(_temperature(said, labels))
    # Many classes of few rows leave trees nothing to split: their word would only blur the other's.
    helps = float(np.mean(by_trees.argmax(axis=1) == labels)) >= agreement - WORSE

    def mean(rows: Values) -> Floats:
        total: Floats = np.mean([part.probabilities(rows) for part in parts], axis=0)
        return total

    plain, _ = learn(encoding, values, hard, seed=seed, min_count=min_count)
    return FewLabels(Both(cooled, trees) if helps else cooled, plain, agreement, mean)


def _cross_fitted(
    encoding: Encoding, values: Values, hard: Floats, seed: int
) -> tuple[list[Surrogate], Floats, Floats]:  # fmt: skip
    """A surrogate per part left out, and what its perceptron and its trees say of the rows that they have not seen."""
    part_of = np.random.default_rng(seed).permutation(len(values)) % PARTS
    said, by_trees, parts = np.empty(hard.shape), np.empty(hard.shape), list[Surrogate]()
    for part in range(PARTS):
        out = part_of == part
        net = learn_perceptron(encoding, values[~out], hard[~out], seed + 1 + part)
        said[out] = net.probabilities(values[out])
        trees = learn_trees(encoding, values[~out], hard[~out], seed + 1 + part)
        by_trees[out] = trees.probabilities(values[out])
        parts.append(Both(net, trees))
    return parts, said, by_trees


def _temperature(said: Floats, labels: NDArray[np.int64]) -> float:
    """What the log probabilities are to be divided by, so that the labels are likeliest."""
    scores = np.log(np.maximum(said, LEAST))
    losses = []
    for temperature in TEMPERATURES:
        warm = scores / temperature
        mine = warm[np.arange(len(labels)), labels]
        losses.append(float(np.sum(np.log(np.exp(warm).sum(axis=1)) - mine)))
    return float(TEMPERATURES[int(np.argmin(losses))])
