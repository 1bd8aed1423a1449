"""Who got fewer answers than asked for, by position, and why."""

from __future__ import annotations

__all__ = ["Shortfall", "shortfall", "why_none"]

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.query import Query
from dicoflex.constraints.kinds import KINDS, OneConstraint
from dicoflex.limits.limits import Limits
from dicoflex.model import Model
from dicoflex.table.encoding import Values

Ints = NDArray[np.int64]
COLUMNS = ["row", "wanted", "got", "reason"]
BLAMED = 64
"""How many unbound draws of a query the constraints are tried on, to see which of them rules out most."""


@dataclass(frozen=True)
class Shortfall:
    """The entries (row, wanted, got, reason), and the position of the query that each belongs to."""

    table: pd.DataFrame
    positions: Ints


def shortfall(model: Model, query: Query, got: Ints, refused: Ints, *, rounds: int) -> Shortfall:
    """Who got fewer than asked for. refused: how many candidates `check` refused, in so many rounds."""
    n = query.request.n
    short = np.flatnonzero(got < n)
    if len(short) == 0:
        return Shortfall(pd.DataFrame(columns=COLUMNS), short)
    labels = query.frame.index.to_flat_index()
    asked = short[query.feasible[short] & (refused[short] == 0)]
    blamed = hardest(model, query, asked) if query.limits is not None and len(asked) else {}
    entries = [
        (labels[i], n, int(got[i]), _reason(query, i, int(refused[i]), rounds, blamed.get(i))) for i in short.tolist()
    ]
    return Shortfall(pd.DataFrame(entries, columns=COLUMNS), short)


def why_none(model: Model, query: Query, i: int) -> str:
    """Why row `i` got no draw at all."""
    row = f"row {query.label(i)}"
    if query.limits is not None:
        blamed = hardest(model, query, np.array([i])).get(i, "none")
        return f"{row}: no draw obeys the constraints; the hardest: {blamed}"
    novel = query.request.novel
    return (
        f"{row}: every draw equals the row itself{' or a training row' if novel else ''}; "
        f"free a feature{' or leave novel out' if novel else ''}"
    )


def _reason(query: Query, i: int, refused: int, rounds: int, blamed: str | None) -> str:
    if query.limits is not None and query.limits.reasons[i] is not None:
        return str(query.limits.reasons[i])
    if refused:
        return f"check refused {refused} candidates in {rounds} rounds"
    if blamed is not None:
        return f"too few different rows obey the constraints and pass; the hardest: {blamed}"
    return "no more different rows that pass under these conditions; free a feature, raise p or lower confidence"


def hardest(model: Model, query: Query, which: Ints) -> dict[int, str]:
    """For each query in `which`, in words, the constraint that most of the draws break which only frozen binds."""
    bound = query.request.constraints
    # What is frozen binds the draws without limits too.
    ones = [one for one in bound.one_by_one() if KINDS[one.kind].role == "limit" and one.kind != "frozen"]
    if not ones:
        return {}
    shares = _broken_shares(model, query, which, ones)
    worst = np.argmax(shares, axis=0)
    return {
        int(i): f"{ones[worst[k]].text} ({shares[worst[k]][k]:.0%} of the draws without it break it)"
        for k, i in enumerate(which)
    }


def _broken_shares(model: Model, query: Query, which: Ints, ones: list[OneConstraint]) -> list[NDArray[np.float64]]:
    """For each constraint, the share of each query's unbound draws that break it."""
    rows = _unbound(model, query, which)
    own, entry = query.context.query[which], np.repeat(np.arange(len(which)), BLAMED)
    frozen = np.tile(query.frozen, (len(own), 1))
    shares = []
    for one in ones:
        limits = Limits.build(query.request.constraints.only(one), model.encoding, own, frozen)
        shares.append(limits.broken(rows, own[entry], entry).reshape(len(which), BLAMED).mean(axis=1))
    return shares


def _unbound(model: Model, query: Query, which: Ints) -> Values:
    """Equally many draws for each query in `which`, that nothing but frozen features binds."""
    context = replace(query.context.take(which), frozen=np.tile(query.frozen, (len(which), 1)))
    values, _ = model.generator.sample(context, BLAMED, query.keys[which], 0)
    return model.encoding.snap(values.reshape(len(which) * BLAMED, -1))
