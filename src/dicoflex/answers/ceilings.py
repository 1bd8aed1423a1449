"""What one call may cost: so many answers per row, so many draws in all; more is refused before any work."""

from __future__ import annotations

__all__ = ["MOST_ANSWERS", "check_cost", "most_rows"]

from dicoflex.errors import QueryError

MOST_ANSWERS = 10_000
"""Answers per row that can be chosen: each is compared with all candidates."""
MOST_DRAWS = 10_000_000
"""Draws that a call holds at once: a gigabyte of a dozen features."""


def check_cost(rows: int, n: int, each: int, *, most: int = MOST_DRAWS) -> None:
    """Refuse `n` answers to `rows` rows, with `each` draws per row, where that is more than one call may cost.

    >>> check_cost(rows=1000, n=10, each=100)
    >>> check_cost(rows=50_000, n=100, each=400)
    Traceback (most recent call last):
    dicoflex.errors.QueryError: n=100 for 50,000 rows takes 20,000,000 draws, ... give at most 25,000 rows at once, ...
    """
    if n > most:
        raise QueryError(f"n is {n:,}, and at most {most:,} can be asked for a row in one call; lower n")
    if rows * each > MOST_DRAWS:
        raise QueryError(
            f"n={n:,} for {rows:,} rows takes {rows * each:,} draws, and one call may take {MOST_DRAWS:,}; "
            f"give at most {most_rows(each):,} rows at once, or lower n"
        )


def most_rows(each: int) -> int:
    """How many rows one call may have, with `each` draws per row.

    >>> most_rows(400)
    25000
    """
    return max(1, MOST_DRAWS // each)
