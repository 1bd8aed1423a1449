"""All that judges a row while it is refined, as the core reads it: the surrogate, and what goes together."""

from __future__ import annotations

__all__ = ["Judges"]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.coherence import Coherence
from dicoflex.surrogate import Surrogate
from dicoflex.table.encoding import Encoding
from dicoflex.table.feature import Kind


@dataclass(frozen=True)
class Judges:
    """A model's judges.

    gaps: by feature, how many steps lie between the first and the last level; 0 of what is not ordered. follower: which
    features depend on others of the table.
    """

    core: _core.Judges
    gaps: NDArray[np.float64]
    follower: NDArray[np.bool_]

    @classmethod
    def of(cls, encoding: Encoding, surrogate: Surrogate, coherence: Coherence) -> Judges:
        """The judges of a model with this encoding and this surrogate."""
        stops, features = coherence.stops, encoding.schema.features
        gaps = np.array([len(f.levels) - 1 if f.kind is Kind.ORDINAL else 0 for f in features], dtype=np.float64)
        follower = coherence.dependencies.followers
        core = _core.Judges(
            surrogate=surrogate.core,
            avoided=coherence.pairs.core,
            density=coherence.density.core,
            dependencies=coherence.dependencies.core,
            follower=follower,
            scale=encoding.scale,
            gaps=gaps,
            step=stops.step,
            digits=np.power(10.0, stops.decimals),
            stop_at=stops.at,
            stop=stops.value,
            typical=stops.typical,
        )
        return cls(core, gaps, follower)
