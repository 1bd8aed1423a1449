"""How much features matter to answers: how often they change, who can't do without them, for whom they are enough."""

from __future__ import annotations

__all__ = ["importance", "interval", "necessity", "sufficiency", "who_is_answered"]

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betaincinv

from dicoflex.errors import ConstraintError, QueryError
from dicoflex.table.feature import Feature, Kind
from dicoflex.table.schema import Schema

if TYPE_CHECKING:
    from dicoflex.answers.counterfactuals import Counterfactuals

Bools = NDArray[np.bool_]
Answers = Callable[[Sequence[Any]], Bools]
"""Which rows still have an answer with some features frozen."""
TAIL = 0.025


def interval(hits: int, total: int) -> tuple[float, float]:
    """Between which a share lies at 95 %, after so many hits of a total (Clopper and Pearson 1934).

    >>> [round(end, 4) for end in interval(0, 10)]
    [0.0, 0.3085]
    """
    if total == 0:
        return 0.0, 1.0
    low = 0.0 if hits == 0 else float(betaincinv(hits, total - hits + 1, TAIL))
    high = 1.0 if hits == total else float(betaincinv(hits + 1, total - hits, 1 - TAIL))
    return low, high


def importance(cfs: Counterfactuals, position: int | None = None) -> pd.DataFrame:
    """Per feature the share of answers that change it, with its interval, its mean move and commonest new level.

    position: of one query; None is of all that have answers: the mean of their shares, and its interval over queries. A
    frozen feature has the share 0. mean_move: of the answers that change a number, or an ordinal by its rank.
    """
    which = np.arange(len(cfs)) if position is None else np.flatnonzero(cfs.positions == position)
    changed, owners = cfs.changed_cells[which], cfs.positions[which]
    shares = _shares(changed, owners)
    rows = [
        (feature.name, *line, *_moves(cfs, feature, which[changed[:, j]]))
        for j, (feature, line) in enumerate(zip(cfs.schema.features, shares, strict=True))
    ]
    columns = ["feature", "share", "low", "high", "mean_move", "commonest"]
    table = pd.DataFrame(rows, columns=columns).set_index("feature")
    return table.astype({"commonest": object}).sort_values("share", ascending=False, kind="stable")


def _shares(changed: Bools, owners: NDArray[np.int64]) -> list[tuple[float, float, float]]:
    """Per feature the share of answers that change it, and between which it lies."""
    queries = np.unique(owners)
    n, d = changed.shape
    if len(queries) == 0:
        return [(0.0, 0.0, 1.0)] * d
    if len(queries) == 1:
        return [(float(changed[:, j].mean()), *interval(int(changed[:, j].sum()), n)) for j in range(d)]
    each = np.array([changed[owners == i].mean(axis=0) for i in queries])
    mean, room = each.mean(axis=0), 1.96 * each.std(axis=0, ddof=1) / np.sqrt(len(queries))
    return [(float(m), max(0.0, float(m - r)), min(1.0, float(m + r))) for m, r in zip(mean, room, strict=True)]


def _moves(cfs: Counterfactuals, feature: Feature, which: NDArray[np.int64]) -> tuple[float, Any]:
    """By how much a feature moves where it changes, and the level that it goes to most often."""
    if len(which) == 0:
        return float("nan"), None
    after = cfs.frame[feature.name].iloc[which]
    before = cfs.queries[feature.name].iloc[cfs.positions[which]]
    if feature.is_number:
        moved = after.astype(float).to_numpy() - before.astype(float).to_numpy()
        return (float(np.nanmean(moved)) if not np.isnan(moved).all() else float("nan")), None
    levels = after.astype(object).where(after.notna(), None)
    commonest = max(dict.fromkeys(levels), key=lambda level: int(sum(level == other for other in levels)))
    if feature.kind is not Kind.ORDINAL:
        return float("nan"), commonest
    rank = {level: i for i, level in enumerate(feature.levels)}
    steps = [rank[a] - rank[b] for a, b in zip(after, before, strict=True) if a in rank and b in rank]
    return (float(np.mean(steps)) if steps else float("nan")), commonest


def necessity(schema: Schema, answered: Answers, *, pairs: bool = False) -> pd.DataFrame:
    """Per feature the share of rows that have an answer and lose it when the feature is frozen.

    pairs: pairs of features, too.
    """
    free = answered([])
    lines = [(names, int((free & ~answered(names)).sum())) for names in _sets(schema, pairs=pairs)]
    return _table(lines, int(free.sum()))


def sufficiency(schema: Schema, answered: Answers, *, pairs: bool = False) -> pd.DataFrame:
    """Per feature the share of rows that have an answer in which nothing else changes.

    pairs: pairs of features, too.
    """
    every = list(schema.names)
    lines, total = [], len(answered([]))
    for names in _sets(schema, pairs=pairs):
        found = answered([name for name in every if name not in names])
        lines.append((names, int(found.sum())))
    return _table(lines, total)


def _sets(schema: Schema, *, pairs: bool) -> list[tuple[Any, ...]]:
    return [(name,) for name in schema.names] + (list(combinations(schema.names, 2)) if pairs else [])


def _table(lines: list[tuple[tuple[Any, ...], int]], total: int) -> pd.DataFrame:
    rows = [
        (names[0] if len(names) == 1 else names, hits / total if total else 0.0, *interval(hits, total))
        for names, hits in lines
    ]
    index = pd.Series([row[0] for row in rows], dtype=object, name="feature")
    table = pd.DataFrame([row[1:] for row in rows], columns=["share", "low", "high"])
    return table.set_axis(pd.Index(index, tupleize_cols=False)).sort_values("share", ascending=False, kind="stable")


def who_is_answered(explain: Callable[..., Counterfactuals], n_rows: int) -> Answers:
    """For lists of features to freeze, which rows have an answer; where nothing may change, none has.

    What can't be asked with nothing frozen is refused: a label that there is not is no feature's lack.
    """

    def answered(frozen: Sequence[Any]) -> Bools:
        try:
            found = explain(frozen=list(frozen))
        except (ConstraintError, QueryError) as error:
            if not frozen and not isinstance(error, ConstraintError):
                raise
            return np.zeros(n_rows, dtype=bool)
        return np.bincount(found.positions, minlength=n_rows) > 0

    return answered
