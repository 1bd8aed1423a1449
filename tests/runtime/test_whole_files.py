"""Files appear whole or not at all, and what stood there before is treated with care.

What is said here of modes, links, devices, pipes and stale drafts failed in 0.1.0 (9aa4d8c).
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
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


@pytest.mark.parametrize("path", ["", ".", "/", "a\0b", 3, None])
def test_what_is_no_path_is_refused(path: object) -> None:
    with pytest.raises(UserError, match=r"can't be written: it is no name of a file|is text or a Path"):
        write_text(path, "x")  # type: ignore[arg-type]


# -- modes and links ---------------------------------------------------------------------------------------------


@pytest.fixture(params=[0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_that_the_umask_allows(tmp_path: Path, umask: int) -> None:
    write_text(tmp_path / "a", "x")
    assert mode(tmp_path / "a") == 0o666 & ~umask


@pytest.mark.parametrize("old", [0o600, 0o640, 0o644, 0o444, 0o666])
def test_an_old_file_keeps_its_mode(tmp_path: Path, umask: int, old: int) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(old)
    write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert mode(tmp_path / "a") == old


def test_a_draft_of_a_file_is_nobody_elses_to_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o600)
    with replacing(tmp_path / "a") as draft:
        draft.write_text("new")
        assert mode(draft) == 0o600


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link, second = tmp_path / "there" / "target", tmp_path / "link", tmp_path / "second"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(Path("there") / "target")
    second.symlink_to(link)
    write_text(second, "new")
    assert (target.read_text(), mode(target)) == ("new", 0o600)
    assert link.is_symlink()
    assert second.is_symlink()
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["link", "second", "target", "there"]


def test_a_link_to_nothing_makes_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_hard_link_is_cut(tmp_path: Path) -> None:
    """As the module says: one name is replaced in one step, the other keeps the old content."""
    (tmp_path / "a").write_text("old")
    os.link(tmp_path / "a", tmp_path / "b")
    write_text(tmp_path / "a", "new")
    assert [(tmp_path / name).read_text() for name in "ab"] == ["new", "old"]


# -- devices and pipes -------------------------------------------------------------------------------------------


def test_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    for path in (Path("/dev/null"), tmp_path / "null"):
        write_text(path, "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert (tmp_path / "null").is_symlink()


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_text(pipe, "ä" * 100_000)
    reader.join()
    assert found == [("ä" * 100_000).encode()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


WRITE = (
    "import sys; from dicoflex.runtime.whole_files import write_text; print('before'); write_text(sys.argv[1], 'x\\n')"
)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_to_as_it_was_opened(tmp_path: Path, name: str) -> None:
    """Also where it is a file that others wrote to: nothing of theirs is lost."""
    assert subprocess.check_output([sys.executable, "-c", WRITE, name], text=True) == "before\nx\n"
    log = tmp_path / "log"
    log.write_text("theirs\n")
    with open(log, "a", encoding="utf-8") as file:
        subprocess.run([sys.executable, "-c", WRITE, name], stdout=file, check=True)
    assert log.read_text() == "theirs\nbefore\nx\n"


# -- drafts that were left behind --------------------------------------------------------------------------------

SLOW = """
import sys, time
from dicoflex.runtime.whole_files import replacing
with replacing(sys.argv[1]) as draft:
    draft.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_a_day_later(tmp_path: Path) -> None:
    path = tmp_path / "m.dicoflex"
    path.write_text("old")
    writer = subprocess.Popen([sys.executable, "-c", SLOW, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    writer.send_signal(signal.SIGTERM)
    writer.wait()
    writer.stdout.close()
    (left,) = tmp_path.glob(".m.dicoflex.*.part")
    assert path.read_text() == "old"
    write_text(path, "new")
    assert left.exists()  # another process may still be writing it
    os.utime(left, (time.time() - 25 * 3600,) * 2)
    write_text(path, "newer")
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_else_is_removed(tmp_path: Path) -> None:
    names = [".b.01234567.part", ".a.x.part", ".a.0123456.part", "a.01234567.part", ".a.01234567.part.gz", ".a"]
    for name in names:
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".a.01234567.part").symlink_to(tmp_path / ".a")
    (tmp_path / ".a.76543210.part").mkdir()
    write_text(tmp_path / "a", "new")
    assert {p.name for p in tmp_path.iterdir()} == {*names, "a", ".a.01234567.part", ".a.76543210.part"}
