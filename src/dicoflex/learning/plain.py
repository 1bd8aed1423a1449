"""The paper's way of fitting: neighbours as they are, on labels alone."""

from __future__ import annotations

__all__ = ["fit_plain"]

import numpy as np
from numpy.typing import NDArray

from dicoflex.learning.steps import (
    Fitted,
    Task,
    held_out_pairs,
    make_teacher,
    split_pairs,
    train_first,
)
from dicoflex.learning.surrogate import learn
from dicoflex.learning.training import TrainingSet
from dicoflex.model import Confidence


def fit_plain(task: Task) -> Fitted:
    """The paper's way: the K nearest rows as they are, on labels alone."""
    table, config = task.table, task.config
    rng = np.random.default_rng(task.seed)
    confidence = Confidence.same(table.n_classes)
    teacher, held = make_teacher(task, task.conditions(confidence), rng)
    generator = task.new_generator()
    parts, held_parts = [], []
    anchors = _anchors(task, rng)
    with task.progress.stage("neighbours", config.passes * len(anchors)) as advance:
        for _ in range(config.passes):
            pairs = teacher.propose(anchors, rng=rng, advance=advance)
            seen, unseen = split_pairs(pairs, held)
            parts.append(seen)
            held_parts.append(unseen)
    training_set = TrainingSet(parts, held_out_pairs(held_parts, parts, rng), table.values, table.values)
    history = train_first(generator, training_set, task)
    hard = np.eye(table.n_classes)[table.labels]
    surrogate, agreement = task.exact or learn(
        table.encoding, table.values, hard, seed=task.seed, min_count=table.min_count
    )
    facts = {"pairs": int(sum(map(len, parts))), "surrogate": surrogate.kind, "surrogate_agreement": agreement}
    return Fitted(generator, surrogate, confidence, [history], held, facts)


def _anchors(task: Task, rng: np.random.Generator) -> NDArray[np.int64]:
    """All rows, or `most_anchors` of them: the paper's way."""
    n = len(task.table.values)
    if n <= task.config.most_anchors:
        return np.arange(n)
    return np.sort(rng.choice(n, task.config.most_anchors, replace=False))
