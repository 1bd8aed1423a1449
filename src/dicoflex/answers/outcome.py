"""What came of a question: arrays, row by row, which frames and plain rows are views of.

The answers to a row that has several tasks are joined here, before anything is shown: the best of all of them are its
answers.
"""

from __future__ import annotations

__all__ = [
    "CONTRADICTORY", "FOUND", "HAS_TARGET", "PROVED", "STATUSES", "Found", "Outcome", "has_target", "joined",
    "statuses",
]  # fmt: skip

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Bools, Ints
from dicoflex.answers.aiming import score_of
from dicoflex.answers.check import Check, check_labels
from dicoflex.answers.draws import Draws
from dicoflex.answers.query import Query, uncounted
from dicoflex.answers.recorded import Origin, Source, info_of
from dicoflex.answers.search import Search
from dicoflex.answers.tasks import TaskGroup, Tasks
from dicoflex.answers.ways import Merits, choose, ranges_of, ways_of
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.encoding import Values
from dicoflex.table.unseen import EncodedRows
from dicoflex.values import differ, plain
from dicoflex.views.cards import ALREADY, SCORE

FOUND, SHORT, NOT_FOUND, INFEASIBLE, CONTRADICTORY = "found", "short", "not_found", "infeasible", "contradictory"
STATUSES = (FOUND, SHORT, NOT_FOUND, INFEASIBLE, CONTRADICTORY, ALREADY)
"""The words for what came of a row, the same in the library, over HTTP and on the page."""
PROVED = (INFEASIBLE, CONTRADICTORY)
"""The words that say that there is no answer, not merely that none was found."""
HAS_TARGET = "the row has the target already"
"""The reason why a row with the status `already` has no answers."""


@dataclass(frozen=True)
class Found:
    """Answers to a query, task by task.

    draws: the rows. known: what else is known of each. short: for the position of each task that got fewer than asked
    for: wanted, got, and why. searches: what came of looking for answers to tasks for which none was drawn. already:
    which rows have the target, and so no answers. status: one word per task.
    """

    draws: Draws
    known: dict[str, Any]
    short: dict[int, tuple[int, int, str]]
    searches: dict[int, Search]
    already: Bools
    status: list[str]


@dataclass(frozen=True)
class Outcome:
    """What came of asking a model about some rows.

    model: as it was asked, not aimed at a score. rows: those explained. request: as it binds. wanted: what each row
    asks for. status: one word per row. values: the answers, row by row, best first; row: whose each is. columns: what
    is known of each. short: for each row that got fewer answers than asked for: wanted, got, and why. searches: what
    came of looking for answers to a row. origin: what answered. is_single: which rows have one task. hopeless: why no
    row could be asked for, with the label of the first; None where one could.
    """

    model: Model
    rows: EncodedRows
    request: Request
    wanted: list[Any]
    status: list[str]
    values: Values
    row: Ints
    columns: dict[str, NDArray[Any]]
    short: dict[int, tuple[int, int, str]]
    searches: dict[int, Search]
    origin: Origin
    is_single: Bools
    hopeless: str | None = None


# -- status ------------------------------------------------------------------------------------------------------


def has_target(model: Model, query: Query, check: Check | None) -> Bools:
    """Which rows have the class that is asked for already: `check` says so, or the surrogate where there is none.

    Where a confidence is asked for as a number, the surrogate has to be as sure; a named level goes by the decision.
    Rows that ask for any class but their own don't; of rows with values that training never had, nobody is asked.
    """
    confidence, target = query.request.confidence, query.context.target
    number = None if isinstance(confidence, str) else confidence
    is_open = np.zeros(len(query), dtype=bool) if query.is_open is None else query.is_open
    if is_open.all() or query.has_unseen:
        return np.zeros(len(query), dtype=bool)
    if check is not None:
        said = check_labels(check, query.frame.copy(), model.labels, model.threshold)
        pairs = zip(said, target, strict=True)
        already: Bools = np.array([label == model.labels[i] for label, i in pairs], dtype=bool)
        if number is None or not already.any():
            return np.asarray(already & ~is_open)
    sure = model.surrogate.probabilities(query.context.query)
    if check is None:
        already = np.asarray(sure.argmax(axis=1) == target)
    if number is not None:
        already &= sure[np.arange(len(sure)), target] >= number
    return np.asarray(already & ~is_open)


def statuses(query: Query, already: Bools, got: Ints, searches: Mapping[int, Search]) -> list[str]:
    """One word per task.

    `already` where the row has the target, `contradictory` where the constraints leave no answer, `infeasible` where
    every row that is allowed was looked at and none is an answer, `found`, `short` where fewer were found than asked
    for, or `not_found`.
    """
    words = [_found_or_short(int(count), query.request.n) for count in got]
    for i in map(int, np.flatnonzero(got == 0)):
        proved = i in searches and searches[i].is_proof
        words[i] = CONTRADICTORY if not query.feasible[i] else INFEASIBLE if proved else NOT_FOUND
    return [ALREADY if has else word for word, has in zip(words, already, strict=True)]


def _status_of_row(words: Sequence[str], got: int, n: int) -> str:
    """The word for a row with several tasks: what is found in one is found; there is no way only if none has one."""
    if ALREADY in words:
        return ALREADY
    if got:
        return _found_or_short(got, n)
    alike = [word for word in (CONTRADICTORY, INFEASIBLE) if all(one in (word, CONTRADICTORY) for one in words)]
    return alike[0] if alike else NOT_FOUND


def _found_or_short(got: int, n: int) -> str:
    """The word for a row with so many answers of `n`, of which there is at least one."""
    return FOUND if got >= n else SHORT


# -- joining -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stand:
    """A task of a row: which group it is in, its position there, what it asks for, and what came of it."""

    group: int
    position: int
    target: Any
    status: str
    short: tuple[int, int, str] | None
    search: Search | None


def joined(
    model: Model, rows: EncodedRows, request: Request, tasks: Tasks, queries: Sequence[Query], found: Sequence[Found],
    *, checked: bool,
) -> Outcome:  # fmt: skip
    """The outcome for all rows, of what was found for the query of each group of tasks.

    model: what was asked, before it was aimed. request: as it binds.
    """
    groups = tasks.groups
    stands = _stands(rows, groups, found)
    own = [_columns(group.model, query, one) for group, query, one in zip(groups, queries, found, strict=True)]
    values = _whole([one.draws.values for one in found], np.zeros((0, len(model.schema))))
    row = _whole([group.places[one.draws.query] for group, one in zip(groups, found, strict=True)], NONE)
    numbered = [_numbered(number, one.draws.query) for number, one in enumerate(found)]
    source = _whole(numbered, np.zeros((0, 2), dtype=np.int64))
    # A group in which nothing could be asked knows less of its answers, which there are none of.
    names = max((list(columns) for columns in own), key=len, default=[])
    columns = {name: _whole([one[name] for one in own if name in one], NONE) for name in names}
    order = np.argsort(row, kind="stable")
    is_single = np.array([len(mine) == 1 for mine in stands], dtype=bool)
    if any(len(mine) > 1 for mine in stands):
        order = _chosen(model, rows, request, stands, order=order, row=row, values=values, columns=columns)
    values, row, source = values[order], row[order], source[order]
    columns = {name: column[order] for name, column in columns.items()}
    if "way" in columns:
        _renumber(columns["way"], values, rows, row, is_single)
    if model.score is not None:
        columns[SCORE] = score_of(model, values)
    got = np.bincount(row, minlength=len(rows)).tolist()
    return Outcome(
        model, rows, request, tasks.wanted,
        status=[_status(tasks, i, stands[i], got[i], request.n) for i in range(len(rows))],
        values=values, row=row, columns=columns,
        short={i: (request.n, n, _why(tasks, i, stands[i])) for i, n in enumerate(got) if n < request.n},
        searches={i: mine[0].search for i, mine in enumerate(stands) if len(mine) == 1 and mine[0].search is not None},
        origin=_origin(model, queries, groups, stands, source, request=request, checked=checked),
        is_single=is_single, hopeless=_hopeless(rows, tasks, queries),
    )  # fmt: skip


NONE = np.zeros(0, dtype=np.int64)


def _whole(parts: list[NDArray[Any]], empty: NDArray[Any]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else empty


def _numbered(number: int, positions: Ints) -> Ints:
    return np.column_stack([np.full(len(positions), number), positions]).astype(np.int64)


def _stands(rows: EncodedRows, groups: Sequence[TaskGroup], found: Sequence[Found]) -> list[list[_Stand]]:
    """The tasks of each row."""
    stands: list[list[_Stand]] = [[] for _ in range(len(rows))]
    for number, (group, one) in enumerate(zip(groups, found, strict=True)):
        labels = group.model.labels
        for k, (i, code) in enumerate(zip(group.places.tolist(), group.targets.tolist(), strict=True)):
            stand = _Stand(number, k, labels[code], one.status[k], one.short.get(k), one.searches.get(k))
            stands[i].append(stand)
    return stands


def _columns(model: Model, query: Query, found: Found) -> dict[str, NDArray[Any]]:
    """What is told of each answer to a query; not whether it is valid, which only a check can say."""
    draws = found.draws
    own = query.context.query[draws.query]
    columns = info_of(
        model, own, draws.values, query.context.target[draws.query],
        log_density=draws.log_density, probability=draws.probability, uncounted=uncounted(model, query.request),
    )  # fmt: skip
    cost = query.cost(draws.values, own)
    return {**columns, **({} if cost is None else {"cost": cost}), **found.known}


def _chosen(
    model: Model, rows: EncodedRows, request: Request, stands: list[list[_Stand]], *, order: Ints, row: Ints,
    values: Values, columns: dict[str, NDArray[Any]],
) -> Ints:  # fmt: skip
    """The answers of each row: all of one task, the best of several, none where the row has one of the targets."""
    edges = np.searchsorted(row[order], np.arange(len(rows) + 1))
    distance = columns.get("cost", columns["proximity"])
    likely = columns.get("plausibility", columns["log_density"])
    kept = [NONE]
    for i, mine in enumerate(stands):
        pool = order[edges[i] : edges[i + 1]]
        if len(mine) > 1 and any(stand.status == ALREADY for stand in mine):
            pool = pool[:0]
        elif len(mine) > 1:
            merits = Merits(distance[pool], likely[pool], np.zeros(len(pool)))
            changed = differ(values[pool], rows.values[i])
            ranges = ranges_of(model.schema)
            pool = pool[choose(values[pool], changed, merits, ranges, request.n, diversity=request.diversity)]
        kept.append(pool)
    return np.concatenate(kept)


def _renumber(ways: Ints, values: Values, rows: EncodedRows, row: Ints, is_single: Bools) -> None:
    """Number the ways of the chosen answers anew, for rows with more than one task."""
    for i in np.flatnonzero(~is_single).tolist():
        mine = row == i
        if mine.any():
            ways[mine] = ways_of(differ(values[mine], rows.values[i]))


def _status(tasks: Tasks, i: int, stands: list[_Stand], got: int, n: int) -> str:
    if i in tasks.refused:
        return NOT_FOUND
    return stands[0].status if len(stands) == 1 else _status_of_row([stand.status for stand in stands], got, n)


def _why(tasks: Tasks, i: int, stands: list[_Stand]) -> str:
    """Why a row got fewer answers than asked for, task by task; once, where it is the same for all."""
    if i in tasks.refused:
        return tasks.refused[i].why
    if any(stand.status == ALREADY for stand in stands):
        return HAS_TARGET
    whys = {stand.target: stand.short[2] for stand in stands if stand.short is not None}
    if len(stands) == 1 or len({*whys.values()}) == 1:
        return next(iter(whys.values()))
    return "; ".join(f"{target}: {why}" for target, why in whys.items())


def _hopeless(rows: EncodedRows, tasks: Tasks, queries: Sequence[Query]) -> str | None:
    """Why the first row can't be asked for, where none can."""
    if any(query.feasible.any() for query in queries):
        return None
    if tasks.refused:
        i = min(tasks.refused)
        return f"row {plain(rows.labels[i])!r}: {tasks.refused[i].why}"
    limits = queries[0].limits
    assert limits is not None
    return f"row {plain(rows.labels[int(tasks.groups[0].places[0])])!r}: {limits.reasons[0]}"


def _origin(
    model: Model, queries: Sequence[Query], groups: Sequence[TaskGroup], stands: list[list[_Stand]], source: Ints, *,
    request: Request, checked: bool,
) -> Origin:  # fmt: skip
    """Where the answers come from."""
    sources = [
        Source(group.model, query.told, free=query.limits is None, has_unseen=group.has_unseen)
        for group, query in zip(groups, queries, strict=True)
    ]
    home = [(mine[0].group, mine[0].position) if mine else (-1, -1) for mine in stands]
    one_each = all(len(mine) <= 1 for mine in stands)
    return Origin(
        model, sources, home=np.array(home, dtype=np.int64), source=None if one_each else source, checked=checked,
        uncounted=uncounted(model, request),
    )  # fmt: skip
