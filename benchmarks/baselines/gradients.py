"""A fitted scikit-learn perceptron, with its preprocessing, as a torch module on the reals of an encoding."""

from __future__ import annotations

__all__ = ["Network", "NoGradientError", "network_of"]

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from torch import Tensor, nn

from dicoflex.errors import BlackBoxError
from dicoflex.table.encoding import Encoding, Values

Matrix = NDArray[np.float64]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
}
CHECKED_ROWS = 500
TOLERANCE = 1e-4


class NoGradientError(BlackBoxError):
    """The black box can't be written as a differentiable function of the encoding's reals."""


class Network(nn.Module):
    """A perceptron from reals to one logit per class; `softmax` of them are the black box's probabilities."""

    def __init__(self, layers: list[tuple[Matrix, Matrix]], activation: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_linear(weight, bias) for weight, bias in layers)
        self.activation = ACTIVATIONS[activation]
        self.requires_grad_(False)

    def forward(self, reals: Tensor) -> Tensor:
        """The logits of each row."""
        for layer in list(self.layers)[:-1]:
            reals = self.activation(layer(reals))
        logits = self.layers[-1](reals)
        # scikit-learn has a single logit for two classes: that of the second against the first.
        return torch.cat([torch.zeros_like(logits), logits], dim=1) if logits.shape[1] == 1 else logits


def network_of(black_box: Any, encoding: Encoding, train: pd.DataFrame) -> Network:
    """The black box as a torch module, checked against it on training rows.

    It must be a pipeline whose last step is an `MLPClassifier` and whose other steps treat every column by itself:
    levels in any way, numbers by a shift and a scale (standardising, scaling to a range, one-hot).
    """
    if not isinstance(black_box, Pipeline) or not isinstance(black_box[-1], MLPClassifier):
        raise NoGradientError(
            f"the black box is {type(black_box).__name__}, and a gradient is known for a Pipeline that ends in an "
            "MLPClassifier; use such a one, or a baseline that needs no gradient"
        )
    perceptron = black_box[-1]
    weight, bias = _affine(black_box[:-1].transform, encoding)
    first, *others = zip(perceptron.coefs_, perceptron.intercepts_, strict=True)
    layers = [(weight @ first[0], bias @ first[0] + first[1]), *others]
    network = Network(layers, perceptron.activation)
    _check(network, black_box, encoding, train.head(CHECKED_ROWS))
    return network


def _affine(transform: Callable[[pd.DataFrame], Any], encoding: Encoding) -> tuple[Matrix, Matrix]:
    """Weight and bias with `transform(frame) = reals @ weight + bias`, read off rows that differ in one feature.

    Asking the fitted steps instead would mean to know each of them and its handling of missing and unseen levels.
    """
    features = encoding.schema.features
    origin = np.array([feature.minimum if feature.is_number else 0.0 for feature in features])
    probes = [_probes(encoding, j, origin) for j in range(len(features))]
    shown = np.asarray(transform(encoding.decode(np.concatenate([origin[None], *probes]))), dtype=np.float64)
    bias, moves = shown[0].copy(), np.split(shown[1:] - shown[0], np.cumsum([len(p) for p in probes])[:-1])
    weight = np.zeros((encoding.n_reals, shown.shape[1]))
    for j, (feature, block) in enumerate(zip(features, encoding.blocks, strict=True)):
        if not feature.is_number:
            weight[block] = moves[j]
            continue
        low, high = (np.array([feature.minimum, feature.maximum]) - encoding.mean[j]) / encoding.scale[j]
        slope = moves[j][0] / (high - low) if high > low else np.zeros(shown.shape[1])
        weight[block.start] = slope
        bias -= slope * low
        if feature.missing:
            weight[block.start + 2] = moves[j][1] + slope * low
    return weight, bias


def _probes(encoding: Encoding, j: int, origin: Values) -> Values:
    """The origin with feature `j` at its maximum (and missing), or at each of its levels."""
    feature = encoding.schema.features[j]
    if feature.is_number:
        states = [feature.maximum, np.nan] if feature.missing else [feature.maximum]
    else:
        states = list(range(feature.n_states))
    rows = np.repeat(origin[None], len(states), axis=0)
    rows[:, j] = states
    return rows


def _check(network: Network, black_box: Any, encoding: Encoding, rows: pd.DataFrame) -> None:
    reals = torch.from_numpy(encoding.to_reals(encoding.encode(rows)))
    gap = np.abs(network(reals).softmax(dim=1).numpy() - black_box.predict_proba(rows)).max()
    if gap > TOLERANCE:
        raise NoGradientError(
            f"the black box as a network is off by {gap:.2g} on training rows; its preprocessing must treat every "
            "column by itself and numbers by a shift and a scale"
        )


def _linear(weight: Matrix, bias: Matrix) -> nn.Linear:
    layer = nn.Linear(*weight.shape)
    layer.weight.data = torch.as_tensor(weight.T, dtype=torch.float32).contiguous()
    layer.bias.data = torch.as_tensor(bias, dtype=torch.float32)
    return layer
