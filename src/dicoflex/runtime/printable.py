"""Text that can be shown on any terminal, and counts in words; nothing is imported for it."""

from __future__ import annotations

__all__ = ["counted", "printable", "printable_json", "printable_lines"]

import json


def printable(text: str) -> str:
    r"""Text whose line breaks and control characters, which could disturb a terminal, are spelt out.

    >>> print(printable("a\x1b[2Jb"), printable(""))
    a\x1b[2Jb ""
    """
    if not text:
        return '""'
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """The same for text of several lines, whose breaks are meant."""
    return "\n".join(printable(line) if line else "" for line in text.split("\n"))


def printable_json(text: str) -> str:
    """JSON text with the same value, in which nothing disturbs a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
