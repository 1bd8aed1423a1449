"""Files written so that a half-written one is never seen, and read only where they are regular and not too large.

What is written takes the place of the old file in one step. The old one's mode, and as far as allowed its owner,
are kept; a link is followed, and what it points to replaced; a device or a pipe is written to. A hard link is cut:
other names of the old file keep the old content, as no step replaces both.
"""

from __future__ import annotations

__all__ = ["opened", "read_bytes", "replacing", "write_text"]

import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from uuid import uuid4

from dicoflex.errors import UserError


@contextmanager
def opened(
    path: str | os.PathLike[str], *, most: int, error: type[UserError] = UserError
) -> Iterator[tuple[BufferedReader, int]]:
    """A file open for reading, and its size; a pipe, a device or a folder is refused and not waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(os.fspath(path), flags)
    except (OSError, ValueError, TypeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise error(f"{_shown(path)} can't be read: {reason}; check the path") from None
    try:
        size = _size(path, descriptor, most, error)
    except UserError:
        os.close(descriptor)
        raise
    with open(descriptor, "rb") as file:
        yield file, size


def _shown(path: object) -> str:
    """A path in a message; one that is empty or holds what is no part of a name, in quotes."""
    text = str(path)
    return text if text and text.isprintable() else repr(text)


def _size(path: str | os.PathLike[str], descriptor: int, most: int, error: type[UserError]) -> int:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        what = "Is a directory" if stat.S_ISDIR(found.st_mode) else "it is a pipe or a device, and no file"
        raise error(f"{path} can't be read: {what}; check the path")
    if found.st_size > most:
        raise error(f"{path} can't be read: it has {found.st_size:,} bytes, more than {most:,}; check the path")
    return found.st_size


def read_bytes(path: str | os.PathLike[str], *, most: int, error: type[UserError] = UserError) -> bytes:
    """All of a regular file that is not larger than `most`."""
    with opened(path, most=most, error=error) as (file, size):
        return file.read(size)


DAY = 24 * 60 * 60
STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, error: type[UserError] = UserError) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it takes the place of `path` when the block ends well.

    Otherwise nothing is left behind. A place that can't be written to is an `error`.
    """
    final = _named(path, error)
    try:
        with _poured(final) if _is_open_ended(final) else _swapped(final) as draft:
            yield draft
    except OSError as problem:
        reason = problem.strerror or problem
        raise error(f"{final} can't be written: {reason}; choose a file in a folder that exists and has room") from None


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, line ends as they are."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="")


def _named(path: str | os.PathLike[str], error: type[UserError]) -> Path:
    try:
        final = Path(path)
    except TypeError:
        raise error(f"a file's path is text or a Path, got {path!r}; give one") from None
    if not final.name or "\0" in final.name:
        raise error(f"{str(path)!r} can't be written: it is no name of a file; give one")
    return final


# -- files -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _swapped(final: Path) -> Iterator[Path]:
    """A draft beside the file, or beside what a link points to, that is renamed to it at the end."""
    place = Path(os.path.realpath(final))
    old = place.stat() if place.exists() else None
    _remove_stale(place)
    draft = place.with_name(f".{place.name}.{uuid4().hex[:8]}.part")
    # A new file has the mode that the umask allows; one that takes another's place is nobody else's to read before.
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if old is None else 0o600))
    try:
        yield draft
        if old is not None:
            _take_after(draft, old)
        os.replace(draft, place)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def _take_after(draft: Path, old: os.stat_result) -> None:
    """Give the draft the old file's owner and mode; where the group can't be kept, its rights are not passed on."""
    mode = stat.S_IMODE(old.st_mode)
    try:
        if hasattr(os, "chown"):
            os.chown(draft, old.st_uid, old.st_gid)
    except OSError:
        if draft.stat().st_gid != old.st_gid:
            mode &= ~stat.S_IRWXG
    os.chmod(draft, mode)


def _remove_stale(place: Path) -> None:
    """Remove drafts of this file that a process left when it was killed; what is a day old is no one's."""
    pattern = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{8}}\.part")
    with contextlib.suppress(OSError):
        for entry in os.scandir(place.parent):
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > DAY:
                        os.unlink(entry.path)


# -- devices and pipes -----------------------------------------------------------------------------------------------


def _is_open_ended(path: Path) -> bool:
    """Whether a path names a device, a pipe or one of this process's own streams: there is nothing to replace."""
    if _own_stream(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextlib.contextmanager
def _poured(path: Path) -> Iterator[Path]:
    """A draft elsewhere, whose content is written to a device or a pipe at the end."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "draft"
        yield draft
        number = _own_stream(path)
        if number is not None and sys.stdout is not None:
            sys.stdout.flush()
        with open(draft, "rb") as content, open(path if number is None else os.dup(number), "wb") as sink:
            shutil.copyfileobj(content, sink)


def _own_stream(path: Path) -> int | None:
    """The number of the open file of this process that a path names; what it was opened as must be kept."""
    named = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", str(path))
    return int(named[1]) if named else STANDARD.get(str(path))
