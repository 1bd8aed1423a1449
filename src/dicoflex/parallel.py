"""Compiled work on several threads: slices of a range, each handed to a kernel that lets go of the interpreter."""

from __future__ import annotations

__all__ = ["in_threads"]

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numba
from threadpoolctl import ThreadpoolController

SLICES_PER_THREAD = 8


def in_threads(work: Callable[[int, int], None], n: int, *, least: int = 8) -> None:
    """Run `work(low, high)` over slices of 0 to `n`, on as many threads as numba may use; fewer than `least` on one.

    Matrix products inside run on one thread each, or every thread would start its own. A pool lives for one call: a
    lasting one would hang in forked processes.

    >>> seen = []
    >>> in_threads(lambda low, high: seen.append(high - low), 100)
    >>> sum(seen)
    100
    """
    workers = numba.get_num_threads()
    with _controller().limit(limits=1, user_api="blas"):
        if n < least or workers == 1:
            work(0, n)
            return
        size = max(1, -(-n // (SLICES_PER_THREAD * workers)))
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda low: work(low, min(low + size, n)), range(0, n, size)))


@cache
def _controller() -> ThreadpoolController:
    """Looking the libraries up takes milliseconds, so it is done once; scipy's, which numba calls, is loaded first."""
    import scipy.linalg.cython_blas  # noqa: F401

    return ThreadpoolController()
