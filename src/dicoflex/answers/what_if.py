"""What a model says of a row as single values of it change: along one feature, and step by step towards an answer."""

from __future__ import annotations

__all__ = ["WhatIf", "decision_along"]

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dicoflex._types import Bools, Floats
from dicoflex.answers.verification import verify
from dicoflex.errors import QueryError
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature
from dicoflex.table.marginals import by_factors, is_skewed

if TYPE_CHECKING:
    from dicoflex.answers.counterfactuals import Counterfactuals

MOST_VALUES = 40


def grid_of(feature: Feature, scale: float, n: int = MOST_VALUES) -> Values:
    """The values at which a feature is looked at: each level, or at most `n` numbers."""
    if not feature.is_number:
        return np.arange(len(feature.levels), dtype=np.float64)
    low, high = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
    grid = by_factors(low, high, n, scale) if is_skewed(feature, scale) else np.linspace(low, high, n)
    return np.unique(np.rint(grid) if feature.is_whole else grid)


def decision_along(model: Model, own: Values, target: int, which: Sequence[int]) -> list[tuple[Values, Floats]]:
    """For each feature in `which`: the row with every value of its grid, and the probability of the target there."""
    grids = [grid_of(model.schema.features[j], float(model.encoding.scale[j])) for j in which]
    ends = np.cumsum([0, *map(len, grids)])
    rows = np.repeat(own[None], int(ends[-1]), axis=0)
    for j, grid, (low, high) in zip(which, grids, pairwise(ends), strict=True):
        rows[low:high, j] = grid
    rows = model.encoding.snap(rows) if len(rows) else rows
    said = model.surrogate.probabilities(rows)[:, target] if len(rows) else np.zeros(0)
    return [(rows[low:high], said[low:high]) for low, high in pairwise(ends)]


@dataclass(frozen=True)
class WhatIf:
    """One query of a result, the model that answered it, and what answers to it had to reach.

    Parameters
    ----------
    model : Model
        The model, aimed at the query's target.
    own : array of shape (features,)
        The query, encoded.
    target : int
        The number of the class that was asked for.
    needed : float
        The probability of the target from which the model decides for it.
    """

    model: Model
    own: Values
    target: int
    needed: float

    @classmethod
    def of(cls, cfs: Counterfactuals, position: int) -> WhatIf:
        """The query at a position of a result; a result that was made by hand has no model to ask."""
        if cfs.origin is None:
            raise QueryError("a result that was made by hand has no model to ask; explain the rows to draw this")
        origin, place = cfs.origin.of_query(position)
        target = int(origin.context.target[place])
        needed = max(float(origin.context.confidence[place]), 1.0 / len(origin.model.labels))
        return cls(origin.model, origin.context.query[place], target, needed)

    @property
    def now(self) -> float:
        """The probability of the target as things stand."""
        return float(self.probability(self.own[None])[0])

    def probability(self, rows: Values) -> Floats:
        """The probability of the target for encoded rows."""
        said: Floats = self.model.surrogate.probabilities(rows)[:, self.target]
        return said

    def steps(self, answer: pd.DataFrame) -> list[tuple[int, float]]:
        """The changes of one answer in the order in which each does most: feature, and the probability after it."""
        end, row = self.model.encoding.encode(answer)[0], self.own.copy()
        left = np.flatnonzero(self.model.encoding.differs(row[None], end[None])[0]).tolist()
        found: list[tuple[int, float]] = []
        while left:
            tried = np.repeat(row[None], len(left), axis=0)
            tried[np.arange(len(left)), left] = end[left]
            said = self.probability(tried)
            best = int(said.argmax())
            row = tried[best]
            found.append((left.pop(best), float(said[best])))
        return found

    def levers(self, cfs: Counterfactuals, position: int) -> pd.DataFrame:
        """Per feature that may change, between which probabilities it alone moves the decision.

        Only values that the constraints of the result permit count. Columns: `low`, `high`, and `best`, the value that
        reaches `high`; the strongest feature comes first.
        """
        features = cfs.schema.features
        along = decision_along(self.model, self.own, self.target, range(len(features)))
        rows, chances = (np.concatenate(part) for part in zip(*along, strict=True))
        owner = np.repeat(np.arange(len(features)), [len(said) for _, said in along])
        permitted = self._permitted(cfs, position, rows)
        lines = []
        for j, feature in enumerate(features):
            here = np.flatnonzero((owner == j) & permitted)
            if len(here) == 0 or feature.name in cfs.dependent:
                continue
            best = here[chances[here].argmax()]
            value = self.model.encoding.decode(rows[[best]])[feature.name].iloc[0]
            lines.append((feature.name, min(self.now, chances[here].min()), max(self.now, chances[best]), value))
        table = pd.DataFrame(lines, columns=["feature", "low", "high", "best"]).astype({"best": object})
        return table.set_index("feature").sort_values("high", ascending=False, kind="stable")

    def _permitted(self, cfs: Counterfactuals, position: int, rows: Values) -> Bools:
        """Which rows differ from the query and obey the constraints of the result."""
        own = np.repeat(self.own[None], len(rows), axis=0)
        moved = self.model.encoding.differs(rows, own).any(axis=1)
        query = cfs.queries.iloc[[position]]
        index = pd.MultiIndex.from_product([query.index, range(len(rows))])
        found = verify(
            query, self.model.encoding.decode(rows, index), np.zeros(len(rows), dtype=int), cfs.constraints, cfs.schema,
            dependent=cfs.dependent,
        )  # fmt: skip
        holds = found["holds"].to_numpy(dtype=bool).reshape(len(rows), -1).all(axis=1)
        permitted: Bools = np.asarray(moved & holds, dtype=bool)
        return permitted
