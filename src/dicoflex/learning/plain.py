"""The paper's way of fitting: neighbours as they are, on labels alone."""

from __future__ import annotations

__all__ = ["fit_plain"]

import numpy as np

from dicoflex.learning.stand_in import learn
from dicoflex.learning.steps import (
    Fitted,
    Setting,
    held_out_pairs,
    make_teacher,
    split_pairs,
    train_stage,
    unconditional,
)
from dicoflex.learning.training import Lesson
from dicoflex.table.survey import Ints


def fit_plain(setting: Setting) -> Fitted:
    """The paper's way: the K nearest rows as they are, on labels alone."""
    table, config = setting.table, setting.config
    rng = np.random.default_rng(setting.seed)
    conditions = unconditional(setting)
    teacher, held = make_teacher(setting, conditions, rng)
    generator = setting.generator.create(table, setting.generator_config, seed=setting.seed)
    parts, held_parts = [], []
    anchors = _anchors(setting, rng)
    with setting.progress.stage("neighbours", config.passes * len(anchors)) as advance:
        for _ in range(config.passes):
            pairs = teacher.propose(anchors, rng=rng, advance=advance)
            seen, unseen = split_pairs(pairs, held)
            parts.append(seen)
            held_parts.append(unseen)
    lesson = Lesson(parts, held_out_pairs(held_parts, parts, rng), table.values, table.values)
    history = train_stage(generator, lesson, setting, "training")
    hard = np.eye(table.n_classes)[table.labels]
    surrogate, agreement = learn(table.encoding, table.values, hard, seed=setting.seed)
    facts = {"pairs": int(sum(map(len, parts))), "stand_in": surrogate.kind, "stand_in_agreement": agreement}
    return Fitted(generator, surrogate, conditions, [history], facts)


def _anchors(setting: Setting, rng: np.random.Generator) -> Ints:
    """All rows, or `most_anchors` of them: the paper's way."""
    n = len(setting.table.values)
    if n <= setting.config.most_anchors:
        return np.arange(n)
    return np.sort(rng.choice(n, setting.config.most_anchors, replace=False))
