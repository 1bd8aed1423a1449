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
    "KnownPairs",
    "LogLof",
    "RareFloor",
    "Reference",
    "additions",
    "broken",
    "by_query",
    "changed",
    "closer",
    "copies",
    "epsilon_sparsity",
    "gower",
    "halvable",
    "hypervolume",
    "impossible",
    "mean_pairwise_gower",
    "needless",
    "number_scale",
    "pairwise_extremes",
    "percentile_shift",
    "proximity",
    "rare",
    "reducible",
    "routes",
    "row_measures",
    "score",
    "share_categories_changed",
    "share_numbers_changed",
    "share_of_copies",
    "target_probability",
    "undoable",
    "unseen",
    "validity",
    "violations",
]

from dicoflex.metrics.changes import (
    changed,
    epsilon_sparsity,
    number_scale,
    percentile_shift,
    proximity,
    share_categories_changed,
    share_numbers_changed,
)
from dicoflex.metrics.conditions import (
    broken,
    copies,
    impossible,
    share_of_copies,
    target_probability,
    validity,
    violations,
)
from dicoflex.metrics.diversity import additions, gower, hypervolume, mean_pairwise_gower, pairwise_extremes, routes
from dicoflex.metrics.minimality import closer, halvable, needless, reducible, undoable
from dicoflex.metrics.pairs import KnownPairs, unseen
from dicoflex.metrics.plausibility import LogLof, RareFloor, rare
from dicoflex.metrics.scores import Reference, by_query, row_measures, score
