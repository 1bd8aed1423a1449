"""From a table to a trained density: split, pairs, training, the model's own draws, the stand-in.

Two ways through. *Plain* is the paper's: neighbours as they are, on labels alone. *Judged* is the default generator's:
a judge (the black box, or a stand-in learned from the labels) decides on every pair whose features were put back, and
on the model's own draws.
"""

from __future__ import annotations

__all__ = ["FitConfig", "Fitted", "Setting", "fit_judged", "fit_plain"]

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dicoflex.black_box import BlackBox
from dicoflex.encoding import Values
from dicoflex.errors import DataError
from dicoflex.generators.base import Generator, GeneratorConfig, Table
from dicoflex.neighbours import Pool
from dicoflex.progress import Progress
from dicoflex.streams import row_keys
from dicoflex.surrogate import Surrogate, learn
from dicoflex.teacher import Conditions, Pairs, Teacher, clamp, prefer_sparse, sparsify
from dicoflex.training import History, Lesson, TrainingConfig, train

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEFAULT_CONFIDENCE = 0.7
ROWS_FOR_CONFIDENCE = 100
TOP_CONFIDENCE = 0.99
STAND_IN_FLOOR = 0.6
HELD_OUT = 0.1
OWN_DRAWS_PER_ROW = 40


class FitConfig(BaseModel):
    """How pairs are made.

    exponents, k, alpha: as in the paper. passes: searches per anchor, each with new conditions. most_anchors: rows
    that a pass searches for at most. undo_levels: the chance that a change of level is tried to be undone even at the
    greatest p. rounds: how often the model learns from its own draws, own_draws of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    exponents: tuple[float, ...] = Field(default=(0.01, 0.08, 0.25, 1.0, 2.0), min_length=1)
    k: int = Field(default=8, ge=1)
    alpha: float = Field(default=10.0, gt=0)
    passes: int = Field(default=6, ge=1)
    most_anchors: int = Field(default=24_000, ge=1)
    undo_levels: float = Field(default=1.0, ge=0, le=1)
    rounds: int = Field(default=1, ge=0)
    own_draws: int = Field(default=120_000, ge=1)


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


def fit_plain(setting: Setting) -> Fitted:
    """The paper's way: the K nearest rows as they are, on labels alone."""
    table, config = setting.table, setting.config
    rng = np.random.default_rng(setting.seed)
    conditions = _unconditional(setting)
    teacher, held = _teacher(setting, conditions, rng)
    generator = setting.generator.create(table, setting.generator_config, seed=setting.seed)
    parts, held_parts = [], []
    anchors = _anchors(setting, rng)
    with setting.progress.stage("neighbours", config.passes * len(anchors)) as advance:
        for _ in range(config.passes):
            pairs = teacher.propose(anchors, rng=rng, advance=advance)
            seen, unseen = _split(pairs, held)
            parts.append(seen)
            held_parts.append(unseen)
    lesson = Lesson(parts, _held_out(held_parts, parts, rng), table.values, table.values)
    history = _train(generator, lesson, setting, "training")
    hard = np.eye(table.n_classes)[table.labels]
    surrogate, agreement = learn(table.encoding, table.values, hard, seed=setting.seed)
    facts = {"pairs": int(sum(map(len, parts))), "stand_in": surrogate.kind, "stand_in_agreement": agreement}
    return Fitted(generator, surrogate, conditions, [history], facts)


def fit_judged(setting: Setting, black_box: BlackBox | None, probabilities: Floats | None) -> Fitted:
    """The default way: pairs that the judge confirmed, then rounds of the model's own draws that it confirmed."""
    return _Judged(setting, black_box, probabilities).run()


class _Judged:
    """The steps of the default way, in the order in which `run` names them."""

    def __init__(self, setting: Setting, black_box: BlackBox | None, probabilities: Floats | None) -> None:
        self.setting, self.black_box = setting, black_box
        self.table, self.config = setting.table, setting.config
        self.rng = np.random.default_rng(setting.seed)
        hard = np.eye(self.table.n_classes)[self.table.labels]
        self.seen_values = [self.table.values]
        self.seen_answers = [hard if probabilities is None else probabilities]
        supported = _supported(self.table, setting.masks, self.config) if probabilities is not None else None
        self.conditions = supported or _unconditional(setting, STAND_IN_FLOOR)
        self.teacher, self.held = _teacher(setting, self.conditions, self.rng)
        self.surrogate: Surrogate | None = None
        self.agreement = 0.0

    def run(self) -> Fitted:
        setting = self.setting
        self._learn_stand_in(first=True)
        parts, held_out = self._bank()
        generator = setting.generator.create(self.table, setting.generator_config, seed=setting.seed)
        lesson = Lesson(parts, held_out, self.table.values, self.table.values)
        histories = [_train(generator, lesson, setting, "training")]
        for number in range(self.config.rounds):
            if histories[-1].interrupted:
                break
            histories.append(self._own_round(generator, parts, held_out, number))
        self._learn_stand_in(first=False)
        assert self.surrogate is not None
        facts = {
            "pairs": int(sum(map(len, parts))),
            "stand_in": self.surrogate.kind,
            "stand_in_agreement": self.agreement,
        }
        return Fitted(generator, self.surrogate, self.conditions, histories, facts)

    def _ask(self, values: Values, target: Ints) -> Floats:
        """The judge's probability of each row's target; a black box's answers are kept to learn the stand-in from."""
        if self.black_box is None:
            return self._doubt(values, target)
        answers = self.black_box.probabilities(values)
        self.seen_values.append(values)
        self.seen_answers.append(answers)
        return answers[np.arange(len(values)), target]

    def _doubt(self, values: Values, target: Ints) -> Floats:
        assert self.surrogate is not None
        return self.surrogate.probabilities(values)[np.arange(len(values)), target]

    def _learn_stand_in(self, *, first: bool) -> None:
        """The stand-in, from all that is known: at first also from crossings of near rows, where pairs will lie."""
        if first and self.black_box is not None:
            pairs = clamp(self.teacher.propose(_anchors(self.setting, self.rng), rng=self.rng, k=2))
            context, answers = pairs.batch(self.table.values, self.table.values)
            back = self.rng.random(answers.shape) < self.rng.random((len(answers), 1))
            self._ask(np.where(back, context.query, answers), context.target)
        elif not first and self.black_box is None:
            return
        values, answers = np.concatenate(self.seen_values), np.concatenate(self.seen_answers)
        self.surrogate, self.agreement = learn(self.table.encoding, values, answers, seed=self.setting.seed)

    def _bank(self) -> tuple[list[Pairs], Pairs]:
        """Pairs from the neighbour search, clamped, sparsified by the stand-in and confirmed by the judge."""
        anchors = _anchors(self.setting, self.rng)
        parts, held_parts = [], []
        with self.setting.progress.stage("neighbours", self.config.passes * len(anchors)) as advance:
            for _ in range(self.config.passes):
                pairs = self.teacher.propose(anchors, rng=self.rng, advance=advance)
                seen, unseen = _split(self._confirmed(pairs), self.held)
                parts.append(seen)
                held_parts.append(unseen)
        if sum(map(len, parts)) == 0:
            raise DataError("no training pair satisfies the judge; the labels may not belong to these rows")
        return [part for part in parts if len(part)], _held_out(held_parts, parts, self.rng)

    def _confirmed(self, pairs: Pairs) -> Pairs:
        values = self.table.values
        pairs = clamp(pairs)
        context, answers = pairs.batch(values, values)
        likely = self._doubt(answers, context.target) >= context.confidence
        pairs = pairs.take(likely & self.table.encoding.differs(answers, context.query).any(axis=1))
        levels = np.array([not f.is_number for f in self.table.encoding.schema.features])
        pairs = sparsify(
            pairs, values, values, self._doubt,
            exponents=self.config.exponents, levels=levels, undo_levels=self.config.undo_levels, rng=self.rng,
        )  # fmt: skip
        if self.black_box is not None:
            context, answers = pairs.batch(values, values)
            pairs = pairs.take(self._ask(answers, context.target) >= context.confidence)
        return prefer_sparse(pairs, values, values, exponents=self.config.exponents, rng=self.rng)

    def _own_round(self, generator: Generator, parts: list[Pairs], held_out: Pairs, number: int) -> History:
        """Train on, with the model's own draws that the judge confirmed among the pairs."""
        own, rows = self._own_pairs(generator, number)
        offset = len(self.table.values)
        moved = Pairs(own.anchor, own.row + offset, own.kept, own.frozen, own.target, own.p, own.confidence)
        mixed = [Pairs.join([part, share]) for part, share in zip(parts, _shares(moved, len(parts)), strict=True)]
        lesson = Lesson(mixed, held_out, self.table.values, np.concatenate([self.table.values, rows]))
        return _train(generator, lesson, self.setting, f"own draws {number + 1}", share=0.3)

    def _own_pairs(self, generator: Generator, number: int) -> tuple[Pairs, Values]:
        draws_each = 8
        rows = _train_rows(self.table, self.held)
        draws = min(self.config.own_draws, OWN_DRAWS_PER_ROW * len(rows))
        anchors = self.rng.choice(rows, max(1, draws // draws_each))
        seeds = self.teacher.propose(anchors, rng=self.rng, k=1)
        context, _ = seeds.batch(self.table.values, self.table.values)
        numbered = np.column_stack([np.arange(len(context), dtype=float), context.query])
        keys = row_keys(numbered, self.setting.seed + 1 + number)
        values, _ = generator.sample(context, draws_each, keys, 0)
        drawn = self.table.encoding.snap(values.reshape(-1, values.shape[2]))
        spread = seeds.take(np.repeat(np.arange(len(seeds)), draws_each))
        fine = self._ask(drawn, spread.target.astype(np.int64)) >= spread.confidence
        index = np.arange(len(drawn), dtype=np.int32)
        own = Pairs(spread.anchor, index, spread.kept, spread.frozen, spread.target, spread.p, spread.confidence)
        return own.take(fine), drawn


def _supported(table: Table, masks: NDArray[np.bool_] | None, config: FitConfig) -> Conditions:
    """The confidences that each class's rows support: up to that of the hundredth surest row."""
    assert table.confidence is not None
    highest = np.empty(table.n_classes)
    for label in range(table.n_classes):
        sure = np.sort(table.confidence[table.labels == label])[::-1]
        rank = min(ROWS_FOR_CONFIDENCE, max(1, len(sure) // 2))
        highest[label] = min(sure[rank - 1], TOP_CONFIDENCE)
    usual = np.minimum(DEFAULT_CONFIDENCE, highest)
    lowest = np.minimum(0.5, usual)
    return Conditions(config.exponents, masks, lowest, highest, usual)


def _unconditional(setting: Setting, confidence: float = 0.0) -> Conditions:
    same = np.full(setting.table.n_classes, confidence)
    return Conditions(setting.config.exponents, setting.masks, same, same, same)


def _teacher(setting: Setting, conditions: Conditions, rng: np.random.Generator) -> tuple[Teacher, NDArray[np.bool_]]:
    table, config = setting.table, setting.config
    pool = Pool.group(table.encoding.parts(table.values), table.labels, table.n_classes, table.confidence)
    held = np.zeros(len(table.values), dtype=bool)
    held[rng.permutation(len(held))[: int(HELD_OUT * len(held))]] = True
    return Teacher(table, pool, conditions, k=config.k, alpha=config.alpha), held


def _anchors(setting: Setting, rng: np.random.Generator) -> Ints:
    n = len(setting.table.values)
    if n <= setting.config.most_anchors:
        return np.arange(n)
    return np.sort(rng.choice(n, setting.config.most_anchors, replace=False))


def _train_rows(table: Table, held: NDArray[np.bool_]) -> Ints:
    return np.flatnonzero(~held) if not held.all() else np.arange(len(table.values))


def _split(pairs: Pairs, held: NDArray[np.bool_]) -> tuple[Pairs, Pairs]:
    """Pairs to learn from, and pairs of anchors that were never seen: as queries will be."""
    anchor, row = held[pairs.anchor], held[pairs.row]
    return pairs.take(~anchor & ~row), pairs.take(anchor & ~row)


def _held_out(parts: list[Pairs], training: list[Pairs], rng: np.random.Generator, most: int = 8192) -> Pairs:
    """Held-out pairs, thinned; tables too small to have any are judged on training pairs."""
    held = Pairs.join(parts)
    if len(held) == 0:
        held = Pairs.join(training)
    return held.take(np.sort(rng.permutation(len(held))[:most]))


def _shares(pairs: Pairs, n: int) -> list[Pairs]:
    return [pairs.take(slice(i, None, n)) for i in range(n)]


def _train(generator: Generator, lesson: Lesson, setting: Setting, name: str, share: float = 1.0) -> History:
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
