"""What a fit estimates of its own leakage: attacks that tell rows it learned from and rows it held out apart."""

from __future__ import annotations

__all__ = ["leakage_of"]

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.attacks import DENSITIES, Attack, Guesses, Told, attack, attack_scores, guesses_of
from dicoflex.learning.steps import Fitted, Task
from dicoflex.model import Model
from dicoflex.runtime.progress import Deadline

Ints = NDArray[np.int64]
ATTACKS = ("density", "neighbours", "rows")
MOST_AUC = 0.6
MOST_TIMES = 2.0
"""The levels above which a fit warns: of membership, and of how many times as often values of members are found."""
CLEAR = 2.0
"""It warns of what lies so many standard errors above chance, too: a tenth of a small table is few rows."""
LEAST_HELD = 50
MOST_ATTACKED = 400
GUESSED, GUESSED_FEATURES = 50, 8
CELLS = 20_000
REMEDY = (
    "learn from more rows, drop columns that answers don't need, raise min_count, keep the file where the rows are "
    "kept, or fit with privacy='dp'; dicoflex audit leak tests it with rows that the fit never saw"
)


def leakage_of(task: Task, fitted: Fitted, model: Model, deadline: Deadline) -> dict[str, Any] | None:
    """How well attacks tell learned rows from held-out rows, and a warning where it is too well.

    It is None where fewer than 50 rows were held out, the time is over, or it is interrupted. Held-out rows ended the
    training, so the estimate is a little too low; the audit of leaks is the test.
    """
    held, learned = np.flatnonzero(fitted.held), np.flatnonzero(~fitted.held)
    if len(held) < LEAST_HELD or task.settings.generator.keeps_rows:
        return None
    if deadline.is_over:
        deadline.cut("leakage")
        return None
    try:
        return _estimated(task, model, learned, held, deadline)
    except KeyboardInterrupt:
        # The model is whole by now; only this figure is lacking.
        deadline.cut("leakage")
        return None


def _estimated(task: Task, model: Model, learned: Ints, held: Ints, deadline: Deadline) -> dict[str, Any] | None:
    """The figures of the attacks that there is time for; None where there is time for none."""
    rng = np.random.default_rng(task.seed)
    most = int(np.clip(CELLS / task.table.values.shape[1], LEAST_HELD, MOST_ATTACKED))
    members, others = (task.table.values[rng.permutation(rows)[:most]] for rows in (learned, held))
    found = _membership(model, members, others, task.seed, deadline)
    if not found:
        return None
    name = max(found, key=lambda one: found[one].auc)
    told = _told(model, others[: len(others) // 2], task.seed)
    guesses = guesses_of(
        told, members, others[len(others) // 2 :], wanted=[n for n in ATTACKS if n in DENSITIES],
        rows=GUESSED, features=GUESSED_FEATURES, deadline=deadline,
    )  # fmt: skip
    worst = max(guesses.values(), key=lambda one: one.times, default=None)
    _warn(found[name], worst, len(task.table.values))
    return _figures(name, found[name], worst, len(others))


def _told(model: Model, strangers: Any, seed: int) -> Told:
    return Told(model, strangers, strangers[:0], seed)


def _membership(model: Model, members: Any, others: Any, seed: int, deadline: Deadline) -> dict[str, Attack]:
    """The attacks that there is time for. Either half of the others is attacked with the other half as strangers."""
    half = len(others) // 2
    found = {}
    for name in ATTACKS:
        if name == "rows" and model.coherence is None:
            continue
        if deadline.is_over:
            deadline.cut("leakage")
            break
        scores = [
            (
                attack_scores(_told(model, strangers, seed), name, mine),
                attack_scores(_told(model, strangers, seed), name, others_),
            )
            for strangers, others_, mine in (
                (others[:half], others[half:], members[::2]),
                (others[half:], others[:half], members[1::2]),
            )
        ]
        found[name] = attack(*(np.concatenate(part) for part in zip(*scores, strict=True)))
    return found


def _is_high(membership: Attack, guesses: Guesses | None) -> bool:
    known = membership.auc > MOST_AUC and membership.auc - 0.5 > CLEAR * membership.error
    return known or (guesses is not None and guesses.times > MOST_TIMES and guesses.excess > CLEAR)


def _figures(name: str, membership: Attack, guesses: Guesses | None, n: int) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "membership_auc": round(membership.auc, 2),
        "membership_error": round(membership.error, 2),
        "attack": name,
        "held_out_rows": n // 10 * 10,
        "high": _is_high(membership, guesses),
    }
    if guesses is not None:
        mean = guesses.mean
        figures |= {"values_found": round(mean.members, 2), "values_found_of_others": round(mean.others, 2)}
    return figures


def _warn(membership: Attack, guesses: Guesses | None, rows: int) -> None:
    if not _is_high(membership, guesses):
        return
    values = ""
    if guesses is not None and guesses.times > MOST_TIMES:
        mean = guesses.mean
        values = f", and single values of them are found in {mean.members:.0%} of cases (others: {mean.others:.0%})"
    warnings.warn(
        f"the model tells who was among its {rows:,} rows: held-out rows are told from them with an AUC of "
        f"{membership.auc:.2f} (at most {MOST_AUC:g} is meant, 0.5 is chance){values}; {REMEDY}",
        stacklevel=2,
    )
