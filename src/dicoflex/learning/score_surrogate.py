"""Learning a surrogate for scores: the better of a perceptron and boosted trees, by their errors on held-out rows."""

from __future__ import annotations

__all__ = ["Followed", "learn_score"]

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from dicoflex.learning.surrogate import MOST_ROWS, exported, fit_net, round_splits
from dicoflex.runtime.progress import Deadline
from dicoflex.runtime.threads import one_openmp_thread
from dicoflex.surrogate import Forest, Perceptron, ScoreSurrogate
from dicoflex.table.encoding import Encoding, Values

Floats = NDArray[np.float64]
DEVIATION = 0.29
"""Of ranks, which are spread evenly between 0 and 1."""
ROUNDS, THOROUGH = 120, 300
LEAST_SPREAD, MOST_SPREAD = 0.002, 1.0
QUANTILES = {0.8: 2.197, 0.95: 3.664}
"""How many scales of a logistic its absolute value exceeds in the rest of the cases."""
GOOD_ENOUGH = 0.004


@dataclass(frozen=True)
class Followed:
    """A surrogate for scores; spread: the scale of its errors in rank; explained: of the variance of held-out rows."""

    surrogate: ScoreSurrogate
    spread: float
    explained: float


def learn_score(
    encoding: Encoding, values: Values, ranks: Floats, *, seed: int, min_count: int = 1, thorough: bool = False,
    deadline: Deadline | None = None,
) -> Followed:  # fmt: skip
    """The better of two surrogates for rows of these ranks; the second is tried only where the first leaves room."""
    deadline = deadline or Deadline()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(values))
    n_held = min(max(len(values) // 8, 1), 20_000)
    held, rest = order[:n_held], order[n_held:] if len(values) > n_held else order
    net = _perceptron(encoding, values[rest], ranks[rest], seed, thorough=thorough, deadline=deadline)
    best = _judged(net, values[held], ranks[held])
    if best.spread <= GOOD_ENOUGH:
        return best
    if deadline.is_over:
        deadline.cut("surrogate")
        return best
    forest = _trees(values[rest], ranks[rest], seed, rounds=THOROUGH if thorough else ROUNDS)
    if min_count > 1:
        forest = round_splits(forest, encoding, values[rest], min_count)
    return min(best, _judged(forest, values[held], ranks[held]), key=lambda one: one.spread)


def _judged(surrogate: ScoreSurrogate, values: Values, ranks: Floats) -> Followed:
    """How well a surrogate follows the ranks of rows that it did not learn from."""
    error = surrogate.scores(values) - ranks
    scale = max(float(np.quantile(np.abs(error), share)) / at for share, at in QUANTILES.items())
    explained = 1.0 - float(np.mean(error**2)) / max(float(np.var(ranks)), 1e-12)
    return Followed(surrogate, float(np.clip(scale, LEAST_SPREAD, MOST_SPREAD)), explained)


def _perceptron(
    encoding: Encoding, values: Values, ranks: Floats, seed: int, *, thorough: bool, deadline: Deadline
) -> Perceptron:  # fmt: skip
    answers = ((ranks - 0.5) / DEVIATION)[:, None]
    loss = torch.nn.functional.smooth_l1_loss
    net = fit_net(encoding, values, answers, seed, loss=loss, thorough=thorough, deadline=deadline)
    return net.aimed(np.array([DEVIATION]), np.array([0.5]))


def _trees(values: Values, ranks: Floats, seed: int, *, rounds: int) -> Forest:
    rng = np.random.default_rng(seed)
    if len(values) > MOST_ROWS:
        few = rng.choice(len(values), MOST_ROWS, replace=False)
        values, ranks = values[few], ranks[few]
    booster = HistGradientBoostingRegressor(
        max_iter=rounds, max_leaf_nodes=31, learning_rate=0.15, min_samples_leaf=10, early_stopping=False,
        random_state=seed % 2**32,
    )  # fmt: skip
    with one_openmp_thread():
        booster.fit(values, ranks)
    return exported(booster)
