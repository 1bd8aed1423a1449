"""Answers that are somebody's row, and answers that point at few people by their quasi-identifiers."""

from __future__ import annotations

__all__ = ["Copies", "Crowd", "are_among", "copies", "crowd"]

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicoflex.table.encoding import Values
from dicoflex.table.remembered import KEY_BYTES, Hashes, row_hashes

FEW = 5


@dataclass(frozen=True)
class Copies:
    """The shares of answers that equal a training row, one of as many training rows as there are held-out rows, and a
    held-out row: a copy of a row that nobody learned from is chance."""

    answers: int
    of_members: float
    of_as_many_members: float
    of_others: float


@dataclass(frozen=True)
class Crowd:
    """The shares of rows whose quasi-identifiers no training row has, fewer than five have, and more have."""

    nobody: float
    few: float
    more: float


def copies(answers: Values, members: Values, others: Values, *, seed: int) -> Copies:
    """How many answers are somebody's row.

    >>> rows = np.arange(20.0).reshape(10, 2)
    >>> copies(rows[:4], rows[:2], rows[2:3], seed=0)
    Copies(answers=4, of_members=0.5, of_as_many_members=0.25, of_others=0.25)
    """
    rng = np.random.default_rng(seed)
    some = members[rng.permutation(len(members))[: len(others)]]
    shares = [_share(are_among(answers, rows)) for rows in (members, some, others)]
    return Copies(len(answers), *shares)


def are_among(rows: Values, known: Values) -> NDArray[np.bool_]:
    """Which rows equal one of the known ones."""
    return np.isin(_hashes(rows), _hashes(known))


def crowd(rows: Values, members: Values, columns: list[int]) -> Crowd:
    """How many training rows share each row's values in some columns.

    >>> crowd(np.array([[1.0], [2.0]]), np.array([[1.0]] * 3), [0])
    Crowd(nobody=0.5, few=0.5, more=0.0)
    """
    known, counts = np.unique(_hashes(members[:, columns]), return_counts=True)
    wanted = _hashes(rows[:, columns])
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    k = np.where(known[at] == wanted, counts[at], 0)
    return Crowd(_share(k == 0), _share((k > 0) & (k < FEW)), _share(k >= FEW))


def _share(which: NDArray[np.bool_]) -> float:
    return float(which.mean()) if len(which) else 0.0


def _hashes(rows: Values) -> Hashes:
    """Rows in one number each; nothing is kept, so any key will do."""
    return row_hashes(np.ascontiguousarray(rows), bytes(KEY_BYTES))
