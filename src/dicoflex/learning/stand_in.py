"""A small stand-in for the black box, learned during `fit` and kept as plain arrays in the model file.

Two kinds compete: a multilayer perceptron on the one-hot table, which follows smooth black boxes, and boosted trees,
which follow black boxes made of trees. The one that agrees better with the black box on held-out rows is kept.
"""

from __future__ import annotations

__all__ = ["BLOCK", "Forest", "Perceptron", "Surrogate", "learn", "restore"]

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from dicoflex.errors import ModelFileError
from dicoflex.runtime.threads import in_threads, one_openmp_thread, one_torch_thread
from dicoflex.table.encoding import Encoding, Values

GOOD_ENOUGH = 0.99
THREADED = 2048
BLOCK = 256
BOUND = 10.0
Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


class Surrogate(Protocol):
    """What the library asks of a stand-in."""

    kind: ClassVar[str]

    def probabilities(self, values: Values, *, each: int = 1) -> Floats:
        """Probabilities of the classes for encoded rows (n, classes).

        Rows may be worked on `each` at a time, from the first on: with as many rows per query, a row's answer can't
        depend on other queries, to the last bit.
        """

    def arrays(self) -> Arrays:
        """All that `restore` needs."""


def learn(
    encoding: Encoding, values: Values, probabilities: Floats, *, seed: int, kinds: tuple[str, ...] = ("mlp", "trees")
) -> tuple[Surrogate, float]:
    """The better of two stand-ins, and the share of held-out rows on which it names the black box's class.

    The second is tried only where the first leaves room.

    probabilities: the black box's answers for `values`, or one-hot labels where only those are known.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(values))
    n_held = min(max(len(values) // 8, 1), 20_000)
    held, rest = order[:n_held], order[n_held:] if len(values) > n_held else order
    makers: dict[str, Callable[..., Surrogate]] = {"mlp": Perceptron.learn, "trees": Forest.learn}
    best: tuple[Surrogate, float] | None = None
    for kind in kinds:
        model = makers[kind](encoding, values[rest], probabilities[rest], seed)
        agreement = float(
            np.mean(model.probabilities(values[held], each=BLOCK).argmax(1) == probabilities[held].argmax(1))
        )
        if best is None or agreement > best[1]:
            best = model, agreement
        if agreement >= GOOD_ENOUGH:
            break
    assert best is not None
    return best


def restore(kind: str, encoding: Encoding, n_classes: int, arrays: Arrays) -> Surrogate:
    """The stand-in that `arrays` was taken from; arrays that are absent or don't fit are a `ModelFileError`."""
    makers: dict[str, Any] = {Perceptron.kind: Perceptron, Forest.kind: Forest}
    if kind not in makers:
        raise ModelFileError(f"the model file has a stand-in of unknown kind {kind!r}")
    try:
        model: Surrogate = makers[kind].from_arrays(encoding, arrays)
        shape = model.probabilities(np.zeros((1, len(encoding.schema)))).shape
    except (KeyError, ValueError) as error:
        raise ModelFileError(f"the model file's stand-in is damaged: {error}") from None
    if shape != (1, n_classes):
        raise ModelFileError("the model file's stand-in has another number of classes than its header")
    return model


# -- multilayer perceptron ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Perceptron:
    """Two hidden layers of rectifiers on the one-hot table, trained on the black box's probabilities."""

    kind: ClassVar[str] = "mlp"
    encoding: Encoding
    layers: list[tuple[NDArray[np.float32], NDArray[np.float32]]]

    WIDTHS: ClassVar[tuple[int, int]] = (96, 48)
    STEPS: ClassVar[int] = 2500
    BATCH: ClassVar[int] = 512

    @classmethod
    def learn(cls, encoding: Encoding, values: Values, probabilities: Floats, seed: int) -> Perceptron:
        """A perceptron fitted by cross-entropy, with a step size that falls to nothing."""
        rng = np.random.default_rng(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            widths = [encoding.n_reals, *cls.WIDTHS, probabilities.shape[1]]
            linear = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
        net = torch.nn.Sequential(linear[0], torch.nn.ReLU(), linear[1], torch.nn.ReLU(), linear[2])
        optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=1e-3)
        steps = min(cls.STEPS, 300 + len(values) // 10)
        plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        reals = torch.from_numpy(_bounded(encoding.to_reals(values)))
        wanted = torch.from_numpy(probabilities.astype(np.float32))
        with one_torch_thread():
            for _ in range(steps):
                index = torch.from_numpy(rng.integers(len(values), size=cls.BATCH))
                loss = torch.nn.functional.cross_entropy(net(reals[index]), wanted[index])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                plan.step()
        layers = [(m.weight.detach().numpy().T.copy(), m.bias.detach().numpy().copy()) for m in linear]
        return cls(encoding, layers)

    def probabilities(self, values: Values, *, each: int = 1) -> Floats:
        """Softmax of the last layer, by matrix products of `each` rows."""
        encoding = self.encoding
        numbers, codes = encoding.number_feature, encoding.code_feature
        scaling = encoding.mean[numbers], encoding.scale[numbers]
        weights = tuple(array for layer in self.layers for array in layer)
        out = np.empty((len(values), len(self.layers[-1][1])))

        def work(low: int, high: int) -> None:
            _forward(low, high, each, values, numbers, *scaling, codes, *encoding.places, *weights, out)

        in_threads(work, -(-len(values) // each), least=max(1, THREADED // each))
        return out

    def arrays(self) -> Arrays:
        """Weights and biases by layer."""
        return {
            f"{name}{i}": layer[j] for i, layer in enumerate(self.layers) for j, name in enumerate(("weight", "bias"))
        }

    @classmethod
    def from_arrays(cls, encoding: Encoding, arrays: Arrays) -> Perceptron:
        """The perceptron with these weights."""
        layers = [(arrays[f"weight{i}"], arrays[f"bias{i}"]) for i in range(3)]
        width = encoding.n_reals
        for weight, bias in layers:
            fits = weight.ndim == 2 and weight.shape == (width, *bias.shape)
            if not fits or weight.dtype != np.float32 or bias.dtype != np.float32:
                raise ValueError("its layers do not fit the schema or each other")
            width = bias.size
        return cls(encoding, layers)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _forward(  # type: ignore[no-untyped-def]
    low, high, each, values, numbers, mean, scale, codes, number_at, level_at, is_pair, w0, b0, w1, b1, w2, b2, out
):
    """The network on blocks low to high of `each` rows; the one-hot table, nearly all zeros, is never made."""
    first, second = np.empty((each, len(b0)), dtype=np.float32), np.empty((each, len(b1)), dtype=np.float32)
    last = np.empty((each, len(b2)), dtype=np.float32)
    bound, zero = np.float32(BOUND), np.float32(0.0)
    for start in range(low * each, min(high * each, len(out)), each):
        n = min(each, len(out) - start)
        for r in range(n):
            i = start + r
            for k in range(len(b0)):
                first[r, k] = b0[k]
            for c in range(len(numbers)):
                x = np.float32((values[i, numbers[c]] - mean[c]) / scale[c])
                x = zero if np.isnan(x) else min(max(x, -bound), bound)
                at = number_at[c]
                for k in range(len(b0)):
                    first[r, k] += x * w0[at, k]
            for c in range(len(codes)):
                code = values[i, codes[c]]
                at = level_at[c] + (np.int64(np.isnan(code)) if is_pair[c] else np.int64(code))
                for k in range(len(b0)):
                    first[r, k] += w0[at, k]
            for k in range(len(b0)):
                first[r, k] = max(first[r, k], zero)
        np.dot(first[:n], w1, second[:n])
        for r in range(n):
            for k in range(len(b1)):
                second[r, k] = max(second[r, k] + b1[k], zero)
        np.dot(second[:n], w2, last[:n])
        for r in range(n):
            top = last[r, 0] + b2[0]
            for k in range(1, len(b2)):
                top = max(top, last[r, k] + b2[k])
            total = 0.0
            for k in range(len(b2)):
                out[start + r, k] = np.exp(np.float64(last[r, k] + b2[k]) - np.float64(top))
                total += out[start + r, k]
            for k in range(len(b2)):
                out[start + r, k] /= total


def _bounded(reals: NDArray[np.float32]) -> NDArray[np.float32]:
    """Standardised numbers within ten deviations: one absurd value must not swamp a step."""
    return np.clip(reals, -BOUND, BOUND)


def _softmax(scores: Floats) -> Floats:
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    total: Floats = shifted / shifted.sum(axis=1, keepdims=True)
    return total


# -- boosted trees -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forest:
    """Boosted trees as flat arrays: a node goes left where its feature is at most its threshold.

    start: the first node of each tree; trees of one round stand together, one per score.
    """

    kind: ClassVar[str] = "trees"
    start: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Floats
    baseline: Floats

    ROUNDS: ClassVar[int] = 120
    MOST_ROWS: ClassVar[int] = 100_000

    @classmethod
    def learn(cls, encoding: Encoding, values: Values, probabilities: Floats, seed: int) -> Forest:  # noqa: ARG003
        """Trees fitted by scikit-learn; a soft answer counts as every label, weighted by its probability."""
        rng = np.random.default_rng(seed)
        if len(values) > cls.MOST_ROWS:
            few = rng.choice(len(values), cls.MOST_ROWS, replace=False)
            values, probabilities = values[few], probabilities[few]
        counted = probabilities > 0.02
        counted[0] = True  # so that the trees know of every class, also of one that no row has
        row, label = np.nonzero(counted)
        booster = HistGradientBoostingClassifier(
            max_iter=cls.ROUNDS, max_leaf_nodes=31, learning_rate=0.15, min_samples_leaf=10, early_stopping=False,
            random_state=seed % 2**32,
        )  # fmt: skip
        # Threads that wait for each other make small fits many times slower on a busy machine.
        with one_openmp_thread():
            booster.fit(values[row], label, sample_weight=np.maximum(probabilities[row, label], 1e-6))
        return cls._export(booster)

    @classmethod
    def _export(cls, booster: Any) -> Forest:
        trees = [tree.nodes for round_ in booster._predictors for tree in round_]
        start = np.cumsum([0, *(len(nodes) for nodes in trees)])
        nodes = np.concatenate(trees)
        shift = np.repeat(start[:-1], np.diff(start))
        leaf = nodes["is_leaf"].astype(bool)
        return cls(
            start=start[:-1].astype(np.int64),
            feature=np.where(leaf, -1, nodes["feature_idx"]).astype(np.int32),
            threshold=nodes["num_threshold"].astype(np.float64),
            missing_left=nodes["missing_go_to_left"].astype(bool),
            left=(nodes["left"] + shift).astype(np.int32),
            right=(nodes["right"] + shift).astype(np.int32),
            value=nodes["value"].astype(np.float64),
            baseline=np.asarray(booster._baseline_prediction, dtype=np.float64).ravel(),
        )

    def probabilities(self, values: Values, *, each: int = 1) -> Floats:  # noqa: ARG002
        """The trees' scores through a logistic (two classes) or a softmax."""
        scores = np.tile(self.baseline, (len(values), 1))
        _add_trees(
            values,
            self.start,
            self.feature,
            self.threshold,
            self.missing_left,
            self.left,
            self.right,
            self.value,
            scores,
        )
        if scores.shape[1] == 1:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        return _softmax(scores)

    def arrays(self) -> Arrays:
        """The flat arrays by name."""
        return {name: getattr(self, name) for name in FOREST_ARRAYS}

    @classmethod
    def from_arrays(cls, encoding: Encoding, arrays: Arrays) -> Forest:
        """The forest with these arrays, refused where a node points outside of them."""
        for name, dtype in FOREST_ARRAYS.items():
            if arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise ValueError(f"its array {name!r} is not a list of {dtype.__name__}")
        forest = cls(**{name: arrays[name] for name in FOREST_ARRAYS})
        nodes = (forest.feature, forest.threshold, forest.missing_left, forest.left, forest.right, forest.value)
        if len({len(array) for array in nodes}) != 1 or len(forest.baseline) == 0 or not forest._well_linked():
            raise ValueError("its trees are not well formed")
        if (forest.feature >= len(encoding.schema)).any():
            raise ValueError("its trees ask for a feature that the schema does not have")
        return forest

    def _well_linked(self) -> bool:
        """Whether every link stays inside the arrays and points forward, so that each walk ends."""
        inner = np.flatnonzero(self.feature >= 0)
        links = np.concatenate([self.left[inner], self.right[inner]])
        inside = (links < len(self.feature)).all() and ((self.start >= 0) & (self.start < len(self.feature))).all()
        return bool(inside and (links > np.tile(inner, 2)).all())


FOREST_ARRAYS: dict[str, type[np.generic]] = {
    "start": np.int64,
    "feature": np.int32,
    "threshold": np.float64,
    "missing_left": np.bool_,
    "left": np.int32,
    "right": np.int32,
    "value": np.float64,
    "baseline": np.float64,
}


@numba.njit(cache=True, parallel=True)
def _add_trees(values, start, feature, threshold, missing_left, left, right, value, scores):  # type: ignore[no-untyped-def]
    n_scores = scores.shape[1]
    for i in numba.prange(len(values)):
        for tree in range(len(start)):
            node = start[tree]
            while feature[node] >= 0:
                x = values[i, feature[node]]
                go_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                node = left[node] if go_left else right[node]
            scores[i, tree % n_scores] += value[node]
