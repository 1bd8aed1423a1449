"""What both ways of fitting are given, and the steps that they share."""

from __future__ import annotations

__all__ = ["Fitted", "Setting", "held_out_pairs", "make_teacher", "split_pairs", "train_stage", "unconditional"]

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dicoflex.generators.base import Generator, GeneratorConfig, Table
from dicoflex.learning.config import FitConfig
from dicoflex.learning.pairs import Conditions, Pairs, Teacher, weighted
from dicoflex.learning.stand_in import Surrogate
from dicoflex.learning.training import History, Lesson, TrainingConfig, train
from dicoflex.neighbours import Pool
from dicoflex.runtime.progress import Progress

HELD_OUT = 0.1


@dataclass
class Fitted:
    """What `fit` leaves: a density, a stand-in, the confidences per class, and facts to report."""

    generator: Generator
    surrogate: Surrogate
    conditions: Conditions
    histories: list[History]
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """What both ways of fitting are given."""

    table: Table
    generator: type[Generator]
    generator_config: GeneratorConfig
    config: FitConfig
    training: TrainingConfig
    masks: NDArray[np.bool_] | None
    seed: int
    device: torch.device
    progress: Progress


def unconditional(setting: Setting, confidence: float = 0.0) -> Conditions:
    same = np.full(setting.table.n_classes, confidence)
    return Conditions(setting.config.exponents, setting.masks, same, same, same)


def make_teacher(
    setting: Setting, conditions: Conditions, rng: np.random.Generator, level_weight: float = 1.0
) -> tuple[Teacher, NDArray[np.bool_]]:
    table, config = setting.table, setting.config
    parts = weighted(table.encoding.parts(table.values), level_weight)
    pool = Pool.group(parts, table.labels, table.n_classes, table.confidence)
    held = np.zeros(len(table.values), dtype=bool)
    held[rng.permutation(len(held))[: int(HELD_OUT * len(held))]] = True
    return Teacher(table, pool, conditions, config.k, config.alpha, level_weight), held


def split_pairs(pairs: Pairs, held: NDArray[np.bool_]) -> tuple[Pairs, Pairs]:
    """Pairs to learn from, and pairs of anchors that were never seen: as queries will be."""
    anchor, row = held[pairs.anchor], held[pairs.row]
    return pairs.take(~anchor & ~row), pairs.take(anchor & ~row)


def held_out_pairs(parts: list[Pairs], training: list[Pairs], rng: np.random.Generator, most: int = 8192) -> Pairs:
    """Held-out pairs, thinned; tables too small to have any are judged on training pairs."""
    held = Pairs.join(parts)
    if len(held) == 0:
        held = Pairs.join(training)
    return held.take(np.sort(rng.permutation(len(held))[:most]))


def train_stage(generator: Generator, lesson: Lesson, setting: Setting, name: str, share: float = 1.0) -> History:
    training = setting.training
    if share != 1.0:
        seconds = None if training.max_seconds is None else training.max_seconds * share
        epochs = max(1, round(training.epochs * share))
        training = training.model_copy(
            update={
                "epochs": epochs,
                "min_steps": round(training.min_steps * share),
                "max_seconds": seconds,
                "learning_rate": training.learning_rate * 0.5,
            }
        )
    return train(
        generator, lesson, training, seed=setting.seed, device=setting.device, progress=setting.progress, name=name
    )
