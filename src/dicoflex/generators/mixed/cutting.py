"""A number's values cut into cells: atoms where rows share a value, runs and intervals between them."""

from __future__ import annotations

__all__ = ["LOPSIDED", "MIN_CELL", "number_cells"]

import heapq
import math

import numpy as np

from dicoflex._types import Floats
from dicoflex.table.rarity import outwards, round_near
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
