"""How many retrained models would still accept an answer: estimated with surrogates of bootstrapped tables.

A model that is trained again has other rows and other labels by chance. Both are imitated: rows are drawn with
replacement, and each gets a label drawn from the probabilities that the model gives it. A surrogate of the kind that
follows the model best is learned from each such table. Answers to held-out rows, sought at several confidences, are
shown to all of them; the share that accepts is the survival at that confidence.
"""

from __future__ import annotations

__all__ = ["retrained", "with_survival"]

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from dicoflex.answers.candidates import distances_of
from dicoflex.answers.engine import answers_to, terms_of
from dicoflex.answers.query import Query, bound_by
from dicoflex.certificate import SURVIVES, Survival
from dicoflex.generators.base import Table
from dicoflex.learning.surrogate import learn_perceptron, learn_trees
from dicoflex.model import Confidence, Model
from dicoflex.request import Request
from dicoflex.runtime.progress import Deadline
from dicoflex.surrogate import Network, Perceptron, Surrogate
from dicoflex.table.encoding import Values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RETRAINED = 8
"""How many surrogates are learned."""
LEAST_RETRAINED = 3
MOST_ROWS = 20_000
LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
"""Where confidences are tried, as parts of the way from the lowest to the highest that can be asked for."""
PART = 0.4
"""Of the steps that a surrogate gets, so many do for one of several that are only asked for their decision."""
ANSWERED = 280
LEAST_EACH = 10
"""Answers in all, and at least per class and level."""
LEAST_CLASSES = 2


def retrained(
    model: Model, table: Table, probabilities: Floats, *, seed: int, deadline: Deadline | None = None
) -> list[Surrogate]:
    """Surrogates of tables like the one that the model was trained on, as they might have come out.

    Parameters
    ----------
    model : Model
        Its surrogate says which kind to learn.
    table : Table
        The rows.
    probabilities : array (rows, classes)
        What the model to explain says of them.
    seed : int
        Of the draws.
    deadline : Deadline, optional
        When to end; three surrogates are learned in any case.
    """
    deadline = deadline or Deadline()
    rng = np.random.default_rng(seed)
    smooth = isinstance(model.surrogate, Perceptron | Network)
    edges = np.cumsum(probabilities, axis=1)
    made: list[Surrogate] = []
    for number in range(RETRAINED):
        if deadline.is_over and number >= LEAST_RETRAINED:
            deadline.cut("survival")
            break
        rows = rng.integers(len(table.values), size=min(len(table.values), MOST_ROWS))
        label = (rng.random((len(rows), 1)) > edges[rows, :-1]).sum(axis=1)
        drawn = table.encoding, table.values[rows], np.eye(probabilities.shape[1])[label], seed + number
        made.append(learn_perceptron(*drawn, part=PART) if smooth else learn_trees(*drawn))
    return made


def with_survival(
    model: Model, values: Values, labels: Ints, judges: Sequence[Surrogate], *, seed: int, min_count: int = 1,
    deadline: Deadline | None = None,
) -> Model:  # fmt: skip
    """The model with the survival of answers to held-out rows, and the default confidence that follows from it.

    values, labels: the held-out rows and their classes. judges: what `retrained` gave. min_count: with more than one,
    shares and confidences are rounded to whole percent.
    """
    found = _measured(model, values, labels, judges, np.random.default_rng(seed), deadline or Deadline())
    if found is None:
        return model
    if min_count > 1:
        found = Survival(found.confidence, np.floor(found.share * 100) / 100, np.round(found.distance, 2))
    sure, least = model.confidence, found.least(SURVIVES["safe"])
    if min_count > 1:
        least = np.ceil(np.round(least * 100, 6)) / 100
    safe = np.clip(least, sure.lowest, sure.highest)
    return replace(model, survival=found, confidence=Confidence(sure.lowest, sure.highest, safe))


def _measured(
    model: Model,
    values: Values,
    labels: Ints,
    judges: Sequence[Surrogate],
    rng: np.random.Generator,
    deadline: Deadline,
) -> Survival | None:
    n_classes, n_levels = len(model.classes), len(LEVELS)
    sure = model.confidence
    grid = sure.lowest[:, None] + np.array(LEVELS) * (sure.highest - sure.lowest)[:, None]
    each = max(LEAST_EACH, ANSWERED // (n_classes * n_levels))
    share, weight, distance = (np.zeros((n_classes, n_levels)) for _ in range(3))
    for label in range(n_classes):
        if deadline.is_over:
            deadline.cut("survival")
            if label >= LEAST_CLASSES:
                break
        others = np.flatnonzero(labels != label)
        # Two classes are looked at however late it is: what one has says little of the other.
        rows = rng.permutation(others)[: LEAST_EACH if deadline.is_over else each]
        if len(rows) == 0:
            continue
        found = _answered(model, values[rows], label, grid[label], int(rng.integers(2**31)))
        for level, (answers, apart) in enumerate(found):
            share[label, level] = _kept(answers, label, judges).sum()
            weight[label, level], distance[label, level] = len(apart), apart.sum()
    if weight.sum() == 0:
        return None
    return Survival(grid, *_smoothed(share, weight, distance))


def _answered(model: Model, values: Values, label: int, grid: Floats, seed: int) -> list[tuple[Values, Floats]]:
    """For each confidence of the grid the nearest answers to the rows, and how far each is from its row."""
    request = Request(n=1, p=max(model.exponents), seed=seed)
    request = request.model_copy(update={"constraints": bound_by(model.schema, request)})
    own = np.tile(values, (len(grid), 1))
    query = Query.of_values(model, own, np.full(len(own), label), request)
    query = replace(query, context=query.context.but(confidence=np.repeat(grid, len(values))))
    found = answers_to(model, query, terms_of(model, query, filtered=True))
    level = found.query // len(values)
    apart = distances_of(model, query, found.values, found.query)
    return [(found.values[level == k], apart[level == k]) for k in range(len(grid))]


def _kept(values: Values, label: int, judges: Sequence[Surrogate]) -> Floats:
    """The share of the judges that accept each answer."""
    if len(values) == 0:
        return np.zeros(0)
    kept: Floats = np.mean([one.probabilities(values).argmax(axis=1) == label for one in judges], axis=0)
    return kept


def _smoothed(share: Floats, weight: Floats, distance: Floats) -> tuple[Floats, Floats]:
    """Means that never fall with the confidence; a class without answers has those of all classes."""
    alone = weight.sum(axis=1) > 0
    pooled = share.sum(axis=0), weight.sum(axis=0), distance.sum(axis=0)
    kept, apart = np.empty(share.shape), np.empty(share.shape)
    for label in range(len(share)):
        total, count, far = (share[label], weight[label], distance[label]) if alone[label] else pooled
        mean, mean_far = (one / np.maximum(count, 1) for one in (total, far))
        # A level without answers weighs next to nothing, and takes what its neighbours have.
        some = np.maximum(count, 1e-6)
        kept[label] = np.clip(isotonic_regression(mean, sample_weight=some), 0.0, 1.0)
        apart[label] = isotonic_regression(mean_far, sample_weight=some)
    return kept, apart
