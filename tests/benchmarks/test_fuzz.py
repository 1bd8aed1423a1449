"""The fuzz as a benchmark: what a quick run finds; who dies, hangs or takes too much has failed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.experiments.fuzz import measuring
from benchmarks.experiments.fuzz.measuring import Trials
from benchmarks.experiments.fuzz.trying import FAILED, REFUSED, USED

# A process that does what a file says: it takes long, takes room, hangs, dies, or is refused.
FAKE = """
import json, os, sys, time
from pathlib import Path
for line in sys.stdin:
    said = Path(line.strip()).read_bytes()
    if said == b"die":
        os.abort()
    if said == b"hang":
        time.sleep(60)
    found = {"outcome": "refused" if said == b"refuse" else "used"}
    found |= {"seconds": 5.0} if said == b"take long" else {"megabytes": 900.0} if said == b"take room" else {}
    print(json.dumps(found), flush=True)
"""


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trials]:
    monkeypatch.setattr(measuring, "COMMAND", (sys.executable, "-c", FAKE))
    monkeypatch.setattr(measuring, "PATIENCE", 3.0)
    with Trials("kde, remembered rows", tmp_path, dict(os.environ)) as found:
        yield found


def test_a_quick_run_finds_no_failure(stored: Any, page: Any) -> None:
    (result,) = stored("fuzz")
    outcomes = result.figures["outcomes"]
    assert set(outcomes) == {REFUSED, USED}
    assert sum(outcomes.values()) == result.cell.setting("files")
    assert result.figures["failures"] == []
    assert "50 files, 0 failures" in page("fuzz")
    assert "bounds checks are off" in page("fuzz")


def test_a_process_that_dies_is_a_failure_and_is_replaced(trials: Trials) -> None:
    assert trials.outcome(b"refuse").outcome == REFUSED
    died = trials.outcome(b"die")
    assert (died.outcome, died.why) == (FAILED, "the process died (-6)")
    assert trials.outcome(b"").outcome == USED


def test_a_file_without_end_is_a_failure(trials: Trials) -> None:
    assert trials.outcome(b"hang").why == "no end after 3 s"
    assert trials.outcome(b"").outcome == USED


def test_time_and_room_are_limited(trials: Trials) -> None:
    assert trials.outcome(b"take long").why == "it took 5.0 s and 0 MB"
    assert trials.outcome(b"take room").why == "it took 0.0 s and 900 MB"
