"""Reading files that strangers may have made: regular ones alone, and none that is larger than is meant."""

from __future__ import annotations

__all__ = ["opened", "read_bytes"]

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader

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
