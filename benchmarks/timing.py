"""Times that can be compared: works take turns in one process, after a warm-up of each, and medians are given."""

from __future__ import annotations

__all__ = ["BestThreads", "Work", "in_turns", "threads"]

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from dicoflex.runtime.threads import thread_limit, use_threads

Work = Callable[[int], int]
"""From the number of the turn to how much was produced."""


def in_turns(works: Mapping[str, Work], repeats: int) -> dict[str, dict[str, Any]]:
    """Seconds of each work, in `repeats` rounds of all of them after a warm-up; works say how much they produced.

    >>> in_turns({"half": lambda turn: 2}, 3)["half"]["answers"]
    2
    """
    for work in works.values():
        work(0)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    answers: dict[str, list[int]] = {name: [] for name in works}
    for turn in range(repeats):
        for name, work in works.items():
            started = time.perf_counter()
            answers[name].append(work(turn))
            seconds[name].append(time.perf_counter() - started)
    return {name: _timing(seconds[name], answers[name]) for name in works}


def _timing(seconds: Sequence[float], answers: Sequence[int]) -> dict[str, Any]:
    median, mean = statistics.median(seconds), statistics.mean(answers)
    return {"seconds": median, "answers": mean, "per_answer": median / mean if mean else None, "repeats": list(seconds)}


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Our core on `n` threads inside."""
    before = thread_limit()
    use_threads(n)
    try:
        yield
    finally:
        use_threads(before)


class BestThreads:
    """A work of torch or of matrix products, on the fastest of some numbers of threads, which the first call tries.

    now: the clock that tells which is fastest.
    """

    def __init__(self, work: Work, tried: Sequence[int], *, now: Callable[[], float] = time.perf_counter) -> None:
        self.work, self.tried, self.now = work, tried, now
        self.n: int | None = None

    def __call__(self, turn: int) -> int:
        if self.n is None:
            self.n = min(self.tried, key=lambda n: self._seconds(turn, n))
        return self._on(turn, self.n)

    def _on(self, turn: int, n: int) -> int:
        before = torch.get_num_threads()
        torch.set_num_threads(n)
        try:
            with threadpool_limits(n, user_api="blas"):
                return self.work(turn)
        finally:
            torch.set_num_threads(before)

    def _seconds(self, turn: int, n: int) -> float:
        started = self.now()
        self._on(turn, n)
        return self.now() - started
