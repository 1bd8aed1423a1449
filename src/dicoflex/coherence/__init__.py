"""What goes together in a table: pairs of values that occur, features that follow from others, a density of the rows.

It is the second judge of an answer, beside the surrogate for the black box: an answer is *coherent* if it has no pair
of values that no training row has (and its query has not) and keeps every exact dependency, and *plausible* if it is
not rarer than real rows of its class are.
"""

from __future__ import annotations

__all__ = ["Coherence"]

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex._types import Arrays
from dicoflex.coherence.dependencies import Dependencies
from dicoflex.coherence.row_density import RowDensity
from dicoflex.coherence.seen_pairs import SeenPairs
from dicoflex.coherence.stops import Stops
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema


@dataclass(frozen=True)
class Coherence:
    """All that was learned of what goes together; `stops` are the values at which a changed number may come to rest."""

    pairs: SeenPairs
    dependencies: Dependencies
    density: RowDensity
    stops: Stops

    def broken(self, values: Values, query: Values) -> NDArray[np.bool_]:
        """Which rows are incoherent: an unseen pair that the query has not, or a dependency that does not hold."""
        return self.pairs.broken(values, query) | self.dependencies.broken(values, query)

    def strays(self, values: Values, query: Values) -> NDArray[np.bool_]:
        """Which rows are no answers: as `broken`, and by pairs that are avoided though some rows have them."""
        return self.pairs.strays(values, query) | self.dependencies.broken(values, query)

    def allowing_all(self) -> Coherence:
        """The same without pairs to avoid and without dependencies."""
        pairs = replace(self.pairs, avoided=np.zeros_like(self.pairs.avoided))
        return replace(self, pairs=pairs, dependencies=Dependencies((), self.dependencies.n_features))

    def arrays(self) -> Arrays:
        """The arrays that a model file keeps."""
        parts = {"pairs": self.pairs.arrays(), "density": self.density.arrays(), "stops": self.stops.arrays()}
        return {f"{name}.{k}": array for name, arrays in parts.items() for k, array in arrays.items()}

    def facts(self) -> list[dict[str, Any]]:
        """The dependencies, as a model file's header holds them."""
        return self.dependencies.state()

    @classmethod
    def restore(cls, schema: Schema, n_classes: int, facts: Any, arrays: Arrays) -> Coherence:
        """What `arrays` and `facts` were taken from; what doesn't fit the schema is a `ModelFileError`."""

        def under(prefix: str) -> Arrays:
            return {k.removeprefix(f"{prefix}."): v for k, v in arrays.items() if k.startswith(f"{prefix}.")}

        density = RowDensity.restore(schema, n_classes, under("density"))
        return cls(
            SeenPairs.restore(schema, under("pairs")),
            Dependencies.restore(schema, facts),
            density,
            Stops.restore(schema, under("stops"), density.bins),
        )
