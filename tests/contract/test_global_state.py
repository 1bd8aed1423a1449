"""Fits and answers neither hang on what is set for the whole process, nor change it; fits in threads are repeatable."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from comparing import LABELS, ROWS, Quickly
from dicoflex import DiCoFlex, load
from dicoflex.generators import GENERATORS
from dicoflex.learning import surrogate

RECORDING = Path(__file__).parents[1] / "recording"


def content(model: DiCoFlex) -> dict[str, Any]:
    """What was learned, without how long it took."""
    header, arrays = model.model_.content()
    report = {key: value for key, value in header["report"].items() if key != "seconds"}
    return {**header, "report": report, **{name: array.tobytes() for name, array in arrays.items()}}


@contextmanager
def double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def no_random_numbers() -> Iterator[None]:
    """Random numbers of the whole process that are others every time."""
    torch.manual_seed(random.randrange(2**32))
    np.random.seed(random.randrange(2**32))  # noqa: NPY002
    yield


@contextmanager
def another_device() -> Iterator[None]:
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


SETTINGS: dict[str, Callable[[], Any]] = {
    "float64": double_precision,
    "no gradients": torch.no_grad,
    "inference": torch.inference_mode,
    "other random numbers": no_random_numbers,
    "another device": another_device,
    "one thread": lambda: threadpool_limits(1),
}


@pytest.fixture(scope="module")
def alone(quickly: Quickly) -> Callable[[str], dict[str, Any]]:
    """What a fit of each density finds when nothing is set."""
    kept: dict[str, dict[str, Any]] = {}

    def get(name: str) -> dict[str, Any]:
        if name not in kept:
            kept[name] = content(quickly(ROWS, LABELS, name))
        return kept[name]

    return get


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", list(GENERATORS))
def test_a_fit_does_not_hang_on_what_is_set(
    name: str, setting: str, quickly: Quickly, alone: Callable[[str], dict[str, Any]]
) -> None:
    expected = alone(name)
    with SETTINGS[setting]():
        found = content(quickly(ROWS, LABELS, name))
    assert found == expected


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["mixed", "mixed-trees", "maf", "kde"])
def test_a_loaded_model_does_not_hang_on_what_is_set(name: str, setting: str, queries: pd.DataFrame) -> None:
    rows = queries.drop(columns="score").assign(score=np.float32(0.5))
    path = RECORDING / f"{name}.dicoflex"
    expected = load(path).explain(rows, target="yes", n=2, random_state=0)
    with SETTINGS[setting]():
        model = load(path)
        found = model.explain(rows, target="yes", n=2, random_state=0)
    assert found.model == expected.model
    pd.testing.assert_frame_equal(found.frame, expected.frame)
    pd.testing.assert_frame_equal(found.info, expected.info)


def state() -> list[Any]:
    """All that a library could change under its caller."""
    threads = sorted((library["filepath"], library["num_threads"]) for library in threadpool_info())
    return [
        *(torch.get_rng_state().tolist(), np.random.get_state(), random.getstate()),  # noqa: NPY002
        *(torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads(), threads),
        *(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), np.geterr(), sys.getrecursionlimit()),
    ]


@pytest.mark.parametrize("name", ["mixed", "maf", "kde"])
def test_fits_and_answers_leave_everything_as_it_was(name: str, quickly: Quickly) -> None:
    with torch.no_grad():
        before = state()
        model = quickly(ROWS, LABELS, name)
        model.explain(ROWS.head(2), target="yes", n=2)
        assert str(state()) == str(before)


def test_fits_in_threads_are_repeatable(
    quickly: Quickly, alone: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two densities, each of two threads; the number of torch's threads is what it was, here and in new threads."""
    names = ["mixed", "maf"] * 4
    expected = [alone(name) for name in names]
    before = torch.get_num_threads()
    # What `quickly` patches is patched for all threads: none sets it back while another one fits.
    monkeypatch.setattr(surrogate, "STEPS", 60)
    monkeypatch.setattr(surrogate, "ROUNDS", 10)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: content(quickly(ROWS, LABELS, name)), names))
    assert found == expected
    assert torch.get_num_threads() == before
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == before


def test_a_process_without_a_standard_error(quickly: Quickly, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    model = quickly(ROWS, LABELS)
    assert len(model.explain(ROWS.head(1), target="yes", n=1, random_state=0))
    assert quickly(ROWS, LABELS, verbose=True).fingerprint_
