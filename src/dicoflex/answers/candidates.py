"""Candidates for answers: draws made minimal, in rounds that look for other ways where too few were found."""

from __future__ import annotations

__all__ = [
    "FAR", "FREE", "Candidates", "brought_near", "candidates", "clear", "coherence_of", "distances_of", "judged",
    "judges_of", "merits_of", "outstepped", "standing", "wanted_of",
]  # fmt: skip

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.draws import Draws, Terms, draw, repeats
from dicoflex.answers.query import Query, uncounted
from dicoflex.answers.ways import Merits, by_query, count_ways, distances
from dicoflex.certificate import Certificate
from dicoflex.coherence import Coherence
from dicoflex.model import Model
from dicoflex.refinement import Refined, RefinementTask, Wanted, judge, refine
from dicoflex.refinement.judges import Judges
from dicoflex.runtime.columns import Columns
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Values
from dicoflex.values import differ

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DRAWS, LATE_DRAWS = 64, 192
SOUGHT = 20
"""As many answers are sought at least, however few are asked for: with less, the nearest of one is farther than the
nearest of twenty."""
ROUNDS = 10
SAME_P = 2
TURNED = (2, 5)
LEFT_ALONE = ((0,), (0, 1), (1,), (0, 2), (0, 1, 2), (1, 2), (0, 1, 2, 3), (2,))
"""Round by round, which of the features that candidates change most often are left alone, to find other ways."""
LOOKED_FOR = 2
WEAK = 0.0
TOP = 0.995
FAR = 6.0
SMALL_MOVES = 0.15
TIMID = 0.2
HANDICAP = 0.5
LOWER = 0.5
WELL_ABOVE = 2.0
CRAMPED = 0.9


class Effort(NamedTuple):
    """How hard is tried: times that a round draws, rounds without another candidate after which a query gets no more,
    ways, as a share of the answers asked for, below which it gets another at first, and the rounds in which it gets
    another for want of clear candidates."""

    drawn: int
    in_vain: int
    ways: float
    clear: int


FREE = Effort(4, 6, 0.9, 5)
# Under limits a round costs several times as much, and there are fewer rows to find.
LIMITED = Effort(2, 4, 0.8, 0)


def effort_for(query: Query) -> Effort:
    """How hard is tried to answer a query."""
    return FREE if query.limits is None else LIMITED


@dataclass(frozen=True)
class Candidates(Columns):
    """Rows that may be answers, of the queries `query`; `drawn` is the row before it was refined."""

    values: Values
    query: Ints
    key: NDArray[np.uint64]
    probability: Floats
    row_density: Floats
    weakest: Floats
    room: NDArray[np.bool_]
    drawn: Values

    def without_repeats(self) -> Candidates:
        """The rows that no earlier row of the same query equals."""
        return self.take(~repeats(self.key, self.query))


def coherence_of(model: Model) -> Coherence:
    """What goes together in the model's table; refinement is asked for only where that was learned."""
    assert model.coherence is not None
    return model.coherence


def judges_of(model: Model, query: Query) -> Judges:
    """Who judges refined rows; where anything may be an answer, nothing has to go together."""
    return model.judges if query.request.coherent else model.lenient_judges


def certificate_of(model: Model) -> Certificate:
    """What held-out rows taught: how much surer than asked for the surrogate must be."""
    assert model.certificate is not None
    return model.certificate


def wanted_of(model: Model, query: Query, surer: float = 1.0) -> Wanted:
    """What an answer must be, per query: surer than asked for by a margin, and not too rare where that is asked.

    surer: which part of the margin is added: 0 for none of it, 1 for all; 2 for all that there is up to certainty.
    """
    request, target = query.request, query.context.target
    sure = query.context.confidence if model.has_confidence else np.maximum(query.context.confidence, 0.5)
    margin, top = min(surer, 1.0) * certificate_of(model).margin_at(target, sure), np.maximum(sure, TOP)
    probability = np.minimum(sure + margin, top)
    probability += max(surer - 1.0, 0.0) * (top - probability)
    log_density = weakest = lower = np.full(len(target), -np.inf)
    if request.coherent and request.min_plausibility > 0:
        density = coherence_of(model).density
        log_density = density.floors(request.min_plausibility)[0][target]
        lower = density.floors(LOWER * request.min_plausibility)[0][target]
        weakest = density.floors(min(WEAK, request.min_plausibility))[1][target]
    return Wanted(target, probability, log_density, weakest, lower)


def candidates(
    model: Model, query: Query, which: Ints, terms: Terms, again: int = 0, *, surer: float = 1.0
) -> Candidates:  # fmt: skip
    """Refined draws of the queries `which`; those that are short get further rounds, with other ways asked for.

    By turns what most candidates change is left alone, and the strongest changes are undone first. again: counts the
    calls for the same queries. surer: as `wanted_of` takes it.
    """
    wanted = wanted_of(model, query, surer)
    frozen = query.context.frozen.copy()
    parts: list[Candidates] = []
    best, latest = np.zeros(len(query), dtype=np.int64), np.zeros(len(query), dtype=np.int64)
    for round_number in range(ROUNDS):
        drawn = _draws(model, query, which, frozen, terms, (again, round_number))
        asked = RefinementTask(query.context.query, wanted, frozen, query.limits, turned=round_number in TURNED)
        rows = _refined(model, query, drawn, asked)
        parts.append(rows if terms.remembered is None else rows.take(~terms.remembered.hold(rows.values)))
        found = Candidates.join(parts).without_repeats()
        have = np.bincount(found.query, minlength=len(query))
        latest[have > best], best = round_number, have
        able = which[round_number - latest[which] < effort_for(query).in_vain]
        which = _short(model, query, found, able, round_number)
        if len(which) == 0 or round_number == ROUNDS - 1:
            break
        frozen = query.context.frozen.copy()
        if round_number + 1 not in TURNED:
            frozen |= _commonest(query, found, which, LEFT_ALONE[round_number % len(LEFT_ALONE)])
    return found


def _draws(
    model: Model, query: Query, which: Ints, frozen: NDArray[np.bool_], terms: Terms, turn: tuple[int, int]
) -> Draws:  # fmt: skip
    """Draws for the queries `which`; `turn` counts the calls and the rounds for them.

    Late rounds are of the few queries that are still short: they try another p, and harder.
    """
    again, round_number = turn
    n = _sought(query)
    most = max(DRAWS if round_number < SAME_P else LATE_DRAWS, 3 * n)
    context = query.context.take(which).but(frozen=frozen[which])
    if round_number >= SAME_P:
        others = sorted(model.exponents, key=lambda p: abs(np.log(p / context.p[0])))
        context = context.but(p=np.full(len(which), others[(round_number - SAME_P + 1) % len(others)]))
    keys = query.keys[which] + np.uint64(again * ROUNDS + round_number)
    return draw(
        model.generator, model.encoding, context, keys, most, terms.take(which),
        enough=max(most // 2, n), rounds=effort_for(query).drawn,
    ).of(which)  # fmt: skip


def _refined(model: Model, query: Query, draws: Draws, asked: RefinementTask) -> Candidates:
    most = 3 * _sought(query)
    found = refine(model.encoding, judges_of(model, query), draws.values, draws.query, asked, most=most)
    rows, moved = _finished(model, query, found, draws.query, draws.values)
    return rows.take(moved & _fine(model, query, rows, asked.wanted))


def _finished(
    model: Model, query: Query, found: Refined, which: Ints, drawn: Values
) -> tuple[Candidates, NDArray[np.bool_]]:  # fmt: skip
    """Refined rows as a frame would hold them, and which of them still differ from their query."""
    which = which[found.source]
    own = query.context.query[which]
    # What was left alone is the row's own, also where a draw could not be that: outside the range, or off its grid.
    values, moved = model.encoding.finish(found.values[:, None], own, np.zeros(own.shape, dtype=bool))
    rows = Candidates(
        values=values, query=which, key=row_keys(values, 0), probability=found.probability,
        row_density=found.row_density, weakest=found.weakest, room=found.room, drawn=drawn[found.source],
    )  # fmt: skip
    return rows, moved


def _sought(query: Query) -> int:
    """How many answers per query are sought."""
    return max(query.request.n, SOUGHT)


def brought_near(model: Model, query: Query, rows: Candidates) -> Candidates:
    """Rows of queries that were found otherwise than by drawing, refined as draws are."""
    nothing = np.full(len(rows), np.nan)
    drawn = Draws(rows.values, rows.query, rows.key, nothing, rows.probability, np.zeros(len(rows), dtype=np.int8))
    asked = RefinementTask(query.context.query, wanted_of(model, query), query.context.frozen, query.limits)
    return _refined(model, query, drawn, asked)


def standing(
    model: Model, query: Query, trials: Candidates, wanted: Wanted, feature: Ints, origin: Floats
) -> tuple[Candidates, Ints]:
    """Those of the trials that refinement would leave as they are, and their places among the trials.

    Nothing is mended: they go together, are usual enough and keep every limit, as they are. feature, origin: of each
    the number that is set to where it may stop, -1 for none, and what steps are counted from.
    """
    asked = RefinementTask(query.context.query, wanted, query.context.frozen, query.limits)
    found = judge(model.encoding, judges_of(model, query), trials.values, trials.query, asked, feature, origin)
    rows, fine = _finished(model, query, found, trials.query, trials.drawn)
    if query.limits is not None:
        fine &= ~query.limits.broken(rows.values, query.context.query[rows.query], rows.query)
    return rows.but(room=trials.room[found.source]).take(fine), found.source[fine]


def judged(model: Model, query: Query, values: Values, which: Ints) -> Candidates:
    """Candidates from rows that nobody judged yet."""
    said = model.surrogate.probabilities(values)[np.arange(len(values)), query.context.target[which]]
    row_density, weakest = coherence_of(model).density.judge(values)
    return Candidates(
        values=values, query=which, key=row_keys(values, 0), probability=said, row_density=row_density,
        weakest=weakest, room=np.zeros(len(values), dtype=bool), drawn=values,
    )  # fmt: skip


def merits_of(model: Model, query: Query, found: Candidates) -> Merits:
    """What speaks for each candidate: near by the distance that was asked for; what is not clear comes after that."""
    target, density = query.context.target[found.query], coherence_of(model).density
    plausibility, weakness = density.plausibility(found.row_density, target), density.weakness(found.weakest, target)
    handicap = 1.0 + HANDICAP * (np.maximum(0.0, 1.0 - plausibility / TIMID) + np.maximum(0.0, 1.0 - weakness / TIMID))
    handicap += CRAMPED * ~found.room
    handicap[clear(model, query, found)] = 0.0
    return Merits(distances_of(model, query, found.values, found.query), plausibility + weakness, handicap)


def outstepped(model: Model, query: Query, found: Candidates) -> NDArray[np.bool_]:
    """Which candidates change one ordered level alone, and farther than another one that changes it the same way."""
    own, gaps = query.context.query[found.query], model.judges.gaps
    changed = differ(found.values, own) & ~uncounted(model, query.request)
    # The code after the last level is that of a missing one, which is near to none.
    known = np.maximum(found.values, own) <= gaps
    row = np.flatnonzero((changed.sum(axis=1) == 1) & (changed & known & (gaps > 0)).any(axis=1))
    feature = changed[row].argmax(axis=1)
    step = (found.values - own)[row, feature]
    same = np.column_stack([found.query[row], feature, np.sign(step)])
    _, group = np.unique(same, axis=0, return_inverse=True)
    least = np.full(len(row), np.inf)
    np.minimum.at(least, group.ravel(), np.abs(step))
    out = np.zeros(len(found), dtype=bool)
    out[row] = np.abs(step) > least[group.ravel()]
    return out


def distances_of(model: Model, query: Query, values: Values, which: Ints) -> Floats:
    """How far rows are from the queries `which`: by what the changes cost, or else by the p that was asked for."""
    own = query.context.query[which]
    cost = query.cost(values, own)
    if cost is not None:
        return cost
    p, spread, gaps = query.request.p or 1.0, model.encoding.spread, model.judges.gaps
    # What follows from other changes is no effort of its own.
    counted = ~uncounted(model, query.request)
    apart = distances(values, own, spread, gaps, counted, min(p, 1.0))
    if p < 1.0:
        apart += SMALL_MOVES * distances(values, own, spread, gaps, counted, 1.0)
    return apart


def _fine(model: Model, query: Query, rows: Candidates, wanted: Wanted) -> NDArray[np.bool_]:
    """Which rows are answers still: where a number is far out, the surrogate must be surer; nothing may break."""
    own = query.context.query[rows.query]
    # Nothing is far from what is missing, and levels are nowhere.
    away = np.abs(rows.values - model.encoding.mean) > FAR * model.encoding.spread
    fine = np.ones(len(rows), dtype=bool)
    if away.any():
        far = (differ(rows.values, own) & away).any(axis=1)
        target, sure = query.context.target[rows.query], query.context.confidence[rows.query]
        certificate = certificate_of(model)
        more = certificate.margin_far_out(target) - certificate.margin_at(target, sure)
        fine = ~far | (rows.probability >= wanted.probability[rows.query] + more)
    if query.limits is not None:
        fine &= ~query.limits.broken(rows.values, own, rows.query)
    return fine


def _short(model: Model, query: Query, found: Candidates, which: Ints, round_number: int) -> Ints:
    """Which of the queries have fewer candidates than asked for, or at first few different ways or few clear ones."""
    sought, effort = _sought(query), effort_for(query)
    have = np.bincount(found.query, minlength=len(query))
    short = have < query.request.n
    if round_number < LOOKED_FOR:
        order, edges = by_query(found.query, len(query))
        short |= (have < sought) | (count_ways(found.values[order], query.context.query, edges) < effort.ways * sought)
    if round_number < effort.clear:
        short |= np.bincount(found.query[clear(model, query, found)], minlength=len(query)) < sought
    return which[short[which]]


def clear(model: Model, query: Query, found: Candidates) -> NDArray[np.bool_]:
    """Which candidates owe nothing to the floor: no change is kept for it, and they lie well above it.

    At the floor the density's errors decide, and another density would call half of such rows rare, or a change in
    them needless.
    """
    lowest = query.request.min_plausibility
    if not query.request.coherent or lowest == 0:
        return np.ones(len(found), dtype=bool)
    above = min(WELL_ABOVE * lowest, (1.0 + lowest) / 2)
    floor = coherence_of(model).density.floors(above)[0]
    return found.room & (found.row_density >= floor[query.context.target[found.query]])


def _commonest(query: Query, found: Candidates, which: Ints, places: tuple[int, ...]) -> NDArray[np.bool_]:
    """What candidates of a query change most often so far, those at `places`: left alone, another way is found."""
    frozen = np.zeros(query.context.query.shape, dtype=bool)
    for i in which:
        mine = found.values[found.query == i]
        if len(mine) == 0:
            continue
        share = differ(mine, query.context.query[i]).mean(axis=0)
        share[query.context.frozen[i]] = -1.0
        free = int((~query.context.frozen[i]).sum())
        most = np.argsort(-share, kind="stable")[[place for place in places if place < free - 1]]
        frozen[i, most[share[most] > 0]] = True
    return frozen
