"""One set of limits over many people: who can reach the target, by group, reported while it is computed."""

from __future__ import annotations

__all__ = ["Groups", "ManyPeople"]

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Ints
from dicoflex.answers.engine import answer
from dicoflex.answers.outcome import PROVED
from dicoflex.constraints import Constraints
from dicoflex.errors import named
from dicoflex.explorer.messages import Cohort, RefusedError
from dicoflex.explorer.people import People
from dicoflex.explorer.question import label_of, request_of
from dicoflex.explorer.texts import Names
from dicoflex.explorer.user_limits import wish_of
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.unseen import encode_frame
from dicoflex.values import differ

Groups = list[tuple[str, Ints]]
"""The groups' texts, and the places of their people."""
BANDS = 4


def groups_of(feature: str | None, people: People, places: Ints) -> Groups:
    """The groups of the people at `places`; None makes none."""
    if feature is None:
        return []
    j = people.names.place(feature)
    if j is None:
        raise RefusedError(named("feature", feature, people.names.keys), place="/groups")
    column = people.values[places, j]
    if people.model.schema.features[j].is_number:
        return _bands(people, j, column, places)
    return [(_text(people, j, code), places[column == code]) for code in np.unique(column).tolist()]


def _bands(people: People, j: int, column: NDArray[np.float64], places: Ints) -> Groups:
    known = column[~np.isnan(column)]
    absent = [(_text(people, j, np.nan), places[np.isnan(column)])] if len(known) < len(column) else []
    if len(known) == 0:
        return absent
    edges = np.unique(np.quantile(known, np.linspace(0, 1, BANDS + 1), method="lower")).tolist()
    if len(edges) == 1:
        return [(_text(people, j, edges[0]), places[column == edges[0]]), *absent]
    found = []
    for low, high in pairwise(edges):
        last = high == edges[-1]
        mine = (column >= low) & ((column <= high) if last else (column < high))
        to = "to" if last else "to under"
        found.append((f"{_text(people, j, low)} {to} {_text(people, j, high)}", places[mine]))
    return [*found, *absent]


def _text(people: People, j: int, value: float) -> str:
    return people.names.shown(j, people.cells.shown(j, float(value)))


@dataclass(frozen=True)
class Way:
    """What came of asking for one person.

    reason: why nothing was found; None where something was. proved: whether there is nothing. changes: how many changes
    the plan makes that was found.
    """

    reason: str | None
    proved: bool = False
    changes: int = 0


Ways = dict[int, Way]
"""By the places of people."""
MOST_PEOPLE = 1000
CHUNK = 40


class ManyPeople:
    """Asks for many people at once."""

    def __init__(self, model: Model, people: People, names: Names, wanted: int) -> None:
        self.model, self.people, self.names, self.wanted = model, people, names, wanted

    def lines(self, asked: Cohort) -> Iterator[dict[str, Any]]:
        """What is known after each part of the people; the last line says that it is the last.

        Only who lacks the result is counted; `already` says how many have it.
        """
        target = self.wanted if asked.target is None else label_of(asked.target, self.model, np.zeros(0))
        places = self._places(asked)
        lacking = places[self.people.result[places] != target]
        groups = groups_of(asked.groups, self.people, lacking)
        ways: Ways = {}
        for low in range(0, max(1, len(lacking)), CHUNK):
            chunk = lacking[low : low + CHUNK]
            ways |= self._ways(asked, target, chunk) if len(chunk) else {}
            told = self._told(ways, groups)
            yield {
                "done": len(ways),
                "total": len(lacking),
                "already": len(places) - len(lacking),
                **told,
                "end": low + CHUNK >= len(lacking),
            }

    def _places(self, asked: Cohort) -> Ints:
        if asked.people is None:
            return np.arange(min(len(self.people), MOST_PEOPLE))
        return np.array([self.people.place(name) for name in dict.fromkeys(asked.people)], dtype=np.int64)

    def _ways(self, asked: Cohort, target: int, chunk: Ints) -> Ways:
        if not asked.refused:
            return self._asked(chunk, request_of(asked, self.model.labels[target], self._wish(asked, int(chunk[0]))))
        # What a refusal demands depends on the row.
        found: Ways = {}
        for i in chunk.tolist():
            own = request_of(asked, self.model.labels[target], self._wish(asked, i))
            found |= self._asked(np.array([i]), own)
        return found

    def _wish(self, asked: Cohort, i: int) -> Constraints:
        return wish_of(asked, self.people.values[i], self.names, self.people.cells).constraints

    def _asked(self, chunk: Ints, request: Request) -> Ways:
        rows = encode_frame(self.model.encoding, self.people.frame.iloc[chunk])
        found = answer(self.model, rows, request.model_copy(update={"n": 1}))
        changed = differ(found.values, rows.values[found.row]).sum(axis=1)
        changes = dict(zip(found.row.tolist(), changed.tolist(), strict=True))
        return {
            i: Way(found.short[k][2], found.status[k] in PROVED) if k in found.short else Way(None, changes=changes[k])
            for k, i in enumerate(chunk.tolist())
        }

    def _told(self, ways: Ways, groups: Groups) -> dict[str, Any]:
        with_way = {i for i, way in ways.items() if way.reason is None}

        def burden(own: Ints) -> float | None:
            changes = [ways[i].changes for i in own.tolist() if i in with_way]
            return round(float(np.mean(changes)), 4) if changes else None

        return {
            "with_way": len(with_way),
            "groups": [
                {
                    "group": text,
                    "people": sum(i in ways for i in own.tolist()),
                    "with_way": sum(i in with_way for i in own.tolist()),
                    "changes": burden(own),
                }
                for text, own in groups
            ],
            "without": [
                {
                    "id": self.people.ids[i],
                    "label": self.people.label(i),
                    "proved": way.proved,
                    "reason": self.names.labelled(way.reason),
                }
                for i, way in ways.items()
                if way.reason is not None
            ],
        }
