"""Finding exact dependencies: features that follow from others in every training row."""

from __future__ import annotations

__all__ = ["find_dependencies"]

import numpy as np
from numpy.typing import NDArray

from dicoflex.coherence.dependencies import Dependencies, Dependency
from dicoflex.coherence.stops import MOST_DECIMALS, decimals_of
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TOLERANCE = 1e-6
LEAST_ROWS = 50
LEAST_UNITS = 10
MOST_WEIGHT_DIGITS = 9
FAR_FROM_ROUND, MOST_FAR = 0.4, 0.75
MOST_SOURCES = 4
MOST_LEVELS = 200
ROWS_PER_VALUE = 5
# A rate's own rounding, and the share of rows that may have another: what is typed in by hand is never all right.
RATE_TOLERANCE, RATE_HOLDS = 1e-3, 0.995
MOST_GROUPS = 12
FIRST_ROWS = 2000


def find_dependencies(schema: Schema, values: Values, *, min_count: int = 1) -> Dependencies:
    """Those that hold in all rows: numbers linear in others, products of two, and what follows from a value; and, in
    all rows but one of two hundred, amounts times a rate.

    They hold up to the rounding of the column that follows: a charge in cents is minutes times a rate to half a cent.

    min_count: what follows from a value that fewer rows have is not told. Those of features that the schema calls
    independent are left out.

    >>> import pandas as pd
    >>> rows = np.column_stack([np.arange(100.0) % 37, np.arange(100.0) % 37 + 4])
    >>> schema = Schema.infer(pd.DataFrame(rows, columns=["low", "high"]))
    >>> [one.describe(schema) for one in find_dependencies(schema, rows).found]
    ['high = low + 4']
    """
    numbers = [j for j, f in enumerate(schema.features) if f.is_number and _varies(values[:, j])]
    whole = values[~np.isnan(values[:, numbers]).any(axis=1) & ~_drawn_in(schema, values)]
    found: list[Dependency] = []
    if len(whole) >= LEAST_ROWS and len(numbers) > 1:
        found += _linear(whole, numbers)
        taken = {one.follows for one in found}
        found += _products(whole, [j for j in numbers if j not in taken])
        found += _rates(schema, whole, numbers, found, min_count)
    found += _tables(values, found, min_count)
    return Dependencies(tuple(found), len(schema)).without(map(schema.position, schema.independent))


def _varies(column: Floats) -> bool:
    present = column[~np.isnan(column)]
    return len(present) > 0 and bool(present.max() > present.min())


def _drawn_in(schema: Schema, values: Values) -> NDArray[np.bool_]:
    """Which rows have a number that a limit was put in the place of, because too few rows lie as far out."""
    out = np.zeros(len(values), dtype=bool)
    if schema.min_count == 1:
        return out
    for feature, column in zip(schema.features, values.T, strict=True):
        for end in (feature.minimum, feature.maximum) if feature.is_number else ():
            here = column == end
            if here.sum() < 2 * schema.min_count:
                out |= here
    return out


def _unit(column: Floats) -> float:
    """What the values are rounded to; 0 where they are not, or where so few units apart prove nothing."""
    decimals = decimals_of(column)
    unit = 10.0**-decimals if decimals <= MOST_DECIMALS else 0.0
    return unit if column.std() >= LEAST_UNITS * unit else 0.0


def _fits(given: Floats, made: Floats, unit: float = 0.0) -> bool:
    """Whether numbers are what was made, but for rounding to a unit.

    Errors of rounding spread over half a unit. Where most are about half a unit, the numbers were not rounded: the
    constant is half a unit off, to make room for a row that differs.
    """
    rounding, error = TOLERANCE * max(1.0, float(np.abs(given).max())), np.abs(given - made)
    far = 0.0 if unit == 0.0 else float((error > FAR_FROM_ROUND * unit).mean())
    return bool(error.max() <= rounding + unit / 2) and far < MOST_FAR


def _linear(values: Floats, numbers: list[int]) -> list[Dependency]:
    """Numbers that are linear in at most four of those before them, by least squares: affine pairs and sums."""
    found: list[Dependency] = []
    free = [numbers[0]]
    few = values[np.linspace(0, len(values) - 1, min(len(values), 400)).astype(int)]
    for j in numbers[1:]:
        one = _linear_in(values, few, j, free)
        if one is None:
            free.append(j)
        else:
            found.append(one)
    return found


def _linear_in(values: Floats, few: Floats, j: int, free: list[int]) -> Dependency | None:
    centre, spread = values[:, free].mean(axis=0), values[:, free].std(axis=0)
    design = np.column_stack([(few[:, free] - centre) / spread, np.ones(len(few))])
    weights, unit = np.linalg.lstsq(design, few[:, j], rcond=None)[0], _unit(values[:, j])
    # Weights that rounding has blurred reproduce the rows a little less than the true ones.
    if not _fits(few[:, j], design @ weights, 2 * unit):
        return None
    used = np.flatnonzero(np.abs(weights[:-1]) > TOLERANCE * values[:, j].std() + unit / 4)
    if not 0 < len(used) <= MOST_SOURCES:
        return None
    of = [free[u] for u in used]
    found = _round_weights(values[:, j], values[:, of], unit)
    if found is None:
        return None
    raw, constant = found
    return Dependency(
        kind="linear", follows=j, of=tuple(of), weights=tuple(raw.tolist()), constant=constant,
        decimals=decimals_of(values[:, j]),
    )  # fmt: skip


def _round_weights(given: Floats, sources: Floats, unit: float) -> tuple[Floats, float] | None:
    """The weights of the fewest digits, and a constant, that make the numbers of all rows; None where none do."""
    centre, spread = sources.mean(axis=0), sources.std(axis=0)
    design = np.column_stack([(sources - centre) / spread, np.ones(len(sources))])
    raw = np.linalg.lstsq(design, given, rcond=None)[0][:-1] / spread
    for digits in range(MOST_WEIGHT_DIGITS):
        weights = np.round(raw, digits)
        made = sources @ weights
        middle = ((given - made).min() + (given - made).max()) / 2
        for constant in (float(np.round(middle, least)) for least in range(digits + MOST_DECIMALS)):
            if weights.all() and _fits(given, made + constant, unit):
                return weights, constant
    rest = given - sources @ raw
    constant = float((rest.min() + rest.max()) / 2)
    return (raw, constant) if _fits(given, sources @ raw + constant, unit) else None


def _products(values: Floats, numbers: list[int]) -> list[Dependency]:
    few = values[np.linspace(0, len(values) - 1, min(len(values), 200)).astype(int)]
    found: list[Dependency] = []
    tied: set[int] = set()
    for j in numbers:
        unit = _unit(values[:, j])
        for a in numbers:
            for b in (b for b in numbers if b > a and j not in (a, b)):
                if tied & {a, b, j} or not _fits(few[:, j], few[:, a] * few[:, b], unit):
                    continue
                if _fits(values[:, j], values[:, a] * values[:, b], unit):
                    digits = decimals_of(values[:, j])
                    found.append(Dependency(kind="product", follows=j, of=(a, b), decimals=digits))
                    tied |= {j, a, b}
    return found


def _rates(
    schema: Schema, values: Floats, numbers: list[int], known: list[Dependency], min_count: int
) -> list[Dependency]:  # fmt: skip
    """Numbers that are one before them times what a third, of few values, makes of it, by the levels of a fourth."""
    tied = {one.follows for one in known} | {j for one in known for j in one.of}
    free = [j for j in numbers if j not in tied]
    keys = [(z, *np.unique(values[:, z], return_inverse=True)) for z in free]
    few = [(z, distinct, code) for z, distinct, code in keys if 2 < len(distinct) <= MOST_LEVELS]
    levels = [c for c, f in enumerate(schema.features) if not f.is_number and 2 <= f.n_states <= MOST_GROUPS]
    found: list[Dependency] = []
    for y in free:
        for x in (x for x in free if x < y and _is_scaled(values[:, x], values[:, y])):
            apart = {x, y} & {j for one in found for j in (one.follows, *one.of)}
            ways = ((z, distinct, code, c) for z, distinct, code in few for c in (None, *levels) if z not in (x, y))
            made = None if apart else next(filter(None, (_rate(values, y, x, way, min_count) for way in ways)), None)
            if made is not None:
                found.append(made)
                break
    return found


def _is_scaled(x: Floats, y: Floats) -> bool:
    """Whether one could be the other times a rate that is not the same for all."""
    some = (x != 0) & (y != 0)
    if some.mean() < 0.5 or not np.array_equal(x == 0, y == 0):
        return False
    low, middle, high = np.quantile(y[some] / x[some], [0.1, 0.5, 0.9])
    return bool(abs(high - low) > 20 * RATE_TOLERANCE * abs(middle))


def _rate(
    values: Floats, y: int, x: int, way: tuple[int, Floats, Ints, int | None], min_count: int
) -> Dependency | None:  # fmt: skip
    """Feature y as x times a rate, if the rows agree on that; at first some rows are asked."""
    z, distinct, code, c = way
    group = np.zeros(len(values), dtype=np.int64) if c is None else values[:, c].astype(np.int64)
    few, unit = np.linspace(0, len(values) - 1, min(len(values), FIRST_ROWS)).astype(int), _unit(values[:, y])
    for rows in (few, np.arange(len(values))):
        key = group[rows] * len(distinct) + code[rows]
        entry, back, counts = np.unique(key, return_inverse=True, return_counts=True)
        many = counts >= max(min_count, 2)
        rate = _medians(_shares(values[rows, y], values[rows, x]), back, counts)
        error = np.abs(values[rows, y] - values[rows, x] * rate[back])
        held = many[back] & (error <= np.maximum(RATE_TOLERANCE * np.abs(values[rows, y]), unit / 2))
        if held.mean() < RATE_HOLDS * (1.0 if rows is not few else many[back].mean()) or not many.any():
            return None
    if counts[many].mean() < ROWS_PER_VALUE:
        return None
    # A median is one row's rate; in five digits it is that of all rows at its key.
    of, place = (x, z) if c is None else (x, z, c), entry[many] % len(distinct)
    return Dependency(
        kind="rate", follows=y, of=of, keys=tuple(distinct[place].tolist()),
        values=tuple(float(f"{r:.5g}") for r in rate[many]), levels=tuple((entry[many] // len(distinct)).tolist()),
        decimals=decimals_of(values[:, y]),
    )  # fmt: skip


def _shares(y: Floats, x: Floats) -> Floats:
    """One divided by the other, 0 where that is nothing."""
    return np.divide(y, x, out=np.zeros(len(y)), where=x != 0)


def _medians(values: Floats, group: Ints, counts: Ints) -> Floats:
    """The median of each group's values, the upper one of two."""
    order = np.lexsort((values, group))
    medians: Floats = values[order][np.cumsum(counts) - counts + counts // 2]
    return medians


def _tables(values: Floats, known: list[Dependency], min_count: int) -> list[Dependency]:
    """Features with few values that follow from another one, which has more or as many."""
    followers, sources = {one.follows for one in known}, {j for one in known for j in one.of}
    few = _few_values(values, followers)
    found: list[Dependency] = []
    for b, (levels, code) in few.items():
        if b in sources:
            continue
        for a, (keys, key) in few.items():
            if a == b or len(keys) < len(levels) or a in followers:
                continue
            settled = _settled(key, code, len(keys), len(levels))
            told = np.bincount(key) >= min_count
            if settled is not None and told.any():
                own, made = tuple(keys[told]), tuple(levels[settled[told]])
                found.append(Dependency(kind="lookup", follows=b, of=(a,), keys=own, values=made))
                followers.add(b)
                sources.add(a)
                break
    return found


def _few_values(values: Floats, followers: set[int]) -> dict[int, tuple[Floats, Ints]]:
    found: dict[int, tuple[Floats, Ints]] = {}
    for j in range(values.shape[1]):
        column = values[:, j]
        if j in followers or np.isnan(column).any():
            continue
        distinct, code = np.unique(column, return_inverse=True)
        if 2 <= len(distinct) <= MOST_LEVELS and len(column) >= ROWS_PER_VALUE * len(distinct):
            found[j] = distinct, code
    return found


def _settled(key: Ints, code: Ints, n_keys: int, n_levels: int) -> Ints | None:
    """The code that goes with each key, where all rows of a key have one; None where some key has two.

    Keys that one row has prove nothing: nearly all rows must lie at keys that repeat.
    """
    low, high = np.full(n_keys, n_levels), np.full(n_keys, -1)
    np.minimum.at(low, key, code)
    np.maximum.at(high, key, code)
    repeats = np.bincount(key, minlength=n_keys)[key] > 1
    return low if (low == high).all() and repeats.mean() > 0.99 else None
