"""Cells: each feature's values cut into finitely many states, without losing any value.

A picked feature has a cell per level. A number has, in order of size, cells of three sorts that share no value:

- an *atom*: one value that repeats in the data (0 in capital gain, round amounts);
- a *run*: equally spaced values (whole numbers, cents), each as likely as the others of its cell;
- an *interval*: a stretch of the real line with constant density.

Together they hold every value of the training rows. A continuous feature's leave out nothing between its limits; a
spaced one's leave out stretches that no row lies in, and one with few values has an atom for each and nothing else.
With a `min_count` above one no cell tells of fewer rows: what fewer have is no atom, a stretch of a spaced feature
that fewer lie in is left out, and cells are cut at round numbers. What lies nowhere then belongs to the cell before
it. Probabilities over cells are therefore a piecewise linear distribution function with jumps where the data has
jumps. A number that may be missing has one more cell for that.
"""

from __future__ import annotations

__all__ = ["EACH", "LOPSIDED", "MIN_CELL", "Grid", "Located"]

import heapq
import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex._types import Arrays, Floats, Ints
from dicoflex.model_file.taking import refuse, taken
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.feature import MAX_NUMBER, Feature
from dicoflex.table.rarity import outwards, round_near
from dicoflex.table.schema import Schema
from dicoflex.table.spacing import spacing

MIN_CELL = 10
ROWS_PER_CELL = 30
"""Stretches are cut into cells of so many rows. With ten, 1,000 rows of a continuous column had as many cells as
100,000, and what ten rows teach of a cell is who they are."""
LOPSIDED = 0.3
FEW = 0.05
Cell = tuple[float, float, int]


def number_cells(
    values: Floats, limits: tuple[float, float], whole: bool, most: int, min_count: int
) -> tuple[list[Cell], float, int]:
    """The cells of one number feature, and its spacing and digits."""
    if len(values) == 0:
        return [(*limits, _count(*limits, float(whole)))], float(whole), 0
    step, decimals = spacing(values, whole=whole)
    distinct, counts = np.unique(values, return_counts=True)
    if step > 0 and len(distinct) <= most and _span(limits, distinct, min_count):
        rest = values[np.isin(values, distinct[counts < min_count])]
        if len(rest) <= FEW * len(values):
            ends = _aligned(limits, distinct, step, decimals) if len(rest) else limits
            return _few_cells(distinct[counts >= min_count], rest, ends, step, decimals, min_count), step, decimals
    exact = np.array_equal(values, np.round(values, decimals))
    if not exact or (step > 0 and (limits[1] - limits[0]) / step >= 2**52):
        # Nearly spaced, as 0.1 + 0.2 is, or too far apart to count steps: no run would hit the values themselves.
        step, decimals = 0.0, 0
    if step > 0:
        limits = _aligned(limits, distinct, step, decimals)
    share = max(MIN_CELL, len(values) / most, min_count)
    atoms = distinct[counts >= share]
    rest = values[~np.isin(values, atoms)]
    cells: list[Cell] = [(float(v), float(v), 1) for v in atoms]
    for low, high in _gaps(limits, atoms, step, decimals):
        inside = rest[(rest >= low) & (rest <= high)]
        if step == 0 or len(inside) >= min_count:
            room = max(1, min(int(most * len(inside) / max(len(rest), 1)), len(inside) // ROWS_PER_CELL))
            cells += _split(low, high, np.sort(inside), step, decimals, room, min_count=min_count)
    return sorted(cells), step, decimals


def _span(limits: tuple[float, float], distinct: Floats, min_count: int) -> bool:
    """Whether the limits are those of the values, or what is told of them instead."""
    ends = float(distinct[0]), float(distinct[-1])
    told = ends if min_count == 1 else (outwards(ends[0], up=False), outwards(ends[1], up=True))
    return all(limit in pair for limit, pair in zip(limits, zip(ends, told, strict=True), strict=True))


def _few_cells(
    atoms: Floats, rest: Floats, ends: tuple[float, float], step: float, decimals: int, min_count: int
) -> list[Cell]:
    """An atom for each of few values, and a run between them where enough of the other values lie."""
    cells: list[Cell] = [(float(v), float(v), 1) for v in atoms]
    for low, high in _gaps(ends, atoms, step, decimals) if len(rest) else []:
        if ((rest >= low) & (rest <= high)).sum() >= min_count:
            cells.append((low, high, _count(low, high, step)))
    return sorted(cells)


def _aligned(limits: tuple[float, float], values: Floats, step: float, decimals: int) -> tuple[float, float]:
    """The limits moved inwards to the values' spacing."""
    below = np.floor(round((values[0] - limits[0]) / step, 6))
    above = np.floor(round((limits[1] - values[-1]) / step, 6))
    return round(float(values[0] - below * step), decimals), round(float(values[-1] + above * step), decimals)


def _count(low: float, high: float, step: float) -> int:
    """How many values a cell holds; 0 where it is an interval."""
    if low == high:
        return 1
    return round((high - low) / step) + 1 if step else 0


def _gaps(limits: tuple[float, float], atoms: Floats, step: float, decimals: int) -> list[tuple[float, float]]:
    """The stretches between atoms, up to but not including them."""
    edges = [(float(v), float(v)) for v in atoms]
    lows = [limits[0], *(_next(v, step, decimals) for v, _ in edges)]
    highs = [*(_next(v, -step, decimals) if step else float(np.nextafter(v, -np.inf)) for v, _ in edges), limits[1]]
    return [(low, high) for low, high in zip(lows, highs, strict=True) if low <= high]


def _next(value: float, step: float, decimals: int) -> float:
    """The value after (or before) one, by a step; without a spacing, the nearest float above."""
    return round(value + step, decimals) if step else float(np.nextafter(value, np.inf))


def _split(
    low: float, high: float, values: Floats, step: float, decimals: int, room: int, *, min_count: int = 1
) -> list[Cell]:
    """Cut a stretch at medians, the fullest cell first, into about `room` cells; lopsided ones are cut further.

    The second rule is for long tails: a cell from 25 thousand to 7 million with nearly all of its rows at the low end
    would spread them over all of it.
    """
    done: list[Cell] = []
    queue = [(-len(values), low, high, 0, len(values))]
    while queue:
        _, left, right, first, last = heapq.heappop(queue)
        inside = values[first:last]
        wanted = _lopsided(inside, left, right) or (
            len(inside) > len(values) / room and len(done) + len(queue) + 2 <= room
        )
        wanted = wanted and len(inside) >= MIN_CELL
        cut = _cut(inside, left, right, step, decimals, min_count=min_count) if wanted else None
        if cut is None:
            done.append((left, right, _count(left, right, step)))
            continue
        end, begin = cut
        middle = first + int(np.searchsorted(inside, end, side="right"))
        heapq.heappush(queue, (first - middle, left, end, first, middle))
        heapq.heappush(queue, (middle - last, begin, right, middle, last))
    return done


def _lopsided(values: Floats, low: float, high: float) -> bool:
    return high > low and len(values) > 0 and abs((values[len(values) // 2] - low) / (high - low) - 0.5) > LOPSIDED


def _cut(
    values: Floats, low: float, high: float, step: float, decimals: int, *, min_count: int
) -> tuple[float, float] | None:
    """The last value of the left part and the first of the right, at the median; None where the cell is one value.

    With a `min_count` above one it is at a round number near the median, and no part is a value of fewer rows.
    """
    if high <= low:
        return None
    begin = float(values[len(values) // 2]) if min_count == 1 else _near_median(values, low, step, decimals, min_count)
    end = _next(begin, -step, decimals) if step else float(np.nextafter(begin, -np.inf))
    if end < low:
        begin, end = _next(low, step, decimals), low
    left = int(np.searchsorted(values, end, side="right"))
    alone = [rows for rows, one in ((left, low == end), (len(values) - left, begin == high)) if one]
    if any(0 < rows < min_count for rows in alone):
        return None
    return (end, begin) if low <= end and begin <= high else None


def _near_median(values: Floats, low: float, step: float, decimals: int, min_count: int) -> float:
    """A round number near the median, on the spacing; the median itself where at least `min_count` rows have it."""
    middle = len(values) // 2
    number = round_near(values, middle, middle, min_count)
    return round(low + math.ceil((number - low) / step - 1e-6) * step, decimals) if step else number


MOST_DECIMALS = 15
EACH = slice(None)


@dataclass(frozen=True)
class Grid:
    """The cells of all features, end to end.

    offset: feature j owns cells offset[j] to offset[j + 1]. low, high: a cell's least and greatest value (NaN for
    missing). count: how many values it holds; 0 for an interval. step: the spacing of a feature's values, 0 where it
    is continuous. decimals: digits that a value of the feature has. order: the features as they are drawn. Those come
    first whose rows are spread over few cells: draws that begin alike share their work. Levels come before numbers: a
    number has cells that few rows lie in, and what is drawn after it depends on what they taught.
    """

    offset: Ints
    low: Floats
    high: Floats
    count: Ints
    step: Floats
    decimals: Ints
    order: Ints

    @classmethod
    def build(cls, encoding: Encoding, values: Values, *, max_cells: int = 96, min_count: int = 1) -> Grid:
        """Cells adapted to the training rows `values`: finer where rows are dense, or unevenly spread.

        min_count: no cell tells of fewer rows.
        """
        cells, steps, digits = [], [], []
        for j, feature in enumerate(encoding.schema.features):
            column = values[:, j]
            if feature.is_number:
                limits = (float(feature.minimum or 0.0), float(feature.maximum or 0.0))
                present = column[~np.isnan(column)]
                found, step, decimals = number_cells(present, limits, feature.is_whole, max_cells, min_count)
                found += [(np.nan, np.nan, 1)] * feature.missing
            else:
                found, step, decimals = [(float(c), float(c), 1) for c in range(feature.n_states)], 1.0, 0
            cells.append(found)
            steps.append(step)
            digits.append(decimals)
        offset = np.cumsum([0, *map(len, cells)])
        low, high, count = (np.array(column) for column in zip(*chain.from_iterable(cells), strict=True))
        grid = cls(
            offset=offset, low=low, high=high, count=count.astype(np.int64), step=np.array(steps),
            decimals=np.array(digits, dtype=np.int64), order=np.arange(len(cells)),
        )  # fmt: skip
        number = np.array([feature.is_number for feature in encoding.schema.features])
        return replace(grid, order=np.lexsort((grid._spread(values), number)))

    @property
    def n_features(self) -> int:
        """How many features the grid covers."""
        return len(self.offset) - 1

    @property
    def n_cells(self) -> int:
        """How many cells all features have together."""
        return int(self.offset[-1])

    @cached_property
    def size(self) -> Ints:
        """How many cells each feature has."""
        return np.diff(self.offset)

    @cached_property
    def has_missing(self) -> NDArray[np.bool_]:
        """Which features have a cell for missing numbers, their last."""
        return np.isnan(self.low[self.offset[1:] - 1])

    @cached_property
    def wide(self) -> NDArray[np.bool_]:
        """Which features have a cell with more than one value, so that the place in the cell tells something."""
        return np.array([(self.count[a:b] != 1).any() for a, b in zip(self.offset[:-1], self.offset[1:], strict=True)])

    @cached_property
    def slope_offset(self) -> Ints:
        """Where a wide feature's cells start when the wide features alone are laid end to end."""
        return np.cumsum(np.where(self.wide, self.size, 0)) - np.where(self.wide, self.size, 0)

    @cached_property
    def slope_at(self) -> Ints:
        """The same by feature, -1 for one that is not wide."""
        return np.where(self.wide, self.slope_offset, -1)

    @cached_property
    def spacing(self) -> tuple[Floats, Floats]:
        """Ten to the power of each feature's digits, and the step between its values, 1 where it has none."""
        return np.power(10.0, self.decimals, dtype=np.float64), np.where(self.step > 0, self.step, 1.0)

    @cached_property
    def rank(self) -> Ints:
        """The place of each feature in `order`."""
        return np.argsort(self.order)

    def _spread(self, values: Values) -> Floats:
        """How evenly the rows are spread over each feature's cells: the entropy."""
        cell = self.locate(values).cell
        counts = [np.bincount(cell[:, j]) for j in range(self.n_features)]
        shares = [c[c > 0] / max(c.sum(), 1) for c in counts]
        return np.array([-(share * np.log(share)).sum() for share in shares])

    def locate(self, values: Values) -> Located:
        """The cell of every value, and where in it the value lies.

        A value beyond the limits belongs to the nearest cell: queries may lie there, draws can't.
        """
        cell, where = np.empty(values.shape, dtype=np.int64), np.empty(values.shape)
        _core.locate(offset=self.offset, low=self.low, high=self.high, values=values, cell=cell, where=where)
        return Located(self, values, cell, where)

    def holds(self, values: Values, cell: Ints) -> NDArray[np.bool_]:
        """Whether a draw from `cell` can be exactly the value there: within the limits and on the feature's spacing."""
        at = self.offset[:-1] + cell
        low, high = self.low[at], self.high[at]
        inside = (values >= low) & (values <= high)
        scale, step = self.spacing
        drawn = np.rint((low + np.rint((values - low) / step) * step) * scale) / scale
        absent = np.isnan(values) & np.isnan(low)
        held: NDArray[np.bool_] = absent | (inside & ((self.count[at] < 2) | (drawn == values)))
        return held

    def log_size(self, cell: Ints, query: Located, of: Ints | slice = EACH) -> Floats:
        """Minus the log density inside each cell: log of its width, or of its values besides the query's.

        of: the query of each row of cells; by default there is one for each, or one for all.
        """
        at = self.offset[:-1] + cell
        count = self.count[at]
        besides = count - ((query.cell[of] == cell) & query.exact[of])
        width = self.high[at] - self.low[at]
        return np.log(np.where(count == 0, np.where(width > 0, width, 1.0), np.maximum(besides, 1)))

    def state(self) -> dict[str, NDArray[np.float64] | Ints]:
        """The arrays that a model file keeps."""
        return {f"grid.{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_state(cls, state: Arrays, schema: Schema) -> Grid:
        """The grid that `state` was taken from; arrays that are no cells of the schema's features are refused."""
        d = len(schema)
        offset = taken(state, "grid.offset", np.int64, (d + 1,))
        if offset[0] != 0 or (np.diff(offset) < 1).any():
            refuse("grid.offset", "does not rise from 0")
        n = int(offset[-1])
        grid = cls(
            offset=offset,
            low=taken(state, "grid.low", np.float64, (n,), finite=False),
            high=taken(state, "grid.high", np.float64, (n,), finite=False),
            count=taken(state, "grid.count", np.int64, (n,)),
            step=taken(state, "grid.step", np.float64, (d,)),
            decimals=taken(state, "grid.decimals", np.int64, (d,)),
            order=taken(state, "grid.order", np.int64, (d,)),
        )
        if not np.array_equal(np.sort(grid.order), np.arange(d)):
            refuse("grid.order", "names a feature twice or not at all")
        for j, feature in enumerate(schema.features):
            grid._check_cells(j, feature)
        return grid

    def _check_cells(self, j: int, feature: Feature) -> None:
        """Refuse cells of a feature that `build` could not have made: kernels index and count by them."""
        at = slice(self.offset[j], self.offset[j + 1])
        low, high, count = self.low[at], self.high[at], self.count[at]
        step, decimals = float(self.step[j]), int(self.decimals[j])
        if not feature.is_number:
            codes = np.arange(feature.n_states)
            if not (np.array_equal(low, codes) and np.array_equal(high, codes) and (count == 1).all() and step == 1):
                refuse("grid.low", f"has other cells for {feature.name!r} than levels")
        elif not _are_cells(low, high, count, step, missing=feature.missing):
            refuse("grid.low", f"has cells for {feature.name!r} that overlap, are no numbers or don't count right")
        if not 0 <= decimals <= MOST_DECIMALS:
            refuse("grid.decimals", f"gives {feature.name!r} {decimals} digits")


@dataclass(frozen=True)
class Located:
    """Rows found among the cells of a grid, once.

    cell: each value's cell, counted from its feature's first. where: its place in the cell, from 0 to 1.
    """

    grid: Grid
    values: Values
    cell: Ints
    where: Floats

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Where a draw from the cell can be exactly the value."""
        return self.grid.holds(self.values, self.cell)

    @cached_property
    def alone(self) -> NDArray[np.bool_]:
        """Where the cell holds nothing but the value."""
        alone: NDArray[np.bool_] = (self.grid.count[self.grid.offset[:-1] + self.cell] == 1) & self.exact
        return alone

    @cached_property
    def settled(self) -> NDArray[np.bool_]:
        """Where the feature has nothing besides the value, so that it can't change."""
        return np.asarray(self.n_others == 0)

    @cached_property
    def place(self) -> NDArray[np.float32]:
        """`where`, as kernels read it."""
        return self.where.astype(np.float32)

    @property
    def n_others(self) -> Ints:
        """How many cells of the feature hold something besides the value."""
        others: Ints = self.grid.size - self.alone
        return others


def _are_cells(low: Floats, high: Floats, count: Ints, step: float, *, missing: bool) -> bool:
    """Whether arrays are the cells of a number: in order, apart, and each of as many values as the step gives it.

    The last one stands for missing values where there are some, and is NaN; no other is.
    """
    if missing:
        if not (np.isnan(low[-1]) and np.isnan(high[-1]) and count[-1] == 1):
            return False
        low, high, count = low[:-1], high[:-1], count[:-1]
    sane = (np.abs(low) <= MAX_NUMBER).all() and (np.abs(high) <= MAX_NUMBER).all() and 0.0 <= step <= MAX_NUMBER
    if len(low) == 0 or not sane:
        return False
    several = low < high
    held = np.rint((high - low) / step) + 1 if step > 0.0 else np.zeros(len(low))
    counted = np.where(several, count == held, count == 1) & (held < 2.0**53)
    return bool((low <= high).all() and (high[:-1] < low[1:]).all() and counted.all())
