"""Drawing: distinct rows from a density, the doubtful ones dropped, in rounds of bounded work."""

from __future__ import annotations

__all__ = ["Draws", "Terms", "Verdict", "draw"]

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dicoflex.encoding import Encoding, Values
from dicoflex.generators.base import Context, Generator
from dicoflex.limits import Limits
from dicoflex.parallel import one_blas_thread
from dicoflex.streams import GOLDEN, row_keys

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_ROUNDS = 6
CHUNK_CELLS = 6_000_000


@dataclass(frozen=True)
class Terms:
    """What a draw must be, besides different from the query.

    doubt: encoded rows, their targets and how many rows each query has, to the probability that the stand-in gives the
    target; None to drop nothing.
    floor: per query, the least such probability. unlikely: the share of a query's draws, the least likely ones, that is
    left out. known: sorted keys of rows that a draw may not equal. limits: what constraints allow, per query.
    scored: whether log densities are wanted.
    """

    doubt: Callable[[Values, Ints, int], Floats] | None
    floor: Floats
    unlikely: float = 0.0
    known: NDArray[np.uint64] | None = None
    limits: Limits | None = None
    scored: bool = True

    def take(self, index: NDArray[np.int64] | slice) -> Terms:
        """The terms of the queries at `index`."""
        return replace(self, floor=self.floor[index], limits=None if self.limits is None else self.limits.take(index))


class Verdict(IntEnum):
    """What the terms say of a draw; a query is served in this order."""

    GOOD = 0
    UNLIKELY = 1
    REPEAT = 2
    DOUBTFUL = 3


@dataclass(frozen=True)
class Draws:
    """Rows drawn, query by query in the order drawn.

    query: which query each row belongs to. key: the row's hash. probability: what the stand-in gives the target, NaN
    where none was asked. verdict: what the terms say of the row, as a number of `Verdict`.
    """

    values: Values
    query: Ints
    key: NDArray[np.uint64]
    log_density: Floats
    probability: Floats
    verdict: NDArray[np.int8]

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Draws:
        """The rows at `index`."""
        return Draws(*(getattr(self, field.name)[index] for field in fields(self)))

    @staticmethod
    def join(parts: list[Draws]) -> Draws:
        """All rows of `parts`."""
        return Draws(*(np.concatenate([getattr(p, field.name) for p in parts]) for field in fields(Draws)))

    def of(self, queries: Ints) -> Draws:
        """The same rows, their queries renamed: what was number i is now `queries[i]`."""
        return replace(self, query=queries[self.query])

    def without_repeats(self) -> Draws:
        """The rows that no earlier row of the same query equals."""
        return self.take(~_repeats(self))


def draw(
    generator: Generator,
    encoding: Encoding,
    context: Context,
    keys: NDArray[np.uint64],
    n: int,
    terms: Terms,
    *,
    enough: int | None = None,
) -> Draws:
    """`n` rows for each entry of `context`: distinct, none equal to its query, sure ones first.

    A query that is short after a round of draws gets further rounds, at most six in all. What then lacks is made up
    with repeats and then with doubtful rows. Where a number is `enough`, no rounds are made for more, nothing is made
    up, and there are at most `n`, which the first round draws. A query whose draws all equal it, or a known row, has
    none. Every query's rows depend on its own draws alone, so batching does not matter.
    """
    size = max(1, CHUNK_CELLS // (2 * n * len(encoding.schema)))
    parts = []
    with one_blas_thread():
        for low in range(0, len(context), size):
            at = slice(low, low + size)
            part = _draw_chunk(generator, encoding, context.take(at), keys[at], n, terms.take(at), enough)
            parts.append(part.of(np.arange(low, low + len(keys[at]))))
    return Draws.join(parts)


def _draw_chunk(
    generator: Generator,
    encoding: Encoding,
    context: Context,
    keys: NDArray[np.uint64],
    n: int,
    terms: Terms,
    enough: int | None,
) -> Draws:
    first = n + max(8, n // 2) if enough is None else n
    goal = n if enough is None else enough
    waiting = np.arange(len(context))
    gathered = _round(generator, encoding, context, keys, waiting, first, 0, terms)
    served: list[Draws] = []
    drawn = np.full(len(context), first)
    for round_number in range(1, MOST_ROUNDS):
        # A density with few likely rows would go on for ever: after half of the rounds unlikely ones will do.
        fine = gathered.verdict <= (Verdict.GOOD if 2 * round_number <= MOST_ROUNDS else Verdict.UNLIKELY)
        have = np.bincount(gathered.query[fine], minlength=len(context))
        waiting = waiting[have[waiting] < goal]
        if len(waiting) == 0:
            break
        waits = np.isin(np.arange(len(context)), waiting)[gathered.query]
        served.append(gathered.take(~waits))
        counts = _more(goal - have[waiting], have[waiting], drawn[waiting], n)
        fresh = [
            _round(generator, encoding, context, keys, waiting[counts == count], int(count), first, terms)
            for count in np.unique(counts)
        ]
        gathered = _merge(gathered.take(waits), *fresh)
        drawn[waiting] += counts
        first += 2 * n
    return _settle(Draws.join([*served, gathered]), len(context), n, exact=enough is None)


def _more(lacks: Ints, have: Ints, drawn: Ints, n: int) -> Ints:
    """How many draws each query gets next: what it lacks at the rate so far and half as many again, in quarters of 2 n.

    A query's number depends on its own draws alone, and its next round starts at the same place of its stream whatever
    that number is, so batching does not matter.
    """
    wanted = 1.5 * lacks * drawn / np.maximum(have, 1)
    step = max(8, -(-2 * n // 4))
    counts: Ints = np.minimum(np.ceil(wanted / step) * step, 2 * n).astype(np.int64)
    return counts


def _round(
    generator: Generator,
    encoding: Encoding,
    context: Context,
    keys: NDArray[np.uint64],
    waiting: Ints,
    count: int,
    first: int,
    terms: Terms,
) -> Draws:
    """One round of draws for the queries `waiting`, judged."""
    part = context.take(waiting)
    limits = None if terms.limits is None else terms.limits.take(waiting)
    values, log_density = generator.sample(part, count, keys[waiting], first, limits)
    query = np.repeat(waiting, count)
    rows, own = values.reshape(len(query), -1), np.repeat(part.query, count, axis=0)
    # A value that was kept may lie beyond the limits that a new one is held to; it stays as it is.
    changed = ~np.repeat(part.frozen, count, axis=0) & encoding.differs(rows, own)
    rows = np.where(changed, encoding.snap(rows), own)
    if log_density is None:
        log_density = _scores(generator, part, rows) if terms.scored else np.full(len(rows), np.nan)
    key = row_keys(rows, 0)
    fine: NDArray[np.bool_] = np.asarray(encoding.differs(rows, own).any(axis=1))
    if terms.limits is not None:
        fine &= ~terms.limits.broken(rows, own, query)
    if terms.known is not None:
        fine &= ~_member(key, terms.known)
    density = log_density.reshape(len(waiting), count)
    usual = np.ones(len(rows), dtype=bool)
    if terms.unlikely > 0:
        usual = (density >= np.quantile(density, terms.unlikely, axis=1, keepdims=True)).reshape(-1)
    verdict = np.where(usual, Verdict.GOOD, Verdict.UNLIKELY).astype(np.int8)
    probability = np.full(len(rows), np.nan)
    if terms.doubt is not None:
        probability = terms.doubt(rows, context.target[query], count)
        verdict[probability < terms.floor[query]] = Verdict.DOUBTFUL
    draws = Draws(rows, query, key, density.reshape(-1), probability, verdict)
    return _mark_repeats(draws.take(np.flatnonzero(fine)))


def _scores(generator: Generator, context: Context, rows: Values) -> Floats:
    """The log densities of equally many rows per entry of `context`."""
    each = len(rows) // len(context)
    parts = [
        generator.log_prob(context.take(slice(i, i + 1)).repeat(each), rows[i * each : (i + 1) * each])
        for i in range(len(context))
    ]
    return np.concatenate(parts)


def _member(keys: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    if len(known) == 0:
        return np.zeros(len(keys), dtype=bool)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == keys
    return found


def _merge(old: Draws, *fresh: Draws) -> Draws:
    joined = Draws.join([old, *fresh])
    return _mark_repeats(joined.take(np.argsort(joined.query, kind="stable")))


def _mark_repeats(draws: Draws) -> Draws:
    """The draws with every row that an earlier one of its query equals marked, unless it is doubtful anyway."""
    repeat = _repeats(draws) & (draws.verdict != Verdict.DOUBTFUL)
    return replace(draws, verdict=np.where(repeat, Verdict.REPEAT, draws.verdict).astype(np.int8))


def _repeats(draws: Draws) -> NDArray[np.bool_]:
    # Rows of one query have one number taken from their keys, so equal ones stay equal; those of two differ.
    _, firsts = np.unique(draws.key - draws.query.astype(np.uint64) * GOLDEN, return_index=True)
    repeat = np.ones(len(draws.key), dtype=bool)
    repeat[firsts] = False
    return repeat


def _settle(draws: Draws, n_queries: int, n: int, *, exact: bool) -> Draws:
    """The first `n` per query in the order of the verdicts; without `exact`, distinct and undoubted rows only."""
    if not exact:
        draws = draws.take(draws.verdict <= Verdict.UNLIKELY)
    order = np.lexsort((np.arange(len(draws.query)), draws.verdict, draws.query))
    query = draws.query[order]
    start = np.searchsorted(query, np.arange(n_queries + 1))
    rank = np.arange(len(order)) - start[query]
    have = np.diff(start)
    if not exact or (have >= n).all():
        return draws.take(order[rank < n])
    index = [order[start[i] + np.arange(n) % have[i]] for i in np.flatnonzero(have)]
    return draws.take(np.concatenate(index) if index else np.zeros(0, dtype=np.int64))
