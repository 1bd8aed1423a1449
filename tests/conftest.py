"""Small tables, black boxes for them, and models fitted once for all tests."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, settings

from dicoflex import DiCoFlex
from dicoflex.generators import GENERATORS
from dicoflex.learning import surrogate, training
from dicoflex.runtime.threads import thread_limit, use_threads
from spreading import ByFile, long_ones_first

# Steps in tests are tiny: on a busy machine, threads that wait for each other cost twenty times the work itself.
torch.set_num_threads(1)

# Properties are tried on the same examples everywhere, however long one takes.
settings.register_profile(
    "same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("same")

CLASSES = ["no", "yes"]
ROW_KEY = bytes(range(32))
QUICK = {
    "training": {"min_steps": 0, "epochs": 2},
    "fit_config": {"passes": 2, "rounds": 0},
    "random_state": 0,
    "coherence": False,  # what refinement does is tested with models that took more training
    "min_count": 1,  # small tables have few rows of anything; what more does is tested by itself
}


ROOT = Path(__file__).resolve().parents[1]
SLOW = ("tests/benchmarks", "docs")
"""Folders of which everything is slow: benchmarks run, and pages that fit a model of their own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folders = [ROOT / name for name in SLOW]
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in folders):
            item.add_marker(pytest.mark.slow)
    if "PYTEST_XDIST_WORKER" in os.environ:
        long_ones_first(items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


def make_applicants(n: int, seed: int) -> pd.DataFrame:
    """Rows of every kind: missing values, a point mass at 0, cents, narrow dtypes, levels that are numbers."""
    rng = np.random.default_rng(seed)
    age = pd.array(rng.integers(18, 80, n), dtype="Int64")
    age[rng.random(n) < 0.1] = pd.NA
    job = rng.choice(["cook", "nurse", "pilot", "smith"], n).astype(object)
    job[rng.random(n) < 0.1] = None
    frame = pd.DataFrame(
        {
            "age": age,
            "gain": np.where(rng.random(n) < 0.5, 0.0, rng.gamma(2.0, 500.0, n)),
            "price": np.round(rng.choice(np.arange(5.0, 25.0, 0.25), n), 2),
            "score": rng.normal(size=n).astype("float32"),
            "visits": rng.poisson(3.0, n).astype("int8"),
            "job": pd.Series(job, dtype=object),
            "city": rng.choice(["Ulm", "Rome"], n),
            "grade": pd.Categorical(rng.choice(list("abc"), n), categories=list("abcd"), ordered=True),
            "area": pd.Categorical(rng.choice([1, 2, 5], n)),
            "member": rng.random(n) < 0.4,
        }
    )
    return frame.set_axis(pd.Index([f"r{seed}-{i}" for i in range(n)], name="person"))


def predict_proba(frame: pd.DataFrame) -> np.ndarray:
    """The black box of the applicants: a logistic function of four of their features."""
    score = frame["gain"] / 400 + 1.5 * frame["member"] + 0.8 * (frame["grade"] == "a") + frame["score"] - 1.6
    yes = 1 / (1 + np.exp(-2 * score.to_numpy(dtype=float)))
    return np.column_stack([1 - yes, yes])


def predict(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(CLASSES, dtype=object)[predict_proba(frame).argmax(axis=1)]


@contextmanager
def small_surrogate(steps: int = 60, rounds: int = 10) -> Iterator[None]:
    """Surrogates that are learned in a moment; most tests don't need good ones."""
    with mock.patch.object(surrogate, "STEPS", steps), mock.patch.object(surrogate, "ROUNDS", rounds):
        yield


@contextmanager
def ticking(step: float) -> Iterator[None]:
    """Training's clock moves on by `step` seconds whenever it is read: a budget of time is a number of steps."""
    ticks = itertools.count(step=step)
    with mock.patch.object(training, "time", SimpleNamespace(monotonic=lambda: next(ticks))):
        yield


def fit_quickly(X: pd.DataFrame, y: Any, generator: str = "mixed", *, steps: int = 60, **given: Any) -> DiCoFlex:
    """A model that took next to no training; `given` goes to `fit` or over the settings of `DiCoFlex`.

    Rows are remembered where the density can't do without them.
    """
    names = ("feature_names", "model", "predict_proba", "predict", "classes", "calls", "threshold", "remember_rows")
    for_fit = {k: given.pop(k) for k in names if k in given}
    if GENERATORS[generator].keeps_rows:
        for_fit.setdefault("remember_rows", ROW_KEY)
    with small_surrogate(steps=steps):
        return DiCoFlex(generator, **{**QUICK, **given}).fit(X, y, **for_fit)


@pytest.fixture(autouse=True, scope="module")
def one_torch_thread() -> None:
    """Numba's threads, when they are first started, set OpenMP's number anew, which is torch's."""
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """The core's work on one thread: batches are tiny here, and threads on a busy machine wait for each other."""
    before = thread_limit()
    use_threads(1)
    torch.set_num_threads(1)
    yield
    use_threads(before)


@pytest.fixture(scope="module")
def few_steps() -> Iterator[None]:
    """A second of training is some fifty steps, on any machine."""
    with ticking(0.01):
        yield


@pytest.fixture(scope="session")
def quickly() -> Callable[..., DiCoFlex]:
    return fit_quickly


@pytest.fixture(scope="session")
def black_box() -> Callable[[pd.DataFrame], np.ndarray]:
    return predict_proba


@pytest.fixture(scope="session")
def says() -> Callable[[pd.DataFrame], np.ndarray]:
    """The black box's labels."""
    return predict


@pytest.fixture(scope="session")
def applicants() -> pd.DataFrame:
    return make_applicants(260, seed=0)


@pytest.fixture(scope="session")
def queries() -> pd.DataFrame:
    """Rows that no model was fitted on."""
    return make_applicants(8, seed=1)


@pytest.fixture(scope="session")
def labels(applicants: pd.DataFrame) -> np.ndarray:
    return predict(applicants)


@pytest.fixture(scope="session")
def models(applicants: pd.DataFrame, labels: np.ndarray) -> Callable[[str], DiCoFlex]:
    """Each density of the registry fitted on the applicants' labels, when first asked for."""
    fitted: dict[str, DiCoFlex] = {}

    def get(name: str) -> DiCoFlex:
        if name not in fitted:
            fitted[name] = fit_quickly(applicants, labels, name)
        return fitted[name]

    return get


@pytest.fixture(scope="session", params=list(GENERATORS))
def model(request: pytest.FixtureRequest, models: Callable[[str], DiCoFlex]) -> DiCoFlex:
    """A model of every density."""
    return models(request.param)


@pytest.fixture(scope="session")
def mixed(models: Callable[[str], DiCoFlex]) -> DiCoFlex:
    return models("mixed")


@pytest.fixture(scope="session")
def judged(applicants: pd.DataFrame, labels: np.ndarray) -> DiCoFlex:
    """The default density, fitted with the black box at hand and one round of its own draws."""
    return fit_quickly(
        applicants,
        labels,
        predict_proba=predict_proba,
        remember_rows=ROW_KEY,
        steps=400,
        training={"min_steps": 0, "epochs": 8},
        fit_config={"passes": 3, "rounds": 1, "own_draws": 2000},
    )


@pytest.fixture(scope="session")
def three(applicants: pd.DataFrame) -> DiCoFlex:
    """A model of three classes."""
    level = np.digitize(applicants["gain"] / 400 + applicants["member"], [0.5, 1.6])
    return fit_quickly(applicants, np.array(["low", "middle", "high"])[level], steps=200)


def predict_score(frame: pd.DataFrame) -> np.ndarray:
    """A black box that gives the applicants scores, of some 400 to 900."""
    score = 520 + 40 * frame["score"] + 0.06 * frame["gain"] + 60 * frame["member"] - 8 * frame["visits"]
    return (score + 25 * (frame["grade"] == "a")).to_numpy(dtype=float)


@pytest.fixture(scope="session")
def scores() -> Callable[[pd.DataFrame], np.ndarray]:
    return predict_score


@pytest.fixture(scope="session")
def scored() -> DiCoFlex:
    """A model of scores that refines its answers."""
    return fit_quickly(
        make_applicants(700, seed=2),
        None,
        predict=predict_score,
        steps=900,
        training={"min_steps": 0, "epochs": 8},
        fit_config={"passes": 3, "rounds": 1, "own_draws": 6000},
        coherence=True,
    )
