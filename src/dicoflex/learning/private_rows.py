"""Differentially private rows: counts with noise, of cells and of some pairs of them, and rows drawn from these counts.

A fit with `privacy="dp"` learns from drawn rows alone. Whatever is computed from them is as private as the counts are,
so one bound covers the whole file: pairs, densities, margins, counts and cells. What the caller states (the schema with
its levels and limits, the labels' names, the classifier) is taken as public and is not covered.

The epsilon is spent in three equal parts: counts of every feature's cells; which pairs of features to count, a tree
that the exponential mechanism picks edge by edge (as in MST; McKenna, Miklau and Sheldon 2021); counts of these pairs.
Adding or removing one row changes one count of each table by one, so two-sided geometric noise makes each table
private, and the epsilons add up. The noise comes from the operating system, never from `random_state`: noise that can
be repeated can be taken off again.
"""

from __future__ import annotations

__all__ = ["Budget", "check_private", "draw_private", "private_rows", "two_sided_geometric"]

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import DataError, SettingError
from dicoflex.learning.black_box import BlackBox
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FINE = 64
MOST_GROUPS = 16
ROWS_PER_NOISE = 4.0
"""Numbers are put into so many groups that a pair of groups has four times the scale of the noise in rows."""
LEAST_DRAWN, MOST_DRAWN = 5_000, 50_000


@dataclass
class Budget:
    """What may be spent, and what was.

    >>> budget = Budget(1.0)
    >>> budget.spend(0.25), budget.spent
    (0.25, 0.25)
    """

    epsilon: float
    spent: float = field(default=0.0)

    def spend(self, epsilon: float) -> float:
        """Take so much of what is left; more than that is a bug."""
        self.spent += epsilon
        assert self.spent <= self.epsilon * (1 + 1e-9), "more than epsilon was spent"
        return epsilon


def private_rows(
    schema: Schema, values: Values, labels: Ints | None, n_classes: int, *, epsilon: float, seed: int
) -> tuple[Values, Ints | None]:
    """Rows, and labels where some are given, drawn from counts with noise.

    Parameters
    ----------
    schema
        Levels and limits as the caller states them; numbers beyond the limits are taken for the limits.
    values, labels
        The rows, encoded, and their class numbers; None where a classifier is to label what is drawn.
    n_classes
        How many classes there are.
    epsilon
        What all counts together may spend.
    seed
        For drawing rows from the counts, not for the noise.

    Returns
    -------
    Values, Ints or None
        The drawn rows on the columns' grids, and their class numbers.
    """
    features = [_Cells.of(schema, j) for j in range(len(schema))]
    columns = [cells.locate(values[:, j]) for j, cells in enumerate(features)]
    if labels is not None:
        features.append(_Cells(n_classes))
        columns.append(labels)
    budget = Budget(epsilon)
    fine = [
        _counted(column, cells.size, budget.spend(epsilon / 3 / len(features)))
        for column, cells in zip(columns, features, strict=True)
    ]
    n = max(1.0, float(np.mean([counts.sum() for counts in fine])))
    shares = [_shares(counts) for counts in fine]
    each = epsilon / 3 / max(1, len(features) - 1)
    most = int(np.clip(np.sqrt(n * each / ROWS_PER_NOISE), 2, MOST_GROUPS))
    groups = [_grouped(share, cells, most) for share, cells in zip(shares, features, strict=True)]
    coarse = [group[column] for group, column in zip(groups, columns, strict=True)]
    expected: list[Floats] = [
        np.bincount(group, weights=share).astype(np.float64) for group, share in zip(groups, shares, strict=True)
    ]
    edges = _tree(coarse, expected, n, each, budget)
    tables = {
        (i, j): _noisy(_table(coarse[i], coarse[j], len(expected[i]), len(expected[j])), budget.spend(each))
        for i, j in edges
    }
    rng = np.random.default_rng(seed)
    drawn = _drawn(expected, tables, int(np.clip(n, LEAST_DRAWN, MOST_DRAWN)), each, rng)
    cells = [_within(column, group, share, rng) for column, group, share in zip(drawn, groups, shares, strict=True)]
    rows = np.column_stack([features[j].value(cells[j], rng) for j in range(len(schema))])
    return Encoding.unit(schema).snap(rows), cells[-1] if labels is not None else None


@dataclass(frozen=True)
class _Cells:
    """The cells of a feature by what is stated of it alone: its levels, or equal parts of its limits.

    step: 1 where every cell is a whole number. The last cell is that of missing numbers, where there may be some.
    """

    size: int
    low: float = 0.0
    step: float = 0.0
    whole: bool = True
    missing: bool = False

    @classmethod
    def of(cls, schema: Schema, j: int) -> _Cells:
        feature = schema.features[j]
        if not feature.is_number:
            return cls(feature.n_states)
        assert feature.minimum is not None
        assert feature.maximum is not None
        apart = feature.maximum - feature.minimum
        if feature.is_whole and apart < FINE:
            return cls(int(apart) + 1 + feature.missing, feature.minimum, 1.0, True, feature.missing)
        return cls(FINE + feature.missing, feature.minimum, max(apart / FINE, 1e-300), False, feature.missing)

    def locate(self, column: Floats) -> Ints:
        """The cell of each value."""
        if self.step == 0.0:
            return column.astype(np.int64)
        absent = np.isnan(column)
        last = self.size - 1 - self.missing
        cell = np.clip(np.floor((np.where(absent, self.low, column) - self.low) / self.step), 0, last).astype(np.int64)
        return np.where(absent, self.size - 1, cell)

    def value(self, cell: Ints, rng: np.random.Generator) -> Floats:
        """A value of each cell, anywhere in it."""
        if self.step == 0.0:
            return cell.astype(np.float64)
        inside = self.low + self.step * (cell + (0.0 if self.whole else rng.random(len(cell))))
        return np.where((cell == self.size - 1) & self.missing, np.nan, inside)


def _grouped(share: Floats, cells: _Cells, most: int) -> Ints:
    """The group of each cell: neighbouring cells of a number together, about as many rows in each; levels alone."""
    if cells.step == 0.0:
        return np.arange(cells.size)
    n = cells.size - cells.missing
    before = np.cumsum(share[:n]) - share[:n] / 2
    group = np.unique(np.floor(most * before / max(share[:n].sum(), 1e-12)), return_inverse=True)[1].ravel()
    return np.append(group, group.max() + 1) if cells.missing else group


def _counted(column: Ints, size: int, epsilon: float) -> Floats:
    return _noisy(np.bincount(column, minlength=size), epsilon)


def _noisy(counts: Ints, epsilon: float) -> Floats:
    noise = two_sided_geometric(counts.size, epsilon).reshape(counts.shape)
    noisy: Floats = (counts + noise).astype(np.float64)
    return noisy


def two_sided_geometric(n: int, epsilon: float) -> Ints:
    """Whole numbers k with a chance in proportion to exp(-epsilon |k|), from the operating system's random bits.

    >>> len(two_sided_geometric(5, 1.0))
    5
    """
    one, two = (np.floor(-np.log(_uniform(n)) / epsilon).astype(np.int64) for _ in range(2))
    return one - two


def _uniform(n: int) -> Floats:
    """Numbers in (0, 1) that no seed repeats."""
    bits = np.frombuffer(os.urandom(8 * n), dtype=np.uint64) >> np.uint64(11)
    return (bits.astype(np.float64) + 0.5) * 2.0**-53


def _shares(counts: Floats) -> Floats:
    kept = np.maximum(counts, 0.0)
    return kept / kept.sum() if kept.sum() > 0 else np.full(len(kept), 1.0 / len(kept))


def _table(a: Ints, b: Ints, n_a: int, n_b: int) -> Ints:
    return np.bincount(a * n_b + b, minlength=n_a * n_b).reshape(n_a, n_b)


def _tree(
    coarse: list[Ints], expected: list[Floats], n: float, epsilon: float, budget: Budget
) -> list[tuple[int, int]]:
    """The pairs to count: edge by edge, of those that join two parts, one that is far from independence.

    How far is the sum of absolute differences to what independence makes expected, less what chance alone makes of it.
    Both expectations come from counts with noise, and one row changes the sum by one at most.
    """
    d = len(coarse)
    score = np.full((d, d), -np.inf)
    for i in range(d):
        for j in range(i + 1, d):
            usual = n * np.outer(expected[i], expected[j])
            apart = np.abs(_table(coarse[i], coarse[j], *usual.shape) - usual).sum()
            score[i, j] = apart - np.sqrt(2 / np.pi * usual).sum()
    part = np.arange(d)
    edges = []
    for _ in range(d - 1):
        spent = budget.spend(epsilon)
        gumbel = -np.log(-np.log(_uniform(d * d))).reshape(d, d)
        joins = (part[:, None] != part[None, :]) & np.isfinite(score)
        i, j = divmod(int(np.where(joins, spent / 2 * score + gumbel, -np.inf).argmax()), d)
        part[part == part[j]] = part[i]
        edges.append((i, j))
    return edges


def _drawn(
    expected: list[Floats], tables: dict[tuple[int, int], Floats], n: int, epsilon: float, rng: np.random.Generator
) -> list[Ints]:  # fmt: skip
    """Groups of rows: the first feature by its shares, every other one given a neighbour in the tree."""
    out: dict[int, Ints] = {0: _pick(np.tile(expected[0], (n, 1)), rng)}
    left = dict(tables)
    while left:
        (i, j), table = next((edge, t) for edge, t in left.items() if edge[0] in out or edge[1] in out)
        del left[i, j]
        if i not in out:
            i, j, table = j, i, table.T
        # What is less than the noise mostly is noise.
        kept = np.where(table > 1.0 / epsilon, table, 0.0)
        total = kept.sum(axis=1, keepdims=True)
        given = np.where(total > 0, kept / np.maximum(total, 1e-12), expected[j])
        out[j] = _pick(given[out[i]], rng)
    return [out[j] for j in range(len(expected))]


def _pick(shares: Floats, rng: np.random.Generator) -> Ints:
    """One place per row, by the row's shares."""
    below = np.cumsum(shares, axis=1)
    picked: Ints = (rng.random(len(shares))[:, None] * below[:, -1:] > below).sum(axis=1)
    last: Ints = np.minimum(picked, shares.shape[1] - 1)
    return last


def _within(drawn: Ints, group: Ints, share: Floats, rng: np.random.Generator) -> Ints:
    """A cell of each drawn group, by the shares of its cells."""
    out = np.zeros(len(drawn), dtype=np.int64)
    for one in np.unique(drawn):
        cells, here = np.flatnonzero(group == one), drawn == one
        weights = np.maximum(share[cells], 1e-12)
        out[here] = rng.choice(cells, size=int(here.sum()), p=weights / weights.sum())
    return out


def check_private(schema: Schema | None, epsilon: object, *, remembers: bool, exact: bool, scores: bool) -> float:
    """The epsilon, if a private fit can keep it; else a `SettingError` that says what stands against it."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < np.inf:
        raise SettingError(f"epsilon must be a number above 0, got {epsilon!r}; 1 to 10 is usual")
    if schema is None or schema.min_count > 1:
        raise SettingError(
            "privacy='dp' needs a schema that tells nothing of these rows: state levels and limits that are known "
            "without them, such as Schema.infer(public_rows, limits={'age': (18, 100)}), and give it with schema="
        )
    if remembers:
        raise SettingError(
            "privacy='dp' learns from drawn rows, so there is none to remember; leave remember_rows= out"
        )
    if exact:
        raise SettingError("surrogate='exact' puts the model into the file, which no epsilon covers; leave it out")
    if scores:
        raise SettingError("privacy='dp' is for models of labels, and y holds scores; give labels, such as y >= 620")
    return float(epsilon)


def draw_private(
    X: pd.DataFrame, labels: Ints, names: list[Any], schema: Schema, black_box: BlackBox | None, *,
    epsilon: float, seed: int,
) -> tuple[pd.DataFrame, Ints]:  # fmt: skip
    """Private rows in place of a frame, labelled by the black box, or else drawn with their labels."""
    encoding = Encoding.unit(schema)
    values, drawn = private_rows(
        schema, encoding.encode(X), labels if black_box is None else None, len(names), epsilon=epsilon, seed=seed
    )
    if drawn is None:
        assert black_box is not None
        drawn = black_box.answers(values).argmax(axis=1)
    lost = np.setdiff1d(np.arange(len(names)), drawn)
    if len(lost):
        raise DataError(
            f"no private row has the label {names[lost[0]]!r}: too few rows have it for epsilon={epsilon:g}; give more "
            "rows, join labels, or raise epsilon"
        )
    return encoding.decode(values), drawn.astype(np.int64)
