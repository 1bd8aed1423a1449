"""What held-out rows teach where scores are asked for: answers to random intervals, shown to the judge."""

from __future__ import annotations

__all__ = ["Judge", "certified_scores"]

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.aiming import aimed
from dicoflex.certificate import SORTS, Certificate
from dicoflex.errors import QueryError
from dicoflex.learning.certifying import FIRST, LEAST, Found, answers_like_asked
from dicoflex.learning.interval_pairs import Intervals
from dicoflex.model import Model
from dicoflex.runtime.progress import Deadline
from dicoflex.score import Score
from dicoflex.table.encoding import Values
from dicoflex.targets import Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Judge = Callable[[Values], Floats]
"""Encoded rows to the ranks of their scores."""
INTERVALS = 12
ROWS = 8
HELD = 0.985
FAR_OUT = 0.08
"""How much surer the surrogate must be where a changed number lies far out."""


@dataclass(frozen=True)
class _Asked:
    """Answers, and the ends of the intervals that they were asked for in."""

    found: Found
    low: Floats
    high: Floats


def certified_scores(
    model: Model, values: Values, ranks: Floats, judge: Judge, *, name: str, seed: int, min_count: int = 1,
    deadline: Deadline | None = None,
) -> Model:  # fmt: skip
    """The model with a spread and counts from held-out rows of these ranks; `name` says who the judge is.

    Answers go to where the surrogate is just sure enough, and so to where it errs: how far off it is there is what the
    spread must allow for, more than how far off it is of real rows.
    """
    rng, deadline = np.random.default_rng(seed), deadline or Deadline()
    order = rng.permutation(len(values))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    asked = _answers(model, values[first], ranks[first], rng, deadline.part(FIRST))
    if asked is None:
        return model
    spread = _spread(model, asked, judge(asked.found.values), len(first))
    if min_count > 1:
        spread = float(f"{spread:.2g}")
    certificate = replace(Certificate.none(1), margin=np.array([[LEAST, FAR_OUT]]), judge=name)
    model = replace(model, score=replace(_score(model), spread=spread), certificate=certificate)
    asked = _answers(model, values[second], ranks[second], rng, deadline)
    if asked is None:
        return model
    return replace(model, certificate=replace(certificate, counts=_counts(asked, judge(asked.found.values))))


def _spread(model: Model, asked: _Asked, truth: Floats, n_rows: int) -> float:
    """The spread under which as many answers as should are inside, by how far the surrogate errs towards the outside.

    Few rows tell it badly, and it is taken the wider for that.
    """
    said = model.surrogate.scores(asked.found.values)  # type: ignore[attr-defined]
    error = np.where(said - asked.low <= asked.high - said, said - truth, truth - said)
    sure = float(model.confidence.default[0]) + LEAST
    needed = float(np.quantile(error, HELD) / np.log(sure / (1 - sure)) * (1 + 1 / np.sqrt(n_rows)))
    return max(_score(model).spread, needed)


def _score(model: Model) -> Score:
    assert model.score is not None
    return model.score


def _answers(
    model: Model, values: Values, ranks: Floats, rng: np.random.Generator, deadline: Deadline
) -> _Asked | None:  # fmt: skip
    """Answers for rows whose score lies outside some intervals, as many as there is time; None where there are none."""
    score, drawn = _score(model), Intervals.drawn(rng, INTERVALS)
    parts: list[_Asked] = []
    for low, high in zip(drawn.low, drawn.high, strict=True):
        outside = np.flatnonzero((ranks < low) | (ranks > high))
        if len(outside) == 0:
            continue
        if deadline.is_over and parts:
            deadline.cut("certificate")
            break
        at = [None if np.isinf(end) else float(score.score(np.array([end]))[0]) for end in (low, high)]
        try:
            interval = Interval(at_least=at[0], at_most=at[1])
            aim = aimed(model, interval)
        except QueryError:
            # What the model refuses, nobody is answered.
            continue
        target = interval.parts[1]
        found = answers_like_asked(aim, values[outside], _always(target), rng, ROWS, deadline=deadline)
        parts.append(_Asked(found, np.full(len(found), low), np.full(len(found), high)))
    if not any(len(part.found) for part in parts):
        return None
    ends = [np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high")]
    return _Asked(Found.join([part.found for part in parts]), *ends)


def _always(target: int) -> Callable[[Ints], Ints]:
    return lambda rows: np.full(len(rows), target)


def _counts(asked: _Asked, ranks: Floats) -> Ints:
    """How many answers have their score inside, of how many, per sort of question."""
    valid = (ranks >= asked.low) & (ranks <= asked.high)
    counts = np.zeros((1, len(SORTS), 2), dtype=np.int64)
    np.add.at(counts[0, :, 1], asked.found.sort, 1)
    np.add.at(counts[0, :, 0], asked.found.sort[valid], 1)
    return counts
