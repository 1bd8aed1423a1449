"""Learning the surrogate: a perceptron, boosted trees or both, whichever errs least where answers will lie."""

from __future__ import annotations

__all__ = ["MOST_ROWS", "exported", "fit_net", "learn", "learn_perceptron", "learn_trees", "round_splits"]

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from dicoflex.runtime.own_torch import own_numbers, with_gradients
from dicoflex.runtime.progress import Deadline
from dicoflex.runtime.threads import one_openmp_thread, one_torch_thread
from dicoflex.surrogate import Both, Forest, Perceptron, Surrogate
from dicoflex.surrogate.perceptron import BOUND
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.rarity import round_between

GOOD_ENOUGH = 0.99
# Of a thorough fit: the error near the decision that leaves no room for another kind; which rows are near, by the
# probability of the likeliest class, and how many are enough to go by.
SHARP = 0.01
NEAR = 0.95
ENOUGH = 50
# Both kinds together are taken where this times their error is the least.
WORTH = 1.1
WIDTHS = (96, 48)
STEPS = 2500
BATCH = 512
RATE = 4e-3
# A thorough fit has so many times the steps, the rows of each, and the step size at the start.
THOROUGH = 1.6, 2, 2.5
ROUNDS = 120
MOST_ROWS = 100_000
# With more than two classes leaves of few, lightly weighted rows run away where nothing holds them.
HELD_BACK = 5.0
Floats = NDArray[np.float64]


def learn(
    encoding: Encoding,
    values: Values,
    probabilities: Floats,
    *,
    seed: int,
    kinds: tuple[str, ...] = ("mlp", "trees"),
    min_count: int = 1,
    thorough: bool = False,
    deadline: Deadline | None = None,
) -> tuple[Surrogate, float]:
    """The best surrogate, and the share of held-out rows on which it names the black box's class.

    Without `thorough` the better of two by that share; the second is tried only where the first leaves room. With it,
    the one of two, or both together, that errs least near the decision.

    probabilities: the black box's answers for `values`, or one-hot labels where only those are known. min_count: with
    more than one, trees split at round numbers. thorough: whether it is to come as near as it can; refined
    answers go to where it is just sure enough, so that what it is wrong by counts. deadline: when it must be learned.
    """
    deadline = deadline or Deadline()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(values))
    n_held = min(max(len(values) // 8, 1), 20_000)
    held, rest = order[:n_held], order[n_held:] if len(values) > n_held else order
    makers: dict[str, Callable[..., Surrogate]] = {
        "mlp": partial(learn_perceptron, thorough=thorough, deadline=deadline),
        "trees": learn_trees,
    }
    truth, made = probabilities[held], list[Surrogate]()
    for kind in kinds:
        model = makers[kind](encoding, values[rest], probabilities[rest], seed)
        if isinstance(model, Forest) and min_count > 1:
            model = round_splits(model, encoding, values[rest], min_count)
        made.append(model)
        said = model.probabilities(values[held])
        if error_near_decision(said, truth) <= SHARP if thorough else _agreement(said, truth) >= GOOD_ENOUGH:
            break
        if deadline.is_over:
            deadline.cut("surrogate")
            break
    return _best(made, values[held], truth, thorough=thorough)


def _best(made: list[Surrogate], values: Values, truth: Floats, *, thorough: bool) -> tuple[Surrogate, float]:
    """The best of the surrogates, where it counts with both together, and its agreement with the truth."""
    said = [one.probabilities(values) for one in made]
    if not thorough:
        best = max(range(len(made)), key=lambda i: _agreement(said[i], truth))
        return made[best], _agreement(said[best], truth)
    if len(made) == 2:
        net, trees = made
        assert isinstance(net, Perceptron)
        assert isinstance(trees, Forest)
        made, said = [*made, Both(net, trees)], [*said, (said[0] + said[1]) / 2]
    errors = [error_near_decision(one, truth) for one in said]
    # Two cost twice the time of one in every answer: what they gain has to be worth it.
    best = int(np.argmin(np.array(errors) * [*[1.0] * min(len(errors), 2), WORTH][: len(errors)]))
    return made[best], _agreement(said[best], truth)


def _agreement(said: Floats, truth: Floats) -> float:
    return float(np.mean(said.argmax(axis=1) == truth.argmax(axis=1)))


def error_near_decision(said: Floats, truth: Floats) -> float:
    """The mean error of probabilities where the black box is not nearly certain, or everywhere if it nearly always is.

    >>> truth = np.array([[0.6, 0.4]] * 60 + [[0.0, 1.0]] * 9)
    >>> round(error_near_decision(truth * [0.9, 1.0] + [0.0, 0.06], truth), 3)
    0.06
    """
    error = np.abs(said - truth).max(axis=1)
    near = truth.max(axis=1) < NEAR
    return float(error[near].mean() if near.sum() >= ENOUGH else error.mean())


def learn_perceptron(
    encoding: Encoding, values: Values, probabilities: Floats, seed: int, *, thorough: bool = False,
    part: float = 1.0, deadline: Deadline | None = None,
) -> Perceptron:  # fmt: skip
    """A perceptron fitted by cross-entropy, with a step size that falls to nothing; `part` of the steps are taken."""
    loss = torch.nn.functional.cross_entropy
    return fit_net(encoding, values, probabilities, seed, loss=loss, thorough=thorough, part=part, deadline=deadline)


@with_gradients()
def fit_net(
    encoding: Encoding, values: Values, answers: Floats, seed: int, *, loss: Callable[..., torch.Tensor],
    thorough: bool, part: float = 1.0, deadline: Deadline | None = None,
) -> Perceptron:  # fmt: skip
    """A perceptron with an output for every column of `answers`, fitted by `loss`; fewer steps where time is short."""
    deadline = (deadline or Deadline()).part(1.0)
    longer, wider, bolder = THOROUGH if thorough else (1, 1, 1)
    rng = np.random.default_rng(seed)
    with own_numbers(seed):
        widths = [encoding.n_reals, *WIDTHS, answers.shape[1]]
        linear = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
    net = torch.nn.Sequential(linear[0], torch.nn.ReLU(), linear[1], torch.nn.ReLU(), linear[2])
    optimizer = torch.optim.AdamW(net.parameters(), lr=bolder * RATE, weight_decay=1e-3, fused=True)
    steps = max(1, int(part * min(int(longer * STEPS), 300 + len(values) // 10)))
    reals = torch.from_numpy(np.clip(encoding.to_reals(values), -BOUND, BOUND))
    wanted = torch.from_numpy(answers.astype(np.float32))
    with one_torch_thread():
        for step in range(steps):
            done = max(step / steps, deadline.used)
            if done >= 1:
                deadline.cut("surrogate")
                break
            optimizer.param_groups[0]["lr"] = bolder * RATE * 0.5 * (1 + math.cos(math.pi * done))
            index = torch.from_numpy(rng.integers(len(values), size=wider * BATCH))
            error = loss(net(reals[index]), wanted[index])
            optimizer.zero_grad(set_to_none=True)
            error.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    layers = [(m.weight.detach().numpy().T.copy(), m.bias.detach().numpy().copy()) for m in linear]
    return Perceptron(encoding, layers)


def learn_trees(encoding: Encoding, values: Values, probabilities: Floats, seed: int) -> Forest:  # noqa: ARG001
    """Trees fitted by scikit-learn; a soft answer counts as every label, weighted by its probability.

    Of XGBoost on 6,000 rows of 8 numbers, 300 trees of 62 leaves are no sharper than 120 of 31 once both were shown
    rows near the decision (too sure by .32 and .31 in 5 % of them), and answers have more than twice the trees to ask.
    """
    rng = np.random.default_rng(seed)
    if len(values) > MOST_ROWS:
        few = rng.choice(len(values), MOST_ROWS, replace=False)
        values, probabilities = values[few], probabilities[few]
    counted = probabilities > 0.02
    counted[0] = True  # so that the trees know of every class, also of one that no row has
    row, label = np.nonzero(counted)
    booster = HistGradientBoostingClassifier(
        max_iter=ROUNDS, max_leaf_nodes=31, learning_rate=0.15, min_samples_leaf=10, early_stopping=False,
        l2_regularization=HELD_BACK if probabilities.shape[1] > 2 else 0.0, random_state=seed % 2**32,
    )  # fmt: skip
    # Threads that wait for each other make small fits many times slower on a busy machine.
    with one_openmp_thread():
        booster.fit(values[row], label, sample_weight=np.maximum(probabilities[row, label], 1e-6))
    return exported(booster)


def round_splits(forest: Forest, encoding: Encoding, values: Values, min_count: int) -> Forest:
    """The forest with splits of numbers moved to round ones, past fewer than `min_count` of the rows `values`.

    Trees split halfway between two of the values that they learned from, which tells them nearly to the last digit.
    """
    threshold, reach = forest.threshold.copy(), min_count // 2
    for j in encoding.number_feature:
        ordered = np.sort(values[~np.isnan(values[:, j]), j])
        whole = 0.5 if encoding.schema.features[j].is_whole else 0.0
        for node in np.flatnonzero((forest.feature == j) & np.isfinite(threshold)):
            at = int(np.searchsorted(ordered, threshold[node], side="right"))
            low, high = ordered[max(at - 1 - reach, 0)], ordered[min(at + reach, len(ordered) - 1)]
            if low < high:
                # What is whole goes left up to the last number before the round one.
                number = round_between(float(low), float(high))
                threshold[node] = np.ceil(number) - whole if whole else number
    return replace(forest, threshold=threshold)


def exported(booster: Any) -> Forest:
    """The trees of scikit-learn's booster as flat arrays."""
    trees = [tree.nodes for round_ in booster._predictors for tree in round_]
    start = np.cumsum([0, *(len(nodes) for nodes in trees)])
    nodes = np.concatenate(trees)
    shift = np.repeat(start[:-1], np.diff(start))
    leaf = nodes["is_leaf"].astype(bool)
    return Forest(
        start=start[:-1].astype(np.int64),
        feature=np.where(leaf, -1, nodes["feature_idx"]).astype(np.int32),
        threshold=nodes["num_threshold"].astype(np.float64),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        left=(nodes["left"] + shift).astype(np.int32),
        right=(nodes["right"] + shift).astype(np.int32),
        value=nodes["value"].astype(np.float64),
        baseline=np.asarray(booster._baseline_prediction, dtype=np.float64).ravel(),
    )
