"""Jobs and pools that lose parts of a batch, as workers do that are killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from dicoflex.batch.pools import Inline, Lost
from dicoflex.batch.sources import Span
from dicoflex.batch.work import Job, PartResult


class MortalJob(Job):
    """A job whose process is killed once, by the first part, for as long as a file is not there."""

    def run(self, span: Span) -> PartResult:
        killed = Path(self.out.uri).parent / "killed"
        if not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(span)


class LossyPool(Inline):
    """A pool of which each part dies that holds one of some rows of the first file; it counts the deaths by rows."""

    def __init__(self, job: Job, deadly: set[int]) -> None:
        super().__init__(job)
        self.deadly, self.deaths = deadly, Counter[tuple[int, int]]()

    def wait(self) -> Any:
        span = self.begun[0]
        if span.file == 0 and self.deadly & set(range(span.first, span.stop)):
            self.begun.popleft()
            self.deaths[span.first, span.stop] += 1
            return span, Lost("was ended by SIGKILL")
        return super().wait()
