"""What rows ask for, as tasks: one for each row and each class that would do, in groups that one model answers.

A label is a class of the model itself. An interval of scores is a class of what `aiming` makes of the model for it; a
change of the row's own score is another interval for every row; any of some labels is a task for each of them. Rows
with values that training never had stand in groups of their own, so that no other row is answered differently.
"""

from __future__ import annotations

__all__ = [
    "Refusal",
    "TaskGroup",
    "Tasks",
    "check_goals",
    "goal_of",
    "is_label",
    "labelling",
    "labels_wanted",
    "tasks_of",
]

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.aiming import aimed, score_of
from dicoflex.answers.check import Check, answer_of, check_labels
from dicoflex.errors import BlackBoxError, QueryError, named
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.unseen import EncodedRows, said_of_unseen
from dicoflex.targets import OTHER, Goal, Interval, OneOf, Shift, read_goal

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
RULED_OUT = 0.02
"""A class to which the surrogate gives less is none that a row may have."""


@dataclass(frozen=True)
class TaskGroup:
    """Tasks that one model answers together, those of a row side by side.

    places: the row of each. targets: the class that it asks for. is_open: whether that is any class but the row's own,
    so that the row does not have it. check: the callable that confirms answers, in the classes of this model.
    has_unseen: whether the rows hold values that training never had.
    """

    model: Model
    places: Ints
    targets: Ints
    is_open: Bools
    check: Check | None
    has_unseen: bool = False

    def __len__(self) -> int:
        return len(self.places)

    def split(self, has_unseen: Bools) -> list[TaskGroup]:
        """The tasks of rows whose values were all seen in training, and those of the others, where there are any."""
        apart = has_unseen[self.places]
        return [self._take(apart == unseen, has_unseen=unseen) for unseen in (False, True) if (apart == unseen).any()]

    def _take(self, mask: Bools, *, has_unseen: bool) -> TaskGroup:
        if mask.all():
            return replace(self, has_unseen=has_unseen)
        parts = self.places[mask], self.targets[mask], self.is_open[mask]
        return TaskGroup(self.model, *parts, self.check, has_unseen)


class Refusal(NamedTuple):
    """What a row asks for that makes no task, and why."""

    goal: Any
    why: str


@dataclass(frozen=True)
class Tasks:
    """The tasks of some rows.

    wanted: what each row asks for in all its tasks together, as results name it. refused: by row, those without a task.
    """

    groups: list[TaskGroup]
    wanted: list[Any]
    refused: dict[int, Refusal] = field(default_factory=dict)

    def one_each(self, what: str) -> list[TaskGroup]:
        """The groups, where every row has one task; a row with several labels, or with none, is a `QueryError`."""
        if self.refused:
            raise QueryError(next(iter(self.refused.values())).why)
        if sum(map(len, self.groups)) > len(self.wanted):
            raise QueryError(f"{what} takes one label per row; ask for each label on its own, or use explain")
        return self.groups


def tasks_of(model: Model, rows: EncodedRows, request: Request, check: Check | None = None) -> Tasks:
    """Expand a request into tasks.

    Parameters
    ----------
    model : Model
        What is asked.
    rows : EncodedRows
        The rows to explain.
    request : Request
        Its target is the same for all rows, or one per row.
    check : callable, optional
        Is asked what rows are now, as they came; without it, the surrogate is.

    Returns
    -------
    Tasks
        Where a row's own score makes an interval that the model does not support, that row is refused, and not all.

    Raises
    ------
    QueryError
        If the model can't be asked for a target, or for that of any row.
    """
    wanted = request.targets(len(rows))
    if model.score is None:
        return _of_labels(model, rows, wanted, check)
    return _of_scores(model, rows, [goal_of(one) for one in wanted], check)


def is_label(model: Model, wanted: Any) -> bool:
    """Whether a target is one label of a model, or left to it where there are two."""
    return model.score is None and not isinstance(wanted, Goal) and not _is_other(model, wanted)


def check_goals(model: Model, wanted: Sequence[Any]) -> None:
    """Refuse what a model can't be asked for, before there are rows."""
    for one in wanted:
        if model.score is None:
            labels_wanted(model, one, ())
        elif isinstance(goal := goal_of(one), Interval):
            aimed(model, goal)


# -- labels ------------------------------------------------------------------------------------------------------


def _of_labels(model: Model, rows: EncodedRows, wanted: Sequence[Any], check: Check | None) -> Tasks:
    is_open = np.array([one is None or _is_other(model, one) for one in wanted], dtype=bool)
    now = _present(model, rows, check) if is_open.any() else [()] * len(rows)
    sets = [labels_wanted(model, one, has) for one, has in zip(wanted, now, strict=True)]
    codes = {label: code for code, label in enumerate(model.labels)}
    places = np.repeat(np.arange(len(rows)), [len(labels) for labels in sets])
    targets = np.array([codes[label] for labels in sets for label in labels], dtype=np.int64)
    group = TaskGroup(model, places, targets, is_open[places], check)
    shown = [labels[0] if len(labels) == 1 else OneOf(one_of=labels) for labels in sets]
    return Tasks(group.split(rows.has_unseen), shown)


def labels_wanted(model: Model, wanted: Any, now: tuple[Any, ...]) -> tuple[Any, ...]:
    """The labels that one row asks for, in the model's order; `now` are those that it may have."""
    labels = model.labels
    if wanted is None and len(labels) != 2:
        raise QueryError(f"target is needed with {len(labels)} classes; choose from {labels}")
    if wanted is None or _is_other(model, wanted):
        return tuple(label for label in labels if label not in now)
    if isinstance(wanted, Interval | Shift):
        raise QueryError(f"target {wanted} asks for a score, and this model explains labels; choose from {labels}")
    given = wanted.one_of if isinstance(wanted, OneOf) else (wanted,)
    for label in given:
        if label is None or label not in labels:
            raise QueryError(named("target", label, labels))
    return tuple(label for label in labels if label in given)


def _is_other(model: Model, wanted: Any) -> bool:
    return isinstance(wanted, str) and wanted == OTHER and OTHER not in model.labels


def _present(model: Model, rows: EncodedRows, check: Check | None) -> list[tuple[Any, ...]]:
    """The labels that each row may have now: the one that a check gives it, or those that the surrogate can't rule out.

    As far as held-out rows showed the surrogate to err, a row near a boundary may have the class beyond it already.
    """
    labels = model.labels
    if check is not None:
        return [(label,) for label in check_labels(check, rows.shown.copy(), labels, model.threshold)]
    said = model.surrogate.probabilities(rows.values)
    margin = np.zeros(len(labels)) if model.certificate is None else model.certificate.margin[:, 0]
    top = said.argmax(axis=1)
    may = (said + margin >= (said.max(axis=1) - margin[top])[:, None]) & (said >= RULED_OUT)
    may[np.arange(len(may)), top] = True
    # Where none can be ruled out, the least likely class is; of two alike, the last one.
    least = len(labels) - 1 - said[:, ::-1].argmin(axis=1)
    may[np.arange(len(may)), least] &= ~may.all(axis=1)
    now = [tuple(label for label, here in zip(labels, row, strict=True) if here) for row in may]
    for i in np.flatnonzero(rows.has_unseen).tolist():
        now[i] = (labels[_likeliest(model, rows, i)],)
    return now


def _likeliest(model: Model, rows: EncodedRows, i: int) -> int:
    """The class that the surrogate gives row i on average over what its unseen values may stand for."""
    features, own = model.schema.features, rows.values[i]
    trials, weights = [own], [1.0]
    for j in np.flatnonzero(rows.unseen[i]):
        count = np.ones(len(features[j].levels)) if model.marginals is None else model.marginals.counts(int(j))
        for code in range(len(features[j].levels)):
            trials.append(np.where(np.arange(len(own)) == j, code, own))
            weights.append(float(count[code]))
    said = model.surrogate.probabilities(np.array(trials))
    return int(np.average(said, axis=0, weights=weights).argmax())


# -- scores ------------------------------------------------------------------------------------------------------


def goal_of(wanted: Any) -> Interval | Shift:
    """What is asked of a score."""
    if isinstance(wanted, str):
        return read_goal(wanted)
    if isinstance(wanted, Interval | Shift):
        return wanted
    shown = "None" if wanted is None else repr(str(wanted) if isinstance(wanted, Goal) else wanted)
    raise QueryError(
        f"target {shown} is no interval of scores, and this model explains scores; "
        "ask for at_least(620), at_most(5), between(600, 700) or by(40)"
    )


def _of_scores(model: Model, rows: EncodedRows, goals: Sequence[Interval | Shift], check: Check | None) -> Tasks:
    refused = _unmeasured(model, rows, goals) if check is None else {}
    intervals = _intervals(model, rows, goals, check)
    places: dict[Interval, list[int]] = {}
    # Kept here: a call may ask for more intervals than a model keeps.
    models: dict[Interval, Model] = {}
    unsupported: dict[int, Refusal] = {}
    for i, (interval, goal) in enumerate(zip(intervals, goals, strict=True)):
        if i in refused:
            continue
        try:
            models[interval] = models.get(interval) or aimed(model, interval)
            places.setdefault(interval, []).append(i)
        except QueryError as error:
            if not isinstance(goal, Shift):
                raise
            unsupported[i] = Refusal(str(interval), str(error))
    if unsupported and not places:
        raise QueryError(next(iter(unsupported.values())).why)
    groups = [_inside(models[interval], interval, np.array(mine), check) for interval, mine in places.items()]
    refused |= unsupported
    shown = [refused[i].goal if i in refused else str(interval) for i, interval in enumerate(intervals)]
    return Tasks([part for group in groups for part in group.split(rows.has_unseen)], shown, refused)


def _inside(model: Model, interval: Interval, places: Ints, check: Check | None) -> TaskGroup:
    """The tasks of rows that are to come into one interval, which `model` is aimed at."""
    target = np.full(len(places), interval.parts[1])
    sorted_by = None if check is None else _sorted_by(check, interval)
    return TaskGroup(model, places, target, np.zeros(len(places), dtype=bool), sorted_by)


def _unmeasured(model: Model, rows: EncodedRows, goals: Sequence[Interval | Shift]) -> dict[int, Refusal]:
    """The rows that ask for a change of their own score, which nobody knows."""
    unsure = [i for i in np.flatnonzero(rows.has_unseen).tolist() if isinstance(goals[i], Shift)]
    return {i: Refusal(str(goals[i]), _why_unmeasured(model, rows, i)) for i in unsure}


def _why_unmeasured(model: Model, rows: EncodedRows, i: int) -> str:
    j = int(np.flatnonzero(rows.unseen[i])[0])
    unseen = said_of_unseen(model.schema, j, rows.value(i, j))
    return f"{unseen}, so that the score of the row is not known; ask for an interval, or give check="


def _intervals(
    model: Model, rows: EncodedRows, goals: Sequence[Interval | Shift], check: Check | None
) -> list[Interval]:  # fmt: skip
    if all(isinstance(goal, Interval) for goal in goals):
        return list(goals)  # type: ignore[arg-type]
    own = score_of(model, rows.values) if check is None else _scores(check, rows.shown)
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
