"""Compiled work on several threads: slices of a range, each handed to code that lets go of the interpreter."""

from __future__ import annotations

__all__ = ["THREADED", "in_threads", "one_blas_thread", "one_openmp_thread", "one_torch_thread"]

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

import numba
from threadpoolctl import ThreadpoolController, threadpool_limits

SLICES_PER_THREAD = 8
THREADED = 4096
"""How many rows of cheap work it takes before a second thread is worth its start."""


def in_threads(work: Callable[[int, int], None], n: int, *, least: int = 8, most: int = 2**31) -> None:
    """Run `work(low, high)` over slices of 0 to `n`, on as many threads as numba may use; fewer than `least` on one.

    most: how long a slice may be; with short ones no thread waits for another at the end. Threads live for one call:
    lasting ones would hang in forked processes.

    >>> seen = []
    >>> in_threads(lambda low, high: seen.append(high - low), 100)
    >>> sum(seen)
    100
    """
    workers = numba.get_num_threads()
    with one_blas_thread():
        if n < least or workers == 1:
            work(0, n)
            return
        size = min(most, max(1, -(-n // (SLICES_PER_THREAD * workers))))
        slices: SimpleQueue[int] = SimpleQueue()
        for low in range(0, n, size):
            slices.put(low)
        _share(work, slices, size, n, min(workers, slices.qsize()))


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
    for thread in others:
        thread.start()
    run()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]


class _Hold(threading.local):
    """How deep this thread is in blocks that hold matrix products to one thread."""

    depth = 0


_hold = _Hold()
_lock = threading.Lock()
_before: list[list[int]] = []  # one entry per thread inside: what the libraries were set to before the first of them


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Matrix products on one thread each: small ones are quicker so, and threads of our own don't start more.

    Blocks may be nested, and overlap in several threads. Each sets its libraries back itself: for some of them a
    setting holds in the thread that made it only.
    """
    _hold.depth += 1
    try:
        if _hold.depth == 1:
            with _lock:
                _before.append(_before[0] if _before else [library.num_threads for library in _libraries()])
                _set([1] * len(_libraries()))
        yield
    finally:
        _hold.depth -= 1
        if _hold.depth == 0:
            with _lock:
                _set(_before.pop())


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Run torch on one thread inside the block.

    The steps are small, and on a busy machine threads that wait for each other cost more than twenty times what a
    second one gains on an idle machine.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Libraries that use OpenMP, scikit-learn's trees among them, on one thread inside the block."""
    with threadpool_limits(limits=1, user_api="openmp"):
        yield


def _set(numbers: list[int]) -> None:
    for library, number in zip(_libraries(), numbers, strict=True):
        library.set_num_threads(number)


@cache
def _libraries() -> list[Any]:
    """Looking the libraries up takes milliseconds, so it is done once; scipy's, which numba calls, is loaded first."""
    import scipy.linalg.cython_blas  # noqa: F401

    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
