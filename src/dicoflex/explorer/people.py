"""The people of a file: who there is, what the model says of each, and who is near another result."""

from __future__ import annotations

__all__ = ["People"]

from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import QueryError, named
from dicoflex.explorer.messages import Looking, RefusedError
from dicoflex.explorer.texts import Names
from dicoflex.model import Model
from dicoflex.runtime.printable import printable
from dicoflex.table.plain_rows import Cells
from dicoflex.values import plain
from dicoflex.views.words import percent

OFFERED = 3
ABOUT = 3
"""So many values tell who somebody is, where the texts name none to show."""


class People:
    """Rows with a name each, encoded and judged once."""

    def __init__(self, model: Model, rows: pd.DataFrame, names: Names) -> None:
        if len(rows) == 0:
            raise QueryError("there is nobody to explore; give at least one row")
        model.encoding.check_columns(rows)
        self.frame, self.values = model.encoding.conform(rows)
        self.names, self.model = names, model
        self.ids = _distinct([printable(str(plain(label))) for label in rows.index.to_flat_index()])
        self.places = {name: i for i, name in enumerate(self.ids)}
        self.probabilities = model.surrogate.probabilities(self.values)
        self.result: NDArray[np.int64] = self.probabilities.argmax(axis=1)
        self.cells = Cells(model.plain_rows)

    def __len__(self) -> int:
        return len(self.ids)

    def place(self, person: str) -> int:
        """Where a person stands."""
        if person not in self.places:
            raise RefusedError(named(self.names.texts.word, person, self.ids[:1000]), place="/person")
        return self.places[person]

    def label(self, i: int) -> str:
        """What a person is called in a list: the name, and what tells people apart."""
        told = [key for key in self.names.texts.show if key in self.names.places]
        cells = self.cells.plain(self.values[i]) if told else []
        texts = [self.names.shown(j, cells[j]) for j in (self.names.places[key] for key in told)]
        return " · ".join([self.ids[i], *texts])

    @cached_property
    def _levels(self) -> list[str]:
        """The levels that tell who somebody is, to search in; a number typed is a name, and not part of another one."""
        places = [j for j in self._about if not self.model.schema.features[j].is_number]
        cells = (self.cells.plain(values) for values in self.values)
        return ["\n".join(self.names.shown(j, row[j]) for j in places).casefold() for row in cells]

    @property
    def _about(self) -> list[int]:
        """The features that tell who somebody is: those that the texts show, or else the first."""
        told = [self.names.places[key] for key in self.names.texts.show if key in self.names.places]
        return told or list(range(min(ABOUT, len(self.names.keys))))

    def listed(self, asked: Looking, wanted: int) -> dict[str, Any]:
        """A page of the list, and three who lack the wanted result, the nearest to it first."""
        near = np.argsort(-self._nearness(wanted), kind="stable")
        order = near if asked.order == "near" else np.arange(len(self))
        if asked.search:
            word = asked.search.casefold()
            named = [i for i in order if word in self.label(int(i)).casefold()]
            known = {int(i) for i in named}
            # Who is called so comes before who is merely so.
            order = np.array(
                [*named, *(i for i in order if int(i) not in known and word in self._levels[int(i)])], dtype=np.int64
            )
        page = order[asked.offset : asked.offset + asked.most]
        lacking = [int(i) for i in near if self.result[i] != wanted]
        return {
            "total": len(order),
            "people": [self._entry(int(i), wanted) for i in page],
            "lacking": len(lacking),
            "offered": [self.ids[i] for i in lacking[:OFFERED]],
            "near": [self._entry(i, wanted) for i in lacking[:OFFERED]],
        }

    def _nearness(self, wanted: int) -> NDArray[np.float64]:
        """Who lacks the result comes first, the likeliest to get it before all; then who has it, by a hair before."""
        chance = self.probabilities[:, wanted]
        return np.where(self.result == wanted, -1.0 - chance, chance)

    def _entry(self, i: int, wanted: int) -> dict[str, Any]:
        chance = float(self.probabilities[i, wanted])
        cells = self.cells.plain(self.values[i])
        return {
            "id": self.ids[i],
            "label": self.label(i),
            "about": [
                {"feature": self.names.keys[j], "value": cells[j], "text": self.names.shown(j, cells[j])}
                for j in self._about
            ],
            "result": self.model.labels[self.result[i]],
            "result_text": self.names.classes[self.result[i]],
            "probability": round(chance, 6),
            "percent": percent(chance),
        }

    def told(self, i: int) -> dict[str, Any]:
        """All values of a person, and what the model says."""
        cells, keys = self.cells.plain(self.values[i]), self.names.keys
        return {
            "id": self.ids[i],
            "label": self.label(i),
            "previous": self.ids[i - 1] if i > 0 else None,
            "next": self.ids[i + 1] if i + 1 < len(self) else None,
            "values": dict(zip(keys, cells, strict=True)),
            "texts": {key: self.names.shown(j, cells[j]) for j, key in enumerate(keys)},
            "result": self.model.labels[self.result[i]],
            "probabilities": {
                str(label): round(float(p), 6)
                for label, p in zip(self.model.labels, self.probabilities[i], strict=True)
            },
        }


def _distinct(ids: list[str]) -> list[str]:
    """The names, those that repeat with a number behind them.

    >>> _distinct(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: Counter[str] = Counter()
    known, found = set(ids), []
    for name in ids:
        seen[name] += 1
        while seen[name] > 1 and f"{name} ({seen[name]})" in known:
            seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found
