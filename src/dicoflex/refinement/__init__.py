"""Refinement: each candidate is made minimal, and brought as near to its query as the judges allow.

A candidate that does not stand is first mended. Then changes are undone, one by one, while the row stands without
them; then each changed number moves towards the query. It is deterministic: the same draws give the same rows.
"""

from __future__ import annotations

__all__ = ["Refined", "Wanted", "refine"]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex.limits.limits import Limits
from dicoflex.refinement.judges import Bounds, Judges
from dicoflex.refinement.moves import refine_rows
from dicoflex.runtime.columns import Columns
from dicoflex.runtime.threads import in_threads
from dicoflex.table.encoding import Encoding, Values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
SLICE = 16


@dataclass(frozen=True)
class Wanted(Columns):
    """What a refined row must be, per query: its class, the stand-in's probability of it, and the two floors."""

    target: Ints
    probability: Floats
    log_density: Floats
    weakest: Floats

    def matrix(self) -> Floats:
        """The four as columns."""
        return np.column_stack([self.target, self.probability, self.log_density, self.weakest])


@dataclass(frozen=True)
class Refined(Columns):
    """Rows that stand: which draw each comes from, what the stand-in says of it, and how it compares with real rows."""

    values: Values
    source: Ints
    probability: Floats
    row_density: Floats
    weakest: Floats


def refine(
    encoding: Encoding,
    judges: Judges,
    draws: Values,
    which: Ints,
    query: Values,
    wanted: Wanted,
    *,
    frozen: Bools,
    limits: Limits | None,
    variants: int = 1,
) -> Refined:
    """The draws of the queries `which`, refined: up to `variants` rows of each, by different orders of undoing.

    Rules between features are looked at afterwards: rows that break one are refined again with the features that rules
    name left as they were drawn.
    """
    d = query.shape[1]
    found, stands = _pass(judges, draws, which, query, wanted, Bounds.of(encoding, frozen, limits, _none(d)), variants)
    if limits is None or not limits.constraints.rules:
        return found.take(stands)
    broken = _broken(encoding, limits, found, which, query) & stands
    if broken.any():
        touched = np.asarray(limits.clauses.touches.any(axis=0)) if len(limits.clauses) else np.ones(d, dtype=bool)
        again = np.unique(found.source[broken])
        bounds = Bounds.of(encoding, frozen, limits, touched)
        more, fine = _pass(judges, draws[again], which[again], query, wanted, bounds, variants)
        more = Refined(more.values, again[more.source], more.probability, more.row_density, more.weakest)
        kept = more.take(fine)
        found = Refined.join([found.take(stands & ~broken), kept])
        return found.take(~_broken(encoding, limits, found, which, query))
    return found.take(stands)


def _none(d: int) -> Bools:
    return np.zeros(d, dtype=bool)


def _broken(encoding: Encoding, limits: Limits, found: Refined, which: Ints, query: Values) -> Bools:  # noqa: ARG001
    entry = which[found.source]
    return limits.broken(found.values, query[entry], entry)


def _pass(
    judges: Judges, draws: Values, which: Ints, query: Values, wanted: Wanted, bounds: Bounds, variants: int
) -> tuple[Refined, Bools]:
    """Every draw refined in `variants` ways, and which of the rows stand."""
    rows = np.repeat(draws, variants, axis=0)
    stands, scores = np.zeros(len(rows), dtype=bool), np.zeros((len(rows), 3))
    matrix = wanted.matrix()

    def work(low: int, high: int) -> None:
        refine_rows(low, high, rows, variants, query, which, matrix, judges, bounds, stands, scores)

    in_threads(work, len(draws), least=SLICE, most=SLICE)
    source = np.repeat(np.arange(len(draws)), variants)
    return Refined(rows, source, scores[:, 0], scores[:, 1], scores[:, 2]), stands
