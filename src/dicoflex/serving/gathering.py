"""Requests that wait are answered together: whoever came while the last call ran goes next, and nobody waits for more.

Answers are the same alone and together, since a row's draws depend on the row, the settings and the seed alone. Large
requests are cut into slices that take turns with others, so that a deadline or a caller who left ends the work at the
next slice.
"""

from __future__ import annotations

__all__ = ["Gatherer", "Job"]

import asyncio
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from dicoflex.errors import UserError
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.serving import monitoring
from dicoflex.serving.engine import Answered, Cells, answer
from dicoflex.serving.problems import Problem, of_error

MOST_ROWS = 256
MOST_ANSWERS = 4_000


@dataclass(eq=False)
class Job:
    """The rows of one request, and what is known of their answers so far.

    key: the same for jobs that can be answered in one call. targets: a label per row, None for the other of two.
    """

    model: Model
    request: Request
    cells: list[Cells]
    targets: list[Any]
    verify: bool
    key: tuple[str, bytes]
    done: asyncio.Future[Answered]
    since: float = field(default_factory=time.perf_counter)
    rows: list[dict[str, Any]] = field(default_factory=list)
    bound: dict[str, Any] = field(default_factory=dict)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody still waits for it."""
        return not self.done.done()

    @property
    def n_left(self) -> int:
        return len(self.cells) - len(self.rows)


@dataclass(frozen=True)
class _Slice:
    """Some rows of a job, as many as one call takes."""

    job: Job
    low: int
    high: int

    @property
    def cells(self) -> list[Cells]:
        return self.job.cells[self.low : self.high]

    @property
    def request(self) -> Request:
        return _aimed(self.job.request, self.job.targets[self.low : self.high])


class Gatherer:
    """Answers jobs in one thread, those that can go together in one call.

    most_waiting: jobs beyond it are refused. together: False answers one job at a time.
    """

    def __init__(self, *, most_waiting: int, together: bool = True) -> None:
        self.most_waiting, self.together = most_waiting, together
        self.waiting: deque[Job] = deque()
        self.some = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="answers")

    def submit(self, job: Job) -> None:
        """Let a job wait for its turn; too many are a `Problem`."""
        if len(self.waiting) >= self.most_waiting:
            monitoring.refused.labels("overloaded").inc()
            text = f"{len(self.waiting)} requests wait already; try again in a second"
            raise Problem("overloaded", text, headers={"Retry-After": "1"})
        self.waiting.append(job)
        monitoring.waiting.set(len(self.waiting))
        self.some.set()

    async def run(self) -> None:
        """Answer jobs for as long as the server lives."""
        loop = asyncio.get_running_loop()
        while True:
            await self.some.wait()
            slices = self._next()
            if not slices:
                self.some.clear()
                continue
            started = time.perf_counter()
            results = await loop.run_in_executor(self.thread, _answer, slices)
            monitoring.seconds.labels("compute").observe(time.perf_counter() - started)
            for part, result in zip(slices, results, strict=True):
                self._keep(part, result)

    def close(self) -> None:
        """End the thread, once what it does is done."""
        self.thread.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> list[_Slice]:
        """Slices of the jobs that go next: the first that is still wanted, and what can go with it."""
        taken: list[_Slice] = []
        left: deque[Job] = deque()
        room = MOST_ROWS
        while self.waiting and room > 0:
            job = self.waiting.popleft()
            if not job.is_wanted:
                monitoring.abandoned.inc()
            elif taken and (not self.together or job.key != taken[0].job.key):
                left.append(job)
            else:
                if not taken:
                    room = min(MOST_ROWS, max(1, MOST_ANSWERS // job.request.n))
                if not job.rows:
                    monitoring.seconds.labels("queue").observe(time.perf_counter() - job.since)
                count = min(room, job.n_left)
                taken.append(_Slice(job, len(job.rows), len(job.rows) + count))
                room -= count
        self.waiting.extendleft(reversed(left))
        monitoring.waiting.set(len(self.waiting))
        if taken:
            monitoring.gathered.observe(sum(part.high - part.low for part in taken))
        return taken

    def _keep(self, part: _Slice, result: Answered | Exception) -> None:
        job = part.job
        if not job.is_wanted:
            monitoring.abandoned.inc()
        elif isinstance(result, Exception):
            job.done.set_exception(result)
        else:
            job.rows.extend(result.rows)
            job.bound = job.bound or result.bound
            if job.n_left:
                self.waiting.append(job)
                self.some.set()
            else:
                job.done.set_result(Answered(job.rows, job.bound))


def _answer(slices: list[_Slice]) -> list[Answered | Exception]:
    """The answers to each slice, in one call; where it fails, one call each, so that nobody fails with another."""
    if len(slices) == 1:
        return [_alone(slices[0])]
    first = slices[0].job
    targets = [target for part in slices for target in part.job.targets[part.low : part.high]]
    try:
        cells = [row for part in slices for row in part.cells]
        found = answer(first.model, cells, _aimed(first.request, targets), verify=first.verify)
    except Exception:
        return [_alone(part) for part in slices]
    edges = [0]
    for part in slices:
        edges.append(edges[-1] + part.high - part.low)
    return [replace(found, rows=found.rows[low:high]) for low, high in pairwise(edges)]


def _alone(part: _Slice) -> Answered | Exception:
    try:
        return answer(part.job.model, part.cells, part.request, verify=part.job.verify)
    except UserError as error:
        return of_error(error)
    except Exception as error:
        return error


def _aimed(request: Request, targets: list[Any]) -> Request:
    return request.model_copy(update={"target": tuple(targets)})
