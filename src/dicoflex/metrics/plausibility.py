"""How usual an answer is among real rows."""

from __future__ import annotations

__all__ = ["LogLof", "RareFloor", "rare"]

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.neighbors import LocalOutlierFactor

from dicoflex.errors import DataError, named
from dicoflex.metrics.frames import Flags, Reals, as_labels, as_points, mean_or_nan
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


class RareFloor:
    """How likely the rows of each class are, but for the least likely `share` of real ones. Made once per density.

    floor(c) = the `share` quantile (interpolated) of the log densities of real rows of class c.

    scores: the log density of real rows, by any density of rows. labels: their classes.

    >>> floor = RareFloor([-1.0, -2.0, -3.0, -9.0, -4.0, -5.0], ["no", "no", "no", "no", "yes", "yes"], share=0.5)
    >>> floor.by_label
    {'no': -2.5, 'yes': -4.5}
    >>> floor.below([-3.0, -3.0], ["no", "yes"])
    array([ True, False])
    """

    def __init__(self, scores: ArrayLike, labels: Any, *, share: float = 0.05) -> None:
        values = pd.Series(np.asarray(scores, dtype=np.float64))
        groups = values.groupby(as_labels(labels, len(values)).to_numpy(), sort=False)
        self.by_label = {label: float(np.quantile(group, share)) for label, group in groups}

    def below(self, scores: ArrayLike, targets: Any) -> Flags:
        """For each row of log density `scores`, whether it is below the floor of its target."""
        values = np.asarray(scores, dtype=np.float64)
        wanted = as_labels(targets, len(values))
        for label in wanted.unique():
            if label not in self.by_label:
                raise DataError(named("target", label, self.by_label))
        return values < wanted.map(self.by_label).to_numpy(dtype=np.float64)


def rare(
    answers: Any,
    targets: Any,
    real: Any,
    labels: Any,
    *,
    log_density: Callable[[pd.DataFrame], ArrayLike] | None = None,
    share: float = 0.05,
) -> float:
    """The share of answers that are less likely than all but `share` of the real rows of the target class.

    mean over i of [log p(x'_i) < floor(target_i)], with the floor of `RareFloor`. Of real rows it is `share`.

    answers, real: log densities of the answers and of real rows; or the rows, and `log_density` gives it. targets: one
    label per answer, or one for all. labels: the classes of the real rows, as the black box sees them.

    >>> rare([-1.0, -8.0], "yes", [-2.0, -3.0, -4.0], ["yes", "yes", "no"])
    0.5
    """
    score = np.asarray if log_density is None else log_density
    return mean_or_nan(RareFloor(score(real), labels, share=share).below(score(answers), targets))
