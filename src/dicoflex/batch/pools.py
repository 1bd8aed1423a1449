"""Where parts are worked off: in this process, or in others of this machine that may die without taking it along."""

from __future__ import annotations

__all__ = ["Event", "Inline", "Lost", "Pool", "Processes", "outcome_of"]

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass
from queue import Queue
from types import TracebackType
from typing import Any, Protocol, Self

from dicoflex.batch.sources import Span
from dicoflex.batch.work import Job, PartResult
from dicoflex.batch.worker import main

Event = tuple[Span, "PartResult | Lost | Exception"]


@dataclass(frozen=True)
class Lost:
    """A part whose worker died before it was done, and how."""

    how: str


class Pool(Protocol):
    """Workers for the parts of a job. At most `slots` parts are begun and not yet waited for."""

    slots: int

    def start(self, span: Span) -> None:
        """Begin a part."""

    def wait(self) -> Event:
        """The next part that ended, and what came of it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End all workers."""


class Inline:
    """This process itself; the core uses its threads."""

    slots = 1

    def __init__(self, job: Job) -> None:
        self.job = job
        self.begun: deque[Span] = deque()

    def start(self, span: Span) -> None:
        self.begun.append(span)

    def wait(self) -> Event:
        span = self.begun.popleft()
        return span, outcome_of(self.job, span)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.begun.clear()


def outcome_of(job: Job, span: Span) -> PartResult | Exception:
    """What comes of a part, be it an error."""
    try:
        return job.run(span)
    except Exception as error:
        return error


class Processes:
    """Processes of this machine, one thread of the core in each; one that dies is replaced by another."""

    def __init__(self, job: Job, workers: int) -> None:
        self.slots = workers
        self.message = pickle.dumps(job)
        self.spans: Queue[Span | None] = Queue()
        self.events: Queue[Event] = Queue()
        self.running: set[subprocess.Popen[bytes]] = set()
        self.ended = False
        self.threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.ended = True
        for _thread in self.threads:
            self.spans.put(None)
        for process in list(self.running):
            process.kill()
        for thread in self.threads:
            thread.join()

    def start(self, span: Span) -> None:
        self.spans.put(span)

    def wait(self) -> Event:
        return self.events.get()

    def _serve(self) -> None:
        """One worker after another, as long as there are parts."""
        process: subprocess.Popen[bytes] | None = None
        while (span := self.spans.get()) is not None and not self.ended:
            try:
                process = process or self._begun()
                self.events.put((span, _asked(process, span)))
            except (OSError, EOFError, pickle.UnpicklingError):
                assert process is not None
                self.events.put((span, Lost(_how(process.wait()))))
                self.running.discard(process)
                process = None
            except Exception as error:
                self.events.put((span, error))
        if process is not None:
            process.kill()
            process.wait()

    def _begun(self) -> subprocess.Popen[bytes]:
        """A new worker, which has said that it is ready."""
        code = f"import sys; sys.path[:] = {sys.path!r}; from {main.__module__} import main; main()"
        one_thread = dict.fromkeys(("DICOFLEX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | one_thread
        )
        self.running.add(process)
        try:
            _send(process, self.message)
            ready = pickle.load(process.stdout)  # type: ignore[arg-type]
        except (OSError, EOFError):
            raise RuntimeError(f"a worker process could not be started: it {_how(process.wait())}") from None
        if isinstance(ready, Exception):
            raise ready
        return process


def _send(process: subprocess.Popen[bytes], message: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(message)
    process.stdin.flush()


def _asked(process: subprocess.Popen[bytes], span: Span) -> Any:
    _send(process, pickle.dumps(span))
    return pickle.load(process.stdout)  # type: ignore[arg-type]


def _how(code: int) -> str:
    """How a process ended.

    >>> _how(-9), _how(3)
    ('was ended by SIGKILL', 'ended with exit code 3')
    """
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
