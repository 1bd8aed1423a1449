"""Where answers came from: the model, and what it was conditioned on; enough to work out again what is told of them."""

from __future__ import annotations

__all__ = ["Origin", "info_of"]

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import QueryError, UnseenError
from dicoflex.generators.base import Context
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.unseen import known_frame
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Origin:
    """The model that answered, and what it was conditioned on per query.

    checked: whether a callable confirmed the answers. free: whether their log densities are those of the model before
    constraints; a sampler that looks ahead tells how likely a draw was under them. uncounted: which features follow
    from others, and don't count as changes. unseen: which queries hold a value that training never had; None if none.
    """

    model: Model
    context: Context
    checked: bool
    free: bool
    uncounted: NDArray[np.bool_]
    unseen: NDArray[np.bool_] | None = None

    @property
    def is_scored(self) -> bool:
        """Whether a model of scores was asked."""
        return self.model.score is not None

    def of_query(self, position: int) -> tuple[Origin, int]:
        """The origin that is asked about a query, and the query's position there."""
        return self, position

    def labels(self) -> list[Any]:
        """The label that the surrogate gives each query; None where it never saw the like of it."""
        likeliest = self.model.surrogate.probabilities(self.context.query).argmax(axis=1)
        apart = np.zeros(len(likeliest), dtype=bool) if self.unseen is None else self.unseen
        return [None if new else self.model.labels[i] for i, new in zip(likeliest, apart, strict=True)]

    def needed(self) -> list[tuple[float, float]]:
        """Per query the confidence that answers must have, and the share of retrained models that would accept them.

        NaN where a model was fitted on labels alone, or its survival was not estimated.
        """
        model, context = self.model, self.context
        if not model.has_confidence:
            return [(np.nan, np.nan)] * len(context)
        pairs = list(zip(context.target.tolist(), context.confidence.tolist(), strict=True))
        kept = model.survival
        return [(sure, np.nan if kept is None else float(kept.share_at(label, sure))) for label, sure in pairs]

    def density(self, position: int) -> Callable[[pd.DataFrame], Floats]:
        """The log density of rows as counterfactuals of the query at `position`."""
        return partial(self._log_density, position)

    def _log_density(self, position: int, rows: pd.DataFrame) -> Floats:
        values = self.model.encoding.encode(rows)
        context = self.context.take(slice(position, position + 1)).repeat(len(values))
        return self.model.generator.log_prob(context, values)

    def recount(self, own: Values, values: Values, positions: Ints) -> dict[str, Any]:
        """What `info` should say of the answers `values` to the rows `own` at their places, all worked out anew."""
        context = replace(self.context.take(positions), query=own)
        said = self.model.surrogate.probabilities(values)[np.arange(len(values)), context.target]
        density = self.model.generator.log_prob(context, values)
        told = info_of(
            self.model, own, values, context.target, log_density=density, probability=said, uncounted=self.uncounted
        )
        if self.model.coherence is not None:
            rows = self.model.coherence.density
            told["plausibility"] = rows.plausibility(rows.judge(values)[0], context.target)
        return told if self.free else {name: told[name] for name in told if name != "log_density"}

    def coherent(self, own: Values, values: Values) -> NDArray[np.bool_]:
        """Which answers have no pair of values that no training row has and their row has not, and keep dependencies.

        own: the row that each answers.
        """
        assert self.model.coherence is not None
        return ~self.model.coherence.broken(values, own)

    def encoded(
        self, queries: pd.DataFrame, frame: pd.DataFrame, positions: Ints
    ) -> tuple[Values, Values] | None:  # fmt: skip
        """Each answer's row and each answer as the model has them; None where it does not know a value of an answer."""
        try:
            return self._known(queries)[positions], self.model.encoding.encode(frame)
        except QueryError:
            return None

    def _known(self, queries: pd.DataFrame) -> Values:
        """The matrix of the queries, with what stands for values that training never had."""
        try:
            return self.model.encoding.encode(queries)
        except UnseenError:
            return known_frame(self.model.encoding, queries, self.model.places_for_unseen).values


def info_of(
    model: Model,
    own: Values,
    values: Values,
    target: Ints,
    *,
    log_density: Floats,
    probability: Floats,
    uncounted: NDArray[np.bool_],
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
