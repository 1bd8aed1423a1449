"""Who got fewer answers than asked for, by position, and why."""

from __future__ import annotations

__all__ = ["SHORTFALL", "reasons_of", "shortfall", "why_none"]

import numpy as np
from numpy.typing import NDArray

from dicoflex.answers.confirming import CHECK_ROUNDS
from dicoflex.answers.draws import Terms
from dicoflex.answers.fates import Fate, fates
from dicoflex.answers.pressure import broken_shares
from dicoflex.answers.query import Query
from dicoflex.answers.refined import Answers
from dicoflex.constraints.kinds import KINDS
from dicoflex.model import Model

Ints = NDArray[np.int64]
SHORTFALL = ["row", "wanted", "got", "reason"]
UNBROKEN = ("frozen", "consequences")
"""Kinds that draws can't break: what is frozen is not drawn, and what follows is set afterwards."""


def shortfall(
    model: Model, query: Query, terms: Terms, got: Ints, answers: Answers
) -> dict[int, tuple[int, int, str]]:  # fmt: skip
    """Who got fewer than asked for: by position what was wanted, what was got, and why."""
    n = query.request.n
    short = np.flatnonzero(got < n if query.skipped is None else (got < n) & ~query.skipped)
    if len(short) == 0:
        return {}
    reasons = reasons_of(model, query, terms, short, got, answers.refused)
    for i, one in answers.searches.items():
        if got[i] == 0:
            parts = (one.text, reasons[i]) if one.is_proof else (reasons[i], one.text)
            reasons[i] = "; ".join(parts)
        elif one.all and i in reasons:
            reasons[i] = one.no_more(int(got[i]))
    return {i: (n, int(got[i]), reasons[i]) for i in short.tolist()}


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


def reasons_of(model: Model, query: Query, terms: Terms, short: Ints, got: Ints, refused: Ints) -> dict[int, str]:
    """Why each of the queries `short` got too few: what the constraints, a check, or else its own draws say."""
    reasons = {int(i): str(query.limits.reasons[i]) for i in short if query.limits is not None}
    able = short[query.feasible[short]]
    enough = got + refused >= query.request.n
    for i in able:
        reasons[int(i)] = f"check refused {refused[i]} candidates in {CHECK_ROUNDS} rounds"
    asked = able[(refused[able] == 0) | ~enough[able]]
    if len(asked) == 0:
        return reasons
    shares = fates(model, query, asked, terms)
    blamed = hardest(model, query, asked) if query.limits is not None else {}
    for k, i in enumerate(asked.tolist()):
        found, tried = got[i] + refused[i], refused[i]
        before = f"check refused {tried} of the {found} different rows that were found; " if tried else ""
        reasons[i] = before + _stood_in_the_way(model, query, i, shares[k], got=int(got[i]), blamed=blamed.get(i))
    return reasons


def _stood_in_the_way(
    model: Model, query: Query, i: int, shares: NDArray[np.float64], *, got: int, blamed: str | None
) -> str:
    """What most draws of query `i` failed at, and what would help."""
    # A draw that nothing speaks against is no answer only where it is a repeat.
    worst = Fate(1 + int(np.argmax(shares[1:]))) if shares[1:].max() > shares[Fate.USABLE] else Fate.USABLE
    share = f"{shares[worst]:.0%}"
    if worst == Fate.COPY:
        return f"{share} of the draws are training rows; leave novel out"
    if blamed is not None:
        also = {
            Fate.DOUBTED: f"; of the draws with it, the surrogate doubts {share}",
            Fate.RARE: f"; of the draws with it, {share} are too rare",
        }
        return f"too few different rows obey the constraints and pass; the hardest: {blamed}{also.get(worst, '')}"
    if worst == Fate.RARE:
        return (
            f"{share} of the draws can't be made usual enough: rarer than "
            f"min_plausibility={query.request.min_plausibility:g}; lower it, "
            "or leave it out with coherent=False"
        )
    whys = ["no more different rows were found"] if got or worst != Fate.DOUBTED else []
    whys += [f"the surrogate doubts {share} of the draws"] if worst == Fate.DOUBTED else []
    return f"{', and '.join(whys)}; {_remedies(model, query, i)}"


def _remedies(model: Model, query: Query, i: int) -> str:
    """What the caller could relax; nothing is named that is loose already."""
    target, sure = query.context.target[i], query.context.confidence[i]
    relaxed = {
        "free a feature": bool(query.frozen.any()),
        "raise p": (query.request.p or 0.0) < max(model.exponents),
        "lower confidence": model.has_confidence and sure > model.confidence.lowest[target],
    }
    words = [word for word, helps in relaxed.items() if helps]
    return " or ".join(words) if words else "there may be no more, as nothing is left to relax"


def hardest(model: Model, query: Query, which: Ints) -> dict[int, str]:
    """For each query in `which`, in words, the constraint that most of the draws break which only frozen binds."""
    bound = query.request.constraints
    # What is frozen binds the draws without limits too.
    ones = [one for one in bound.one_by_one() if KINDS[one.kind].role == "limit" and one.kind not in UNBROKEN]
    if not ones:
        return {}
    shares = broken_shares(model, query, which, ones)
    worst = np.argmax(shares, axis=0)
    return {
        int(i): f"{ones[worst[k]].text} ({shares[worst[k]][k]:.0%} of the draws without it break it)"
        for k, i in enumerate(which)
    }
