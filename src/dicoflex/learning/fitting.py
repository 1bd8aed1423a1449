"""From a table to a trained density: split, pairs, training, the model's own draws, the stand-in.

Two ways through. *Plain* is the paper's: neighbours as they are, on labels alone. *Judged* is the default generator's:
a judge (the black box, or a stand-in learned from the labels) decides on every pair whose features were put back, and
on the model's own draws.
"""

from __future__ import annotations

__all__ = ["FitConfig", "Fitted", "Rows", "Setting", "fit_judged", "fit_plain", "take_rows"]

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dicoflex.errors import DataError
from dicoflex.generators.base import Generator, GeneratorConfig, Table
from dicoflex.learning.black_box import BlackBox
from dicoflex.learning.pairs import Conditions, Pairs, Teacher, clamp, prefer_sparse, sparsify, weighted
from dicoflex.learning.stand_in import BLOCK, Surrogate, learn
from dicoflex.learning.training import History, Lesson, TrainingConfig, train
from dicoflex.neighbours import Pool
from dicoflex.runtime.progress import Progress
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.schema import Schema
from dicoflex.table.subsample import MOST_ROWS, stratified

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEFAULT_CONFIDENCE = 0.7
ROWS_FOR_CONFIDENCE = 100
TOP_CONFIDENCE = 0.99
STAND_IN_FLOOR = 0.6
HELD_OUT = 0.1
OWN_DRAWS_PER_ROW = 40
CHUNK = 65_536


class FitConfig(BaseModel):
    """How pairs are made.

    exponents, k, alpha: as in the paper. passes: searches per anchor, each with new conditions. most_anchors: rows
    that a pass searches for at most. most_rows: rows to learn from at most. A larger table is sampled by class, and
    classes of which its share would leave fewer than 5,000 rows keep more; schema, limits, levels, means and what
    `novel` knows still come from all rows, but neighbours are those in the sample, and the black box is asked for no
    others.

    For the default generator alone: each: of the k neighbours found, so many are taken at random. level_weight: how
    much another level counts against a number that is one standard deviation off, in squares: people keep their
    categories where they can. undo_levels: the chance that a change of level is tried to be undone even at the greatest
    p. rounds: how often the model learns from its own draws, own_draws of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    exponents: tuple[float, ...] = Field(default=(0.01, 0.08, 0.25, 1.0, 2.0), min_length=1)
    k: int = Field(default=24, ge=1)
    alpha: float = Field(default=10.0, gt=0)
    passes: int = Field(default=6, ge=1)
    most_anchors: int = Field(default=24_000, ge=1)
    most_rows: int = Field(default=MOST_ROWS, ge=1)
    each: int = Field(default=8, ge=1)
    level_weight: float = Field(default=16.0, gt=0)
    undo_levels: float = Field(default=0.25, ge=0, le=1)
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
class Rows:
    """The rows to learn from, encoded, with their class numbers; and the keys of all rows, whether taken or not."""

    encoding: Encoding
    values: Values
    labels: Ints
    known: NDArray[np.uint64]


def take_rows(frame: pd.DataFrame, schema: Schema, labels: Ints, *, most: int, seed: int) -> Rows:
    """All rows of `frame`, or about `most` of them by class, with one for everything that a column can hold.

    >>> frame = pd.DataFrame({"a": range(1000)})
    >>> rows = take_rows(frame, Schema.infer(frame), np.arange(1000) % 2, most=100, seed=0)
    >>> len(rows.values), len(rows.known), rows.values.min(), rows.values.max()
    (100, 1000, np.float64(0.0), np.float64(999.0))
    """
    if len(frame) <= most:
        encoding = Encoding.fit(frame, schema)
        values = encoding.encode(frame)
        return Rows(encoding, values, labels, np.unique(row_keys(values, 0)))
    survey = _Survey(schema)
    parts = [survey.add(frame.iloc[low : low + CHUNK]) for low in range(0, len(frame), CHUNK)]
    chosen = stratified(labels, most=most, seed=seed, needed=survey.shown.values())
    few = frame.iloc[chosen]
    # The sample holds the least and the greatest numbers, so limits that are too narrow for any row are refused here.
    encoding = replace(Encoding.fit(few, schema), mean=survey.mean, scale=survey.scale)
    return Rows(encoding, encoding.encode(few), labels[chosen], np.unique(np.concatenate(parts)))


class _Survey:
    """What one pass over all rows tells: means and deviations, and the first row for each thing that a column holds.

    Such a thing is a level, the least and the greatest number, and a missing value.
    """

    def __init__(self, schema: Schema) -> None:
        d = len(schema)
        self.encoding = Encoding(schema, np.zeros(d), np.ones(d))
        self.seen = 0
        self.shown: dict[tuple[int, Any], int] = {}
        self.count, self.mean, self.squares = np.zeros(d), np.zeros(d), np.zeros(d)
        self.least, self.greatest = np.full(d, np.inf), np.full(d, -np.inf)

    def add(self, frame: pd.DataFrame) -> NDArray[np.uint64]:
        """Look at the next rows; returns the keys of those that differ."""
        values = self.encoding.encode(frame)
        for j, feature in enumerate(self.encoding.schema.features):
            if feature.is_number:
                self._look_at_numbers(j, values[:, j])
            else:
                codes, at = np.unique(values[:, j], return_index=True)
                for code, i in zip(codes.tolist(), at.tolist(), strict=True):
                    self.shown.setdefault((j, code), self.seen + i)
        self.seen += len(values)
        return np.unique(row_keys(values, 0))

    def _look_at_numbers(self, j: int, column: Floats) -> None:
        absent = np.isnan(column)
        if absent.any():
            self.shown.setdefault((j, "missing"), self.seen + int(absent.argmax()))
        if absent.all():
            return
        low, high = int(np.nanargmin(column)), int(np.nanargmax(column))
        if column[low] < self.least[j]:
            self.least[j], self.shown[j, "least"] = column[low], self.seen + low
        if column[high] > self.greatest[j]:
            self.greatest[j], self.shown[j, "greatest"] = column[high], self.seen + high
        self._merge(j, column[~absent])

    def _merge(self, j: int, present: Floats) -> None:
        """Means and squares of two parts make those of the whole (Chan, Golub and LeVeque 1983)."""
        mean, before, total = present.mean(), self.count[j], self.count[j] + len(present)
        apart = mean - self.mean[j]
        self.squares[j] += ((present - mean) ** 2).sum() + apart**2 * before * len(present) / total
        self.mean[j] += apart * len(present) / total
        self.count[j] = total

    @property
    def scale(self) -> Floats:
        """The standard deviations to divide by; 1 where all values are one."""
        deviation = np.sqrt(self.squares / np.maximum(self.count, 1.0))
        return np.where((self.least < self.greatest) & (deviation > 0.0), deviation, 1.0)


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
        self.teacher, self.held = _teacher(setting, self.conditions, self.rng, self.config.level_weight)
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

    def _anchors(self) -> Ints:
        n = len(self.table.values)
        return self._balanced(np.arange(n), min(n, self.config.most_anchors))

    def _balanced(self, rows: Ints, n: int) -> Ints:
        return _balanced(self.table.labels, rows, self.table.n_classes, n, self.rng)

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
        return self.surrogate.probabilities(values, each=BLOCK)[np.arange(len(values)), target]

    def _learn_stand_in(self, *, first: bool) -> None:
        """The stand-in, from all that is known: at first also from crossings of near rows, where pairs will lie."""
        if first and self.black_box is not None:
            pairs = clamp(self.teacher.propose(self._anchors(), rng=self.rng, k=2))
            context, answers = pairs.batch(self.table.values, self.table.values)
            back = self.rng.random(answers.shape) < self.rng.random((len(answers), 1))
            self._ask(np.where(back, context.query, answers), context.target)
        elif not first and self.black_box is None:
            return
        values, answers = np.concatenate(self.seen_values), np.concatenate(self.seen_answers)
        # In place of the parts: with a million rows asked for, both would be the most that a fit holds.
        self.seen_values, self.seen_answers = [values], [answers]
        self.surrogate, self.agreement = learn(self.table.encoding, values, answers, seed=self.setting.seed)

    def _bank(self) -> tuple[list[Pairs], Pairs]:
        """Pairs from the neighbour search, clamped, sparsified by the stand-in and confirmed by the judge."""
        passes = [self._anchors() for _ in range(self.config.passes)]
        parts, held_parts = [], []
        with self.setting.progress.stage("neighbours", sum(map(len, passes))) as advance:
            for anchors in passes:
                pairs = self.teacher.propose(anchors, rng=self.rng, each=self.config.each, advance=advance)
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
        anchors = self._balanced(rows, max(1, draws // draws_each))
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
    """The confidences that each class's rows support: up to that of the hundredth surest row.

    The usual one is 0.7, or what half of the class's rows reach where fewer than a hundred reach 0.7: the nearest of a
    mere hundred rows would be far.
    """
    assert table.confidence is not None
    highest, usual = np.empty(table.n_classes), np.full(table.n_classes, DEFAULT_CONFIDENCE)
    for label in range(table.n_classes):
        sure = np.sort(table.confidence[table.labels == label])[::-1]
        rank = min(ROWS_FOR_CONFIDENCE, max(1, len(sure) // 2))
        highest[label] = min(sure[rank - 1], TOP_CONFIDENCE)
        if highest[label] < DEFAULT_CONFIDENCE:
            usual[label] = min(highest[label], sure[len(sure) // 2])
    lowest = np.minimum(0.5, usual)
    return Conditions(config.exponents, masks, lowest, highest, usual)


def _unconditional(setting: Setting, confidence: float = 0.0) -> Conditions:
    same = np.full(setting.table.n_classes, confidence)
    return Conditions(setting.config.exponents, setting.masks, same, same, same)


def _teacher(
    setting: Setting, conditions: Conditions, rng: np.random.Generator, level_weight: float = 1.0
) -> tuple[Teacher, NDArray[np.bool_]]:
    table, config = setting.table, setting.config
    parts = weighted(table.encoding.parts(table.values), level_weight)
    pool = Pool.group(parts, table.labels, table.n_classes, table.confidence)
    held = np.zeros(len(table.values), dtype=bool)
    held[rng.permutation(len(held))[: int(HELD_OUT * len(held))]] = True
    return Teacher(table, pool, conditions, config.k, config.alpha, level_weight), held


def _anchors(setting: Setting, rng: np.random.Generator) -> Ints:
    """All rows, or `most_anchors` of them: the paper's way."""
    n = len(setting.table.values)
    if n <= setting.config.most_anchors:
        return np.arange(n)
    return np.sort(rng.choice(n, setting.config.most_anchors, replace=False))


def _balanced(labels: Ints, rows: Ints, n_classes: int, n: int, rng: np.random.Generator) -> Ints:
    """`n` of the rows: half of them by the classes' shares, half spread evenly over the classes.

    So the way out of a rare class is learned too; its rows come several times, each time under other conditions.
    """
    count = np.bincount(labels[rows], minlength=n_classes)
    share = 0.5 * count / len(rows) + 0.5 * (count > 0) / (count > 0).sum()
    parts = [_cycle(rows[labels[rows] == c], int(np.ceil(n * share[c])), rng) for c in np.flatnonzero(count)]
    return rng.permutation(np.concatenate(parts))


def _cycle(rows: Ints, n: int, rng: np.random.Generator) -> Ints:
    """`n` of the rows in random order, each as often as the others or once more."""
    return np.concatenate([rng.permutation(rows) for _ in range(1 + n // len(rows))])[:n]


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
