"""A trial of refinement, compiled: the row with one feature set otherwise, taken in its place if that stands."""

from __future__ import annotations

__all__ = ["attempt", "copy", "edit", "follow_all"]

import numpy as np

from dicoflex.coherence.bins import cell_of
from dicoflex.coherence.dependencies import follow
from dicoflex.coherence.row_density import edited
from dicoflex.coherence.seen_pairs import coherent
from dicoflex.limits.consequences import follow_on
from dicoflex.refinement.bounds import allowed, differ
from dicoflex.refinement.judges import least, sure_of
from dicoflex.runtime.compiled import lean


@lean()
def copy(values, out):  # type: ignore[no-untyped-def]
    """Write values over the first of `out`; assigning a slice would make room for a copy."""
    for i in range(len(values)):
        out[i] = values[i]


@lean()
def attempt(row, query, at, wanted, judges, bounds, desk, sure):  # type: ignore[no-untyped-def]
    """Take the trial in place of the row if it stands; wanted: target, probability, the two floors, the lower one.

    Without floors the densities are not worked out, and those on the desk hold no longer. sure: the trial's probability
    where that is known already, else NaN.
    """
    d, trial = len(row), desk.trial
    if not allowed(trial, query, at, judges.rows.number, bounds, desk.stack):
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
    if not coherent(desk.pair_trial, desk.pair_query, judges.pairs.offset, judges.avoided):
        return False
    probability = sure_of(desk.trial, query, np.int64(wanted[0]), judges, desk) if np.isnan(sure) else sure
    if probability < wanted[1]:
        return False
    floored = wanted[2] > -np.inf or wanted[3] > -np.inf
    density = desk.now[1]
    if floored and lowest < d:
        density = edited(desk.cell_trial, lowest, wanted[2], wanted[3], judges.factors, desk.heard, desk.factor,
                         desk.heard_trial, desk.factor_trial, desk.room)  # fmt: skip
        if density < wanted[2]:
            return False
        for k in range(lowest):
            if desk.factor[k] < wanted[3]:
                return False
        heard, heard_trial = desk.heard, desk.heard_trial
        for k in range(lowest, d):
            desk.factor[k] = desk.factor_trial[k]
            for i in range(heard.shape[1]):
                heard[k, i] = heard_trial[k, i]
    elif floored and (density < wanted[2] or desk.now[2] < wanted[3]):
        return False
    for j in range(d):
        row[j], desk.pair[j], desk.cell[j] = desk.trial[j], desk.pair_trial[j], desk.cell_trial[j]
    desk.now[0] = probability
    if floored:
        desk.now[1], desk.now[2] = density, least(desk.factor)
    desk.moves[0] += 1
    return True


@lean()
def follow_all(row, query, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """Let what depends on other features follow; whether all has a value then."""
    fine = True
    if len(judges.steps.kind) > 0:
        fine = follow(row, query, judges.steps)
    if len(bounds.consequences.feature) > 0:
        fine = follow_on(row, query, bounds.consequences, desk.stack)
        if len(judges.steps.kind) > 0:
            # What follows by wish may settle what depends on it in the table.
            fine = follow(row, query, judges.steps) and fine
    return fine


@lean()
def edit(row, query, j, value, judges, bounds, desk):  # type: ignore[no-untyped-def]
    """The trial: the row with feature j set and what depends on it following; returns whether it is one."""
    for i in range(len(row)):
        desk.trial[i] = row[i]
    desk.trial[j] = value
    return follow_all(desk.trial, query, judges, bounds, desk)
