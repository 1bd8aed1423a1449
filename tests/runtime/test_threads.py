"""Slices cover the range once, on one thread or several, and the threads of matrix products are set back."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from dicoflex.runtime.threads import in_threads, one_blas_thread, one_torch_thread


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
