"""What the library computes is what it computed when the recording was made."""

from __future__ import annotations

import pytest

from recording import record

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", list(record.CASES))
def test_models_say_what_was_recorded(name: str) -> None:
    assert record.compare(name) == []
