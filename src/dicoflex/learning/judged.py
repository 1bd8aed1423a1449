"""The default way of fitting: a judge decides on every pair, and on the model's own draws."""

from __future__ import annotations

__all__ = ["Judged", "fit_judged"]

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dicoflex.errors import DataError
from dicoflex.generators.base import Generator, Table
from dicoflex.learning.few_labels import FEW_ROWS, LEAST_ROWS, FewLabels, learn_few
from dicoflex.learning.interval_pairs import IntervalTeacher
from dicoflex.learning.pairs import Pairs, Teacher, clamp, prefer_sparse, sparsify
from dicoflex.learning.stand_in import learn
from dicoflex.learning.steps import (
    Fitted,
    Task,
    held_out_pairs,
    make_teacher,
    split_pairs,
    train_first,
    train_stage,
)
from dicoflex.learning.training import History, TrainingSet
from dicoflex.model import Confidence
from dicoflex.runtime.randomness import row_keys
from dicoflex.stand_in import BLOCK, StandIn
from dicoflex.table.encoding import Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
DEFAULT_CONFIDENCE = 0.7
ROWS_FOR_CONFIDENCE = 100
TOP_CONFIDENCE = 0.99
STAND_IN_FLOOR = 0.6
OWN_DRAWS_PER_ROW = 40
LEAST_USUAL = 0.05


def fit_judged(task: Task) -> Fitted:
    """The default way: pairs that the judge confirmed, then rounds of the model's own draws that it confirmed."""
    return Judged(task).run()


class Judged:
    """The steps of the default way, in the order in which `run` names them; those that concern classes come last."""

    teacher: Teacher | IntervalTeacher

    def __init__(self, task: Task) -> None:
        self.task, self.table, self.config = task, task.table, task.config
        self.rng = np.random.default_rng(task.seed)
        self.teacher, self.held = self._teacher()
        # Nothing near held-out rows is learned from: how far the stand-in can be trusted is found out on them.
        rows = self._rows()
        self.seen_values, self.seen_answers = [self.table.values[rows]], [self._known()[rows]]
        self.stand_in: StandIn | None = None
        self.agreement = 0.0
        self.few: FewLabels | None = None

    def run(self) -> Fitted:
        self._learn_stand_in(first=True)
        parts, held_out = self._bank()
        generator = self._new_generator()
        training_set = TrainingSet(parts, held_out, self.table.values, self.table.values)
        histories = [train_first(generator, training_set, self.task)]
        for number in range(self.config.rounds):
            if histories[-1].interrupted:
                break
            histories.append(self._own_round(generator, parts, held_out, number))
        self._learn_stand_in(first=False)
        assert self.stand_in is not None
        facts = {
            "pairs": int(sum(map(len, parts))),
            "stand_in": self.stand_in.kind,
            "stand_in_agreement": self.agreement,
        }
        return Fitted(
            generator,
            self.stand_in,
            self.confidence,
            histories,
            self.held,
            facts=facts,
            judge=None if self.few is None else self.few.judge,
        )

    def _rows(self) -> Ints:
        """The rows to learn from: those that are not held out."""
        return np.flatnonzero(~self.held) if not self.held.all() else np.arange(len(self.held))

    def _anchors(self, rows: Ints) -> Ints:
        return self._balanced(rows, min(len(rows), self.config.most_anchors))

    def _balanced(self, rows: Ints, n: int) -> Ints:
        return _balanced(self.table.labels, rows, self.table.n_classes, n, self.rng)

    def _ask(self, values: Values, target: Ints, *, held: Bools | None = None) -> Floats:
        """The judge's probability of each row's target; a black box's answers are kept to learn the stand-in from.

        held: which rows are to teach nothing.
        """
        if self.task.black_box is None:
            return self._doubt(values, target)
        answers = self.task.black_box.answers(values)
        kept = slice(None) if held is None else ~held
        self.seen_values.append(values[kept])
        self.seen_answers.append(answers[kept])
        return self._chance(answers, target)

    def _doubt(self, values: Values, target: Ints) -> Floats:
        """The stand-in's probability of each row's target."""
        return self._chance(self._guess(values), target)

    def _learn_stand_in(self, *, first: bool) -> None:
        """The stand-in, from all that is known: at first also from crossings of near rows, where pairs will lie."""
        if first and self.task.black_box is not None:
            pairs = clamp(self.teacher.propose(self._anchors(self._rows()), rng=self.rng, k=2))
            batch = pairs.batch(self.table.values, self.table.values)
            back = self.rng.random(batch.answers.shape) < self.rng.random((len(pairs), 1))
            self._ask(np.where(back, batch.context.query, batch.answers), batch.context.target)
        elif not first and self.task.black_box is None:
            return
        values, answers = np.concatenate(self.seen_values), np.concatenate(self.seen_answers)
        # In place of the parts: with a million rows asked for, both would be the most that a fit holds.
        self.seen_values, self.seen_answers = [values], [answers]
        self._learn(values, answers, thorough=not first)

    def _learn(self, values: Values, answers: Floats, *, thorough: bool) -> None:
        """The stand-in that follows these answers."""
        seed, min_count = self.task.seed, self.table.min_count
        if self.task.black_box is None and LEAST_ROWS <= len(values) <= FEW_ROWS:
            self.few = learn_few(self.table.encoding, values, answers, seed=seed, min_count=min_count)
            self.stand_in, self.agreement = self.few.stand_in, self.few.agreement
            return
        self.stand_in, self.agreement = learn(
            self.table.encoding, values, answers, seed=seed, min_count=min_count, thorough=thorough
        )

    def _bank(self) -> tuple[list[Pairs], Pairs]:
        """Pairs from the neighbour search, clamped, sparsified by the stand-in and confirmed by the judge."""
        everyone = np.arange(len(self.table.values))
        passes = [self._anchors(everyone) for _ in range(self.config.passes)]
        parts, held_parts = [], []
        with self.task.progress.stage("neighbours", sum(map(len, passes))) as advance:
            for anchors in passes:
                pairs = self.teacher.propose(anchors, rng=self.rng, each=self.config.each, advance=advance)
                seen, unseen = split_pairs(self._confirmed(pairs), self.held)
                parts.append(seen)
                held_parts.append(unseen)
        if sum(map(len, parts)) == 0:
            raise DataError("no training pair satisfies the judge; the labels may not belong to these rows")
        return [part for part in parts if len(part)], held_out_pairs(held_parts, parts, self.rng)

    def _confirmed(self, pairs: Pairs) -> Pairs:
        """Pairs clamped, sparsified by the stand-in and confirmed by the judge; their matrices are made once."""
        values = self.table.values
        batch = clamp(pairs).batch(values, values)
        likely = self._doubt(batch.answers, batch.context.target) >= batch.context.confidence
        likely &= differ(batch.answers, batch.context.query).any(axis=1)
        broken = None if self.task.coherence is None else self.task.coherence.strays
        if broken is not None:
            likely &= ~broken(batch.answers, batch.context.query)
        batch = batch.take(likely)
        levels = np.array([not f.is_number for f in self.table.encoding.schema.features])
        batch = sparsify(
            batch, self._doubt,
            exponents=self.config.exponents, levels=levels, undo_levels=self.config.undo_levels, rng=self.rng,
            broken=broken,
        )  # fmt: skip
        if self.task.black_box is not None:
            held = self.held[batch.pairs.anchor] & ~self.held.all()
            batch = batch.take(self._ask(batch.answers, batch.context.target, held=held) >= batch.context.confidence)
        return prefer_sparse(batch, exponents=self.config.exponents, rng=self.rng)

    def _own_round(self, generator: Generator, parts: list[Pairs], held_out: Pairs, number: int) -> History:
        """Train on, with the model's own draws that the judge confirmed among the pairs."""
        own, rows = self._own_pairs(generator, number)
        offset = len(self.table.values)
        moved = replace(own, row=own.row + offset)
        mixed = [Pairs.join([part, share]) for part, share in zip(parts, _shares(moved, len(parts)), strict=True)]
        training_set = TrainingSet(mixed, held_out, self.table.values, np.concatenate([self.table.values, rows]))
        return train_stage(generator, training_set, self.task, f"own draws {number + 1}", share=0.3)

    def _own_pairs(self, generator: Generator, number: int) -> tuple[Pairs, Values]:
        draws_each = 8
        rows = self._rows()
        draws = min(self.config.own_draws, OWN_DRAWS_PER_ROW * len(rows))
        anchors = self._balanced(rows, max(1, draws // draws_each))
        seeds = self.teacher.propose(anchors, rng=self.rng, k=1)
        context = seeds.batch(self.table.values, self.table.values).context
        numbered = np.column_stack([np.arange(len(context), dtype=float), context.query])
        keys = row_keys(numbered, self.task.seed + 1 + number)
        values, _ = generator.sample(context, draws_each, keys, 0)
        drawn = self.table.encoding.snap(values.reshape(-1, values.shape[2]))
        spread = seeds.take(np.repeat(np.arange(len(seeds)), draws_each))
        fine = self._ask(drawn, spread.target.astype(np.int64)) >= spread.confidence
        if self.task.coherence is not None:
            fine &= self._plausible(drawn, spread)
        index = np.arange(len(drawn), dtype=np.int32)
        return replace(spread, row=index).take(fine), drawn

    def _plausible(self, drawn: Values, pairs: Pairs) -> Bools:
        """Which draws hold what goes together, and are not rarer than real rows of their class mostly are."""
        assert self.task.coherence is not None
        density = self.task.coherence.density
        floor = self._floors(density.floors(LEAST_USUAL)[0], pairs)
        fine: Bools = density.judge(drawn)[0] >= floor
        return fine & ~self.task.coherence.strays(drawn, self.table.values[pairs.anchor])

    # -- classes ------------------------------------------------------------------------------------------------

    def _teacher(self) -> tuple[Teacher | IntervalTeacher, Bools]:
        """Who draws pairs, and which rows are held out; sets the confidences that can be asked for."""
        labels_alone = Confidence.same(self.table.n_classes, STAND_IN_FLOOR)
        self.confidence = labels_alone if self.task.probabilities is None else _supported(self.table)
        return make_teacher(self.task, self.task.conditions(self.confidence), self.rng, self.config.level_weight)

    def _known(self) -> Floats:
        """What is known of the table's rows: the black box's answers, or one-hot labels."""
        hard = np.eye(self.table.n_classes)[self.table.labels]
        return hard if self.task.probabilities is None else self.task.probabilities

    def _new_generator(self) -> Generator:
        return self.task.new_generator()

    def _guess(self, values: Values) -> Floats:
        """What the stand-in says of rows, in the terms of the black box."""
        judge = self.stand_in if self.few is None else self.few.plain
        assert judge is not None
        return judge.probabilities(values, each=BLOCK)

    def _chance(self, answers: Floats, target: Ints) -> Floats:
        """The probability of each row's target by such answers."""
        return answers[np.arange(len(answers)), target]

    def _floors(self, floors: Floats, pairs: Pairs) -> Floats:
        """What each pair's answer must be at least as likely as, by the floors of the classes."""
        own: Floats = floors[pairs.target]
        return own


def _supported(table: Table) -> Confidence:
    """The confidences that each class's rows support: up to that of the hundredth surest row.

    The default is 0.7, or what half of the class's rows reach where fewer than a hundred reach 0.7: the nearest of a
    mere hundred rows would be far.
    """
    assert table.confidence is not None
    highest, default = np.empty(table.n_classes), np.full(table.n_classes, DEFAULT_CONFIDENCE)
    for label in range(table.n_classes):
        sure = np.sort(table.confidence[table.labels == label])[::-1]
        rank = min(ROWS_FOR_CONFIDENCE, max(1, len(sure) // 2))
        highest[label] = _told(min(sure[rank - 1], TOP_CONFIDENCE), table.min_count)
        if highest[label] < DEFAULT_CONFIDENCE:
            default[label] = min(highest[label], _told(sure[len(sure) // 2], table.min_count))
    return Confidence(np.minimum(0.5, default), highest, default)


def _told(probability: float, min_count: int) -> float:
    """A probability that the black box gave to one row, in whole percent where a row is not to be told of."""
    return probability if min_count == 1 else float(np.floor(probability * 100) / 100)


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


def _shares(pairs: Pairs, n: int) -> list[Pairs]:
    return [pairs.take(slice(i, None, n)) for i in range(n)]
