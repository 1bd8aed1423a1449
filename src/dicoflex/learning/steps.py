"""What both ways of fitting are given, and the steps that they share."""

from __future__ import annotations

__all__ = [
    "Fitted",
    "Task",
    "held_out_pairs",
    "held_out_rows",
    "make_teacher",
    "split_pairs",
    "train_first",
    "train_stage",
]

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dicoflex.coherence import Coherence
from dicoflex.generators.base import Generator, Table
from dicoflex.learning.black_box import BlackBox
from dicoflex.learning.config import ENDS, FitConfig, FitSettings, TrainingConfig
from dicoflex.learning.few_labels import Judge
from dicoflex.learning.pairs import Conditions, Pairs, Teacher, weighted
from dicoflex.learning.score_box import ScoreBox
from dicoflex.learning.training import History, TrainingSet, train
from dicoflex.model import Confidence
from dicoflex.neighbours import Pool
from dicoflex.runtime.progress import Deadline, Progress
from dicoflex.surrogate import Surrogate

HELD_OUT = 0.1


@dataclass
class Fitted:
    """What both ways leave: a density, a surrogate, the confidences per class, and facts to report.

    judge: what answers to held-out rows are shown to, where there is no black box and few rows.
    """

    generator: Generator
    surrogate: Surrogate
    confidence: Confidence
    histories: list[History]
    held: NDArray[np.bool_]
    facts: dict[str, Any] = field(default_factory=dict)
    judge: Judge | None = None


@dataclass(frozen=True)
class Task:
    """What both ways of fitting are given.

    black_box: the classifier or what gives scores, where it can be asked; probabilities: what it says of the table's
    rows, which are ranks where it gives scores. coherence: what
    goes together in the table, where answers are to be refined. exact: the copy of the black box that is to be the
    surrogate, and the share of rows on which both decide alike. deadline: when the fit must have ended.
    """

    table: Table
    settings: FitSettings
    masks: NDArray[np.bool_] | None
    seed: int
    device: torch.device
    progress: Progress
    black_box: BlackBox | ScoreBox | None = None
    probabilities: NDArray[np.float64] | None = None
    coherence: Coherence | None = None
    exact: tuple[Surrogate, float] | None = None
    deadline: Deadline = field(default_factory=Deadline)

    @property
    def config(self) -> FitConfig:
        """How pairs are made."""
        return self.settings.fit

    def conditions(self, confidence: Confidence) -> Conditions:
        """What pairs are drawn under."""
        return Conditions(self.config.exponents, self.masks, confidence)

    def new_generator(self) -> Generator:
        """The density, untrained."""
        return self.settings.generator.create(self.table, self.settings.generator_config, seed=self.seed)


def make_teacher(
    task: Task, conditions: Conditions, rng: np.random.Generator, level_weight: float = 1.0
) -> tuple[Teacher, NDArray[np.bool_]]:
    table, config = task.table, task.config
    parts = weighted(table.encoding.parts(table.values), level_weight)
    pool = Pool.group(parts, table.labels, table.n_classes, table.confidence)
    held = held_out_rows(len(table.values), rng)
    k = min(config.k, len(table.values))
    return Teacher(table, pool, conditions, k, config.alpha, level_weight), held


def held_out_rows(n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which of `n` rows are held out: a tenth at random."""
    held = np.zeros(n, dtype=bool)
    held[rng.permutation(n)[: int(HELD_OUT * n)]] = True
    return held


def split_pairs(pairs: Pairs, held: NDArray[np.bool_]) -> tuple[Pairs, Pairs]:
    """Pairs to learn from, and pairs of which neither the anchor nor the answer is learned from.

    With answers that are learned from, the least held-out loss would be that of weights that know them by heart.
    """
    anchor, row = held[pairs.anchor], held[pairs.row]
    return pairs.take(~anchor & ~row), pairs.take(anchor & row)


def held_out_pairs(parts: list[Pairs], training: list[Pairs], rng: np.random.Generator, most: int = 8192) -> Pairs:
    """Held-out pairs, thinned; tables too small to have any are judged on training pairs."""
    held = Pairs.join(parts)
    if len(held) == 0:
        held = Pairs.join(training)
    return held.take(np.sort(rng.permutation(len(held))[:most]))


def train_first(generator: Generator, training_set: TrainingSet, task: Task) -> History:
    """The first stage of a training; interrupted before an epoch ended, it has nothing to keep, and the fit ends."""
    history = train_stage(generator, training_set, task, "training")
    if history.interrupted and not history.epochs:
        raise KeyboardInterrupt
    return history


def train_stage(generator: Generator, training_set: TrainingSet, task: Task, name: str, share: float = 1.0) -> History:
    stage = task.deadline.part(ENDS.training if share == 1.0 else ENDS.own_draws)
    training = _shortened(task.settings.training, share, stage.left)
    history = train(
        generator, training_set, training, seed=task.seed, device=task.device, progress=task.progress, name=name
    )
    if stage.is_over:
        stage.cut(name)
    return history


def _shortened(training: TrainingConfig, share: float, left: float) -> TrainingConfig:
    """The settings of a stage that is a share of the whole training, and has so many seconds left."""
    seconds = min(np.inf if training.max_seconds is None else training.max_seconds * share, left)
    limit = {"max_seconds": None if np.isinf(seconds) else float(seconds)}
    if share == 1.0:
        return training.model_copy(update=limit)
    fewer = {"epochs": max(1, round(training.epochs * share)), "min_steps": round(training.min_steps * share)}
    return training.model_copy(update={**limit, **fewer, "learning_rate": training.learning_rate * 0.5})
