"""How usual an answer is among real rows."""

from __future__ import annotations

__all__ = ["LogLof"]

import numpy as np
import pandas as pd
from sklearn.neighbors import LocalOutlierFactor

from dicoflex.errors import DataError
from dicoflex.metrics.frames import Reals, as_points
from dicoflex.table.schema import Schema


class LogLof:
    """The local outlier factor against training rows, as a natural logarithm: 0 is inside, above 0 is sparser.

    LOF_k(a) = mean over the k nearest training rows b of density(b) / density(a), with the reachability densities of
    Breunig et al. (2000), as scikit-learn computes it. Distances are Euclidean on numbers scaled to [0, 1] by the
    schema's limits and levels in one-hot form; missing is a level of its own, in numbers as well. `nearest` is the
    distance to the closest training row in this space.

    >>> frame = pd.DataFrame({"x": np.linspace(0, 1, 50)})
    >>> inside, outside = LogLof(frame, Schema.infer(frame), k=5).score(pd.DataFrame({"x": [0.5, 3.0]}))
    >>> bool(abs(inside) < 0.1), bool(outside > 1)
    (True, True)
    """

    def __init__(self, train: pd.DataFrame, schema: Schema, *, k: int = 20) -> None:
        if len(train) <= k:
            raise DataError(f"LOF with k={k} needs more than {k} rows, got {len(train)}; lower k or give more rows")
        self.schema = schema
        self._points = as_points(train, schema)
        self._lof = LocalOutlierFactor(n_neighbors=k, novelty=True).fit(self._points)

    def score(self, frame: pd.DataFrame) -> Reals:
        """One log LOF per row of `frame`."""
        if len(frame) == 0:
            return np.empty(0)
        scores: Reals = np.log(-self._lof.score_samples(as_points(frame, self.schema)))
        return scores

    def nearest(self, frame: pd.DataFrame) -> Reals:
        """One distance per row of `frame`: min over training rows b of ‖a - b‖; a copy is at exactly 0."""
        if len(frame) == 0:
            return np.empty(0)
        points = as_points(frame, self.schema)
        closest = self._lof.kneighbors(points, n_neighbors=1, return_distance=False)[:, 0]
        # The search takes |a|² - 2ab + |b|², which leaves rounding errors where a = b.
        distances: Reals = np.linalg.norm(points - self._points[closest], axis=1)
        return distances
