"""The moves of refinement, compiled: undo a change, bring a number nearer, mend a row that does not stand.

A row *stands* if the limits allow it, no pair of its values is unseen (that its query has not), the stand-in gives its
target the probability asked for, and its log density and weakest factor are not below the floors.
"""

from __future__ import annotations

__all__ = ["refine_rows"]

import numpy as np

from dicoflex.coherence.bins import cell_of
from dicoflex.coherence.dependencies import follow
from dicoflex.coherence.row_density import edited, factor_of
from dicoflex.coherence.seen_pairs import coherent
from dicoflex.refinement.judges import allowed, differ, new_desk, settle, sure_of
from dicoflex.runtime.compiled import compiled

HALVINGS = 8
ROUNDS = 6
MENDS = 6
TRIES = 4
LEAST_GAIN = 0.25


@compiled()
def _attempt(row, query, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Take the trial in place of the row if it stands; wanted: target, probability, log density, weakest factor."""
    d = len(row)
    if not allowed(desk.trial, query, at, judges.rows.number, bounds):
        return False
    lowest = d
    for j in range(d):
        if differ(row[j], desk.trial[j]):
            desk.pair_trial[j] = cell_of(j, desk.trial[j], judges.pairs)
            desk.cell_trial[j] = cell_of(j, desk.trial[j], judges.rows)
            if desk.cell_trial[j] != desk.cell[j]:
                lowest = min(lowest, judges.factors.rank[j])
        else:
            desk.pair_trial[j], desk.cell_trial[j] = desk.pair[j], desk.cell[j]
    if not coherent(desk.pair_trial, desk.pair_query, judges.pairs.offset, judges.unseen):
        return False
    probability = sure_of(desk.trial, np.int64(wanted[0]), judges, desk)
    if probability < wanted[1]:
        return False
    density = desk.now[1]
    if lowest < d:
        density = edited(desk.cell_trial, lowest, wanted[2], wanted[3], judges.factors, desk.heard, desk.factor,
                         desk.heard_trial, desk.factor_trial, desk.hidden, desk.logits)  # fmt: skip
        if density < wanted[2]:
            return False
        for k in range(lowest):
            if desk.factor[k] < wanted[3]:
                return False
        for k in range(lowest, d):
            desk.factor[k] = desk.factor_trial[k]
            for i in range(desk.heard.shape[1]):
                desk.heard[k, i] = desk.heard_trial[k, i]
    elif density < wanted[2] or desk.now[2] < wanted[3]:
        return False
    for j in range(d):
        row[j], desk.pair[j], desk.cell[j] = desk.trial[j], desk.pair_trial[j], desk.cell_trial[j]
    desk.now[0], desk.now[1], desk.now[2] = probability, density, desk.factor.min()
    return True


@compiled()
def _edit(row, query, j, value, steps, trial):  # type: ignore[no-untyped-def]
    """The trial: the row with feature j set and what depends on it following; returns whether it is one."""
    for i in range(len(row)):
        trial[i] = row[i]
    trial[j] = value
    if len(steps.kind) > 0:
        return follow(trial, query, steps)
    return True


@compiled()
def _undo(row, query, order, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Undo what can be, in `order`, until nothing can; returns whether something was."""
    some, again = False, True
    while again:
        again = False
        for j in order:
            if judges.follower[j] or bounds.pinned[j] or not bounds.may_keep[at, j] or not differ(row[j], query[j]):
                continue
            if _edit(row, query, j, query[j], judges.steps, desk.trial) and _attempt(
                row, query, at, wanted, judges, bounds, desk
            ):
                again = some = True
    return some


@compiled()
def _snap(j, value, origin, judges, bounds):  # type: ignore[no-untyped-def]
    """The value nearest to `value` at which feature j may stop: one that is listed, one that rows share, or one that
    is a number of steps from `origin`."""
    if bounds.has_points[j]:
        first, last, values = bounds.point_at[j], bounds.point_at[j + 1], bounds.point
    else:
        first, last, values = judges.stop_at[j], judges.stop_at[j + 1], judges.stop
    if last == first:
        if judges.step[j] > 0.0:
            value = origin + np.rint((value - origin) / judges.step[j]) * judges.step[j]
        return np.rint(value * judges.digits[j]) / judges.digits[j]
    at = first + np.searchsorted(values[first:last], value)
    if at == last or (at > first and value - values[at - 1] < values[at] - value):
        at -= 1
    return values[at]


@compiled()
def _approach(row, query, j, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Move number j towards the query by bisection; returns whether it moved."""
    near, moved = query[j], False
    for _ in range(HALVINGS):
        far = row[j]
        value = _snap(j, 0.5 * (near + far), far, judges, bounds)
        if not (min(near, far) < value < max(near, far)):
            break
        if _edit(row, query, j, value, judges.steps, desk.trial) and _attempt(
            row, query, at, wanted, judges, bounds, desk
        ):
            moved = True
        else:
            near = value
    return moved


@compiled()
def _untangle(row, query, target, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Undo the changes that stand in unseen pairs, the one in most of them first."""
    d, offset = len(row), judges.pairs.offset
    for _ in range(d):
        worst, most = -1, 0
        for a in range(d):
            if desk.pair[a] == desk.pair_query[a] or judges.follower[a] or bounds.pinned[a]:
                continue
            n = 0
            for b in range(d):
                n += b != a and judges.unseen[offset[a] + desk.pair[a], offset[b] + desk.pair[b]]
            if n > most:
                worst, most = a, n
        if worst < 0:
            break
        if not _edit(row, query, worst, query[worst], judges.steps, desk.trial):
            return False
        for j in range(d):
            row[j] = desk.trial[j]
        settle(row, target, judges, desk)
    return coherent(desk.pair, desk.pair_query, offset, judges.unseen)


@compiled()
def _likelier(k, query, judges, desk):  # type: ignore[no-untyped-def]
    """What the density would rather have at place k, given what is before it: the value, and how much rather."""
    f = judges.factors
    j = f.order[k]
    factor_of(k, 0, desk.heard[k], f, desk.hidden, desk.logits)
    top = 0
    for s in range(f.size[j]):
        if desk.logits[s] > desk.logits[top]:
            top = s
    lack = np.float64(desk.logits[top] - desk.logits[desk.cell[j]])
    own = cell_of(j, query[j], judges.rows)
    return (query[j] if own == top else judges.typical[f.first[j] + top]), lack


@compiled()
def _mend(row, query, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Make a row stand that does not: undo what is incoherent, move what is unlikely to where the others have it."""
    d = len(row)
    if not _untangle(row, query, np.int64(wanted[0]), judges, bounds, desk) or desk.now[0] < wanted[1]:
        return False
    trying = wanted.copy()
    trying[3] = -np.inf
    for _ in range(MENDS):
        if desk.now[1] >= wanted[2] and desk.now[2] >= wanted[3]:
            return allowed(row, query, at, judges.rows.number, bounds)
        trying[2] = desk.now[1] + LEAST_GAIN
        taken = False
        tried = np.zeros(d, dtype=np.bool_)
        for _ in range(TRIES):
            worst, most, best = -1, 0.5, np.nan
            for k in range(d):
                j = judges.factors.order[k]
                if tried[k] or judges.follower[j] or bounds.pinned[j] or desk.factor[k] > -1.0:
                    continue
                value, lack = _likelier(k, query, judges, desk)
                if lack > most:
                    worst, most, best = k, lack, value
            if worst < 0:
                break
            tried[worst] = True
            j = judges.factors.order[worst]
            if (np.isnan(best) and differ(best, query[j])) or not _edit(row, query, j, best, judges.steps, desk.trial):
                continue
            if _attempt(row, query, at, trying, judges, bounds, desk):
                taken = True
                break
        if not taken:
            return False
    return desk.now[1] >= wanted[2] and desk.now[2] >= wanted[3]


@compiled()
def _turns(row, query, variant, target, judges, desk):  # type: ignore[no-untyped-def]
    """The order in which changes are tried: those that bring the least sureness first, or the largest first."""
    d = len(row)
    rank = np.full(d, np.inf)
    for j in range(d):
        if not differ(row[j], query[j]) or judges.follower[j]:
            continue
        if variant == 0:
            _edit(row, query, j, query[j], judges.steps, desk.trial)
            rank[j] = -sure_of(desk.trial, target, judges, desk)
        else:
            apart = abs(row[j] - query[j]) / judges.scale[j] if judges.rows.number[j] else 1.0
            rank[j] = -apart if not np.isnan(apart) else -1.0
    return np.argsort(rank)


@compiled()
def _minimise(row, query, order, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Undo and bring nearer, until neither is possible."""
    for _ in range(ROUNDS):
        moved = _undo(row, query, order, at, wanted, judges, bounds, desk)
        for j in order:
            number = judges.rows.number[j] and not judges.follower[j] and not bounds.pinned[j]
            if number and differ(row[j], query[j]) and not np.isnan(row[j]) and not np.isnan(query[j]):
                moved |= _approach(row, query, j, at, wanted, judges, bounds, desk)
        if not moved:
            break


@compiled(nogil=True)
def refine_rows(low, high, rows, variants, queries, which, wanted, judges, bounds, stands, scores):  # type: ignore[no-untyped-def]
    """Rows low to high of the draws, `variants` of each, refined in place.

    wanted: per query (target, probability, log density, weakest factor). stands: which rows do; scores: their
    probability, log density and weakest factor (rows, 3).
    """
    d = rows.shape[1]
    desk = new_desk(d, judges)
    begun = np.empty(d)
    for draw in range(low, high):
        at = which[draw]
        query, target = queries[at], np.int64(wanted[at, 0])
        for j in range(d):
            desk.pair_query[j] = cell_of(j, query[j], judges.pairs)
        fine = True
        for variant in range(variants):
            i = draw * variants + variant
            row = rows[i]
            if variant == 0:
                fine = follow(row, query, judges.steps)
                settle(row, target, judges, desk)
                stood = fine and desk.now[0] >= wanted[at, 1] and desk.now[1] >= wanted[at, 2]
                stood = stood and desk.now[2] >= wanted[at, 3] and allowed(row, query, at, judges.rows.number, bounds)
                stood = stood and coherent(desk.pair, desk.pair_query, judges.pairs.offset, judges.unseen)
                fine = stood or (fine and _mend(row, query, at, wanted[at], judges, bounds, desk))
                begun[:] = row
            elif fine:
                row[:] = begun
                settle(row, target, judges, desk)
            stands[i] = fine
            if fine:
                order = _turns(row, query, variant, target, judges, desk)
                _minimise(row, query, order, at, wanted[at], judges, bounds, desk)
                scores[i] = desk.now
