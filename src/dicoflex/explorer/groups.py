"""People told apart by a feature: its levels, or quarters of a number."""

from __future__ import annotations

__all__ = ["Groups", "groups_of"]

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Ints
from dicoflex.errors import named
from dicoflex.explorer.messages import RefusedError
from dicoflex.explorer.people import People

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
