"""Progress bars for work that takes a while; silent unless a terminal is watching, or it is asked for."""

from __future__ import annotations

__all__ = ["Progress", "is_watched"]

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Progress:
    """Shows named stages with what is left of them. `verbose=None` means: only on a terminal."""

    def __init__(self, verbose: bool | None = None) -> None:
        self.visible = is_watched() if verbose is None else verbose

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[..., None]]:
        """A bar for `total` units; yields `advance(units, note=None)`."""
        if not self.visible:
            yield _silent
            return
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[note]}"),
        )
        with Bars(*columns, console=Console(stderr=True)) as bars:
            task = bars.add_task(name, total=total, note="")

            def advance(units: int, note: str | None = None) -> None:
                if note is not None:
                    bars.update(task, note=note)
                bars.advance(task, units)

            yield advance


def is_watched() -> bool:
    """Whether a terminal shows what is written to the standard error; there may be none, or a closed one."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        return False


def _silent(units: int, note: str | None = None) -> None:
    """The progress that nobody watches."""
