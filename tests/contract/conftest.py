"""How every test of the contract runs."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from dicoflex import DiCoFlex, load
from dicoflex.answers import engine as ask


@pytest.fixture(autouse=True, scope="module")
def threads(one_thread: None) -> None:
    """Every file of this folder computes on one thread."""


@pytest.fixture(autouse=True, scope="module")
def few_candidates() -> Iterator[None]:
    """`explain` chooses from fewer, as densities that were hardly trained take many rounds for each."""
    with mock.patch.object(ask, "CANDIDATES", 24):
        yield


@pytest.fixture(scope="session")
def reloaded(judged: DiCoFlex, tmp_path_factory: pytest.TempPathFactory) -> DiCoFlex:
    path = tmp_path_factory.mktemp("model") / "m.dicoflex"
    judged.save(path)
    return load(path, row_key=judged.row_key_)
