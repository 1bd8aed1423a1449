"""Learning the stand-in: the better of a perceptron and boosted trees, by their agreement on held-out rows."""

from __future__ import annotations

__all__ = ["MOST_ROWS", "exported", "fit_net", "learn", "learn_perceptron", "learn_trees", "round_splits"]

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
from dicoflex.runtime.threads import one_openmp_thread, one_torch_thread
from dicoflex.stand_in import BLOCK, Forest, Perceptron, StandIn
from dicoflex.stand_in.perceptron import BOUND
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.rarity import round_between

GOOD_ENOUGH = 0.99
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
) -> tuple[StandIn, float]:
    """The better of two stand-ins, and the share of held-out rows on which it names the black box's class.

    The second is tried only where the first leaves room.

    probabilities: the black box's answers for `values`, or one-hot labels where only those are known. min_count: with
    more than one, trees split at round numbers. thorough: whether the perceptron is to come as near as it can; refined
    answers go to where it is just sure enough, so that what it is wrong by counts.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(values))
    n_held = min(max(len(values) // 8, 1), 20_000)
    held, rest = order[:n_held], order[n_held:] if len(values) > n_held else order
    makers: dict[str, Callable[..., StandIn]] = {
        "mlp": partial(learn_perceptron, thorough=thorough),
        "trees": learn_trees,
    }
    best: tuple[StandIn, float] | None = None
    for kind in kinds:
        model = makers[kind](encoding, values[rest], probabilities[rest], seed)
        if isinstance(model, Forest) and min_count > 1:
            model = round_splits(model, encoding, values[rest], min_count)
        agreement = float(
            np.mean(model.probabilities(values[held], each=BLOCK).argmax(1) == probabilities[held].argmax(1))
        )
        if best is None or agreement > best[1]:
            best = model, agreement
        if agreement >= GOOD_ENOUGH:
            break
    assert best is not None
    return best


def learn_perceptron(
    encoding: Encoding, values: Values, probabilities: Floats, seed: int, *, thorough: bool = False
) -> Perceptron:  # fmt: skip
    """A perceptron fitted by cross-entropy, with a step size that falls to nothing."""
    loss = torch.nn.functional.cross_entropy
    return fit_net(encoding, values, probabilities, seed, loss=loss, thorough=thorough)


@with_gradients()
def fit_net(
    encoding: Encoding, values: Values, answers: Floats, seed: int, *, loss: Callable[..., torch.Tensor], thorough: bool
) -> Perceptron:  # fmt: skip
    """A perceptron with an output for every column of `answers`, fitted by `loss`."""
    longer, wider, bolder = THOROUGH if thorough else (1, 1, 1)
    rng = np.random.default_rng(seed)
    with own_numbers(seed):
        widths = [encoding.n_reals, *WIDTHS, answers.shape[1]]
        linear = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
    net = torch.nn.Sequential(linear[0], torch.nn.ReLU(), linear[1], torch.nn.ReLU(), linear[2])
    optimizer = torch.optim.AdamW(net.parameters(), lr=bolder * RATE, weight_decay=1e-3, fused=True)
    steps = min(int(longer * STEPS), 300 + len(values) // 10)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    reals = torch.from_numpy(np.clip(encoding.to_reals(values), -BOUND, BOUND))
    wanted = torch.from_numpy(answers.astype(np.float32))
    with one_torch_thread():
        for _ in range(steps):
            index = torch.from_numpy(rng.integers(len(values), size=wider * BATCH))
            error = loss(net(reals[index]), wanted[index])
            optimizer.zero_grad(set_to_none=True)
            error.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            plan.step()
    layers = [(m.weight.detach().numpy().T.copy(), m.bias.detach().numpy().copy()) for m in linear]
    return Perceptron(encoding, layers)


def learn_trees(encoding: Encoding, values: Values, probabilities: Floats, seed: int) -> Forest:  # noqa: ARG001
    """Trees fitted by scikit-learn; a soft answer counts as every label, weighted by its probability."""
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
