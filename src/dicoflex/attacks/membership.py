"""Membership inference: whether members score higher than others under what a model, or its answers, say of a row."""

from __future__ import annotations

__all__ = ["ATTACKS", "Attack", "Told", "attack", "attack_scores", "attacks_on", "classes_of", "log_density"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import rankdata

from dicoflex._types import Floats, Ints
from dicoflex.errors import SettingError, named
from dicoflex.generators.base import Context
from dicoflex.model import Model
from dicoflex.neighbours import Pool, nearest
from dicoflex.table.encoding import Values

ANCHORS = 4
COPIES = 4
FALSE_ALARMS = 0.01


@dataclass(frozen=True)
class Told:
    """What an attacker has: the model, rows of strangers to ask about, and answers that it gave (encoded)."""

    model: Model
    strangers: Values
    answers: Values
    seed: int


@dataclass(frozen=True)
class Attack:
    """What an attack came to.

    auc: the chance that a member scores higher than another row, 0.5 where nothing was found. error: its standard error
    if there is nothing to find. found: the share of members found at 1 % false alarms, which is 1 % by chance.
    """

    auc: float
    error: float
    found: float

    def to_dict(self) -> dict[str, float]:
        """The figures as plain data."""
        return {"auc": self.auc, "error": self.error, "found_at_1_percent": self.found}


def attack(members: Floats, others: Floats) -> Attack:
    """What scores of members and of others come to.

    >>> attack(np.arange(1000.0) + 500, np.arange(1000.0)).auc
    0.875
    """
    n, m = len(members), len(others)
    ranks = rankdata(np.concatenate([members, others]))
    auc = (ranks[:n].sum() - n * (n + 1) / 2) / (n * m)
    bar = np.sort(others)[::-1][int(FALSE_ALARMS * m)]
    return Attack(float(auc), float(np.sqrt((n + m + 1) / (12 * n * m))), float((members > bar).mean()))


def density(told: Told, values: Values) -> Floats:
    """The log density of each row as an answer to strangers, averaged over some of them."""
    rng = np.random.default_rng(told.seed)
    return log_density(told, values, rng.integers(0, len(told.strangers), (ANCHORS, len(values))))


def neighbours(told: Told, values: Values) -> Floats:
    """The log density of each row as an answer to the strangers of another class that are nearest to it.

    A model knows an answer by the rows near it, so this finds one that keeps its rows.
    """
    model, own = told.model, classes_of(told.model, values)
    n_classes, parts = len(model.classes), model.encoding.parts
    pool = Pool.group(parts(told.strangers), classes_of(model, told.strangers), n_classes)
    found = nearest(
        parts(values), pool, target=(own + 1) % n_classes, p=np.full(len(values), max(model.exponents)),
        mask=np.zeros(values.shape, dtype=bool), k=ANCHORS,
    ).rows.T  # fmt: skip
    anyone = np.random.default_rng(told.seed).integers(0, len(told.strangers), found.shape)
    return log_density(told, values, np.where(found >= 0, found, anyone))


def contrast(told: Told, values: Values) -> Floats:
    """The density of each row less that of rows like it, with one value replaced by a stranger's."""
    rng = np.random.default_rng(told.seed)
    anchors = rng.integers(0, len(told.strangers), (ANCHORS, len(values)))
    own = log_density(told, values, anchors)
    around = []
    for _ in range(COPIES):
        other, at = values.copy(), rng.integers(0, values.shape[1], len(values))
        other[np.arange(len(values)), at] = told.strangers[rng.integers(0, len(told.strangers), len(values)), at]
        around.append(log_density(told, other, anchors))
    apart: Floats = np.nan_to_num(own - np.mean(around, axis=0))
    return apart


def log_density(told: Told, values: Values, anchors: Ints, classes: Ints | None = None) -> Floats:
    """The log of the sum of each row's densities as an answer to some strangers (anchors, n).

    classes: what is asked for; the row's own class where left out.
    """
    target = classes_of(told.model, values) if classes is None else classes
    scores = []
    for chosen in anchors:
        context = _context(told.model, told.strangers[chosen], target)
        scores.append(told.model.generator.log_prob(context, values))
    mean: Floats = logsumexp(np.array(scores), axis=0)
    return np.nan_to_num(mean, neginf=-1e9)


def _context(model: Model, query: Values, target: Ints) -> Context:
    return Context(
        query=query,
        target=target,
        p=np.full(len(query), max(model.exponents)),
        frozen=np.zeros(query.shape, dtype=bool),
        confidence=model.confidence.default[target],
    )


def surrogate(told: Told, values: Values) -> Floats:
    """How sure the surrogate is of each row's class: it may be surer of what it learned from."""
    surest: Floats = told.model.surrogate.probabilities(values).max(axis=1)
    return surest


def rows(told: Told, values: Values) -> Floats:
    """The log density of each row among the rows themselves, where the model has learned what goes together."""
    assert told.model.coherence is not None
    return told.model.coherence.density.judge(values)[0]


def distance(told: Told, values: Values) -> Floats:
    """How near the nearest answer lies to each row, numbers in deviations, a level as one of them."""
    encoding, n = told.model.encoding, len(values)
    pool = Pool.group(encoding.parts(told.answers), np.zeros(len(told.answers), dtype=np.int64), 1)
    found = nearest(
        encoding.parts(values), pool,
        target=np.zeros(n, dtype=np.int64), p=np.full(n, 2.0), mask=np.zeros(values.shape, dtype=bool), k=1,
    )  # fmt: skip
    return -found.distances[:, 0]


def classes_of(model: Model, values: Values) -> Ints:
    """The class of each row as the surrogate says it."""
    found: Ints = model.surrogate.probabilities(values).argmax(axis=1).astype(np.int64)
    return found


ATTACKS: dict[str, Callable[[Told, Values], Floats]] = {
    "density": density,
    "neighbours": neighbours,
    "contrast": contrast,
    "surrogate": surrogate,
    "rows": rows,
    "distance": distance,
}


def attacks_on(told: Told, members: Values, others: Values, wanted: Sequence[str]) -> dict[str, Attack]:
    """The wanted attacks that the model allows, by name."""
    for name in wanted:
        if name not in ATTACKS:
            raise SettingError(named("attack", name, ATTACKS))
    names = [name for name in wanted if name != "rows" or told.model.coherence is not None]
    return {name: attack(attack_scores(told, name, members), attack_scores(told, name, others)) for name in names}


def attack_scores(told: Told, name: str, values: Values) -> Floats:
    """The score that the attack of this name gives to each row."""
    return ATTACKS[name](told, values)
