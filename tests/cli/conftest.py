"""How every test of the command line runs."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def seconds(few_steps: None) -> None:
    """What `--max-seconds` allows is the same on any machine."""
