"""Model files that were altered behind a right checksum: they are refused, or used, and nothing else happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.experiments.fuzz.bases import BASES, base
from benchmarks.experiments.fuzz.forging import forge, written
from benchmarks.experiments.fuzz.trying import FAILED, REFUSED, USED, tried
from dicoflex import load
from dicoflex.errors import ModelFileError

EACH = 15


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BASES)
def test_forged_files_are_refused_or_used(name: str, tmp_path: Path) -> None:
    path = tmp_path / "forged.dicoflex"
    outcomes = set()
    for number in range(EACH):
        data, altered = forge(name, number)
        path.write_bytes(data)
        found = tried(path)
        assert found.outcome != FAILED, (number, altered, found.why)
        outcomes.add(found.outcome)
    assert outcomes == {REFUSED, USED}


@pytest.mark.parametrize("name", BASES)
def test_a_file_is_used_as_it_is_and_forged_alike_every_time(name: str, tmp_path: Path) -> None:
    (tmp_path / "sound.dicoflex").write_bytes(written(base(name)))
    assert tried(tmp_path / "sound.dicoflex").outcome == USED
    assert forge(name, 3) == forge(name, 3)
    assert forge(name, 3).data != forge(name, 4).data


@pytest.mark.parametrize("count", [{"a": 5}, "5", True, 0, 2.5, None])
def test_a_count_that_is_none_is_refused(count: Any, tmp_path: Path) -> None:
    """What a file reveals is told by it; up to 3bbe354 a TypeError met whoever asked."""
    header, arrays = base("maf")
    forged = header | {"report": header["report"] | {"min_count": count}}
    (tmp_path / "forged.dicoflex").write_bytes(written((forged, arrays)))
    with pytest.raises(ModelFileError, match="min_count"):
        load(tmp_path / "forged.dicoflex")
