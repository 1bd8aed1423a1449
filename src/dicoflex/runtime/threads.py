"""The core's work on several threads: slices of a range, each handed to code that lets go of the interpreter."""

from __future__ import annotations

__all__ = [
    "THREADED",
    "THREADS_VARIABLE",
    "in_threads",
    "one_blas_thread",
    "one_openmp_thread",
    "one_torch_thread",
    "thread_limit",
    "use_threads",
]

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

from dicoflex.errors import SettingError

SLICES_PER_THREAD = 8
THREADS_VARIABLE = "DICOFLEX_THREADS"
THREADED = 4096
"""How many rows of cheap work it takes before a second thread is worth its start."""


def in_threads(work: Callable[[int, int], None], n: int, *, least: int = 8, most: int = 2**31) -> None:
    """Run `work(low, high)` over slices of 0 to `n`, on up to `thread_limit()` threads; fewer than `least` on one.

    most: how long a slice may be; with short ones no thread waits for another at the end. Threads live for one call:
    lasting ones would hang in forked processes.

    >>> seen = []
    >>> in_threads(lambda low, high: seen.append(high - low), 100)
    >>> sum(seen)
    100
    """
    workers = 1 if n < least else thread_limit()
    if workers == 1:
        work(0, n)
        return
    size = min(most, max(1, -(-n // (SLICES_PER_THREAD * workers))))
    slices: SimpleQueue[int] = SimpleQueue()
    for low in range(0, n, size):
        slices.put(low)
    _share(work, slices, size, n, min(workers, slices.qsize()))


_own = threading.local()


def use_threads(n: int) -> None:
    """Let calls that this thread makes use `n` threads."""
    if n < 1:
        raise SettingError(f"a call needs at least 1 thread, got {n}")
    _own.limit = n


def thread_limit() -> int:
    """How many threads a call of this thread may use: what `use_threads` set, or else `DICOFLEX_THREADS`, or else as
    many as there are cores.

    >>> thread_limit() >= 1
    True
    """
    own: int | None = getattr(_own, "limit", None)
    return own or _usual_limit(os.environ.get(THREADS_VARIABLE))


@cache
def _usual_limit(given: str | None) -> int:
    if given is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not given.isdecimal() or int(given) < 1:
        raise SettingError(f"{THREADS_VARIABLE} must be a whole number of at least 1, got {given!r}")
    return int(given)


def _share(work: Callable[[int, int], None], slices: SimpleQueue[int], size: int, n: int, workers: int) -> None:
    """Work off a queue of slices on several threads, this one among them; after an error no slice is begun."""
    errors: list[BaseException] = []

    def run() -> None:
        while not errors:
            try:
                low = slices.get_nowait()
            except Empty:
                return
            try:
                work(low, min(low + size, n))
            except BaseException as error:
                errors.append(error)

    others = [threading.Thread(target=run) for _ in range(workers - 1)]
    try:
        for thread in others:
            thread.start()
        run()
        for thread in others:
            thread.join()
    except BaseException as interruption:
        errors.append(interruption)
        raise
    if errors:
        raise errors[0]


# -- threads of other libraries ------------------------------------------------------------------------------------


class _Held:
    """Numbers of threads that are held at one for as long as any thread is inside a block.

    read: the present numbers. write: set them; its second argument says whether this thread is the last to leave.
    Blocks may be nested, overlap in several threads, and be interrupted at any moment; a forked process starts anew.
    """

    def __init__(self, read: Callable[[], list[int]], write: Callable[[list[int], bool], None]) -> None:
        self.read, self.write = read, write
        self.lock = threading.Lock()
        self.inside: set[int] = set()  # threads
        self.before: list[int] = []
        os.register_at_fork(after_in_child=self._forked)

    def is_inside(self) -> bool:
        """Whether this thread is in a block already."""
        return threading.get_ident() in self.inside

    @contextmanager
    def block(self) -> Iterator[None]:
        me = threading.get_ident()
        nested = me in self.inside
        interruption: KeyboardInterrupt | None = None
        try:
            if not nested:
                self._enter(me)
            yield
        finally:
            # An interruption while leaving is let through once all is set back; no call may stand before the `try`.
            while not nested and me in self.inside:
                try:
                    self._leave(me)
                except KeyboardInterrupt as error:
                    interruption = error
            if interruption is not None:
                raise interruption

    def _enter(self, me: int) -> None:
        with self.lock:
            now = self.read()
            if not self.inside:
                self.before = now
            self.inside.add(me)
            self.write([1] * len(now), True)

    def _leave(self, me: int) -> None:
        with self.lock:
            self.write(self.before, len(self.inside) == 1)
            self.inside.discard(me)

    def _forked(self) -> None:
        """In a new process there is this thread alone; what others held is set back."""
        self.lock = threading.Lock()
        if self.inside and threading.get_ident() not in self.inside:
            self.write(self.before, True)
        self.inside &= {threading.get_ident()}


def _set_blas(numbers: list[int], last: bool) -> None:
    """Set the libraries' numbers: for some a setting holds in the thread that made it, for others everywhere."""
    for library, number in zip(_libraries(), numbers, strict=True):
        if last or getattr(library, "threading_layer", None) == "openmp":
            _let_go(library)
            library.set_num_threads(number)
            _let_go(library)


def _let_go(library: Any) -> None:
    """Some versions of threadpoolctl listen to the first thread that sets a number and, in silence, to no other."""
    getattr(library, "clear_controlling_thread", lambda **_: None)(force=True)


@cache
def _libraries() -> list[Any]:
    """Looking the libraries up takes milliseconds, so it is done once; scipy's is loaded first."""
    import scipy.linalg.cython_blas  # noqa: F401

    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def _torch_threads() -> list[int]:
    import torch

    return [torch.get_num_threads()]


def _set_torch(numbers: list[int], last: bool) -> None:  # noqa: ARG001
    """A setting holds in the thread that made it, and for threads that torch has not seen yet."""
    import torch

    torch.set_num_threads(numbers[0])


_blas = _Held(lambda: [library.num_threads for library in _libraries()], _set_blas)
_torch = _Held(_torch_threads, _set_torch)


def one_blas_thread() -> AbstractContextManager[None]:
    """Matrix products on one thread each: small ones are quicker so, and threads of our own don't start more."""
    return _blas.block()


def one_torch_thread() -> AbstractContextManager[None]:
    """Run torch on one thread inside the block.

    The steps are small, and on a busy machine threads that wait for each other cost more than twenty times what a
    second one gains on an idle machine.
    """
    return _torch.block()


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Libraries that use OpenMP, scikit-learn's trees among them, on one thread inside the block."""
    with threadpool_limits(limits=1, user_api="openmp"):
        yield
