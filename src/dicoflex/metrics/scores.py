"""All measures of a set of answers at once."""

from __future__ import annotations

__all__ = ["Reference", "by_query", "row_measures", "score"]

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dicoflex.errors import DataError
from dicoflex.metrics.changes import EPSILON, changed, moved, number_features, number_scale, proximity
from dicoflex.metrics.conditions import agreement, broken, copies, impossible
from dicoflex.metrics.diversity import hypervolume, mean_pairwise_gower, pairwise_extremes
from dicoflex.metrics.frames import Flags, Reals, as_labels, mean_or_nan, query_positions, row_labels, width
from dicoflex.metrics.plausibility import LogLof
from dicoflex.table.schema import Schema


class Reference:
    """What answers are held against: training rows, their scale and their local densities. Made once per table.

    train: the rows that methods learned from. k: neighbours of the local outlier factor.
    """

    def __init__(self, train: pd.DataFrame, schema: Schema, *, k: int = 20) -> None:
        self.train = train[schema.names]
        self.schema = schema
        self.scale = number_scale(train, schema)
        self.lof = LogLof(train, schema, k=k)


def row_measures(queries: pd.DataFrame, counterfactuals: pd.DataFrame, reference: Reference) -> pd.DataFrame:
    """The measures that each counterfactual has on its own, a column each, indexed as the counterfactuals.

    `proximity` (Euclidean) and `proximity_l1` as in `proximity`; `sparsity_categories`, `sparsity_numbers` and
    `epsilon_sparsity` as shares of the features of that kind; `log_lof`; `training_distance` and `copies`; `impossible`
    (1 if any value can't occur).
    """
    schema = reference.schema
    flags = changed(queries, counterfactuals, schema)
    distance = proximity(queries, counterfactuals, schema, reference.scale)
    columns = {
        "proximity": distance["euclidean"],
        "proximity_l1": distance["l1"],
        "sparsity_categories": _row_mean(flags[[f.name for f in schema.features if not f.is_number]]),
        "sparsity_numbers": _row_mean(flags[[f.name for f in number_features(schema)]]),
        "epsilon_sparsity": _row_mean(moved(queries, counterfactuals, schema, EPSILON)),
        "log_lof": reference.lof.score(counterfactuals),
        "training_distance": reference.lof.nearest(counterfactuals),
        "copies": copies(counterfactuals, reference.train, schema),
        "impossible": impossible(counterfactuals, schema).any(axis=1),
    }
    return pd.DataFrame(columns, index=counterfactuals.index).astype(float)


def by_query(values: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of each column of row measures: columns `mean` and `std`, a row per measure.

    mean: the mean over queries of the mean over the query's counterfactuals, so that each query counts the same. std,
    as in the paper's table of deviations: the mean over queries of the standard deviation (with divisor n) inside the
    query's set. Queries with one counterfactual have no spread and are left out of it.

    >>> index = pd.MultiIndex.from_tuples([("ann", 0), ("ann", 1), ("bob", 0)], names=["row", "cf"])
    >>> by_query(pd.DataFrame({"proximity": [1.0, 3.0, 6.0]}, index=index)).loc["proximity"].to_dict()
    {'mean': 4.0, 'std': 1.0}
    """
    groups = values.astype(float).groupby(np.asarray(pd.factorize(row_labels(values))[0]))
    several = (groups.size() > 1).to_numpy()
    return pd.DataFrame({"mean": groups.mean().mean(), "std": groups.std(ddof=0)[several].mean()})


def score(
    queries: pd.DataFrame,
    counterfactuals: pd.DataFrame,
    reference: Reference,
    *,
    targets: Any,
    predicted: ArrayLike | pd.Series,
    probability: ArrayLike | None = None,
    log_density: ArrayLike | None = None,
    raw_valid: ArrayLike | None = None,
    frozen: Sequence[Any] = (),
    increase: Sequence[Any] = (),
    decrease: Sequence[Any] = (),
    seconds: float | None = None,
) -> dict[str, float]:
    """All measures of one method's answers to `queries`, by name; what was not given, or can't be computed, is NaN.

    targets: one label per query, or one for all. predicted, probability, log_density: for each counterfactual, the
    black box's label, its probability of the target (see `target_probability`) and the method's log density.
    raw_valid: for each candidate before selection, whether it got its target. frozen, increase, decrease: the
    conditions that were asked for. seconds: what all answers took together.

    As in the paper, everything but validity is measured on the valid counterfactuals alone, and means and deviations
    (`…_std`) are those of `by_query`. Keys, beside those of `row_measures`:

    - queries, answers: how many; answered: the share of queries with a valid answer
    - validity: the mean over queries of the share of valid answers, where a query without answers has 0;
      validity_raw: the share of valid candidates
    - probability, log_density: means; violations: the share of answers that break a condition (see `broken`)
    - gower, minimum_distance: means over queries of `mean_pairwise_gower` and of the minimum of `pairwise_extremes`
    - hypervolume_log10: the mean over queries of log10(1 + V) in the features' own units. The paper doesn't say how it
      takes the logarithm of V = 0; with the 1, sets that span no volume count as 0
    - hypervolume_unit_free_log10: log10 of the mean over queries of the unit-free V, -inf if no set spans a volume;
      hypervolume_side: the mean of V^(1/d) for d number features, the side of a cube of that volume, in ranges
    - seconds, seconds_per_query
    """
    positions = query_positions(queries, counterfactuals)
    valid = agreement(predicted, as_labels(targets, len(queries)).to_numpy()[positions])
    given = _given(counterfactuals, probability=probability, log_density=log_density)
    kept = counterfactuals[valid]
    rows = row_measures(queries, kept, reference)
    rows[given.columns] = given[valid].to_numpy()
    conditions = broken(queries, kept, reference.schema, frozen=frozen, increase=increase, decrease=decrease)
    rows["violations"] = conditions.any(axis=1).astype(float)
    took = np.nan if seconds is None else float(seconds)
    return {
        "queries": float(len(queries)),
        "answers": float(len(counterfactuals)),
        **_validity_measures(valid, positions, len(queries)),
        "validity_raw": np.nan if raw_valid is None else mean_or_nan(np.asarray(raw_valid, dtype=bool)),
        **_flat(by_query(rows)),
        **_set_measures(queries, kept, reference.schema),
        "seconds": took,
        "seconds_per_query": took / len(queries) if len(queries) else np.nan,
    }


def _validity_measures(valid: Flags, positions: NDArray[np.intp], n: int) -> dict[str, float]:
    """Validity with its deviation, and the share of answered queries, for answers to the queries at `positions`."""
    sizes, good = np.bincount(positions, minlength=n), np.bincount(positions, weights=valid, minlength=n)
    shares = good / np.maximum(sizes, 1)
    spread = np.sqrt(shares * (1.0 - shares))
    return {
        "answered": mean_or_nan(good > 0),
        "validity": mean_or_nan(shares),
        "validity_std": mean_or_nan(spread[sizes > 1]),
    }


def _flat(table: pd.DataFrame) -> dict[str, float]:
    means = {str(name): float(value) for name, value in table["mean"].items()}
    return means | {f"{name}_std": float(value) for name, value in table["std"].items()}


def _given(counterfactuals: pd.DataFrame, **columns: ArrayLike | None) -> pd.DataFrame:
    """What the caller measured per counterfactual, as columns; NaN for what was not."""
    table = pd.DataFrame(index=counterfactuals.index)
    for name, values in columns.items():
        column = np.full(len(table), np.nan) if values is None else np.asarray(values, dtype=float)
        if column.shape != (len(table),):
            raise DataError(
                f"{name} has shape {column.shape}; give one number for each of {len(table)} counterfactuals"
            )
        table[name] = column
    return table


def _set_measures(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> dict[str, float]:
    """The measures that only a query's whole set has."""
    own = hypervolume(queries, counterfactuals, schema).to_numpy()
    free = hypervolume(queries, counterfactuals, schema, unit_free=True).to_numpy()
    dimensions = sum(width(f) > 0 for f in number_features(schema))
    with np.errstate(divide="ignore"):
        return {
            "gower": mean_pairwise_gower(counterfactuals, schema),
            "minimum_distance": float(pairwise_extremes(counterfactuals, schema)["minimum"].mean()),
            "hypervolume_log10": mean_or_nan(np.log10(1.0 + own)),
            "hypervolume_unit_free_log10": float(np.log10(mean_or_nan(free))),
            "hypervolume_side": mean_or_nan(free ** (1.0 / max(dimensions, 1))),
        }


def _row_mean(flags: pd.DataFrame | Flags) -> Reals:
    """The share of True in each row; NaN where there are no columns."""
    table = np.asarray(flags, dtype=float)
    return table.mean(axis=1) if table.shape[1] else np.full(len(table), np.nan)
