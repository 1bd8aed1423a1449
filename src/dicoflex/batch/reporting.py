"""What came of a batch: counts, a hash of its content, speed and memory."""

from __future__ import annotations

__all__ = ["BatchPlan", "BatchReport"]

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dicoflex.batch.work import MODULUS, PartResult
from dicoflex.runtime.printable import counted

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class BatchPlan:
    """What a run would do.

    files, rows, parts: how many there are. parts_left, rows_left: how many are not done yet. ignored: columns that are
    not read.
    """

    files: int
    rows: int
    parts: int
    parts_left: int
    rows_left: int
    ignored: Sequence[str] = ()

    def __str__(self) -> str:
        done = f"; {self.parts - self.parts_left} are there already" if self.parts_left < self.parts else ""
        text = f"{self.rows:,} rows in {self.files:,} files make {self.parts:,} parts{done}"
        return text + (f"\ncolumns that are not read: {', '.join(self.ignored)}" if self.ignored else "")


@dataclass(frozen=True)
class BatchReport:
    """What came of a run.

    rows: how many were read; answers, shortfall, errors: how many entries the tables have. statuses: how many rows had
    which status. parts: how many files of answers; resumed: how many of them earlier runs made. hash: of the content of
    all tables, whatever the order of their rows. rows_per_second: of this run. memory: the most bytes that any one
    process held.
    """

    rows: int
    answers: int
    shortfall: int
    errors: int
    statuses: dict[str, int]
    parts: int
    hash: str
    resumed: int = 0
    seconds: float = 0.0
    rows_per_second: float = 0.0
    memory: int = 0
    ignored: Sequence[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, results: Sequence[PartResult], *, resumed: Sequence[PartResult], seconds: float, ignored: Sequence[str]
    ) -> BatchReport:  # fmt: skip
        """The report on the parts of this run and those of earlier ones."""
        every = [*resumed, *results]
        statuses: Counter[str] = Counter()
        for one in every:
            statuses.update(one.statuses)
        return cls(
            **{name: sum(getattr(one, name) for one in every) for name in ("rows", "answers", "shortfall", "errors")},
            statuses=dict(sorted(statuses.items())),
            parts=len(every),
            hash=f"{sum(one.content for one in every) % MODULUS:016x}",
            resumed=len(resumed),
            seconds=seconds,
            rows_per_second=sum(one.rows for one in results) / seconds if seconds else 0.0,
            memory=max((one.memory for one in results), default=0),
            ignored=list(ignored),
        )

    @property
    def success(self) -> dict[str, Any]:
        """What `_SUCCESS` says: nothing that another run would say differently."""
        names = ("rows", "answers", "shortfall", "errors", "statuses", "hash")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        words = ", ".join(f"{count:,} {word}" for word, count in self.statuses.items())
        lines = [
            f"{counted(self.rows, 'row')}: {words or 'none explained'}; {counted(self.answers, 'answer')}, "
            f"{counted(self.errors, 'error')}",
            f"{counted(self.parts, 'part')}, {self.resumed:,} of earlier runs; hash {self.hash}",
        ]
        if self.rows_per_second:
            speed = f"{self.rows_per_second:,.0f} rows/s, {self.memory / MEGABYTE:,.0f} MB in one process at most"
            lines.append(f"{self.seconds:,.1f} s, {speed}")
        return "\n".join(lines)
