"""The moves of refinement, compiled: undo a change, bring a number nearer, mend a row that does not stand.

A row *stands* if the limits allow it, no pair of its values is avoided (that its query has not), the stand-in gives its
target the probability asked for, and its log density and weakest factor are not below the floors.

What keeps a change from being undone may be the floor of the log density alone, and by little: then a person would call
the change needless. So a row is made less down to a lower floor first, and kept if it ends above the floor all the
same: it has *room*. If it ends between the two, it is made less anew, down to the floor.

Nearer to its query a row is usually likelier too, and to ask for its density takes longer than all else. So a row is
first made less, or brought nearer, without a look at the floors, and kept if it ends above them.
"""

from __future__ import annotations

__all__ = ["FOREMOST", "LESS", "NEARER", "refine_rows"]

import numpy as np

from dicoflex.coherence.row_density import factor_of
from dicoflex.coherence.seen_pairs import coherent
from dicoflex.refinement.attempts import attempt, copy, edit, follow_all
from dicoflex.refinement.bounds import allowed, differ, place_of
from dicoflex.refinement.foremost import mark_foremost
from dicoflex.refinement.judges import lay_out, locate, new_desk, settle, sure_of, weigh
from dicoflex.runtime.compiled import compiled, lean
from dicoflex.runtime.held import held

HALVINGS = 8
ROUNDS = 4
MENDS = 6
TRIES = 4
LEAST_GAIN = 0.25
LESS, FOREMOST, NEARER = 1, 2, 4


@lean()
def _without(j, desk):  # type: ignore[no-untyped-def]
    """How sure the stand-in is of the row, as it is now, without feature j's change; NaN where that is not known."""
    return desk.alone[j] if desk.moves[2] == desk.moves[0] else np.nan


@lean()
def _undo(row, query, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Undo what can be, in the desk's order, until nothing can; what failed is tried again once the row moved."""
    again = True
    while again:
        again = False
        for k in range(len(row)):
            j = desk.order[k]
            if judges.follower[j] or bounds.follows[j] or not bounds.may_keep[at, j] or not differ(row[j], query[j]):
                continue
            sure = _without(j, desk)
            if desk.tried[j] == desk.moves[0] or sure < wanted[1]:
                continue
            if edit(row, query, j, query[j], judges, bounds, desk) and attempt(
                row, query, at, wanted, judges, bounds, desk, sure
            ):
                desk.moves[1] += 1
                again = True
            else:
                desk.tried[j] = desk.moves[0]


@lean()
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
    at = place_of(value, values, first, last)
    if at == last or (at > first and value - values[at - 1] < values[at] - value):
        at -= 1
    return values[at]


@lean()
def _approach(row, query, j, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Move number j towards the query by bisection."""
    near = query[j]
    for _ in range(HALVINGS):
        far = row[j]
        value = _snap(j, 0.5 * (near + far), far, judges, bounds)
        if not (min(near, far) < value < max(near, far)):
            break
        if not edit(row, query, j, value, judges, bounds, desk) or not attempt(
            row, query, at, wanted, judges, bounds, desk, np.nan
        ):
            near = value


@lean()
def _untangle(row, query, target, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Undo the changes that stand in unseen pairs, the one in most of them first."""
    d, offset = len(row), judges.pairs.offset
    for _ in range(d):
        worst, most = -1, 0
        for a in range(d):
            if desk.pair[a] == desk.pair_query[a] or judges.follower[a] or bounds.follows[a]:
                continue
            n = 0
            for b in range(d):
                n += b != a and judges.avoided[offset[a] + desk.pair[a], offset[b] + desk.pair[b]]
            if n > most:
                worst, most = a, n
        if worst < 0:
            break
        if not edit(row, query, worst, query[worst], judges, bounds, desk):
            return False
        for j in range(d):
            row[j] = desk.trial[j]
        settle(row, query, target, judges, desk)
    return coherent(desk.pair, desk.pair_query, offset, judges.avoided)


@lean()
def _likelier(k, query, judges, desk):  # type: ignore[no-untyped-def]
    """What the density would rather have at place k, given what is before it: the value, and how much rather."""
    f = judges.factors
    j = f.order[k]
    factor_of(k, 0, desk.heard[k], f, desk.room)
    logits, top = desk.room.logits, 0
    for s in range(f.size[j]):
        if logits[s] > logits[top]:
            top = s
    lack = np.float64(logits[top] - logits[desk.cell[j]])
    return (query[j] if desk.cell_query[j] == top else judges.typical[f.first[j] + top]), lack


@lean()
def _mend(row, query, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Make a row stand that does not: undo what is incoherent, move what is unlikely to where the others have it."""
    d = len(row)
    if not _untangle(row, query, np.int64(wanted[0]), judges, bounds, desk) or desk.now[0] < wanted[1]:
        return False
    trying, tried = desk.trying, desk.skipped
    copy(wanted, trying)
    trying[3] = -np.inf
    for _ in range(MENDS):
        if desk.now[1] >= wanted[2] and desk.now[2] >= wanted[3]:
            return allowed(row, query, at, judges.rows.number, bounds, desk.stack)
        trying[2] = desk.now[1] + LEAST_GAIN
        taken = False
        tried[:] = False
        for _ in range(TRIES):
            worst, most, best = -1, 0.5, np.nan
            for k in range(d):
                j = judges.factors.order[k]
                if tried[k] or judges.follower[j] or bounds.follows[j] or desk.factor[k] > -1.0:
                    continue
                value, lack = _likelier(k, query, judges, desk)
                if lack > most:
                    worst, most, best = k, lack, value
            if worst < 0:
                break
            tried[worst] = True
            j = judges.factors.order[worst]
            if (np.isnan(best) and differ(best, query[j])) or not edit(row, query, j, best, judges, bounds, desk):
                continue
            if attempt(row, query, at, trying, judges, bounds, desk, np.nan):
                taken = True
                break
        if not taken:
            return False
    return desk.now[1] >= wanted[2] and desk.now[2] >= wanted[3]


@lean()
def _turns(row, query, target, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Settle the order in which changes are tried: those that bring the least sureness first."""
    desk.moves[2] = desk.moves[0]
    for j in range(len(row)):
        rank = np.inf
        if differ(row[j], query[j]) and not judges.follower[j] and not bounds.follows[j]:
            edit(row, query, j, query[j], judges, bounds, desk)
            desk.alone[j] = sure_of(desk.trial, query, target, judges, desk)
            rank = -desk.alone[j]
        at = j
        while at > 0 and desk.rank[at - 1] > rank:
            desk.rank[at], desk.order[at] = desk.rank[at - 1], desk.order[at - 1]
            at -= 1
        desk.rank[at], desk.order[at] = rank, j


@lean()
def _approach_all(row, query, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Bring numbers nearer and undo what can be then, as long as something is undone."""
    for _ in range(ROUNDS):
        undone = desk.moves[1]
        for k in range(len(row)):
            j = desk.order[k]
            number = judges.rows.number[j] and not judges.follower[j] and not bounds.follows[j]
            if number and differ(row[j], query[j]) and not np.isnan(row[j]) and not np.isnan(query[j]):
                _approach(row, query, j, at, wanted, judges, bounds, desk)
        _undo(row, query, at, wanted, judges, bounds, desk)
        if desk.moves[1] == undone:
            break


@lean()
def _weaker(row, query, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Undo or lessen the strongest changes first, so that the others are needed: what else would do."""
    for k in range(len(row) - 1, -1, -1):
        j = desk.order[k]
        if judges.follower[j] or bounds.follows[j] or not differ(row[j], query[j]):
            continue
        sure = _without(j, desk)
        free = bounds.may_keep[at, j] and not sure < wanted[1]
        undone = free and edit(row, query, j, query[j], judges, bounds, desk)
        if undone and attempt(row, query, at, wanted, judges, bounds, desk, sure):
            continue
        if judges.rows.number[j] and not np.isnan(row[j]) and not np.isnan(query[j]):
            _approach(row, query, j, at, wanted, judges, bounds, desk)


@lean()
def _less(row, query, at, wanted, judges, bounds, desk, turned):  # type: ignore[no-untyped-def]
    """Undo what is not needed; `turned`, from the strongest change on."""
    _turns(row, query, np.int64(wanted[0]), judges, bounds, desk)
    if turned:
        _weaker(row, query, at, wanted, judges, bounds, desk)
    _undo(row, query, at, wanted, judges, bounds, desk)


@lean()
def _nearer(row, query, at, wanted, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Bring numbers nearer, and undo what can be then."""
    _turns(row, query, np.int64(wanted[0]), judges, bounds, desk)
    _approach_all(row, query, at, wanted, judges, bounds, desk)


@lean()
def _begin(row, query, target, judges, desk):  # type: ignore[no-untyped-def]
    """Put a row on the desk, where its query lies."""
    desk.moves[:] = 0
    desk.tried[:] = -1
    settle(row, query, target, judges, desk)


@lean()
def _again(row, query, wanted, judges, desk):  # type: ignore[no-untyped-def]
    """Whether the row lies below the floor now: then it is put back to what it was."""
    if desk.now[1] >= wanted[2]:
        return False
    copy(desk.kept, row)
    _begin(row, query, np.int64(wanted[0]), judges, desk)
    return True


@lean()
def _stands(row, query, at, want, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Whether a row stands, or does once it is mended."""
    fine = follow_all(row, query, judges, bounds, desk)
    _begin(row, query, np.int64(want[0]), judges, desk)
    stood = fine and desk.now[0] >= want[1] and desk.now[1] >= want[2] and desk.now[2] >= want[3]
    stood = stood and allowed(row, query, at, judges.rows.number, bounds, desk.stack)
    stood = stood and coherent(desk.pair, desk.pair_query, judges.pairs.offset, judges.avoided)
    return stood or (fine and _mend(row, query, at, want, judges, bounds, desk))


@lean()
def _is_fit(row, query, at, want, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Put a row on the desk, where its query lies; whether it stands but for the floors, which are not looked at."""
    desk.moves[:] = 0
    desk.tried[:] = -1
    locate(row, query, np.int64(want[0]), judges, desk)
    fit = desk.now[0] >= want[1] and allowed(row, query, at, judges.rows.number, bounds, desk.stack)
    copy(want, desk.trying)
    desk.trying[2] = desk.trying[3] = -np.inf
    return fit and coherent(desk.pair, desk.pair_query, judges.pairs.offset, judges.avoided)


@lean()
def _less_at_once(row, query, at, want, judges, bounds, desk, turned):  # type: ignore[no-untyped-def]
    """Undo what a row does not need, and look at the floors afterwards; whether it stands, else it is as it was."""
    copy(row, desk.kept)
    if follow_all(row, query, judges, bounds, desk) and _is_fit(row, query, at, want, judges, bounds, desk):
        _less(row, query, at, desk.trying, judges, bounds, desk, turned)
        if weigh(want[2], want[3], judges, desk):
            return True
    copy(desk.kept, row)
    return False


@lean()
def _nearer_at_once(row, query, at, want, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Bring a row nearer, and look at the floors afterwards; whether it stands, else it is as it was."""
    copy(row, desk.kept)
    if _is_fit(row, query, at, want, judges, bounds, desk):
        _nearer(row, query, at, desk.trying, judges, bounds, desk)
        if weigh(want[2], want[3], judges, desk):
            return True
    copy(desk.kept, row)
    return False


@lean()
def _lessened(row, query, at, want, judges, bounds, desk, turned):  # type: ignore[no-untyped-def]
    """Undo what a row that stands does not need; whether it has room."""
    copy(row, desk.kept)
    copy(want, desk.trying)
    desk.trying[2] = want[4]
    _less(row, query, at, desk.trying, judges, bounds, desk, turned)
    cramped = _again(row, query, want, judges, desk)
    if cramped:
        _less(row, query, at, want, judges, bounds, desk, turned)
    return not cramped


@lean()
def _neared(row, query, at, want, judges, bounds, desk, roomy):  # type: ignore[no-untyped-def]
    """Bring a row that stands as near as it stands; whether it has room still."""
    _begin(row, query, np.int64(want[0]), judges, desk)
    copy(row, desk.kept)
    copy(want, desk.trying)
    if roomy:
        desk.trying[2] = want[4]
    _nearer(row, query, at, desk.trying, judges, bounds, desk)
    if _again(row, query, want, judges, desk):
        _nearer(row, query, at, want, judges, bounds, desk)
        return False
    return roomy


@lean()
def _tell(want, judges, desk, scores):  # type: ignore[no-untyped-def]
    """Write down what is known of the row on the desk."""
    if want[2] == -np.inf and want[3] == -np.inf:
        # Without floors nobody has asked for its density yet.
        weigh(-np.inf, -np.inf, judges, desk)
    copy(desk.now, scores)


@lean()
def _undo_rows(  # type: ignore[no-untyped-def]
    low, high, rows, queries, which, wanted, judges, bounds, turned, stands, scores, desk
):
    for i in range(low, high):
        at, row = which[i], rows[i]
        query, want = queries[at], wanted[at]
        lay_out(at, query, judges, desk)
        stands[i] = roomy = _less_at_once(row, query, at, want, judges, bounds, desk, turned)
        if not stands[i] and _stands(row, query, at, want, judges, bounds, desk):
            stands[i], roomy = True, _lessened(row, query, at, want, judges, bounds, desk, turned)
        if stands[i]:
            scores[i, 3] = 1.0 if roomy else 0.0
            _tell(want, judges, desk, scores[i])


@lean()
def _approach_rows(low, high, rows, queries, which, wanted, judges, bounds, kept, scores, desk):  # type: ignore[no-untyped-def]
    for i in range(low, high):
        if not kept[i]:
            continue
        at, row = which[i], rows[i]
        query, want = queries[at], wanted[at]
        lay_out(at, query, judges, desk)
        if not _nearer_at_once(row, query, at, want, judges, bounds, desk):
            scores[i, 3] = 1.0 if _neared(row, query, at, want, judges, bounds, desk, scores[i, 3] > 0.0) else 0.0
        _tell(want, judges, desk, scores[i])


@lean()
def _undo_held(  # type: ignore[no-untyped-def]
    low, high, rows, queries, which, wanted, judges, bounds, turned, stands, scores, desk
):
    _undo_rows(
        low, high, rows, queries, which, wanted, held(judges), held(bounds), turned, stands, scores, held(desk)
    )  # fmt: skip


@lean()
def _approach_held(low, high, rows, queries, which, wanted, judges, bounds, kept, scores, desk):  # type: ignore[no-untyped-def]
    _approach_rows(low, high, rows, queries, which, wanted, held(judges), held(bounds), kept, scores, held(desk))


@compiled(nogil=True)
def refine_rows(  # type: ignore[no-untyped-def]
    low, high, rows, queries, which, wanted, judges, bounds, turned, most, steps, stands, kept, scores
):
    """Rows low to high refined in place: each of the `steps` that is asked for, in turn, on one desk.

    LESS: made to stand where that is possible (`stands`), and what they don't need undone. FOREMOST: at most `most` of
    each query's marked in `kept`, of all rows. NEARER: those brought as near to their queries as they stand. wanted: of
    each (target, probability, log density, weakest factor, lower log density). turned: whether the strongest changes
    are undone first. scores: probability, log density, weakest factor, and whether a row has room (rows, 4).
    """
    desk = new_desk(rows.shape[1], judges)
    if steps & LESS:
        _undo_held(low, high, rows, queries, which, wanted, judges, bounds, turned, stands, scores, desk)
    if steps & FOREMOST:
        mark_foremost(rows, which, queries, judges.scale, stands, most, kept)
    if steps & NEARER:
        _approach_held(low, high, rows, queries, which, wanted, judges, bounds, kept, scores, desk)
