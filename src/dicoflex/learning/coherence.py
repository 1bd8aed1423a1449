"""Learning what goes together in a table."""

from __future__ import annotations

__all__ = ["learn_coherence"]

import numpy as np

from dicoflex.coherence import Coherence
from dicoflex.coherence.seen_pairs import SeenPairs
from dicoflex.coherence.stops import Stops
from dicoflex.generators.base import Table
from dicoflex.learning.dependencies import find_dependencies
from dicoflex.learning.row_density import learn_row_density
from dicoflex.runtime.progress import Deadline


def learn_coherence(table: Table, *, seed: int, deadline: Deadline | None = None) -> Coherence:
    """Pairs of values that occur, exact dependencies and the density of the rows of a table, as far as it may tell."""
    schema, min_count = table.encoding.schema, table.min_count
    values = np.ascontiguousarray(table.values)
    density = learn_row_density(
        schema, values, table.labels, table.n_classes,
        seed=seed, min_count=min_count, deadline=deadline or Deadline(),
    )  # fmt: skip
    return Coherence(
        pairs=SeenPairs.learn(schema, values, min_count=min_count),
        dependencies=find_dependencies(schema, values, min_count=min_count),
        density=density,
        stops=Stops.learn(schema, values, density.bins, min_count=min_count),
    )
