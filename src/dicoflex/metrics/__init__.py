"""Measures of counterfactuals, on frames: usable on any method's output.

Queries are a frame with one row each and a unique index. Counterfactuals are a frame with the same columns and a
MultiIndex (row, cf), whose first level holds labels of the queries' index. A value that is missing in both places
is unchanged, a value that is missing in one is changed. Numbers and levels are compared by value, not by dtype: 36 and
36.0 are the same. Means over nothing (no counterfactuals, no feature of the kind) are NaN.

`score` puts all measures of one method on one table into a flat dict. Definitions follow appendix C of the DiCoFlex
paper where it gives them; a departure is marked where it stands.
"""

from __future__ import annotations

__all__ = [
    "LogLof",
    "Reference",
    "broken",
    "by_query",
    "changed",
    "copies",
    "epsilon_sparsity",
    "gower",
    "hypervolume",
    "impossible",
    "mean_pairwise_gower",
    "number_scale",
    "pairwise_extremes",
    "proximity",
    "row_measures",
    "score",
    "share_categories_changed",
    "share_numbers_changed",
    "share_of_copies",
    "target_probability",
    "validity",
    "violations",
]

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist
from sklearn.neighbors import LocalOutlierFactor

from dicoflex.errors import DataError, UserError, named
from dicoflex.table.schema import Feature, Kind, Schema, typed

Codes = NDArray[np.int64]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

MISSING = -1
EPSILON = 0.05  # the paper's share of the range below which a number has not moved

# Up to these sizes the exact volume takes at most a few milliseconds; beyond, it grows as n^(d-2).
EXACT_POINTS, EXACT_DIMENSIONS = 12, 4
RECURSIVE_POINTS, RECURSIVE_DIMENSIONS = 64, 7
VOLUME_SAMPLES = 5000


# -- does the black box agree -----------------------------------------------------------------------------------


def validity(predicted: ArrayLike | pd.Series, targets: Any) -> float:
    """The share of counterfactuals that got the label asked for: mean of [predicted_i = target_i].

    targets: one label per counterfactual, or one label for all. Both are matched by position, not by index.

    >>> validity(["yes", "no", "yes", "yes"], "yes")
    0.75
    """
    return _mean(_agreement(predicted, targets))


def target_probability(probabilities: ArrayLike, classes: Sequence[Any], targets: Any) -> Reals:
    """The classification probability of each counterfactual: the black box's probability of the label asked for.

    probabilities: what `predict_proba` gave, a column per class. targets: one label per row, or one label for all.

    >>> target_probability([[0.2, 0.8], [0.9, 0.1]], ["no", "yes"], "yes").tolist()
    [0.8, 0.1]
    """
    table = np.asarray(probabilities, dtype=float).reshape(-1, len(classes))
    known, wanted = _joint_codes([pd.Series(list(classes), dtype=object), _labels(targets, len(table))])
    absent = np.flatnonzero(~np.isin(wanted, known))
    if len(absent):
        raise DataError(named("target", _labels(targets, len(table))[absent[0]], classes))
    place = np.argsort(known)[np.searchsorted(np.sort(known), wanted)]
    chosen: Reals = table[np.arange(len(table)), place]
    return chosen


# -- how much changed -------------------------------------------------------------------------------------------


def changed(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """A frame of booleans, like the counterfactuals: True where a value differs exactly from its query's.

    >>> queries = pd.DataFrame({"age": [30], "job": ["cook"]}, index=["ann"])
    >>> index = pd.MultiIndex.from_tuples([("ann", 0), ("ann", 1)], names=["row", "cf"])
    >>> cfs = pd.DataFrame({"age": [30, 35], "job": ["nurse", "cook"]}, index=index)
    >>> changed(queries, cfs, Schema.infer(queries))
              age    job
    row cf
    ann 0   False   True
        1    True  False
    """
    _check_columns(schema.names, queries, counterfactuals)
    positions = _positions(queries, counterfactuals)
    flags = {f.name: _differs(queries, counterfactuals, positions, f) for f in schema.features}
    return pd.DataFrame(flags, index=counterfactuals.index)


def share_categories_changed(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """The sparsity of categories: the share of cells of levels (not numbers) that differ from the query.

    For N counterfactuals and C such features: sum over i, j of [x'_ij ≠ x_ij], divided by N·C.
    """
    flags = changed(queries, counterfactuals, schema)
    return _mean(flags[[f.name for f in schema.features if not f.is_number]].to_numpy(dtype=bool))


def share_numbers_changed(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """The exact sparsity of numbers: the share of number cells that differ from the query, however little.

    For N counterfactuals and M number features: sum over i, j of [x'_ij ≠ x_ij], divided by N·M.
    """
    flags = changed(queries, counterfactuals, schema)
    return _mean(flags[[f.name for f in _numbers(schema)]].to_numpy(dtype=bool))


def epsilon_sparsity(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, *, epsilon: float = EPSILON
) -> float:
    """The share of number cells that moved by more than `epsilon` of the feature's range.

    For N counterfactuals and M number features: sum over i, j of [|x'_ij - x_ij| > epsilon · (max_j - min_j)], divided
    by N·M, with the limits of the schema. A number that became missing, or was, counts as moved.
    """
    return _mean(_moved(queries, counterfactuals, schema, epsilon))


def number_scale(train: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Mean and standard deviation of each number feature, for `proximity`; a constant feature gets deviation 1.

    >>> frame = pd.DataFrame({"age": [20.0, 40.0], "rooms": [3, 3]})
    >>> number_scale(frame, Schema.infer(frame))
           mean   std
    age    30.0  10.0
    rooms   3.0   1.0
    """
    numbers = _numbers(schema)
    _check_columns([f.name for f in numbers], train)
    columns = [_reals(train[f.name]) for f in numbers]
    means = [float(np.nanmean(c)) for c in columns]
    deviations = [float(np.nanstd(c)) or 1.0 for c in columns]
    return pd.DataFrame({"mean": means, "std": deviations}, index=[f.name for f in numbers], dtype=float)


def proximity(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, scale: pd.DataFrame
) -> pd.DataFrame:
    """How far each counterfactual is from its query: columns `euclidean` and `l1`, indexed as the counterfactuals.

    With z = (x - mean) / std over the number features: euclidean = sqrt(sum_j (z'_j - z_j)²), l1 = sum_j |z'_j - z_j|.
    A missing number stands at the mean (z = 0).

    scale: mean and std per number feature, as `number_scale` takes them from the training rows.
    """
    numbers = _numbers(schema)
    absent = [f.name for f in numbers if f.name not in scale.index]
    if absent:
        raise DataError(f"scale lacks the number feature {absent[0]!r}; make it with number_scale(train, schema)")
    known = scale.loc[[f.name for f in numbers]]
    mean, std = known["mean"].to_numpy(dtype=float), known["std"].to_numpy(dtype=float)
    before, after = _number_pairs(queries, counterfactuals, numbers)
    moves = np.nan_to_num((after - mean) / std) - np.nan_to_num((before - mean) / std)
    distances = {"euclidean": np.sqrt((moves**2).sum(axis=1)), "l1": np.abs(moves).sum(axis=1)}
    return pd.DataFrame(distances, index=counterfactuals.index)


# -- what was not allowed ---------------------------------------------------------------------------------------


def violations(queries: pd.DataFrame, counterfactuals: pd.DataFrame, frozen: Sequence[Any]) -> int:
    """How many cells of the frozen features differ from the query: sum over i and frozen j of [x'_ij ≠ x_ij]."""
    _check_columns(frozen, queries, counterfactuals)
    positions = _positions(queries, counterfactuals)
    return sum(int(_differs(queries, counterfactuals, positions, name).sum()) for name in frozen)


def broken(
    queries: pd.DataFrame,
    counterfactuals: pd.DataFrame,
    schema: Schema,
    *,
    frozen: Sequence[Any] = (),
    increase: Sequence[Any] = (),
    decrease: Sequence[Any] = (),
) -> pd.DataFrame:
    """A frame of booleans, indexed as the counterfactuals: True where a condition on that feature is broken.

    A column per feature that has a condition: x' ≠ x where it is frozen, x' < x where it may only increase, x' > x
    where it may only decrease. Ordered levels compare by their order. Becoming missing, or known, breaks a direction
    too.

    >>> queries = pd.DataFrame({"age": [30], "sex": ["f"]})
    >>> cfs = pd.DataFrame({"age": [25], "sex": ["f"]}, index=pd.MultiIndex.from_tuples([(0, 0)], names=["row", "cf"]))
    >>> broken(queries, cfs, Schema.infer(queries), frozen=["sex"], increase=["age"]).iloc[0].to_dict()
    {'sex': False, 'age': True}
    """
    _check_columns([*frozen, *increase, *decrease], queries, counterfactuals)
    positions = _positions(queries, counterfactuals)
    flags = {name: _differs(queries, counterfactuals, positions, schema[name]) for name in frozen}
    for names, sign in ((increase, 1.0), (decrease, -1.0)):
        for name in names:
            before, after = (sign * _ranks(frame[name], schema[name]) for frame in (queries, counterfactuals))
            wrong = ~(after >= before[positions]) & ~(np.isnan(after) & np.isnan(before[positions]))
            flags[name] = flags.get(name, False) | wrong
    return pd.DataFrame(flags, index=counterfactuals.index, dtype=bool)


def impossible(counterfactuals: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """A frame of booleans, like the counterfactuals: True where a value can't occur in the table.

    Such are numbers outside the limits of the schema, fractions of a whole number, levels that are unknown, and
    missing values of a feature that has none.
    """
    _check_columns(schema.names, counterfactuals)
    flags = {f.name: _cannot_be(counterfactuals[f.name], f) for f in schema.features}
    return pd.DataFrame(flags, index=counterfactuals.index)


# -- how plausible ----------------------------------------------------------------------------------------------


def share_of_copies(frame: pd.DataFrame, train: pd.DataFrame, schema: Schema) -> float:
    """The share of rows that equal some training row in every feature.

    >>> train = pd.DataFrame({"age": [30, 40], "job": ["cook", "nurse"]})
    >>> share_of_copies(pd.DataFrame({"age": [30, 40], "job": ["cook", "cook"]}), train, Schema.infer(train))
    0.5
    """
    return _mean(copies(frame, train, schema))


def copies(frame: pd.DataFrame, train: pd.DataFrame, schema: Schema) -> Flags:
    """For each row of `frame`, whether it equals some training row in every feature."""
    _check_columns(schema.names, frame, train)
    ids = np.zeros(len(frame) + len(train), dtype=np.int64)
    for feature in schema.features:
        codes = np.concatenate(_joint_codes([frame[feature.name], train[feature.name]], feature)) - MISSING
        # Numbering the pairs anew after each feature keeps the products small enough to be exact.
        ids = pd.factorize(ids * (int(codes.max(initial=0)) + 1) + codes)[0].astype(np.int64)
    return np.isin(ids[: len(frame)], ids[len(frame) :])


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
        self._points = _points(train, schema)
        self._lof = LocalOutlierFactor(n_neighbors=k, novelty=True).fit(self._points)

    def score(self, frame: pd.DataFrame) -> Reals:
        """One log LOF per row of `frame`."""
        if len(frame) == 0:
            return np.empty(0)
        scores: Reals = np.log(-self._lof.score_samples(_points(frame, self.schema)))
        return scores

    def nearest(self, frame: pd.DataFrame) -> Reals:
        """One distance per row of `frame`: min over training rows b of ‖a - b‖; a copy is at exactly 0."""
        if len(frame) == 0:
            return np.empty(0)
        points = _points(frame, self.schema)
        closest = self._lof.kneighbors(points, n_neighbors=1, return_distance=False)[:, 0]
        # The search takes |a|² - 2ab + |b|², which leaves rounding errors where a = b.
        distances: Reals = np.linalg.norm(points - self._points[closest], axis=1)
        return distances


# -- how different from one another -----------------------------------------------------------------------------


def gower(frame: pd.DataFrame, schema: Schema) -> float:
    """The mean Gower distance over all pairs of rows in one set; NaN for fewer than two rows.

    d(a, b) = (1/D) · sum_j d_j over all D features: |a_j - b_j| / (max_j - min_j) for numbers, with the limits of the
    schema; [a_j ≠ b_j] for levels, and for numbers whose limits coincide. Missing is a state of its own: at
    distance 0 from itself and 1 from any value.

    >>> frame = pd.DataFrame({"age": [20, 30, 40], "job": ["cook", "nurse", "nurse"]})
    >>> round(gower(frame, Schema.infer(frame)), 4)  # pairs: 1.5/2, 2/2, 0.5/2
    0.6667
    """
    return _mean(_gower_by_set(frame, np.zeros(len(frame), dtype=np.int64), schema))


def mean_pairwise_gower(counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """How different the answers to one query are: `gower` of each query's counterfactuals, averaged over the queries.

    Queries with fewer than two counterfactuals have no pairs and are left out.
    """
    sets, _ = pd.factorize(_row_labels(counterfactuals))
    return _mean(_gower_by_set(counterfactuals, sets.astype(np.int64), schema))


def pairwise_extremes(counterfactuals: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The smallest and the largest distance inside each query's set: columns `minimum` and `maximum`, a row per query.

    `minimum` is the diversity D = min over i ≠ j of ‖x'_i - x'_j‖ of the paper's theorem, and the separation sigma_min
    when the set is a neighbourhood; `maximum` is the diameter Delta. Distances are Euclidean in the space of `LogLof`.
    Queries with fewer than two counterfactuals have no pairs and get NaN.

    >>> index = pd.MultiIndex.from_product([["ann"], range(3)], names=["row", "cf"])
    >>> cfs = pd.DataFrame({"age": [20, 30, 70]}, index=index)
    >>> pairwise_extremes(cfs, Schema.infer(cfs)).loc["ann"].to_dict()
    {'minimum': 0.2, 'maximum': 1.0}
    """
    points = _points(counterfactuals, schema)
    found = {}
    for label, members in _sets(counterfactuals):
        gaps = pdist(points[members]) if len(members) > 1 else np.array([np.nan])
        found[label] = (gaps.min(), gaps.max())
    index = pd.Index(list(found), name="row", tupleize_cols=False)
    return pd.DataFrame(list(found.values()), index=index, columns=["minimum", "maximum"], dtype=float)


def hypervolume(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, *, unit_free: bool = False
) -> pd.Series:
    """The volume that each query's set spans: a row per query that has counterfactuals.

    With a_i = |x'_i - x| over the number features, it is the volume of the union of the boxes [0, a_i]: the hypervolume
    indicator with reference 0, as `moocore` computes it. It is 0 if no single counterfactual changes every number. With
    `unit_free`, changes are divided by the feature's range. A number that becomes missing, or was, counts as
    moved by its range; numbers whose limits coincide are left out; without numbers the volume is NaN.

    The volume is exact for up to 12 counterfactuals of a query, for up to 4 number features, and for up to 64 and 7;
    larger ones are estimated by sampling (see `_estimated_volume`), with a fixed seed. In 14 dimensions a query with 10
    counterfactuals takes about 1 ms, one with 100 about 30 ms.

    Needs the extra `bench`.
    """
    numbers = [f for f in _numbers(schema) if _width(f) > 0]
    widths = np.array([_width(f) for f in numbers])
    before, after = _number_pairs(queries, counterfactuals, numbers)
    moves = np.where(np.isnan(before) != np.isnan(after), widths, np.nan_to_num(np.abs(after - before)))
    if unit_free:
        moves = moves / widths
    volumes = {label: _volume(moves[members]) for label, members in _sets(counterfactuals)}
    index = pd.Index(list(volumes), name="row", tupleize_cols=False)
    return pd.Series(list(volumes.values()), index=index, dtype=float, name="hypervolume")


# -- all of it --------------------------------------------------------------------------------------------------


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
        "sparsity_numbers": _row_mean(flags[[f.name for f in _numbers(schema)]]),
        "epsilon_sparsity": _row_mean(_moved(queries, counterfactuals, schema, EPSILON)),
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
    groups = values.astype(float).groupby(np.asarray(pd.factorize(_row_labels(values))[0]))
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
    positions = _positions(queries, counterfactuals)
    valid = _agreement(predicted, _labels(targets, len(queries)).to_numpy()[positions])
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
        "validity_raw": np.nan if raw_valid is None else _mean(np.asarray(raw_valid, dtype=bool)),
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
    return {"answered": _mean(good > 0), "validity": _mean(shares), "validity_std": _mean(spread[sizes > 1])}


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
    dimensions = sum(_width(f) > 0 for f in _numbers(schema))
    with np.errstate(divide="ignore"):
        return {
            "gower": mean_pairwise_gower(counterfactuals, schema),
            "minimum_distance": float(pairwise_extremes(counterfactuals, schema)["minimum"].mean()),
            "hypervolume_log10": _mean(np.log10(1.0 + own)),
            "hypervolume_unit_free_log10": float(np.log10(_mean(free))),
            "hypervolume_side": _mean(free ** (1.0 / max(dimensions, 1))),
        }


# -- volumes ----------------------------------------------------------------------------------------------------


def _volume(moves: Reals) -> float:
    """The volume of the union of the boxes from 0 to each row of `moves`."""
    if moves.shape[1] == 0:
        return float("nan")
    moves = moves[(moves > 0).all(axis=1)]  # a box without extent in some direction has no volume
    if len(moves) == 0:
        return 0.0
    # Sides of 1 keep the volumes of far-apart units within what floating point can add.
    sides = moves.max(axis=0)
    moocore = _import_moocore()
    boxes = moocore.filter_dominated(moves / sides, maximise=True)
    exact = _is_quick(*boxes.shape)
    volume = moocore.hypervolume(boxes, ref=0, maximise=True) if exact else _estimated_volume(boxes)
    return float(volume * np.prod(sides))


def _is_quick(n: int, dimensions: int) -> bool:
    """Whether the exact volume of `n` boxes takes a few milliseconds at most."""
    few = n <= RECURSIVE_POINTS and dimensions <= RECURSIVE_DIMENSIONS
    return n <= EXACT_POINTS or dimensions <= EXACT_DIMENSIONS or few


def _estimated_volume(boxes: Reals) -> float:
    """The volume of a union of boxes by the sampling of Karp, Luby and Madras (1989), with a fixed seed.

    A box is drawn by its volume and a point inside it; the mean of 1 / (boxes that hold the point), times the sum of
    all volumes, has the union's volume as its expectation, and a relative error of at most sqrt(n / samples) in any
    dimension. moocore's `hv_approx` was off by more than half on 10 boxes in 14 dimensions.
    """
    rng = np.random.default_rng(0)
    volumes = boxes.prod(axis=1)
    drawn = rng.choice(len(boxes), size=VOLUME_SAMPLES, p=volumes / volumes.sum())
    points = rng.random((VOLUME_SAMPLES, boxes.shape[1])) * boxes[drawn]
    holders = np.zeros(VOLUME_SAMPLES)
    for box in boxes:
        holders += (points <= box).all(axis=1)
    return float(volumes.sum() * np.mean(1.0 / holders))


def _import_moocore() -> Any:
    try:
        import moocore
    except ImportError:
        raise UserError(
            'hypervolume needs the package moocore, which is not installed; pip install "dicoflex[bench]"'
        ) from None
    return moocore


# -- columns as arrays ------------------------------------------------------------------------------------------


def _numbers(schema: Schema) -> list[Feature]:
    return [f for f in schema.features if f.is_number]


def _width(feature: Feature) -> float:
    return (feature.maximum or 0.0) - (feature.minimum or 0.0)


def _reals(column: pd.Series) -> Reals:
    return column.astype(object).to_numpy(dtype=np.float64, na_value=np.nan)


def _joint_codes(columns: Sequence[pd.Series], feature: Feature | None = None) -> list[Codes]:
    """Codes of several columns over their joint values: equal values have equal codes, missing ones have `MISSING`."""
    if feature is not None and feature.is_number:
        values: Any = np.concatenate([_reals(c) for c in columns])
    else:
        values = np.concatenate([c.astype(object).to_numpy() for c in columns])
        if feature is not None and len(set(feature.levels)) < len(feature.levels):
            values = _typed_values(values)
    codes = pd.factorize(values)[0].astype(np.int64)
    return np.split(codes, np.cumsum([len(c) for c in columns])[:-1])


def _typed_values(values: NDArray[np.object_]) -> NDArray[np.object_]:
    """The values as keys under which 1, 1.0 and True differ, for features that have such levels side by side."""
    keys = np.empty(len(values), dtype=object)
    for i, (value, is_missing) in enumerate(zip(values, pd.isna(values), strict=True)):
        keys[i] = None if is_missing else typed(value.item() if isinstance(value, np.generic) else value)
    return keys


def _points(frame: pd.DataFrame, schema: Schema) -> Reals:
    """Rows as points: scaled numbers with a mark for missing, and one-hot levels."""
    _check_columns(schema.names, frame)
    blocks = [_number_block(frame[f.name], f) if f.is_number else _one_hot(frame[f.name], f) for f in schema.features]
    return np.hstack(blocks)


def _number_block(column: pd.Series, feature: Feature) -> Reals:
    values = _reals(column)
    is_missing = np.isnan(values)
    scaled = (values - (feature.minimum or 0.0)) / (_width(feature) or 1.0)
    # The middle of the range keeps missing equally far from both ends; the mark sets it apart from the middle itself.
    return np.column_stack([np.where(is_missing, 0.5, scaled), is_missing])


def _one_hot(column: pd.Series, feature: Feature) -> Reals:
    """One column per level, one for values that are no level, one for missing ones."""
    n = len(feature.levels)
    codes = _level_codes(column, feature)
    return np.eye(n + 2)[np.where(codes == MISSING, n + 1, np.minimum(codes, n))]


def _ranks(column: pd.Series, feature: Feature) -> Reals:
    """Numbers as they are, and ordered levels as their places; NaN where missing or unknown."""
    if feature.is_number:
        return _reals(column)
    if feature.kind is Kind.CATEGORICAL:
        raise DataError(f"feature {feature.name!r} has levels without order: it has no direction; freeze it instead")
    places = _level_codes(column, feature)
    return np.where((places < 0) | (places >= len(feature.levels)), np.nan, places)


def _cannot_be(column: pd.Series, feature: Feature) -> Flags:
    if not feature.is_number:
        codes = _level_codes(column, feature)
        return np.where(codes == MISSING, not feature.missing, codes >= len(feature.levels))
    values = _reals(column)
    low, high = feature.minimum or 0.0, feature.maximum or 0.0
    outside: Flags = ~((values >= low) & (values <= high))
    if feature.is_whole:
        outside |= values % 1 != 0
    return np.where(np.isnan(values), not feature.missing, outside)


def _level_codes(column: pd.Series, feature: Feature) -> Codes:
    """The places of the values among the feature's levels; their number or more for unknown values."""
    return _joint_codes([pd.Series(feature.levels, dtype=object), column], feature)[1]


def _labels(labels: Any, n: int) -> pd.Series:
    """`n` labels as objects, from an array or from one label for all."""
    if pd.api.types.is_scalar(labels):
        return pd.Series([labels] * n, dtype=object)
    series = pd.Series(np.asarray(labels, dtype=object))
    if len(series) != n:
        raise DataError(f"{len(series)} targets for {n} rows; give one target each, or one for all")
    return series


def _agreement(predicted: ArrayLike | pd.Series, targets: Any) -> Flags:
    """Where the predicted label is the target; never where it is missing."""
    labels = pd.Series(np.asarray(predicted, dtype=object))
    if not pd.api.types.is_scalar(targets) and len(targets) != len(labels):
        raise DataError(
            f"{len(labels)} predicted labels but {len(targets)} targets; give one target each, or one for all"
        )
    got, asked = _joint_codes([labels, _labels(targets, len(labels))])
    agrees: Flags = (got == asked) & (got != MISSING)
    return agrees


# -- counterfactuals and their queries --------------------------------------------------------------------------


def _check_columns(names: Sequence[Any], *frames: pd.DataFrame) -> None:
    for frame in frames:
        for name in names:
            if name not in frame.columns:
                raise DataError(named("feature", name, frame.columns))


def _row_labels(counterfactuals: pd.DataFrame) -> pd.Index:
    index = counterfactuals.index
    if index.nlevels < 2:
        raise DataError(
            "counterfactuals need an index of two levels (row, cf), got one level; use pd.MultiIndex.from_arrays"
        )
    return index.get_level_values("row" if "row" in index.names else 0)


def _sets(counterfactuals: pd.DataFrame) -> Iterator[tuple[Any, NDArray[np.intp]]]:
    """Each query's label and the positions of its counterfactuals, in the order of their first appearance."""
    codes, labels = pd.factorize(_row_labels(counterfactuals))
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(codes, minlength=len(labels)))[:-1])
    yield from zip(labels, members, strict=False)


def _positions(queries: pd.DataFrame, counterfactuals: pd.DataFrame) -> NDArray[np.intp]:
    """For each counterfactual, the position of its query."""
    if not queries.index.is_unique:
        raise DataError("the queries' index repeats; make it unique with queries.reset_index(drop=True)")
    labels = _row_labels(counterfactuals)
    positions = queries.index.get_indexer(labels)
    if (positions < 0).any():
        stray = labels[positions < 0][0]
        raise DataError(
            f"a counterfactual is for row {stray!r}, which the queries' index lacks; give its query as well"
        )
    return positions


def _differs(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, positions: NDArray[np.intp], feature: Feature | Any
) -> Flags:
    """Where a column of the counterfactuals differs from its queries; `feature` is a feature or just its name."""
    known = feature if isinstance(feature, Feature) else None
    name = known.name if known else feature
    before, after = _joint_codes([queries[name], counterfactuals[name]], known)
    flags: Flags = before[positions] != after
    return flags


def _number_pairs(
    queries: pd.DataFrame, counterfactuals: pd.DataFrame, numbers: Sequence[Feature]
) -> tuple[Reals, Reals]:
    """The numbers of each counterfactual's query and of the counterfactual, a column per feature."""
    _check_columns([f.name for f in numbers], queries, counterfactuals)
    positions = _positions(queries, counterfactuals)
    shape = (len(positions), len(numbers))
    before, after = np.empty(shape), np.empty(shape)
    for j, feature in enumerate(numbers):
        before[:, j] = _reals(queries[feature.name])[positions]
        after[:, j] = _reals(counterfactuals[feature.name])
    return before, after


def _moved(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema, epsilon: float) -> Flags:
    """Number cells that moved by more than `epsilon` of the range, or became missing or known."""
    numbers = _numbers(schema)
    before, after = _number_pairs(queries, counterfactuals, numbers)
    widths = np.array([_width(f) for f in numbers])
    with np.errstate(invalid="ignore"):
        far: Flags = np.abs(after - before) > epsilon * widths
    far |= np.isnan(before) != np.isnan(after)
    return far


# -- sums over pairs without the pairs --------------------------------------------------------------------------


def _gower_by_set(frame: pd.DataFrame, sets: Codes, schema: Schema) -> Reals:
    """The mean Gower distance inside each set of rows that has at least two; `sets` numbers the sets from 0."""
    _check_columns(schema.names, frame)
    sizes = np.bincount(sets)
    total = np.zeros(len(sizes))
    for feature in schema.features:
        column = frame[feature.name]
        if feature.is_number and _width(feature) > 0:
            scaled = (_reals(column) - (feature.minimum or 0.0)) / _width(feature)
            total += _sum_of_gaps(scaled, sets, sizes)
        else:
            total += _unequal_pairs(_joint_codes([column], feature)[0], sets, sizes)
    enough = sizes > 1
    mean: Reals = total[enough] / (_pairs(sizes[enough]) * len(schema))
    return mean


def _pairs(sizes: NDArray[Any]) -> Reals:
    pairs: Reals = sizes * (sizes - 1) / 2.0
    return pairs


def _unequal_pairs(codes: Codes, sets: Codes, sizes: Codes) -> Reals:
    """Per set, how many pairs have different codes: all pairs less those inside one code."""
    groups, counts = np.unique(np.column_stack([sets, codes]), axis=0, return_counts=True)
    return _pairs(sizes) - np.bincount(groups[:, 0], weights=_pairs(counts), minlength=len(sizes))


def _sum_of_gaps(values: Reals, sets: Codes, sizes: Codes) -> Reals:
    """Per set, the sum of |a - b| over its pairs, where a missing value is 1 from every other.

    Sorted, the value at place i of n is added i times and taken away n - 1 - i times.
    """
    present = ~np.isnan(values)
    known_values, known_sets = values[present], sets[present]
    known = np.bincount(known_sets, minlength=len(sizes))
    order = np.lexsort((known_values, known_sets))
    ordered_sets = known_sets[order]
    place = np.arange(len(order)) - (np.cumsum(known) - known)[ordered_sets]
    weights = known_values[order] * (2 * place - known[ordered_sets] + 1)
    gaps = np.bincount(ordered_sets, weights=weights, minlength=len(sizes)).astype(float)
    return gaps + known * (sizes - known)


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _row_mean(flags: pd.DataFrame | Flags) -> Reals:
    """The share of True in each row; NaN where there are no columns."""
    table = np.asarray(flags, dtype=float)
    return table.mean(axis=1) if table.shape[1] else np.full(len(table), np.nan)
