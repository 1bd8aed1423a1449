"""Drawing: distinct rows from a density, the doubtful ones dropped, in rounds of bounded work."""

from __future__ import annotations

__all__ = ["Draws", "Terms", "Verdict", "draw", "repeats"]

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core
from dicoflex.generators.base import Context, Generator
from dicoflex.limits.limits import Limits
from dicoflex.runtime.columns import Columns, is_all
from dicoflex.runtime.randomness import row_keys
from dicoflex.runtime.threads import one_blas_thread
from dicoflex.surrogate import Surrogate
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.remembered import Remembered

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_ROUNDS = 6
MOST_BLOCKS = 4
CHUNK_CELLS = 6_000_000
NOBODY = np.empty((0, 0))


@dataclass(frozen=True)
class Terms:
    """What a draw must be, besides different from the query.

    surrogate: what draws are doubted by; None to drop nothing. least_probability: per query, what it must give the
    target at least. unlikely: the share of the draws that a query gets at once, the least likely ones, that is left
    out. remembered: rows that a draw may not equal. limits: what constraints allow, per query.
    scored: whether log densities are wanted.
    """

    surrogate: Surrogate | None
    least_probability: Floats
    unlikely: float = 0.0
    remembered: Remembered | None = None
    limits: Limits | None = None
    scored: bool = True

    def take(self, index: NDArray[np.int64] | slice) -> Terms:
        """The terms of the queries at `index`."""
        if is_all(index, len(self.least_probability)):
            return self
        limits = None if self.limits is None else self.limits.take(index)
        return replace(self, least_probability=self.least_probability[index], limits=limits)


class Verdict(IntEnum):
    """What the terms say of a draw; a query is served in this order, and never with the last."""

    GOOD = 0
    UNLIKELY = 1
    REPEAT = 2
    DOUBTFUL = 3
    REFUSED = 4


# As the core reads them; and to look one up among the others takes a microsecond.
GOOD, UNLIKELY, REPEAT, DOUBTFUL, REFUSED = (np.int8(verdict) for verdict in Verdict)


@dataclass(frozen=True)
class Draws(Columns):
    """Rows drawn, query by query in the order drawn.

    query: which query each row belongs to. key: the row's hash. probability: what the surrogate gives the target, NaN
    where none was asked. verdict: what the terms say of the row, as a number of `Verdict`.
    """

    values: Values
    query: Ints
    key: NDArray[np.uint64]
    log_density: Floats
    probability: Floats
    verdict: NDArray[np.int8]

    def of(self, queries: Ints) -> Draws:
        """The same rows, their queries renamed: what was number i is now `queries[i]`."""
        return self if is_all(queries, 1) else self.but(query=queries[self.query])

    def without_repeats(self) -> Draws:
        """The rows that no earlier row of the same query equals."""
        return self.take(~repeats(self.key, self.query))


def draw(
    generator: Generator,
    encoding: Encoding,
    context: Context,
    keys: NDArray[np.uint64],
    n: int,
    terms: Terms,
    *,
    enough: int | None = None,
    rounds: int = MOST_ROUNDS,
) -> Draws:
    """`n` rows for each entry of `context`: distinct, none equal to its query, sure ones first.

    A query that is short after a round of draws gets further ones, at most `rounds` in all. What then lacks is made up
    with repeats and then with doubtful rows. Where a number is `enough`, no rounds are made for more, nothing is made
    up, and there are at most `n`, which the first round draws. A query whose draws all equal it, or a known row, has
    none. Every query's rows depend on its own draws alone, so batching does not matter.
    """
    size = max(1, CHUNK_CELLS // (2 * n * len(encoding.schema)))
    parts = []
    with one_blas_thread():
        for low in range(0, len(context), size):
            at = slice(low, low + size)
            chunk = _Chunk(generator, encoding, context.take(at), keys[at], terms.take(at))
            parts.append(chunk.draw(n, enough, rounds).of(np.arange(low, low + len(chunk.keys))))
    return Draws.join(parts)


@dataclass(frozen=True)
class _Chunk:
    """Queries that are drawn for together, and what their draws must be."""

    generator: Generator
    encoding: Encoding
    context: Context
    keys: NDArray[np.uint64]
    terms: Terms

    def draw(self, n: int, enough: int | None, rounds: int) -> Draws:
        spare = n // 2 if self.terms.surrogate is not None else n // 4
        first = n + max(8, spare) if enough is None else n
        goal = n if enough is None else enough
        block = max(8, -(-2 * n // MOST_BLOCKS))
        count = len(self.context)
        waiting = np.arange(count)
        parts = [self.round(waiting, first, 0)]
        drawn = np.full(count, first)
        for round_number in range(1, rounds):
            # A density with few likely rows would go on for ever: after half of the rounds unlikely ones will do.
            worst = GOOD if 2 * round_number <= MOST_ROUNDS else UNLIKELY
            have = np.zeros(count, dtype=np.int64)
            for part in parts:
                have += np.bincount(part.query[part.verdict <= worst], minlength=len(have))
            waiting = waiting[have[waiting] < goal]
            if len(waiting) == 0:
                break
            blocks = _more(goal - have[waiting], have[waiting], drawn[waiting], block)
            number = np.concatenate([np.arange(times) for times in blocks.tolist()])
            fresh = self.round(np.repeat(waiting, blocks), block, first + number * block)
            parts.append(_mark_repeats(fresh, parts))
            drawn[waiting] += blocks * block
            first += MOST_BLOCKS * block
        return _settle(Draws.join(parts), count, n, exact=enough is None)

    def round(self, waiting: Ints, count: int, first: int | Ints) -> Draws:
        """One round, judged: `count` draws for each query in `waiting`; one that stands there again gets others."""
        part = self.context.take(waiting)
        limits = None if self.terms.limits is None else self.terms.limits.take(waiting)
        values, log_density = self.generator.sample(part, count, self.keys[waiting], first, limits)
        rows, moved = self.encoding.finish(values, part.query, part.frozen)
        if limits is not None and limits.follows.any():
            moved &= limits.consequences.settle(rows, np.repeat(part.query, count, axis=0))
            part, log_density = part.but(frozen=part.frozen & ~limits.follows), None
        if log_density is None:
            scored = self.terms.scored
            log_density = _scores(self.generator, part, rows) if scored else np.full(len(rows), np.nan)
        query, terms = np.repeat(waiting, count), self.terms
        self._refuse(rows, query, moved)
        key, density = row_keys(rows, 0), log_density.reshape(-1)
        said = NOBODY if terms.surrogate is None else terms.surrogate.probabilities(rows)
        probability, verdict = np.empty(len(rows)), np.empty(len(rows), dtype=np.int8)
        _core.judge(
            log_density=density, each=count, unlikely=terms.unlikely, said=said, target=self.context.target,
            least=terms.least_probability, query=query, fine=moved, key=key, probability=probability, verdict=verdict,
        )  # fmt: skip
        return Draws(rows, query, key, density, probability, verdict)

    def _refuse(self, rows: Values, query: Ints, fine: NDArray[np.bool_]) -> None:
        """Take from `fine` the rows that break a limit or equal one that they may not."""
        if self.terms.limits is not None:
            fine &= ~self.terms.limits.broken(rows, self.context.query[query], query)
        if self.terms.remembered is not None:
            fine &= ~self.terms.remembered.hold(rows)


def _more(lacks: Ints, have: Ints, drawn: Ints, block: int) -> Ints:
    """How many blocks of draws each query gets next: what it lacks at the rate so far, and half as many again.

    A query's number depends on its own draws alone, and its next round starts at the same place of its stream whatever
    that number is, so batching does not matter.
    """
    wanted = 1.5 * lacks * drawn / np.maximum(have, 1)
    blocks: Ints = np.minimum(np.ceil(wanted / block), MOST_BLOCKS).astype(np.int64)
    return blocks


def _scores(generator: Generator, context: Context, rows: Values) -> Floats:
    """The log densities of equally many rows per entry of `context`."""
    each = len(rows) // len(context)
    parts = [
        generator.log_prob(context.take(slice(i, i + 1)).repeat(each), rows[i * each : (i + 1) * each])
        for i in range(len(context))
    ]
    return np.concatenate(parts)


def _mark_repeats(draws: Draws, earlier: list[Draws]) -> Draws:
    """The draws with every row marked that an earlier one, of the same query, equals, unless it is worse anyway."""
    key = np.concatenate([*(part.key for part in earlier), draws.key])
    query = np.concatenate([*(part.query for part in earlier), draws.query])
    repeat = repeats(key, query)[len(key) - len(draws.key) :]
    draws.verdict[repeat] = np.maximum(draws.verdict[repeat], REPEAT)
    return draws


def repeats(key: NDArray[np.uint64], query: Ints) -> NDArray[np.bool_]:
    """Which rows equal one before them of the same query."""
    repeat = np.empty(len(key), dtype=bool)
    _core.mark_seen(key=key, query=query, seen=repeat)
    return repeat


def _settle(draws: Draws, n_queries: int, n: int, *, exact: bool) -> Draws:
    """The first `n` per query in the order of the verdicts; without `exact`, distinct and undoubted rows only."""
    worst = DOUBTFUL if exact else UNLIKELY
    places = np.empty(n * n_queries, dtype=np.int64)
    filled = _core.first_rows(
        query=draws.query, verdict=draws.verdict, worst=int(worst), n_queries=n_queries, n=n, exact=exact, places=places
    )
    return draws.take(places[:filled])
