"""Drawing: distinct rows from a density, the doubtful ones dropped, in rounds of bounded work."""

from __future__ import annotations

__all__ = ["Draws", "Rules", "draw"]

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex.encoding import Encoding, Values
from dicoflex.generators.base import Context, Generator
from dicoflex.streams import row_keys

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_ROUNDS = 6
CHUNK_CELLS = 20_000_000


@dataclass(frozen=True)
class Rules:
    """What a draw must be, besides different from the query.

    doubt: encoded rows and their targets to the probability that the stand-in gives the target; None to drop nothing.
    floor: per query, the least such probability. known: sorted keys of rows that a draw may not equal.
    """

    doubt: Callable[[Values, Ints], Floats] | None
    floor: Floats
    known: NDArray[np.uint64] | None = None


@dataclass(frozen=True)
class Draws:
    """Rows drawn, query by query in the order drawn.

    query: which query each row belongs to. sure: whether the row passed all rules; rows that did not stand in only
    where too few passed. repeat: whether the row equals an earlier one of its query.
    """

    values: Values
    query: Ints
    log_density: Floats
    probability: Floats
    sure: NDArray[np.bool_]
    repeat: NDArray[np.bool_]

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Draws:
        """The rows at `index`."""
        return Draws(
            self.values[index],
            self.query[index],
            self.log_density[index],
            self.probability[index],
            self.sure[index],
            self.repeat[index],
        )

    @staticmethod
    def join(parts: list[Draws]) -> Draws:
        """All rows of `parts`."""
        return Draws(
            np.concatenate([p.values for p in parts]),
            np.concatenate([p.query for p in parts]),
            np.concatenate([p.log_density for p in parts]),
            np.concatenate([p.probability for p in parts]),
            np.concatenate([p.sure for p in parts]),
            np.concatenate([p.repeat for p in parts]),
        )


def draw(
    generator: Generator,
    encoding: Encoding,
    context: Context,
    keys: NDArray[np.uint64],
    n: int,
    rules: Rules,
    *,
    exact: bool,
) -> Draws:
    """`n` rows for each entry of `context`: distinct, none equal to its query, sure ones first.

    A query that is short after a round of draws gets further rounds, at most six in all. What then lacks is made up,
    when `exact`, with rows that failed a rule and then with repeats; otherwise there are fewer. Every query's rows
    depend on its own draws alone, so batching does not matter.
    """
    size = max(1, CHUNK_CELLS // (2 * n * len(encoding.schema)))
    parts = []
    for low in range(0, len(context), size):
        at = slice(low, low + size)
        chunk_rules = Rules(rules.doubt, rules.floor[at], rules.known)
        part = _draw_chunk(generator, encoding, context.take(at), keys[at], n, chunk_rules, exact)
        parts.append(_shift(part, low))
    return Draws.join(parts)


def _shift(draws: Draws, by: int) -> Draws:
    return Draws(draws.values, draws.query + by, draws.log_density, draws.probability, draws.sure, draws.repeat)


def _draw_chunk(
    generator: Generator,
    encoding: Encoding,
    context: Context,
    keys: NDArray[np.uint64],
    n: int,
    rules: Rules,
    exact: bool,
) -> Draws:
    gathered: Draws | None = None
    waiting = np.arange(len(context))
    first = 0
    for round_number in range(MOST_ROUNDS):
        count = n + max(8, n // 2) if round_number == 0 else 2 * n
        fresh = _round(generator, encoding, context, keys, waiting, count, first, rules)
        gathered = fresh if gathered is None else _merge(gathered, fresh)
        first += count
        enough = np.bincount(gathered.query[gathered.sure], minlength=len(context)) >= n
        waiting = np.flatnonzero(~enough)
        if len(waiting) == 0:
            break
    assert gathered is not None
    return _settle(gathered, len(context), n, exact)


def _round(
    generator: Generator,
    encoding: Encoding,
    context: Context,
    keys: NDArray[np.uint64],
    waiting: Ints,
    count: int,
    first: int,
    rules: Rules,
) -> Draws:
    """One round of draws for the queries `waiting`, judged."""
    part = context.take(waiting)
    values, log_density = generator.sample(part, count, keys[waiting], first)
    d = values.shape[2]
    rows = encoding.snap(values.reshape(-1, d))
    query = np.repeat(waiting, count)
    if log_density is None:
        scored = [
            generator.log_prob(part.take(slice(i, i + 1)).repeat(count), rows[i * count : (i + 1) * count])
            for i in range(len(waiting))
        ]
        log_density = np.concatenate(scored)
    fine = encoding.differs(rows, context.query[query]).any(axis=1)
    if rules.known is not None:
        fine &= ~_member(row_keys(rows, 0), rules.known)
    probability = np.full(len(rows), np.nan)
    sure = fine.copy()
    if rules.doubt is not None:
        probability = rules.doubt(rows, context.target[query])
        sure &= probability >= rules.floor[query]
    draws = Draws(rows, query, log_density.reshape(-1), probability, sure, np.zeros(len(rows), dtype=bool))
    return _mark_repeats(draws.take(np.flatnonzero(fine)))


def _member(keys: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    if len(known) == 0:
        return np.zeros(len(keys), dtype=bool)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == keys
    return found


def _merge(old: Draws, fresh: Draws) -> Draws:
    joined = Draws.join([old, fresh])
    return _mark_repeats(joined.take(np.argsort(joined.query, kind="stable")))


def _mark_repeats(draws: Draws) -> Draws:
    """The draws with every row that an earlier one of its query equals marked, and no longer sure."""
    key = row_keys(np.column_stack([draws.query.astype(float), draws.values]), 1)
    _, firsts = np.unique(key, return_index=True)
    repeat = np.ones(len(key), dtype=bool)
    repeat[firsts] = False
    return Draws(draws.values, draws.query, draws.log_density, draws.probability, draws.sure & ~repeat, repeat)


def _settle(draws: Draws, n_queries: int, n: int, exact: bool) -> Draws:
    """The first `n` per query: sure rows, then (when `exact`) doubtful ones, then repeats, over and over if need be."""
    tier = np.where(draws.sure, 0, np.where(draws.repeat, 2, 1))
    order = np.lexsort((np.arange(len(tier)), tier, draws.query))
    query = draws.query[order]
    start = np.searchsorted(query, np.arange(n_queries + 1))
    rank = np.arange(len(order)) - start[query]
    chosen = order[rank < n]
    if not exact:
        return draws.take(chosen[draws.sure[chosen]])
    have = np.diff(start)
    index = [order[start[i] + np.arange(n) % have[i]] for i in range(n_queries)] if (have < n).any() else [chosen]
    return draws.take(np.concatenate(index))
