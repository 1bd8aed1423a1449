"""The default density's settings, its weights as arrays, and what a query is to them."""

from __future__ import annotations

__all__ = ["Conditioning", "MixedConfig", "Weights", "shapes"]

from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from dicoflex._types import Floats
from dicoflex.generators.base import Context, GeneratorConfig
from dicoflex.generators.mixed.cells import Grid, Located

Weights = dict[str, NDArray[np.float32]]
Exponent = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class MixedConfig(GeneratorConfig):
    """Sizes of the density: `hidden` units see query and prefix, `head` units per feature shape its factor."""

    hidden: int = Field(default=96, ge=1)
    head: int = Field(default=32, ge=1)
    max_cells: int = Field(default=96, ge=2)
    exponents: tuple[Exponent, ...] = Field(default=(0.01, 0.08, 0.25, 1.0, 2.0), min_length=1)
    confidences: tuple[Share, ...] = Field(default=(0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0), min_length=1)

    @field_validator("exponents", "confidences")
    @classmethod
    def _rising(cls, knots: tuple[float, ...]) -> tuple[float, ...]:
        if any(low >= high for low, high in pairwise(knots)):
            raise ValueError("the numbers must rise from each to the next")
        return knots


class Conditioning(NamedTuple):
    """Queries as the density sees them: where they lie among the cells, their settings, and what can't change."""

    own: Located
    settings: NDArray[np.float32]
    stuck: NDArray[np.bool_]

    @classmethod
    def of(cls, config: MixedConfig, codes: NDArray[np.float32], context: Context, own: Located) -> Conditioning:
        """What a context says; `codes` tells what each target is to the density (targets, numbers)."""
        return cls(own, _settings_of(config, codes, context), context.frozen | own.settled)


def _n_settings(n_features: int, n_classes: int, config: MixedConfig) -> int:
    """How many numbers tell everything but the query."""
    return n_features + n_classes + len(config.exponents) + len(config.confidences)


def _settings_of(config: MixedConfig, codes: NDArray[np.float32], context: Context) -> NDArray[np.float32]:
    """Everything but the query as one row of weights: frozen, target, and where p and c lie among their knots."""
    settings = np.empty((len(context), _n_settings(context.frozen.shape[1], codes.shape[1], config)), dtype=np.float32)
    parts = (
        context.frozen, codes[context.target], _weights_of(context.p, config.exponents, logs=True),
        _weights_of(context.confidence, config.confidences, logs=False),
    )  # fmt: skip
    at = 0
    for part in parts:
        settings[:, at : at + part.shape[1]] = part
        at += part.shape[1]
    return settings


def _weights_of(values: Floats, knots: tuple[float, ...], *, logs: bool) -> Floats:
    """Each value as weights of the knots (n, knots); most often all values are one, that was asked for before, and one
    row tells them all."""
    if len(values) == 1 or (len(values) and (values == values[0]).all()):
        return _one_value(float(values[0]), knots, logs)
    return _knots(np.log(values), np.log(knots)) if logs else _knots(values, knots)


@lru_cache(maxsize=256)
def _one_value(value: float, knots: tuple[float, ...], logs: bool) -> Floats:
    values = np.array([value])
    return _knots(np.log(values), np.log(knots)) if logs else _knots(values, knots)


def _knots(values: Floats, knots: Any) -> Floats:
    """Linear interpolation between a value's two neighbours among the knots."""
    grid = np.asarray(knots, dtype=float)
    at = np.interp(values, grid, np.arange(len(grid)))
    return np.maximum(0.0, 1.0 - np.abs(at[:, None] - np.arange(len(grid))))


def shapes(grid: Grid, n_classes: int, config: MixedConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every array of weights, by name."""
    d, hidden, head = grid.n_features, config.hidden, config.head
    wide, widest = int(grid.size[grid.wide].sum()), int(grid.size.max()) + 1
    return {
        "query": (grid.n_cells, hidden),
        "query_slope": (wide, hidden),
        "settings": (_n_settings(d, n_classes, config), hidden),
        "prefix": (grid.n_cells, hidden),
        "prefix_slope": (wide, hidden),
        "prefix_kept": (d, hidden),
        "inner": (d, hidden, head),
        "inner_bias": (d, head),
        "outer": (d, head, widest),
        "outer_bias": (d, widest),
        "trunk.weight": (hidden, hidden),
        "trunk.bias": (hidden,),
    }
