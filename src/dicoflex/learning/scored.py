"""The default way of fitting where the black box gives scores: intervals of them take the place of classes."""

from __future__ import annotations

__all__ = ["bands_of", "fit_scored"]

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dicoflex.generators.base import Generator
from dicoflex.generators.mixed import Mixed
from dicoflex.learning.interval_pairs import Intervals, IntervalTeacher
from dicoflex.learning.judged import Judged
from dicoflex.learning.pairs import Pairs
from dicoflex.learning.score_surrogate import learn_score
from dicoflex.learning.steps import Fitted, Task, held_out_rows
from dicoflex.model import BANDS, Confidence
from dicoflex.runtime.progress import Deadline
from dicoflex.score import Score
from dicoflex.table.encoding import Values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LOWEST, DEFAULT, HIGHEST = 0.7, 0.9, 0.97
MOST_CROSSINGS, CROSSINGS_PER_ROW = 40_000, 100
WIDER = 1.5
"""By how much more than of real rows the surrogate is off where answers are, as far as known before there are any."""


def bands_of(ranks: Floats) -> Ints:
    """The band of each rank."""
    return np.clip(ranks * BANDS, 0, BANDS - 1).astype(np.int64)


def fit_scored(task: Task, score: Score) -> tuple[Fitted, Score]:
    """A density of answers whose score lies in an interval, and the scores with the spread of its errors."""
    steps = _Scored(task, score)
    return steps.run(), replace(score, spread=steps.teacher.spread)


class _Scored(Judged):
    """The default way, in which a target is the number of an interval."""

    teacher: IntervalTeacher

    def __init__(self, task: Task, score: Score) -> None:
        self.score = score
        super().__init__(task)

    def _teacher(self) -> tuple[IntervalTeacher, NDArray[np.bool_]]:
        assert self.task.probabilities is not None
        sure = np.array([LOWEST]), np.array([HIGHEST]), np.array([DEFAULT])
        self.confidence = Confidence(*sure) if self.task.black_box is not None else Confidence.same(1, DEFAULT)
        teacher = IntervalTeacher(
            self.table, self.task.probabilities, Intervals.drawn(self.rng), self.task.conditions(self.confidence),
            k=min(self.config.k, len(self.table.values)), alpha=self.config.alpha,
            level_weight=self.config.level_weight,
        )  # fmt: skip
        return teacher, held_out_rows(len(self.table.values), self.rng)

    def _known(self) -> Floats:
        assert self.task.probabilities is not None
        return self.task.probabilities

    def _new_generator(self) -> Generator:
        task = replace(self.task, table=replace(self.table, n_classes=Score.CODE))
        generator = task.new_generator()
        assert isinstance(generator, Mixed)
        generator.codes = self.score.code(self.teacher.intervals.low, self.teacher.intervals.high)
        return generator

    def _guess(self, values: Values) -> Floats:
        return self.followed.surrogate.scores(values)

    def _chance(self, answers: Floats, target: Ints) -> Floats:
        return self.teacher.intervals.chance(answers, target, self.teacher.spread)

    def _learn_surrogate(self, *, first: bool) -> None:
        """As for classes; a score must be known to a few percent of rank wherever answers may lie, so more is asked."""
        if first and self.task.black_box is not None:
            rows = self.table.values[self._rows()]
            n = min(MOST_CROSSINGS, CROSSINGS_PER_ROW * len(rows))
            one, other = (rows[self.rng.integers(len(rows), size=n)] for _ in range(2))
            crossed = np.where(self.rng.random(one.shape) < self.rng.random((n, 1)), one, other)
            if n := self._affordable(crossed):
                self._ask(crossed[:n], np.zeros(n, dtype=np.int64))
        super()._learn_surrogate(first=first)

    def _learn(self, values: Values, answers: Floats, *, thorough: bool, deadline: Deadline) -> None:
        self.followed = learn_score(
            self.table.encoding, values, answers,
            seed=self.task.seed, min_count=self.table.min_count, thorough=thorough, deadline=deadline,
        )  # fmt: skip
        self.surrogate, self.agreement = self.followed.surrogate, self.followed.explained
        self.teacher.spread = WIDER * self.followed.spread

    @property
    def _can_sharpen(self) -> bool:
        return False

    def _floors(self, floors: Floats, pairs: Pairs) -> Floats:
        interval = self.teacher.intervals.take(pairs.target)
        middle = (np.maximum(interval.low, 0.0) + np.minimum(interval.high, 1.0)) / 2
        own: Floats = floors[bands_of(middle)]
        return own
