"""Work that takes a while: progress bars, silent unless a terminal is watching or it is asked for, and deadlines."""

from __future__ import annotations

__all__ = ["Deadline", "Progress"]

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Progress:
    """Shows named stages with what is left of them. `verbose=None` means: only on a terminal."""

    def __init__(self, verbose: bool | None = None) -> None:
        self.visible = _is_watched() if verbose is None else verbose

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


class Deadline:
    """When work must have ended, and what was cut so that it did.

    Parameters
    ----------
    seconds : float or None
        How long the work may take from now on; None sets no limit.
    clock : callable
        What tells the time, in seconds.

    Examples
    --------
    >>> whole = Deadline(10, clock=iter(range(10)).__next__)
    >>> whole.left, whole.part(0.5).left
    (9, 2.0)
    """

    # A stage that comes late still gets this share of the whole, so that it has something to leave.
    LEAST = 0.02

    def __init__(self, seconds: float | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self.started = 0.0 if seconds is None else clock()
        self.ends = math.inf if seconds is None else self.started + seconds
        self.cuts: list[str] = []

    @property
    def left(self) -> float:
        """The seconds that are left: 0 where none are, infinite where there is no limit."""
        return math.inf if self.seconds is None else max(0.0, self.ends - self.clock())

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.left <= 0

    @property
    def used(self) -> float:
        """The share of the time that is used up; 0 where there is no limit."""
        return 0.0 if self.seconds is None else min(1.0, 1.0 - self.left / self.seconds)

    def part(self, share: float) -> Deadline:
        """A stage that must have ended when `share` of the whole is used up; what it cuts is told by the whole."""
        if self.seconds is None:
            return self
        stage = Deadline(self.seconds, clock=self.clock)
        stage.ends = max(self.started + share * self.seconds, stage.started + self.LEAST * self.seconds)
        stage.seconds, stage.cuts = stage.ends - stage.started, self.cuts
        return stage

    def cut(self, what: str) -> None:
        """Note once what was cut."""
        if what not in self.cuts:
            self.cuts.append(what)


def _is_watched() -> bool:
    """Whether a terminal shows what is written to the standard error; there may be none, or a closed one."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        return False


def _silent(units: int, note: str | None = None) -> None:
    """The progress that nobody watches."""
