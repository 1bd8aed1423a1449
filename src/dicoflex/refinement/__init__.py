"""Refinement: each candidate is made minimal, and brought as near to its query as the judges allow.

A candidate that does not stand is first mended. Then changes are undone, one by one, while the row stands without
them; then each changed number moves towards the query. It is deterministic: the same draws give the same rows.
"""

from __future__ import annotations

__all__ = ["Asked", "Refined", "Wanted", "refine"]

from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Asked:
    """Queries and what their answers must be: values (n, d), wishes, what is frozen (n, d), and other limits."""

    query: Values
    wanted: Wanted
    frozen: Bools
    limits: Limits | None


def refine(
    encoding: Encoding, judges: Judges, draws: Values, which: Ints, asked: Asked, *, variants: int = 1
) -> Refined:
    """The draws of the queries `which`, refined: up to `variants` rows of each, by different orders of undoing.

    Rules between features are looked at afterwards: rows that break one are refined again with the features that rules
    name left as they were drawn.
    """
    d, limits = asked.query.shape[1], asked.limits
    bounds = Bounds.of(encoding, asked.frozen, limits, np.zeros(d, dtype=bool))
    found, stands = _pass(judges, draws, which, asked, bounds, variants=variants)
    if limits is None or not limits.constraints.rules:
        return found.take(stands)
    broken = stands & _broken(limits, found, which, asked.query)
    if not broken.any():
        return found.take(stands)
    touched = np.asarray(limits.clauses.touches.any(axis=0)) if len(limits.clauses) else np.ones(d, dtype=bool)
    again = np.unique(found.source[broken])
    bounds = Bounds.of(encoding, asked.frozen, limits, touched)
    more, fine = _pass(judges, draws[again], which[again], asked, bounds, variants=variants)
    more = replace(more, source=again[more.source]).take(fine)
    both = Refined.join([found.take(stands & ~broken), more])
    return both.take(~_broken(limits, both, which, asked.query))


def _broken(limits: Limits, found: Refined, which: Ints, query: Values) -> Bools:
    entry = which[found.source]
    return limits.broken(found.values, query[entry], entry)


def _pass(
    judges: Judges, draws: Values, which: Ints, asked: Asked, bounds: Bounds, *, variants: int
) -> tuple[Refined, Bools]:
    """Every draw refined in `variants` ways, and which of the rows stand."""
    rows = np.repeat(draws, variants, axis=0)
    stands, scores = np.zeros(len(rows), dtype=bool), np.zeros((len(rows), 3))
    matrix = asked.wanted.matrix()

    def work(low: int, high: int) -> None:
        refine_rows(low, high, rows, variants, asked.query, which, matrix, judges, bounds, stands, scores)

    in_threads(work, len(draws), least=SLICE, most=SLICE)
    source = np.repeat(np.arange(len(draws)), variants)
    return Refined(rows, source, scores[:, 0], scores[:, 1], scores[:, 2]), stands
