"""The command that makes all kernels before anybody waits for them."""

from __future__ import annotations

__all__ = ["warm"]

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from dicoflex.cli.messages import counted, note
from dicoflex.errors import SettingError


def warm(
    models: Annotated[
        list[Path] | None, typer.Argument(help="Model files.", show_default="small ones of every sort")
    ] = None,
) -> None:
    """Make all kernels now, so that no first answer waits for them: while building an image, or after an install."""
    from dicoflex.model import Model
    from dicoflex.runtime.compiled import FOLDER_VARIABLE, folder
    from dicoflex.warming import EXAMPLES
    from dicoflex.warming import warm as warm_up

    started, calls = time.monotonic(), 0
    for path in models or EXAMPLES:
        calls += warm_up(Model.load(path))
        note(f"{path.name}: warm after {time.monotonic() - started:.0f} s")
    where = folder()
    if where is None or not os.access(where, os.W_OK):
        raise SettingError(f"what was made could not be kept; set {FOLDER_VARIABLE} to a folder that can be written to")
    print(f"{counted(calls, 'call')}; kept in {where}")
