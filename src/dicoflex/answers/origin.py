"""Where answers came from: the models, and what they were conditioned on; enough to work out again what is told."""

from __future__ import annotations

__all__ = ["Origin", "Source", "info_of"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dicoflex._types import Bools, Floats, Ints
from dicoflex.answers.aiming import score_of
from dicoflex.errors import QueryError
from dicoflex.generators.base import Context
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.unseen import encode_frame
from dicoflex.values import differ
from dicoflex.views.cards import SCORE


@dataclass(frozen=True)
class Source:
    """A model that answered some tasks, and what it was conditioned on for each.

    free: whether their log densities are those of the model before constraints; a sampler that looks ahead tells how
    likely a draw was under them. has_unseen: whether the rows hold values that training never had.
    """

    model: Model
    context: Context
    free: bool
    has_unseen: bool = False

    def labels(self) -> list[Any]:
        """The label that the surrogate gives each row; None where it never saw the like of it."""
        if self.has_unseen:
            return [None] * len(self.context)
        labels = self.model.labels
        return [labels[i] for i in self.model.surrogate.probabilities(self.context.query).argmax(axis=1)]

    def needed(self) -> list[tuple[float, float]]:
        """Per task the confidence that answers must have, and the share of retrained models that would accept them."""
        model, context = self.model, self.context
        if not model.has_confidence:
            return [(np.nan, np.nan)] * len(context)
        pairs = list(zip(context.target.tolist(), context.confidence.tolist(), strict=True))
        kept = model.survival
        return [(sure, np.nan if kept is None else float(kept.share_at(label, sure))) for label, sure in pairs]

    def log_density(self, position: int, rows: pd.DataFrame) -> Floats:
        """The log density of rows as answers to the task at `position`."""
        values = self.model.encoding.encode(rows)
        context = self.context.take(slice(position, position + 1)).repeat(len(values))
        return self.model.generator.log_prob(context, values)

    def recount(self, own: Values, values: Values, positions: Ints, uncounted: Bools) -> dict[str, Any]:
        """What `info` should say of the answers `values` to the rows `own`, all worked out anew."""
        context = replace(self.context.take(positions), query=own)
        said = self.model.surrogate.probabilities(values)[np.arange(len(values)), context.target]
        density = self.model.generator.log_prob(context, values)
        columns = info_of(
            self.model, own, values, context.target, log_density=density, probability=said, uncounted=uncounted
        )
        if self.model.coherence is not None:
            rows = self.model.coherence.density
            columns["plausibility"] = rows.plausibility(rows.judge(values)[0], context.target)
        return columns if self.free else {name: columns[name] for name in columns if name != "log_density"}


@dataclass(frozen=True)
class Origin:
    """What answered some rows.

    model: as it was asked, before it was aimed at a score. sources: what answered. home: of each row the number of the
    source of its first task, and the position there; -1 where it has none. source: the same of each answer; None where
    no row has several tasks. checked: whether a callable confirmed the answers. uncounted: which features follow from
    others, and don't count as changes.
    """

    model: Model
    sources: Sequence[Source]
    home: Ints
    source: Ints | None
    checked: bool
    uncounted: Bools

    def of_query(self, position: int) -> tuple[Source, int]:
        """What is asked about a row, and the position of its task there."""
        number, place = self.home[position]
        if number < 0:
            raise QueryError("nothing was asked for this row, as the model does not support its target; see shortfall")
        return self.sources[number], int(place)

    def labels(self) -> list[Any]:
        """The label that the surrogate gives each row; None where it was not asked, or never saw the like of it."""
        return self._of_rows([source.labels() for source in self.sources], None)

    def needed(self) -> list[tuple[float, float]]:
        """Per row the confidence that its answers must have, and the share of retrained models that would accept them.

        NaN where a model was fitted on labels alone, or its survival was not estimated.
        """
        return self._of_rows([source.needed() for source in self.sources], (np.nan, np.nan))

    def _of_rows(self, known: Sequence[Sequence[Any]], absent: Any) -> list[Any]:
        return [known[number][place] if number >= 0 else absent for number, place in self.home.tolist()]

    def density(self, position: int) -> Callable[[pd.DataFrame], Floats]:
        """The log density of rows as counterfactuals of the row at `position`."""
        source, place = self.of_query(position)
        return partial(source.log_density, place)

    def recount(self, own: Values, values: Values, positions: Ints) -> dict[str, Any]:
        """What `info` should say of the answers `values` to the rows `own` at their places, all worked out anew."""
        source = self.home[positions] if self.source is None else self.source
        columns: dict[str, Any] = {}
        for number, one in enumerate(self.sources):
            mine = np.flatnonzero(source[:, 0] == number)
            for name, column in one.recount(own[mine], values[mine], source[mine, 1], self.uncounted).items():
                columns.setdefault(name, np.empty(len(values), dtype=object))[mine] = column
        return columns if self.model.score is None else {**columns, SCORE: score_of(self.model, values)}

    def coherent(self, own: Values, values: Values) -> Bools:
        """Which answers have no pair of values that no training row has and their row has not, and keep dependencies.

        own: the row that each answers.
        """
        assert self.model.coherence is not None
        return ~self.model.coherence.broken(values, own)

    def encoded(
        self, queries: pd.DataFrame, frame: pd.DataFrame, positions: Ints
    ) -> tuple[Values, Values] | None:  # fmt: skip
        """Each answer's row and each answer as the model has them; None where it does not know a value of an answer."""
        encoding = self.model.encoding
        try:
            rows = encode_frame(encoding, queries, lambda: self.model.places_for_unseen)
            return rows.values[positions], encoding.encode(frame)
        except QueryError:
            return None


def info_of(
    model: Model,
    own: Values,
    values: Values,
    target: Ints,
    *,
    log_density: Floats,
    probability: Floats,
    uncounted: Bools,
) -> dict[str, Any]:
    """What is told of answers `values` to the rows `own`, column by column."""
    before, after = model.encoding.standardise(own), model.encoding.standardise(values)
    return {
        "target": model.classes[target],
        "log_density": log_density,
        "n_changed": (differ(values, own) & ~uncounted).sum(axis=1),
        "proximity": np.sqrt(((before - after) ** 2).sum(axis=1)),
        "probability": probability,
    }
