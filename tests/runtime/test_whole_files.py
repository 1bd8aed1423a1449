"""Files appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from dicoflex.errors import ModelFileError, UserError
from dicoflex.runtime.whole_files import replacing, write_text


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "ä\r\nb\n")
    assert (tmp_path / "a.txt").read_bytes() == "ä\r\nb\n".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as draft:
        _fail_halfway(draft)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def _fail_halfway(draft: Path) -> None:
    draft.write_text("half")
    raise KeyboardInterrupt


@pytest.mark.parametrize("error", [UserError, ModelFileError])
def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path, error: type[UserError]) -> None:
    with (
        pytest.raises(error, match=r"a\.txt can't be written: No such file.*; choose a file"),
        replacing(tmp_path / "no" / "a.txt", error=error) as draft,
    ):
        draft.write_text("x")
