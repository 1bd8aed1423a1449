"""How tests are spread over the processes of `pytest -n`: a file stays in one, and so do folders that share a start."""

from __future__ import annotations

__all__ = ["ByFile", "long_ones_first"]

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/benchmarks", "tests/explorer/browser", "tests/serving")
"""Folders whose files share what is dear to start: a run of the benchmarks, a server, a model for it."""

LONG = ("docs/", "tests/test_architecture.py", "tests/test_readme.py", "tests/test_recording.py")
"""What takes long and would be collected last."""


def place(nodeid: str) -> str:
    """What a test must share a process with: its folder's tests, or its file's."""
    file = nodeid.split("::")[0]
    return next((folder for folder in TOGETHER if file.startswith(f"{folder}/")), file)


class ByFile(LoadScopeScheduling):
    """Hands out whole places, in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return place(nodeid)


def long_ones_first(items: list[pytest.Item]) -> None:
    """So that at the end no process has much left while the others have nothing."""
    items.sort(key=lambda item: (place(item.nodeid) not in TOGETHER, not item.nodeid.startswith(LONG)))
