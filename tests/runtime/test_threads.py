"""Slices cover the range once, on one thread or several, and the threads of matrix products are set back."""

from __future__ import annotations

import itertools
import linecache
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from dicoflex.errors import SettingError
from dicoflex.runtime import threads
from dicoflex.runtime.threads import in_threads, one_blas_thread, one_torch_thread, thread_limit, use_threads


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000])
def test_every_number_is_worked_on_once(n: int) -> None:
    count = np.zeros(n, dtype=int)

    def work(low: int, high: int) -> None:
        count[low:high] += 1

    in_threads(work, n)
    assert (count == 1).all()


def test_slices_are_no_longer_than_asked_for() -> None:
    lengths: list[int] = []
    in_threads(lambda low, high: lengths.append(high - low), 1000, most=3)
    assert sum(lengths) == 1000
    assert max(lengths) == 3 or len(lengths) == 1


def test_an_error_in_a_slice_reaches_the_caller() -> None:
    def work(low: int, high: int) -> None:
        raise ValueError(f"{low} to {high}")

    with pytest.raises(ValueError, match=r"\d+ to \d+"):
        in_threads(work, 100)


def test_blas_has_one_thread_inside_and_its_own_number_after() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread(), one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_torch_has_one_thread_inside_and_its_own_number_after() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_torch_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_blocks_that_overlap_in_threads_set_the_number_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        inside, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with one_blas_thread():
                inside.set()
                leave.wait(10)

        other = threading.Thread(target=hold)
        with one_blas_thread():
            other.start()
            assert inside.wait(10)
        leave.set()
        other.join()
        assert blas_threads() == before


def test_a_thread_that_leaves_does_not_set_the_number_back_for_one_that_stays() -> None:
    with threadpool_limits(2, user_api="blas"):
        leave = threading.Event()

        def hold() -> None:
            with one_blas_thread():
                leave.wait(10)

        other = threading.Thread(target=hold)
        with one_blas_thread():
            other.start()
            leave.set()
            other.join()
            assert blas_threads() == {1}


def test_torchs_threads_are_set_back_after_blocks_that_overlap() -> None:
    before = torch.get_num_threads()
    entered, leave = threading.Event(), threading.Event()
    seen: list[int] = []

    def hold() -> None:
        with one_torch_thread():
            entered.set()
            leave.wait(10)
            seen.append(torch.get_num_threads())

    other = threading.Thread(target=hold)
    with one_torch_thread():
        other.start()
        assert entered.wait(10)
    leave.set()
    other.join()
    assert seen == [1]
    assert torch.get_num_threads() == before
    fresh = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    fresh.start()
    fresh.join()
    assert seen == [1, before]


class Interrupting:
    """A trace function that interrupts at the n-th place where Python may let a signal through.

    That is where a function begins, and any line of one that is called while entering or leaving. Lines that open a
    block are passed over: they are traced once more when it is left, and then no signal is let through.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != threads.__file__:
            return None
        opens = linecache.getline(threads.__file__, frame.f_lineno).lstrip().startswith("with ")
        if event == "call" or (event == "line" and not opens and frame.f_code.co_name != "block"):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("block", [one_blas_thread, one_torch_thread])
def test_an_interruption_at_any_line_leaves_the_numbers_as_they_were(block: Callable[[], Any]) -> None:
    held = threads._blas if block is one_blas_thread else threads._torch
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads(), torch.get_num_threads()
        for at in itertools.count(1):
            interrupted = False
            sys.settrace(Interrupting(at))
            try:
                with block(), block():
                    pass
            except KeyboardInterrupt:
                interrupted = True
            finally:
                sys.settrace(None)
            assert (blas_threads(), torch.get_num_threads()) == before, at
            assert not held.inside, at
            if not interrupted:
                break
        assert at > 10


def test_a_fork_while_another_thread_is_inside() -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with one_blas_thread(), one_torch_thread(), threads._blas.lock:
            entered.set()
            leave.wait(30)

    other = threading.Thread(target=hold)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        other.start()
        assert entered.wait(10)
        child = os.fork()
        if child == 0:
            fine = blas_threads() == before
            with one_blas_thread():
                fine &= blas_threads() == {1}
            os._exit(0 if fine and blas_threads() == before else 1)
        leave.set()
        other.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_number_of_threads_is_the_callers_or_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(thread_limit())
        use_threads(3)
        seen.append(thread_limit())

    monkeypatch.setenv("DICOFLEX_THREADS", "5")
    for _ in range(2):  # what one thread sets is not another's
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [5, 3, 5, 3]


@pytest.mark.parametrize("given", ["0", "two", "-1", ""])
def test_a_number_of_threads_that_is_none_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICOFLEX_THREADS", given)
    monkeypatch.delattr(threads._own, "limit", raising=False)
    with pytest.raises(SettingError, match="DICOFLEX_THREADS must be a whole number of at least 1"):
        in_threads(lambda *_: None, 100)
    with pytest.raises(SettingError, match="at least 1 thread"):
        use_threads(0)
