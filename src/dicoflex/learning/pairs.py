"""Pairs to learn from: a row, conditions drawn at random, and rows of the target class near it.

The paper's part is `Teacher.propose`: anchors, p from a set, a mask, and the K nearest rows of another class under
d_{p,m}. Beyond it, when a judge of rows is at hand, `clamp` makes frozen features equal to the anchor's, `sparsify`
undoes changes that the target does not need, the more of them the smaller p is, and `prefer_sparse` leaves out
answers that still change more than others do. `blend` puts answers between two neighbours, so that a density does not
learn the rows of a small table by heart.
"""

from __future__ import annotations

__all__ = [
    "Batch",
    "Conditions",
    "Pairs",
    "Teacher",
    "blend",
    "clamp",
    "point_masses",
    "prefer_sparse",
    "some",
    "sparsify",
    "weighted",
]

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.generators.base import Context, Table
from dicoflex.model import Confidence
from dicoflex.neighbours import Pool, nearest
from dicoflex.runtime.columns import Columns
from dicoflex.table.encoding import Encoding, Parts, Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEVELS_LATER = 0.7
NEAREST_TO_A_ROW = 0.2
"""The least share that each of two rows has in what is between them. With 0, some answers would all but be a row. Not
tuned by itself."""
POINT_MASS = 5
"""So many equal numbers are a point mass (0, -9, 999, years of age): nothing is put between it and others."""
Judge = Callable[[Values, Ints], Floats]
"""Encoded rows and targets to the probability of each row's target."""
Broken = Callable[[Values, Values], NDArray[np.bool_]]
"""Encoded rows and their queries to whether a row has what does not go together."""


@dataclass(frozen=True)
class Conditions:
    """From where `propose` draws: exponents, masks over features (None: random subsets), confidences per class."""

    exponents: tuple[float, ...]
    masks: NDArray[np.bool_] | None
    confidence: Confidence

    def draw(self, target: Ints, n_features: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_], Floats]:
        """One p, mask and confidence per target."""
        n = len(target)
        p = rng.choice(np.asarray(self.exponents), size=n)
        if self.masks is None:
            mask = _random_masks(n, n_features, rng)
        else:
            mask = self.masks[rng.integers(len(self.masks), size=n)]
        spread = rng.uniform(self.confidence.lowest[target], self.confidence.highest[target])
        return p, mask, np.where(rng.random(n) < 0.5, self.confidence.default[target], spread)


@dataclass(frozen=True)
class Pairs(Columns):
    """Anchors and answers by number: an answer is a row, with the features in `kept` put back to the anchor's.

    The two numbers point into tables that `batch` is given, so that millions of pairs stay small.
    """

    anchor: NDArray[np.int32]
    row: NDArray[np.int32]
    kept: NDArray[np.bool_]
    frozen: NDArray[np.bool_]
    target: NDArray[np.int16]
    p: NDArray[np.float32]
    confidence: NDArray[np.float32]

    def batch(self, anchors: Values, rows: Values) -> Batch:
        """The pairs with their conditions and answers as matrices."""
        query = anchors[self.anchor]
        answers = np.where(self.kept, query, rows[self.row])
        context = Context(
            query,
            self.target.astype(np.int64),
            self.p.astype(np.float64),
            self.frozen,
            self.confidence.astype(np.float64),
        )
        return Batch(self, context, answers)


@dataclass(frozen=True)
class Batch:
    """Pairs, and the same as matrices: what they are conditioned on, and their answers (n, d)."""

    pairs: Pairs
    context: Context
    answers: Values

    def take(self, index: Any) -> Batch:
        """The pairs at `index`."""
        return Batch(self.pairs.take(index), self.context.take(index), self.answers[index])


@dataclass(frozen=True)
class Teacher:
    """Draws training pairs from a table. `rows` are the positions that may be anchors, `pool` what they may find."""

    table: Table
    pool: Pool
    conditions: Conditions
    k: int = 16
    alpha: float = 10.0
    level_weight: float = 1.0

    def propose(
        self,
        anchors: Ints,
        *,
        rng: np.random.Generator,
        k: int | None = None,
        each: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> Pairs:
        """Pairs of each anchor with its nearest rows, `k` of them or the teacher's own: the paper's algorithm.

        each: take so many of them, at random, instead of all. The pool's numbers carry the teacher's `level_weight`.
        """
        table = self.table
        target = _other_class(table.labels, anchors, table.n_classes, rng)
        p, mask, confidence = self.conditions.draw(target, table.values.shape[1], rng)
        found = nearest(
            weighted(table.encoding.parts(table.values[anchors]), self.level_weight),
            self.pool,
            target=target,
            p=p,
            mask=mask,
            confidence=confidence,
            k=k or self.k,
            alpha=self.alpha,
            advance=advance,
        )
        which, rank = np.nonzero(some(found.rows >= 0, each, rng))
        return Pairs(
            anchor=anchors[which].astype(np.int32),
            row=found.rows[which, rank].astype(np.int32),
            kept=np.zeros((len(which), mask.shape[1]), dtype=bool),
            frozen=mask[which],
            target=target[which].astype(np.int16),
            p=p[which].astype(np.float32),
            confidence=confidence[which].astype(np.float32),
        )


def weighted(parts: Parts, level_weight: float) -> Parts:
    """The parts with numbers shrunk so that, squared, another level counts `level_weight` times as much as before."""
    return replace(parts, numbers=parts.numbers / np.sqrt(level_weight))


def clamp(pairs: Pairs) -> Pairs:
    """The pairs with every frozen feature put back to the anchor's value."""
    return replace(pairs, kept=pairs.kept | pairs.frozen)


def point_masses(values: Values, encoding: Encoding) -> NDArray[np.bool_]:
    """Where nothing lies between a value and another one: levels, missing numbers and numbers that many rows share."""
    shared = np.ones(values.shape, dtype=bool)
    for j in encoding.number_feature:
        _, at, counts = np.unique(values[:, j], return_inverse=True, return_counts=True)
        shared[:, j] = (counts[at.ravel()] >= POINT_MASS) | np.isnan(values[:, j])
    return shared


def blend(
    pairs: Pairs,
    values: Values,
    encoding: Encoding,
    *,
    masses: NDArray[np.bool_],
    share: float,
    rng: np.random.Generator,
) -> tuple[Pairs, Values]:
    """The pairs with a share of their answers moved between two neighbours of their anchor, and the rows.

    Neighbours of one anchor are alike, so what lies between them is as good an answer as they are, once a judge has
    confirmed it; and nobody's row is then seen as it is. Numbers are on the line between the two, in the same place for
    all features, so that orders between columns hold; levels and point masses are those of the one or the other.

    Parameters
    ----------
    pairs
        Pairs of one search stand together; those of an anchor that has a single one stay as they are.
    values, encoding
        The rows that the pairs point to, and how they are encoded.
    masses
        Of each value, whether it is a point mass (`point_masses`).
    share
        The share of pairs to move.

    Returns
    -------
    Pairs, Values
        The pairs, and the rows that they now point to: `values`, then those between two.
    """
    n = len(pairs)
    first = np.flatnonzero(np.diff(pairs.anchor, prepend=-1))
    length = np.diff(np.append(first, n))
    start, size = np.repeat(first, length), np.repeat(length, length)
    moved = np.flatnonzero((size > 1) & (rng.random(n) < share))
    start, size = start[moved], size[moved]
    other = start + (moved - start + 1 + np.floor(rng.random(len(moved)) * (size - 1)).astype(np.int64)) % size
    one, two = pairs.row[moved], pairs.row[other]
    between = rng.uniform(NEAREST_TO_A_ROW, 1.0 - NEAREST_TO_A_ROW, (len(moved), 1))
    a, b = values[one], values[two]
    either = np.where(rng.random(a.shape) < between, b, a)
    rows = encoding.snap(np.where(masses[one] | masses[two], either, a + between * (b - a)))
    row = pairs.row.copy()
    row[moved] = len(values) + np.arange(len(moved))
    return replace(pairs, row=row), np.concatenate([values, rows])


def sparsify(
    batch: Batch,
    judge: Judge,
    *,
    exponents: tuple[float, ...],
    levels: NDArray[np.bool_],
    undo_levels: float,
    rng: np.random.Generator,
    broken: Broken | None = None,
) -> Batch:
    """The pairs with needless changes undone, one feature at a time, while the judge stays confident.

    Where it is known what goes together, a change stays whose undoing would leave a row `broken`.

    A change is tried with a chance that grows from 0 at the greatest exponent to 1 at the least, linear in log p; a
    change of one of the `levels` with a chance of at least `undo_levels`. Numbers mostly come before levels.
    """
    context, answers = batch.context, batch.answers.copy()
    differs = differ(answers, context.query)
    chance = np.maximum(_eagerness(context.p, exponents)[:, None], undo_levels * levels)
    late = LEVELS_LATER * levels
    order = np.where(differs & (rng.random(differs.shape) < chance), rng.random(differs.shape) + late, np.inf)
    turn = np.argsort(order, axis=1)
    kept = batch.pairs.kept.copy()
    changes = differs.sum(axis=1)
    for step in range(order.shape[1]):
        feature = turn[:, step]
        live = np.flatnonzero(np.isfinite(order[np.arange(len(order)), feature]) & (changes > 1))
        if len(live) == 0:
            break
        trial = answers[live]
        at = feature[live]
        trial[np.arange(len(live)), at] = context.query[live, at]
        fine = judge(trial, context.target[live]) >= context.confidence[live]
        if broken is not None:
            fine[fine] = ~broken(trial[fine], context.query[live[fine]])
        done = live[fine]
        answers[done, at[fine]] = context.query[done, at[fine]]
        kept[done, at[fine]] = True
        changes[done] -= 1
    return Batch(replace(batch.pairs, kept=kept), context, answers)


def prefer_sparse(batch: Batch, *, exponents: tuple[float, ...], rng: np.random.Generator) -> Pairs:
    """The pairs without those that change more than their anchor's others do, dropped the more often the smaller p is.

    Pairs of one search stand together.
    """
    pairs = batch.pairs
    changes = differ(batch.answers, batch.context.query).sum(axis=1)
    first = np.flatnonzero(np.diff(pairs.anchor, prepend=-1))
    size = np.diff(np.append(first, len(pairs)))
    mean = np.repeat(np.add.reduceat(changes, first) / size, size) if len(pairs) else np.zeros(0)
    lavish = (changes > mean) & (rng.random(len(pairs)) < _eagerness(batch.context.p, exponents))
    return pairs.take(~lavish)


def _eagerness(p: Floats, exponents: tuple[float, ...]) -> Floats:
    low, high = np.log(min(exponents)), np.log(max(exponents))
    if low == high:
        return np.full(len(p), 0.0 if high >= 0 else 1.0)
    eagerness: Floats = np.clip((high - np.log(p)) / (high - low), 0.0, 1.0)
    return eagerness


def some(found: NDArray[np.bool_], most: int | None, rng: np.random.Generator) -> NDArray[np.bool_]:
    """At most `most` of the places of each row that are set, at random."""
    if most is None or most >= found.shape[1]:
        return found
    rank = np.where(found, rng.random(found.shape), 2.0).argsort(axis=1).argsort(axis=1)
    chosen: NDArray[np.bool_] = found & (rank < most)
    return chosen


def _random_masks(n: int, d: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """No mask for a third; else random subsets, small ones more often, never all features."""
    if d == 1:
        return np.zeros((n, 1), dtype=bool)
    size = np.where(rng.random(n) < 1 / 3, 0, 1 + np.floor(rng.beta(1.0, 2.5, n) * (d - 1))).astype(np.int64)
    rank = rng.random((n, d)).argsort(axis=1).argsort(axis=1)
    return rank < size[:, None]


def _other_class(labels: Ints, anchors: Ints, n_classes: int, rng: np.random.Generator) -> Ints:
    """A class per anchor, drawn by the share of the classes, never the anchor's own."""
    prior = np.bincount(labels, minlength=n_classes).astype(float)
    weight = np.tile(prior, (n_classes, 1))
    np.fill_diagonal(weight, 0.0)
    cumulative = np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)
    u = rng.random(len(anchors)) * (1 - 1e-12)
    chosen: Ints = (u[:, None] >= cumulative[labels[anchors]]).sum(axis=1)
    return chosen
