"""What held-out rows teach: the margin by which the surrogate must be surer, and how often answers are valid.

Held-out rows are asked about as users would ask: anything may change, few features, or some frozen. The answers are
refined with the least margin and shown to the judge once. What the surrogate said too much gives the margin. With it,
the default confidence is found at which answers last; further held-out rows, answered at that, give the counts that the
certified rate is made of.
"""

from __future__ import annotations

__all__ = ["FIRST", "LEAST", "Found", "answers_like_asked", "certified"]

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from dicoflex.answers.candidates import FAR
from dicoflex.answers.engine import answers_to, terms_of
from dicoflex.answers.query import Query, bound_by
from dicoflex.certificate import ASKED_AT, CROSS_FITTED, SORTS, Certificate
from dicoflex.learning.few_labels import Judge
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.runtime.columns import Columns
from dicoflex.runtime.progress import Deadline
from dicoflex.table.encoding import Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROWS = 120
ANSWERS = 8
HELD = 0.95
"""The share of answers in which the model is to be as sure as was asked for."""
LEAST, MOST = 0.02, 0.3
FEW_LABELS = 0.37, 0.39
"""On few labels alone the surrogate is trusted only where it is all but certain: its boundary is one of many."""
EXACT = 1e-6
"""The margin of an exact copy: it says what the model says, but a tie, or the rounding of a sum, is no decision."""
ENOUGH = 40
ROWS_PER_LEVEL = 30
"""Of each sort of question, for each confidence that a margin is found for."""
MASKS = 3
MASKED = 0.3
# Where time is limited: rows that are asked about at a time, and the share of the time that margins may take.
PIECE = 4
FIRST = 0.6


@dataclass(frozen=True)
class Found(Columns):
    """Answers to held-out rows: what was asked for, what the surrogate said, where they lie."""

    sort: Ints
    target: Ints
    asked: Floats
    said: Floats
    far: NDArray[np.bool_]
    values: Values


def certified(
    model: Model, values: Values, labels: Ints, judge: Judge, *, name: str, seed: int, min_count: int = 1,
    exact: bool = False, settled: Callable[[Model], Model] | None = None, deadline: Deadline | None = None,
) -> Model:  # fmt: skip
    """The model with margins and counts from held-out rows, of these classes; `name` says who the judge is.

    min_count: with more than one, margins are rounded to whole percent: one is what an answer to one row taught. exact:
    whether the surrogate is a copy of the judge, which needs no margin. settled: what sets the default confidence of a
    model that has its margins. deadline: when to end; fewer rows are asked about where it comes early.
    """
    deadline = deadline or Deadline()
    rng = np.random.default_rng(seed)
    if exact:
        certificate = replace(Certificate.none(len(model.classes), EXACT), judge=name)
        model = replace(model, certificate=certificate)
        model = model if settled is None else settled(model)
        if len(values) < 2:
            return model
        found = _answers(model, values, labels, rng, deadline)
        return replace(model, certificate=replace(certificate, counts=_counts(model, found, judge)))
    order = rng.permutation(len(values))
    half = len(order) // 2
    limits = FEW_LABELS if name == CROSS_FITTED else (LEAST, MOST)
    if name == CROSS_FITTED:
        limits = min(limits[0], _room(model, values, labels)), limits[1]
    model = replace(model, certificate=Certificate.none(len(model.classes), limits[0]))
    if half < 2:
        return model
    own = values[order[:half]], labels[order[:half]]
    if model.has_confidence:
        margin = _margins_by_level(model, *own, judge, rng, deadline)
    else:
        margin = _margins(model, _answers(model, *own, rng, deadline.part(FIRST)), judge, limits)
    if min_count > 1:
        margin = np.round(margin, 2)
    certificate = replace(Certificate.none(len(model.classes)), margin=margin, judge=name)
    model = replace(model, certificate=certificate)
    model = model if settled is None else settled(model)
    second = _answers(model, values[order[half:]], labels[order[half:]], rng, deadline)
    return replace(model, certificate=replace(certificate, counts=_counts(model, second, judge)))


def _room(model: Model, values: Values, labels: Ints) -> float:
    """How much surer than asked for the surrogate is of a middling row: no more can be asked of an answer."""
    own = model.surrogate.probabilities(values)[np.arange(len(values)), labels]
    return max(LEAST, float(np.median(own - model.confidence.default[labels]))) if len(values) else LEAST


def _answers(
    model: Model, values: Values, labels: Ints, rng: np.random.Generator, deadline: Deadline, most: int = ROWS
) -> Found:  # fmt: skip
    n_classes = len(model.classes)
    rows = _evenly(labels, rng)[: len(SORTS) * most]
    values, labels = values[rows], labels[rows]

    def another(rows: Ints) -> Ints:
        return (labels[rows] + rng.integers(1, n_classes, len(rows))) % n_classes

    return answers_like_asked(model, values, another, rng, most, deadline=deadline)


def _evenly(labels: Ints, rng: np.random.Generator) -> Ints:
    """Rows of all classes alike, as far as there are: of a rare class's few neighbours too little would be learned."""
    order = rng.permutation(len(labels))
    turn = np.empty(len(order), dtype=np.int64)
    for label in np.unique(labels):
        mine = labels[order] == label
        turn[mine] = np.arange(mine.sum())
    return order[np.argsort(turn, kind="stable")][: len(SORTS) * ROWS]


def answers_like_asked(
    model: Model, values: Values, targets: Callable[[Ints], Ints], rng: np.random.Generator, most: int = ROWS,
    *, deadline: Deadline | None = None,
) -> Found:  # fmt: skip
    """Answers to at most `most` of the rows, as users would ask for them; `targets` says what for, by their places.

    deadline: when to end; where it is near, every sort of question is asked by fewer rows, by one piece at least.
    """
    questions = list(_questions(model, len(values), targets, rng, most))
    if deadline is None or deadline.seconds is None:
        return Found.join([_asked(model, values, target, request, sort) for target, request, sort in questions])
    found = []
    for low in range(0, max(len(rows) for (rows, _), _, _ in questions), PIECE):
        if low and deadline.is_over:
            deadline.cut("certificate")
            break
        for (rows, target), request, sort in questions:
            some = slice(low, low + PIECE)
            if len(rows[some]):
                found.append(_asked(model, values, (rows[some], target[some]), request, sort))
    return Found.join(found)


def _questions(
    model: Model, n: int, targets: Callable[[Ints], Ints], rng: np.random.Generator, most: int
) -> Iterator[tuple[tuple[Ints, Ints], Request, int]]:
    """Rows and targets, and what is asked of them, for every sort of question."""
    names = model.schema.names
    for sort, kind in enumerate(SORTS):
        rows = rng.permutation(n)[:most]
        target = targets(rows)
        masks = MASKS if kind == "frozen" else 1
        for part in np.array_split(np.arange(len(rows)), masks):
            frozen = [name for name in names if kind == "frozen" and rng.random() < MASKED][: len(names) - 1]
            p = min(model.exponents) if kind == "few" else max(model.exponents)
            if len(part):
                request = Request(n=ANSWERS, p=p, frozen=tuple(frozen), seed=int(rng.integers(2**31)))
                bound = bound_by(model.schema, request)
                yield (rows[part], target[part]), request.model_copy(update={"constraints": bound}), sort


def _asked(model: Model, values: Values, asked: tuple[Ints, Ints], request: Request, sort: int) -> Found:
    rows, target = asked
    own = values[rows]
    query = Query.of_values(model, own, target, request)
    found = answers_to(model, query, terms_of(model, query, filtered=True))
    changed = differ(found.values, own[found.query])
    away = np.abs(np.nan_to_num(found.values - model.encoding.mean)) > FAR * model.encoding.scale
    number = np.array([f.is_number for f in model.schema.features])
    return Found(
        sort=np.full(len(found), sort),
        target=target[found.query],
        asked=query.context.confidence[found.query],
        said=found.probability,
        far=(changed & away & number).any(axis=1),
        values=found.values,
    )


def _margins_by_level(
    model: Model, values: Values, labels: Ints, judge: Judge, rng: np.random.Generator, deadline: Deadline
) -> Floats:
    """Per class the margins at the confidences `ASKED_AT`, then the one for what lies far out.

    The surrogate is asked to be sure to several degrees. What the judge says of all answers but a twentieth, at each
    degree, tells how sure it has to be for each confidence: where it errs most, near the decision, another margin is
    needed than where both are nearly certain.
    """
    parts, sure = [], model.confidence
    for k, degree in enumerate(ASKED_AT):
        default = np.clip(degree, sure.lowest, sure.highest)
        at = replace(model, confidence=replace(sure, default=default))
        stage = deadline.part(FIRST * (k + 1) / len(ASKED_AT))
        parts.append(_answers(at, values, labels, rng, stage, ROWS_PER_LEVEL))
    truth = [judge(part.values)[np.arange(len(part)), part.target] for part in parts]
    out = np.empty((len(model.classes), len(ASKED_AT) + 1))
    for label in range(len(out)):
        mine = [(part.target == label) & ~part.far for part in parts]
        degrees = np.minimum(np.clip(ASKED_AT, sure.lowest[label], sure.highest[label]) + LEAST, 1.0)
        out[label, :-1] = _needed(degrees, [one[own] for one, own in zip(truth, mine, strict=True)]) - ASKED_AT
    out[:, -1] = _margins(model, Found.join(parts), judge, (LEAST, MOST))[:, -1]
    return np.clip(out, LEAST, 1.0)


def _needed(degrees: Floats, truth: list[Floats]) -> Floats:
    """How sure the surrogate must be so that the judge is as sure as `ASKED_AT` in all answers but a twentieth.

    degrees: how sure it was asked to be; truth: what the judge says of the answers then. Where even the highest degree
    is not enough, that is all that can be asked for.

    >>> degrees = np.array([0.52, 0.62, 0.72, 0.82, 0.92, 0.99])
    >>> _needed(degrees, [np.full(50, degree - 0.1) for degree in degrees]).round(2).tolist()
    [0.6, 0.7, 0.8, 0.9, 0.99, 0.99]
    """
    enough = np.array([len(one) >= ENOUGH // 2 for one in truth])
    if not enough.any():
        return np.array(ASKED_AT) + LEAST
    low = [float(np.quantile(one, 1 - HELD)) for one, fine in zip(truth, enough, strict=True) if fine]
    reached, sure = isotonic_regression(np.array(low)), degrees[enough]
    # Steps between degrees that reach the same are taken at their lower end.
    needed: Floats = np.interp(ASKED_AT, reached + 1e-9 * np.arange(len(reached)), sure, right=degrees[-1])
    return needed


def _margins(model: Model, found: Found, judge: Judge, limits: tuple[float, float]) -> Floats:
    """Per class and region the quantile of what the surrogate said too much."""
    truth = judge(found.values)[np.arange(len(found.values)), found.target]
    least, most = limits
    out = np.full((len(model.classes), 2), least)
    for label in range(len(model.classes)):
        for region in (False, True):
            error = (found.said - truth)[(found.target == label) & (found.far == region)]
            if len(error) >= ENOUGH:
                out[label, int(region)] = np.clip(np.quantile(error, HELD), least, most)
            elif region:
                # Too few to know: what lies far out is answered only where the surrogate is nearly certain.
                out[label, 1] = most
    return out


def _counts(model: Model, found: Found, judge: Judge) -> Ints:
    """How many answers the judge gives their target, of how many, per class and sort of question."""
    valid = judge(found.values).argmax(axis=1) == found.target
    counts = np.zeros((len(model.classes), len(SORTS), 2), dtype=np.int64)
    np.add.at(counts[:, :, 1], (found.target, found.sort), 1)
    np.add.at(counts[:, :, 0], (found.target[valid], found.sort[valid]), 1)
    return counts
