"""The way into the command line: its exit codes, signals, and streams that take any text."""

from __future__ import annotations

__all__ = ["TERMINATED", "app", "main"]

import codecs
import contextlib
import io
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dicoflex.cli import audit_commands, audit_log, batching, explore_command, serve_command, signing
from dicoflex.cli.commands import app
from dicoflex.cli.messages import note
from dicoflex.errors import UserError

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


INTERRUPTED = 130
ENDED = {INTERRUPTED: "interrupted", TERMINATED: "terminated"}

for command in (*signing.COMMANDS, *serve_command.COMMANDS, *batching.COMMANDS, *explore_command.COMMANDS):
    app.command()(command)
audit_commands.app.add_typer(audit_log.app)
app.add_typer(audit_commands.app, name="audit")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; what the caller can mend is told in one line.

    >>> main(["--version"])
    dicoflex ...
    0
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    any_text()
    try:
        with heeding_termination(), _plain_warnings():
            app(args=arguments, prog_name="dicoflex")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        return _complain(ENDED[code], code) if code in ENDED else code
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except UserError as error:
        return _complain(f"error: {error}", error.exit_code, debug="--debug" in arguments)
    except Exception as error:
        hint = "this is a bug: 'dicoflex --debug ...' shows where"
        return _complain(f"error: {type(error).__name__}: {error}; {hint}", 1, debug="--debug" in arguments)
    return 0


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as lines beside the result, without the place in the sources that they come from."""
    before = warnings.showwarning

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        note(f"warning: {message}")

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def _complain(message: str, code: int, *, debug: bool = False) -> int:
    if debug:
        traceback.print_exc()
    note(message)
    return code
