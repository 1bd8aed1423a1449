"""The command line's own streams: they take any text, whatever their encoding, and a signal to end is heeded."""

from __future__ import annotations

__all__ = ["TERMINATED", "any_text", "heeding_termination"]

import codecs
import contextlib
import io
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

TERMINATED = 128 + 15
NAME = "dicoflex-plain"
PLAIN = str.maketrans("→▲▼●✓✗–…·▰▱×", ">^v*+x-..#.x")
"""Signs that encodings of few letters lack, as letters of the same width."""


def any_text() -> None:
    """Let the standard streams spell out what their encoding lacks, as on a redirected Windows console."""
    codecs.register_error(NAME, _spelt_out)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors=NAME)


def _spelt_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(PLAIN)
    return "".join(c if c.isascii() else c.encode("unicode_escape").decode() for c in lacking), error.end


@contextlib.contextmanager
def heeding_termination() -> Iterator[None]:
    """Turn SIGTERM into an end like any other, so that half-written files are removed; a handler set before stays."""
    able = threading.current_thread() is threading.main_thread()
    if not able or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(*_: Any) -> None:
    raise SystemExit(TERMINATED)
