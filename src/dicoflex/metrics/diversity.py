"""How different the answers of one query are."""

from __future__ import annotations

__all__ = ["additions", "gower", "hypervolume", "mean_pairwise_gower", "pairwise_extremes", "routes"]

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from dicoflex.errors import UserError
from dicoflex.metrics.changes import changed, number_features
from dicoflex.metrics.frames import (
    Codes,
    Reals,
    answer_sets,
    as_points,
    check_columns,
    joint_codes,
    mean_or_nan,
    number_pairs,
    reals,
    row_labels,
    width,
)
from dicoflex.table.schema import Schema

# Up to these sizes the exact volume takes at most a few milliseconds; beyond, it grows as n^(d-2).
EXACT_POINTS, EXACT_DIMENSIONS = 12, 4
RECURSIVE_POINTS, RECURSIVE_DIMENSIONS = 64, 7
VOLUME_SAMPLES = 5000


def gower(frame: pd.DataFrame, schema: Schema) -> float:
    """The mean Gower distance over all pairs of rows in one set; NaN for fewer than two rows.

    d(a, b) = (1/D) · sum_j d_j over all D features: |a_j - b_j| / (max_j - min_j) for numbers, with the limits of the
    schema; [a_j ≠ b_j] for levels, and for numbers whose limits coincide. Missing is a state of its own: at
    distance 0 from itself and 1 from any value.

    >>> frame = pd.DataFrame({"age": [20, 30, 40], "job": ["cook", "nurse", "nurse"]})
    >>> round(gower(frame, Schema.infer(frame)), 4)  # pairs: 1.5/2, 2/2, 0.5/2
    0.6667
    """
    return mean_or_nan(_gower_by_set(frame, np.zeros(len(frame), dtype=np.int64), schema))


def mean_pairwise_gower(counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """How different the answers to one query are: `gower` of each query's counterfactuals, averaged over the queries.

    Queries with fewer than two counterfactuals have no pairs and are left out.
    """
    sets, _ = pd.factorize(row_labels(counterfactuals))
    return mean_or_nan(_gower_by_set(counterfactuals, sets.astype(np.int64), schema))


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
    points = as_points(counterfactuals, schema)
    found = {}
    for label, members in answer_sets(counterfactuals):
        gaps = pdist(points[members]) if len(members) > 1 else np.array([np.nan])
        found[label] = (gaps.min(), gaps.max())
    index = pd.Index(list(found), name="row", tupleize_cols=False)
    return pd.DataFrame(list(found.values()), index=index, columns=["minimum", "maximum"], dtype=float)


def routes(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """How many different ways the answers to one query go: different sets of changed features per answer.

    With C_i = {j: x'_ij ≠ x_ij}: the mean over queries with answers of |{C_i}| / n, for the query's n answers. It is 1
    if each changes other features, 1 / n if all change the same ones by other amounts.

    >>> queries = pd.DataFrame({"age": [30], "job": ["cook"]})
    >>> index = pd.MultiIndex.from_product([[0], range(4)], names=["row", "cf"])
    >>> cfs = pd.DataFrame({"age": [40, 45, 50, 40], "job": ["cook", "cook", "cook", "nurse"]}, index=index)
    >>> routes(queries, cfs, Schema.infer(cfs))
    0.5
    """
    flags = changed(queries, counterfactuals, schema).to_numpy()
    sets = [flags[members] for _, members in answer_sets(counterfactuals)]
    return mean_or_nan(np.array([len(np.unique(ways, axis=0)) / len(ways) for ways in sets]))


def additions(queries: pd.DataFrame, counterfactuals: pd.DataFrame, schema: Schema) -> float:
    """The share of answers that are another answer with an addition: they change all that it changes, and more.

    With C_i = {j: x'_ij ≠ x_ij}: the mean over answers i of [C_k ⊊ C_i for another answer k to the same query].

    >>> queries = pd.DataFrame({"age": [30], "job": ["cook"]})
    >>> index = pd.MultiIndex.from_product([[0], range(3)], names=["row", "cf"])
    >>> cfs = pd.DataFrame({"age": [40, 35, 30], "job": ["cook", "nurse", "nurse"]}, index=index)
    >>> additions(queries, cfs, Schema.infer(cfs))
    0.3333333333333333
    """
    flags = changed(queries, counterfactuals, schema).to_numpy()
    found = np.zeros(len(flags), dtype=bool)
    for _, members in answer_sets(counterfactuals):
        ways = flags[members]
        # How many features answer k changes and answer i does not: none, where i changes all that k does.
        lacking = ways.astype(int) @ ~ways.T
        size = ways.sum(axis=1)
        found[members] = ((lacking == 0) & (size[:, None] < size)).any(axis=0)
    return mean_or_nan(found)


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
    numbers = [f for f in number_features(schema) if width(f) > 0]
    widths = np.array([width(f) for f in numbers])
    before, after = number_pairs(queries, counterfactuals, numbers)
    moves = np.where(np.isnan(before) != np.isnan(after), widths, np.nan_to_num(np.abs(after - before)))
    if unit_free:
        moves = moves / widths
    volumes = {label: _volume(moves[members]) for label, members in answer_sets(counterfactuals)}
    index = pd.Index(list(volumes), name="row", tupleize_cols=False)
    return pd.Series(list(volumes.values()), index=index, dtype=float, name="hypervolume")


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


def _gower_by_set(frame: pd.DataFrame, sets: Codes, schema: Schema) -> Reals:
    """The mean Gower distance inside each set of rows that has at least two; `sets` numbers the sets from 0."""
    check_columns(schema.names, frame)
    sizes = np.bincount(sets)
    total = np.zeros(len(sizes))
    for feature in schema.features:
        column = frame[feature.name]
        if feature.is_number and width(feature) > 0:
            scaled = (reals(column) - (feature.minimum or 0.0)) / width(feature)
            total += _sum_of_gaps(scaled, sets, sizes)
        else:
            total += _unequal_pairs(joint_codes([column], feature)[0], sets, sizes)
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
