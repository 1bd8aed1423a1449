"""Attribute inference: an unknown value of a row guessed from all its other values and a model's densities.

The guess is the candidate that makes the row likeliest. Of a row that the model learned from it should be right no more
often than of a row that it never saw: what goes together in the table is no secret, a person's own value is.
"""

from __future__ import annotations

__all__ = ["DENSITIES", "Guess", "Guesses", "guesses_of"]

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from dicoflex._types import Bools, Floats, Ints
from dicoflex.attacks.membership import Told, classes_of, log_density
from dicoflex.runtime.progress import Deadline
from dicoflex.table.encoding import Values

TOLERANCE = 0.01
"""A number counts as found when it is off by at most this share of the distance between its 1st and 99th percentile."""
MANY_VALUES = 50
ANCHORS = 2
SUREST = 0.25
LEAST_OTHERS = 0.02
"""In `times`, the others' share counts as this at least: a ratio of two chances of a percent says nothing."""


@dataclass(frozen=True)
class Guess:
    """How often one feature's value was found: of members and of others, and in the quarter of each that the attacker
    is surest of. exact: whether it had to be the value itself; else it was to be within 1 % of the usual range."""

    members: float
    others: float
    surest_members: float
    surest_others: float
    exact: bool


@dataclass(frozen=True)
class Guesses:
    """What an attack on values found, feature by feature, of so many members and others each."""

    rows: int
    features: dict[str, Guess]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        features = {name: asdict(one) for name, one in self.features.items()}
        return {"rows": self.rows, "times": self.times, "mean": asdict(self.mean), "features": features}

    @property
    def mean(self) -> Guess:
        """The mean over the features that are found within a tolerance, or over all where there is none."""
        close = [one for one in self.features.values() if not one.exact] or list(self.features.values())
        names = ("members", "others", "surest_members", "surest_others")
        means = {name: float(np.mean([getattr(one, name) for one in close])) for name in names}
        return Guess(**means, exact=all(one.exact for one in close))

    @property
    def times(self) -> float:
        """How many times as often values of members are found as those of others; the surest quarter if it is worse."""
        mean = self.mean
        pairs = ((mean.members, mean.others), (mean.surest_members, mean.surest_others))
        return max(mine / max(theirs, LEAST_OTHERS) for mine, theirs in pairs)

    @property
    def excess(self) -> float:
        """By how many standard errors members' values are found more often than others'."""
        mean, guesses = (
            self.mean,
            self.rows * max(1, sum(one.exact == self.mean.exact for one in self.features.values())),
        )
        share = min(max((mean.members + mean.others) / 2, 1 / guesses), 0.5)
        return (mean.members - mean.others) / float(np.sqrt(2 * share * (1 - share) / guesses))


def by_answers(told: Told, values: Values, classes: Ints, anchors: Ints) -> Floats:
    """The public log density of each row as an answer to strangers."""
    return log_density(told, values, anchors, classes)


def by_rows(told: Told, values: Values, classes: Ints, anchors: Ints) -> Floats:  # noqa: ARG001
    """The log density of each row among the rows themselves."""
    assert told.model.coherence is not None
    return told.model.coherence.density.judge(values)[0]


DENSITIES: dict[str, Callable[[Told, Values, Ints, Ints], Floats]] = {"density": by_answers, "rows": by_rows}


def guesses_of(
    told: Told,
    members: Values,
    others: Values,
    *,
    wanted: Sequence[str],
    rows: int,
    features: int | None = None,
    deadline: Deadline | None = None,
) -> dict[str, Guesses]:
    """What each wanted density tells of single values, of at most `rows` members and as many others.

    Parameters
    ----------
    told
        What the attacker has. Strangers' values are the candidates.
    members, others
        Rows that the model learned from, and rows of the same kind that it did not.
    wanted
        Names of `DENSITIES`; "rows" is passed over where the model has no density of rows.
    rows
        How many rows of each kind are attacked.
    features
        How many features at most, numbers of many values first; None takes all.
    deadline
        Features that it leaves no time for are left out.
    """
    deadline = deadline or Deadline()
    rng = np.random.default_rng(told.seed)
    n = min(rows, len(members), len(others))
    victims = np.concatenate([_some(part, n, rng) for part in (members, others)])
    classes = classes_of(told.model, victims)
    anchors = rng.integers(0, len(told.strangers), (ANCHORS, len(victims)))
    names = [name for name in wanted if name != "rows" or told.model.coherence is not None]
    found: dict[str, dict[str, Guess]] = {name: {} for name in names}
    tried = [(j, *_candidates(told, j)) for j in range(victims.shape[1])]
    tried.sort(key=lambda one: one[2] == 0.0)
    for j, candidates, tolerance in tried[:features]:
        if deadline.is_over:
            break
        if len(candidates) < 2:
            continue
        for name in names:
            guess, sure = _guessed(told, DENSITIES[name], victims, classes, anchors, j, candidates)
            right = _is_right(guess, victims[:, j], tolerance)
            found[name][str(told.model.schema.names[j])] = _guess(right, sure, n, exact=tolerance == 0.0)
    return {name: Guesses(n, features) for name, features in found.items() if features}


def _some(values: Values, n: int, rng: np.random.Generator) -> Values:
    return values[np.sort(rng.permutation(len(values))[:n])]


def _candidates(told: Told, j: int) -> tuple[Floats, float]:
    """The values to try for feature j, and how far off one may be.

    Few different values are tried themselves; of many, numbers so far apart that none of the usual ones is missed.
    """
    feature = told.model.schema.features[j]
    if not feature.is_number:
        return np.arange(feature.n_states, dtype=np.float64), 0.0
    column = told.strangers[:, j]
    column = column[~np.isnan(column)]
    different = np.unique(column)
    if len(different) <= MANY_VALUES:
        return different, 0.0
    low, high = np.quantile(column, [0.01, 0.99])
    if high <= low:
        return different, 0.0
    steps = round(0.5 / TOLERANCE)
    grid = low + (high - low) * (np.arange(steps) + 0.5) / steps
    rows = np.repeat(told.strangers[:1], steps, axis=0)
    rows[:, j] = grid
    return np.unique(told.model.encoding.snap(rows)[:, j]), TOLERANCE * float(high - low)


def _guessed(
    told: Told,
    density: Callable[[Told, Values, Ints, Ints], Floats],
    victims: Values,
    classes: Ints,
    anchors: Ints,
    j: int,
    candidates: Floats,
) -> tuple[Floats, Floats]:
    """The likeliest candidate of each row, and its log probability among all of them."""
    n, k = len(victims), len(candidates)
    rows = np.repeat(victims, k, axis=0)
    rows[:, j] = np.tile(candidates, n)
    scores = density(told, rows, np.repeat(classes, k), np.repeat(anchors, k, axis=1)).reshape(n, k)
    return candidates[scores.argmax(axis=1)], scores.max(axis=1) - logsumexp(scores, axis=1)


def _is_right(guess: Floats, value: Floats, tolerance: float) -> Bools:
    right: Bools = np.abs(guess - value) <= tolerance * (1.0 + 1e-9)
    return right


def _guess(right: Bools, sure: Floats, n: int, *, exact: bool) -> Guess:
    """The shares of the first n rows, which are members, and of the others."""
    shares = []
    for part in (slice(None, n), slice(n, None)):
        surest = np.argsort(-sure[part], kind="stable")[: max(1, int(SUREST * n))]
        shares.append((float(right[part].mean()), float(right[part][surest].mean())))
    (members, sure_members), (others, sure_others) = shares
    return Guess(members, others, sure_members, sure_others, exact)
