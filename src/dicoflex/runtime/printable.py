"""Text that can be shown on any terminal: what would move its cursor or turn its letters round is spelt out."""

from __future__ import annotations

__all__ = ["printable", "printable_json", "printable_lines"]

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
