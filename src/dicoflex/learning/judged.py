"""The default way of fitting: a judge decides on every pair, and on the model's own draws."""

from __future__ import annotations

__all__ = ["Judged", "fit_judged"]

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dicoflex.errors import DataError
from dicoflex.generators.base import Generator, Table
from dicoflex.learning.config import ENDS
from dicoflex.learning.few_labels import FEW_ROWS, LEAST_ROWS, FewLabels, learn_few
from dicoflex.learning.interval_pairs import IntervalTeacher
from dicoflex.learning.pairs import Batch, Pairs, Teacher, blend, clamp, point_masses, prefer_sparse, sparsify
from dicoflex.learning.steps import (
    Fitted,
    Task,
    held_out_pairs,
    make_teacher,
    split_pairs,
    train_first,
    train_stage,
)
from dicoflex.learning.surrogate import MOST_ROWS, learn
from dicoflex.learning.training import History, TrainingSet
from dicoflex.model import Confidence
from dicoflex.runtime.progress import Deadline
from dicoflex.runtime.randomness import row_keys
from dicoflex.surrogate import Both, Forest, Perceptron, Surrogate
from dicoflex.table.encoding import Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
DEFAULT_CONFIDENCE = 0.7
ROWS_FOR_CONFIDENCE = 100
TOP_CONFIDENCE = 0.99
SURROGATE_FLOOR = 0.6
OWN_DRAWS_PER_ROW = 40
LEAST_USUAL = 0.05
PIECE = 1000
KINDS = {Perceptron.kind: ("mlp",), Forest.kind: ("trees",), Both.kind: ("mlp", "trees")}
"""What has to be learned for a surrogate of a kind."""
# Rounds of sharpening at most, rows of each, halvings of the way to each, and the error that is small enough.
SHARPENED = 3
SHARPENED_ROWS = 12_000
HALVED = 7
HELD = 0.95
SHARP_ENOUGH = 0.03


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
        # Nothing near held-out rows is learned from: how far the surrogate can be trusted is found out on them.
        rows = self._rows()
        self.seen_values, self.seen_answers = [self.table.values[rows]], [self._known()[rows]]
        self.surrogate: Surrogate | None = None
        self.agreement = 0.0
        self.few: FewLabels | None = None
        self.deadline = task.deadline
        self.kinds = KINDS[Both.kind]
        self.errors: list[float] = []
        """Round by round of sharpening, how much too sure the surrogate was, in all but a twentieth of the rows."""
        self.answers = self.table.values
        """What pairs point to: the table's rows, then those between two of them."""

    def run(self) -> Fitted:
        self._learn_surrogate(first=True)
        parts, held_out = self._bank()
        generator = self._new_generator()
        training_set = TrainingSet(parts, held_out, self.table.values, self.answers)
        histories = [train_first(generator, training_set, self.task)]
        for number in range(self.config.rounds):
            if histories[-1].interrupted:
                break
            if self.deadline.part(ENDS.own_draws).left <= Deadline.LEAST * (self.deadline.seconds or 0.0):
                self.deadline.cut(f"own draws {number + 1}")
                break
            try:
                histories.append(self._own_round(generator, parts, held_out, number))
            except KeyboardInterrupt:
                self.deadline.cut(f"own draws {number + 1}")
                break
        try:
            self._learn_surrogate(first=False)
            self._sharpen(parts)
        except KeyboardInterrupt:
            # The last one that was learned, which answers were judged by so far, is kept.
            self.deadline.cut("surrogate")
        assert self.surrogate is not None
        facts = {
            "pairs": int(sum(map(len, parts))),
            "surrogate": self.surrogate.kind,
            "surrogate_agreement": self.agreement,
            "sharpened": [round(error, 3) for error in self.errors],
        }
        return Fitted(
            generator,
            self.surrogate,
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
        """The judge's probability of each row's target; a black box's answers are kept to learn the surrogate from.

        held: which rows are to teach nothing.
        """
        if self.task.black_box is None or self.task.exact is not None or not self._affords(len(values)):
            return self._doubt(values, target)
        answers = self.task.black_box.answers(values)
        kept = slice(None) if held is None else ~held
        self.seen_values.append(values[kept])
        self.seen_answers.append(answers[kept])
        return self._chance(answers, target)

    def _affords(self, n_rows: int) -> bool:
        """Whether the black box may be asked so many rows; what it is not asked, the surrogate judges."""
        assert self.task.black_box is not None
        if n_rows <= self.task.black_box.caller.affordable:
            return True
        self.deadline.cut("rows asked of the black box")
        return False

    def _affordable(self, values: Values) -> int:
        """How many of some rows the black box may be asked."""
        assert self.task.black_box is not None
        left = self.task.black_box.caller.affordable
        self._affords(len(values))
        return int(min(len(values), left))

    def _doubt(self, values: Values, target: Ints) -> Floats:
        """The surrogate's probability of each row's target."""
        return self._chance(self._guess(values), target)

    def _learn_surrogate(self, *, first: bool) -> None:
        """The surrogate, from all that is known: at first also from crossings of near rows, where pairs will lie."""
        if self.task.exact is not None:
            self.surrogate, self.agreement = self.task.exact
            return
        if first and self.task.black_box is not None:
            pairs = clamp(self.teacher.propose(self._anchors(self._rows()), rng=self.rng, k=2))
            batch = pairs.batch(self.table.values, self.table.values)
            back = self.rng.random(batch.answers.shape) < self.rng.random((len(pairs), 1))
            crossed = np.where(back, batch.context.query, batch.answers)
            if n := self._affordable(crossed):
                self._ask(crossed[:n], batch.context.target[:n])
        elif not first and self.task.black_box is None:
            return
        values, answers = np.concatenate(self.seen_values), np.concatenate(self.seen_answers)
        # In place of the parts: with a million rows asked for, both would be the most that a fit holds.
        self.seen_values, self.seen_answers = [values], [answers]
        stage = self.deadline.part(ENDS.first_surrogate if first else ENDS.surrogate)
        self._learn(values, answers, thorough=not first, deadline=stage)

    def _learn(self, values: Values, answers: Floats, *, thorough: bool, deadline: Deadline) -> None:
        """The surrogate that follows these answers."""
        seed, min_count = self.task.seed, self.table.min_count
        if self.task.black_box is None and LEAST_ROWS <= len(values) <= FEW_ROWS:
            self.few = learn_few(self.table.encoding, values, answers, seed=seed, min_count=min_count)
            self.surrogate, self.agreement = self.few.surrogate, self.few.agreement
            return
        self.surrogate, self.agreement = learn(
            self.table.encoding, values, answers,
            seed=seed, min_count=min_count, thorough=thorough, deadline=deadline, kinds=self.kinds,
        )  # fmt: skip

    def _sharpen(self, parts: list[Pairs]) -> None:
        """Learn the surrogate again with what the black box says of rows where the surrogate is just sure enough.

        Refined answers lie there, and rather where it is too sure than where it is not sure enough. A round ends the
        search where its new rows show that it errs little.
        """
        if not self._can_sharpen:
            return
        stage = self.deadline.part(ENDS.surrogate)
        pairs, new = Pairs.join(parts), 0
        self.kinds = KINDS[self.surrogate.kind] if self.surrogate is not None else self.kinds
        for _ in range(SHARPENED):
            if stage.is_over:
                stage.cut("surrogate")
                break
            some = pairs.take(self.rng.permutation(len(pairs))[:SHARPENED_ROWS])
            batch = some.batch(self.table.values, self.answers)
            values, target = self._barely_sure(batch), batch.context.target
            error = self._doubt(values, target) - self._ask(values, target)
            self.errors.append(float(np.quantile(error, HELD)))
            if self.errors[-1] <= SHARP_ENOUGH:
                break
            new += len(values)
            seen, answers = np.concatenate(self.seen_values), np.concatenate(self.seen_answers)
            self.seen_values, self.seen_answers = [seen], [answers]
            # Trees learn from so many rows at most: the new ones are to be among them.
            old = self.rng.permutation(len(seen) - new)[: max(MOST_ROWS - new, 0)]
            index = np.concatenate([old, np.arange(len(seen) - new, len(seen))])
            self._learn(seen[index], answers[index], thorough=True, deadline=stage)

    @property
    def _can_sharpen(self) -> bool:
        """Whether there is a black box to ask, and answers will be refined."""
        return self.task.black_box is not None and self.task.exact is None and self.task.coherence is not None

    def _barely_sure(self, batch: Batch) -> Values:
        """Rows on the way to the answers where the surrogate begins to be sure enough; levels are the answers'."""
        query, answers, context = batch.context.query, batch.answers, batch.context
        number = np.array([f.is_number for f in self.table.encoding.schema.features])
        step = np.where(number & np.isfinite(answers - query), answers - query, 0.0)
        low, high = np.zeros(len(answers)), np.ones(len(answers))
        for _ in range(HALVED):
            middle = (low + high) / 2
            sure = self._doubt(answers - (1 - middle[:, None]) * step, context.target) >= context.confidence
            high, low = np.where(sure, middle, high), np.where(sure, low, middle)
        return self.table.encoding.snap(answers - (1 - high[:, None]) * step)

    def _bank(self) -> tuple[list[Pairs], Pairs]:
        """Pairs from the neighbour search, clamped, sparsified by the surrogate and confirmed by the judge."""
        everyone = np.arange(len(self.table.values))
        passes = [self._anchors(everyone) for _ in range(self.config.passes)]
        parts: list[Pairs] = []
        held_parts: list[Pairs] = []
        answers = [self.table.values]
        stage = self.deadline.part(ENDS.pairs)
        masses = point_masses(self.table.values, self.table.encoding)
        with self.task.progress.stage("neighbours", sum(map(len, passes))) as advance:
            for anchors in pieces(passes, stage):
                if stage.is_over and any(len(part) for part in parts):
                    stage.cut("pairs")
                    break
                pairs = self.teacher.propose(anchors, rng=self.rng, each=self.config.each, advance=advance)
                seen, unseen = split_pairs(pairs, self.held)
                share = min(1.0, self.config.blend_rows / len(self.table.values))
                seen, rows = blend(
                    seen, self.table.values, self.table.encoding, masses=masses, share=share, rng=self.rng
                )
                found = self._confirmed(Pairs.join([seen, unseen]), rows)
                held = self.held[found.anchor]
                held_parts.append(found.take(held))
                # Of what lies between rows, that alone is kept which the judge confirmed.
                seen = found.take(~held)
                new = np.flatnonzero(seen.row >= len(self.table.values))
                row = seen.row.copy()
                row[new] = sum(map(len, answers)) + np.arange(len(new))
                answers.append(rows[seen.row[new]])
                parts.append(replace(seen, row=row))
        self.answers = np.concatenate(answers)
        if sum(map(len, parts)) == 0:
            raise DataError("no training pair satisfies the judge; the labels may not belong to these rows")
        return [part for part in parts if len(part)], held_out_pairs(held_parts, parts, self.rng)

    def _confirmed(self, pairs: Pairs, rows: Values) -> Pairs:
        """Pairs clamped, sparsified by the surrogate and confirmed by the judge; their matrices are made once."""
        batch = clamp(pairs).batch(self.table.values, rows)
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
        offset = len(self.answers)
        moved = replace(own, row=own.row + offset)
        mixed = [Pairs.join([part, share]) for part, share in zip(parts, _shares(moved, len(parts)), strict=True)]
        training_set = TrainingSet(mixed, held_out, self.table.values, np.concatenate([self.answers, rows]))
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
        stage = self.deadline.part(ENDS.own_draws)
        values: list[Values] = []
        for some in pieces([np.arange(len(context))], stage):
            if stage.used > 0.5 and values:
                stage.cut(f"own draws {number + 1}")
                break
            values.append(generator.sample(context.take(some), draws_each, keys[some], 0)[0])
        drawn = self.table.encoding.snap(np.concatenate([v.reshape(-1, v.shape[2]) for v in values]))
        seeds = seeds.take(np.arange(len(drawn) // draws_each))
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
        labels_alone = Confidence.same(self.table.n_classes, SURROGATE_FLOOR)
        self.confidence = labels_alone if self.task.probabilities is None else _supported(self.table)
        return make_teacher(self.task, self.task.conditions(self.confidence), self.rng, self.config.level_weight)

    def _known(self) -> Floats:
        """What is known of the table's rows: the black box's answers, or one-hot labels."""
        hard = np.eye(self.table.n_classes)[self.table.labels]
        return hard if self.task.probabilities is None else self.task.probabilities

    def _new_generator(self) -> Generator:
        return self.task.new_generator()

    def _guess(self, values: Values) -> Floats:
        """What the surrogate says of rows, in the terms of the black box."""
        judge = self.surrogate if self.few is None else self.few.plain
        assert judge is not None
        return judge.probabilities(values)

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


def pieces(parts: Iterable[Ints], deadline: Deadline) -> Iterator[Ints]:
    """The parts; where time is limited in pieces, so that work can be stopped between them."""
    for part in parts:
        n = 1 if deadline.seconds is None else -(-len(part) // PIECE)
        yield from np.array_split(part, n)


def _shares(pairs: Pairs, n: int) -> list[Pairs]:
    return [pairs.take(slice(i, None, n)) for i in range(n)]
