"""The way into the command line, and its exit codes."""

from __future__ import annotations

__all__ = ["main"]

import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dicoflex.cli import audit_log, auditing, batching, exploring, serving, signing
from dicoflex.cli.commands import app
from dicoflex.cli.messages import note
from dicoflex.cli.streams import TERMINATED, any_text, heeding_termination
from dicoflex.errors import UserError

INTERRUPTED = 130
ENDED = {INTERRUPTED: "interrupted", TERMINATED: "terminated"}

for command in (*signing.COMMANDS, *serving.COMMANDS, *batching.COMMANDS, *exploring.COMMANDS):
    app.command()(command)
auditing.app.add_typer(audit_log.app)
app.add_typer(auditing.app, name="audit")


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
