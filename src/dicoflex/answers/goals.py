"""What a target comes to: questions with one label per row, each to one model.

An interval of scores is a class of what `aiming` makes of the model for it; a change of one's own score is another
interval for every row; any of some labels is a question for each of them.
"""

from __future__ import annotations

__all__ = [
    "Part", "Parts", "Refused", "asks_for_a_change", "check_goals", "goal_of", "is_plain", "labelling",
    "labels_wanted", "parts_of",
]  # fmt: skip

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.aiming import aimed, score_of
from dicoflex.answers.check import Check, answer_of, check_labels
from dicoflex.errors import BlackBoxError, QueryError, named
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.encoding import Values
from dicoflex.table.unseen import Known
from dicoflex.targets import OTHER, Goal, Interval, OneOf, Shift, read_goal

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RULED_OUT = 0.02
"""A class to which the surrogate gives less is none that a row may have."""


@dataclass(frozen=True)
class Part:
    """A question to one model for the rows at some places, each with one label.

    wanted: what each of these rows asks for in all its parts together, as results tell it. known: the rows, where some
    of their values were never seen in training.
    """

    model: Model
    places: Ints
    request: Request
    check: Check | None
    wanted: Sequence[Any]
    known: Known | None = None


class Refused(NamedTuple):
    """What a row asked for that can't be asked, why, and whether that is because nothing allowed can be an answer."""

    goal: Any
    why: str
    is_impossible: bool = False


@dataclass(frozen=True)
class Parts:
    """The questions that a request is; refused: by place, the rows of which nothing can be asked."""

    asked: list[Part]
    refused: dict[int, Refused] = field(default_factory=dict)


def is_plain(model: Model, request: Request) -> bool:
    """Whether a request asks for one label per row, so that it is one question."""
    if model.score is not None:
        return False
    wanted = request.target if isinstance(request.target, tuple) else (request.target,)
    return not any(isinstance(one, Goal) or _is_other(model, one) for one in wanted)


def parts_of(
    model: Model, values: Values, request: Request, *, frame: pd.DataFrame | None = None, check: Check | None = None
) -> Parts:
    """The questions that a request is for encoded rows; `frame` holds the same rows, where a check is to be asked.

    Where a row's own score makes an interval that the model does not support, that row is refused, and not all.
    """
    wanted = request.targets(len(values))
    if model.score is not None:
        return _scored(model, values, request, [goal_of(one) for one in wanted], frame, check)
    return Parts(_labelled(model, values, request, wanted, frame, check))


def check_goals(model: Model, wanted: Sequence[Any]) -> None:
    """Refuse what a model can't be asked for, before there are rows."""
    for one in wanted:
        if model.score is None:
            labels_wanted(model, one, ())
        elif isinstance(goal := goal_of(one), Interval):
            aimed(model, goal)


def asks_for_a_change(model: Model, wanted: Any) -> bool:
    """Whether a target is measured from a row's own score."""
    return model.score is not None and isinstance(goal_of(wanted), Shift)


# -- scores ------------------------------------------------------------------------------------------------------


def goal_of(wanted: Any) -> Interval | Shift:
    """What is asked of a score."""
    if isinstance(wanted, str):
        return read_goal(wanted)
    if isinstance(wanted, Interval | Shift):
        return wanted
    told = "None" if wanted is None else repr(str(wanted) if isinstance(wanted, Goal) else wanted)
    raise QueryError(
        f"target {told} is no interval of scores, and this model explains scores; "
        "ask for at_least(620), at_most(5), between(600, 700) or by(40)"
    )


def _scored(
    model: Model, values: Values, request: Request, goals: Sequence[Interval | Shift], frame: pd.DataFrame | None,
    check: Check | None,
) -> Parts:  # fmt: skip
    intervals = _intervals(model, values, goals, frame, check)
    places: dict[Interval, list[int]] = {}
    # Kept here: a call may ask for more intervals than a model keeps.
    models: dict[Interval, Model] = {}
    refused: dict[int, Refused] = {}
    for i, (interval, goal) in enumerate(zip(intervals, goals, strict=True)):
        try:
            models[interval] = models.get(interval) or aimed(model, interval)
            places.setdefault(interval, []).append(i)
        except QueryError as error:
            if not isinstance(goal, Shift):
                raise
            refused[i] = Refused(str(interval), str(error))
    if not places:
        raise QueryError(refused[0].why)
    asked = [
        Part(
            model=models[interval],
            places=np.array(mine),
            request=request.model_copy(update={"target": str(interval)}),
            check=None if check is None else _sorted_by(check, interval),
            wanted=[str(interval)] * len(mine),
        )
        for interval, mine in places.items()
    ]
    return Parts(asked, refused)


def _intervals(
    model: Model, values: Values, goals: Sequence[Interval | Shift], frame: pd.DataFrame | None, check: Check | None
) -> list[Interval]:  # fmt: skip
    if all(isinstance(goal, Interval) for goal in goals):
        return list(goals)  # type: ignore[arg-type]
    own = score_of(model, values) if check is None or frame is None else _scores(check, frame)
    return [
        goal if isinstance(goal, Interval) else goal.from_(float(f"{score:.6g}"))
        for goal, score in zip(goals, own, strict=True)
    ]


def _scores(check: Check, frame: pd.DataFrame) -> Floats:
    """What a check of a model of scores says of rows."""
    answer = answer_of(check, frame.copy())
    try:
        scores = answer.astype(np.float64)
    except (TypeError, ValueError):
        raise BlackBoxError("check gave no numbers; pass a callable that returns scores, such as reg.predict") from None
    if scores.shape != (len(frame),) or np.isnan(scores).any():
        raise BlackBoxError(f"check gave shape {scores.shape} for {len(frame)} rows; it must return one score per row")
    return scores


def labelling(check: Check, label: str) -> Check:
    """A check of scores as one that gives the labels of a model aimed at an interval; `label` is its inside."""
    goal = read_goal(label)
    assert isinstance(goal, Interval)
    return _sorted_by(check, goal)


def _sorted_by(check: Check, interval: Interval) -> Callable[[pd.DataFrame], Any]:
    """A check that says whether rows lie below an interval, inside or above."""
    names, (low, high) = interval.parts[0], interval.ends

    def label(frame: pd.DataFrame) -> Any:
        scores = _scores(check, frame)
        is_open = np.isinf(low)
        place = (scores >= low).astype(int) * (not is_open) + (scores > high)
        return np.array(names, dtype=object)[place]

    return label


# -- labels ------------------------------------------------------------------------------------------------------


def _is_other(model: Model, wanted: Any) -> bool:
    return isinstance(wanted, str) and wanted == OTHER and OTHER not in model.labels


def _labelled(
    model: Model, values: Values, request: Request, wanted: Sequence[Any], frame: pd.DataFrame | None,
    check: Check | None,
) -> list[Part]:  # fmt: skip
    is_open = any(one is None or _is_other(model, one) for one in wanted)
    now = _present(model, values, frame, check) if is_open else [()] * len(wanted)
    sets = [labels_wanted(model, one, has) for one, has in zip(wanted, now, strict=True)]
    found = []
    for label in model.labels:
        places = np.array([i for i, labels in enumerate(sets) if label in labels], dtype=np.int64)
        if len(places):
            asked = request.model_copy(update={"target": label})
            told = [_told(sets[i]) for i in places]
            found.append(Part(model, places, asked, check, told))
    return found


def _told(labels: tuple[Any, ...]) -> Any:
    return labels[0] if len(labels) == 1 else OneOf(one_of=labels)


def _present(
    model: Model, values: Values, frame: pd.DataFrame | None, check: Check | None
) -> list[tuple[Any, ...]]:  # fmt: skip
    """The labels that each row may have now: the one that a check gives it, or those that the surrogate can't rule out.

    As far as held-out rows showed the surrogate to err, a row near a boundary may have the class beyond it already.
    """
    if check is not None and frame is not None:
        return [(label,) for label in check_labels(check, frame.copy(), model.labels, model.threshold)]
    said = model.surrogate.probabilities(values)
    margin = np.zeros(len(model.labels)) if model.certificate is None else model.certificate.margin[:, 0]
    top = said.argmax(axis=1)
    may = (said + margin >= (said.max(axis=1) - margin[top])[:, None]) & (said >= RULED_OUT)
    may[np.arange(len(may)), top] = True
    # Where none can be ruled out, the least likely class is.
    may[np.arange(len(may)), said.argmin(axis=1)] &= ~may.all(axis=1)
    return [tuple(label for label, here in zip(model.labels, row, strict=True) if here) for row in may]


def labels_wanted(model: Model, wanted: Any, now: tuple[Any, ...]) -> tuple[Any, ...]:
    """The labels that one row asks for, in the model's order; `now` are those that it may have."""
    if _is_other(model, wanted) or (wanted is None and len(model.labels) == 2):
        return tuple(label for label in model.labels if label not in now)
    asked = wanted.one_of if isinstance(wanted, OneOf) else (wanted,)
    if isinstance(wanted, Interval | Shift):
        raise QueryError(
            f"target {wanted} asks for a score, and this model explains labels; choose from {model.labels}"
        )
    for label in asked:
        if label is None or label not in model.labels:
            raise QueryError(named("target", label, model.labels))
    return tuple(label for label in model.labels if label in asked)
