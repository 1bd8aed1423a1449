"""A server of two models for all tests, which keeps an audit log with values."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from dicoflex import load
from dicoflex.examples import EXAMPLES
from dicoflex.explainer import Explainer
from serving.running import Running, started

RECORDING = Path(__file__).resolve().parents[1] / "recording"


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model that refines its answers, `loans`, and one that does not, `plain`."""
    folder = tmp_path_factory.mktemp("models")
    refined = next(path for path in EXAMPLES if path.stem == "perceptron")
    shutil.copy(refined, folder / "loans.dicoflex")
    shutil.copy(RECORDING / "mixed.dicoflex", folder / "plain.dicoflex")
    return folder


@pytest.fixture(scope="session")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="session")
def server(models: Path, audit: Path) -> Iterator[Running]:
    with started(models, "--audit", str(audit), "--audit-values", "--max-rows", "600") as running:
        yield running


@pytest.fixture(scope="session")
def http(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="session")
def plain(models: Path) -> Explainer:
    return load(models / "plain.dicoflex")


@pytest.fixture(scope="session")
def loans(models: Path) -> Explainer:
    return load(models / "loans.dicoflex")
