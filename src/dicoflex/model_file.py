"""A model file: named arrays (safetensors) and a JSON header. Reading one runs no code from it.

The header is the value of one metadata entry of the safetensors format, so a file is a plain safetensors file that
other tools can open, and the header can be read without the arrays.
"""

from __future__ import annotations

__all__ = ["fingerprint", "read", "read_header", "write"]

import hashlib
import json
import os
import stat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.errors import ModelFileError
from dicoflex.runtime.whole_files import replacing

FORMAT = "dicoflex-model"
VERSION = 2
MOST_HEADER = 2**20
ADDED = ("format", "format_version", "fingerprint")
Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write a model file under a temporary name beside `path`, then rename: an interruption leaves no half file."""
    from safetensors.numpy import save

    full = {"format": FORMAT, "format_version": VERSION, "fingerprint": fingerprint(header, arrays), **_own(header)}
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    data = save(contiguous, metadata={FORMAT: json.dumps(full, allow_nan=False)})
    with replacing(path, error=ModelFileError) as draft:
        draft.write_bytes(data)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a model file; the fingerprint is checked."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    header = read_header(path)
    try:
        arrays = load_file(path)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"{path} is damaged or cut short ({error}); save the model again") from None
    if fingerprint(header, arrays) != header["fingerprint"]:
        raise ModelFileError(
            f"{path} was altered after it was saved: its fingerprint does not match; save the model again"
        )
    return header, arrays


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header alone, without touching the arrays."""
    try:
        # Without waiting: a pipe that nobody writes to would be waited for for ever.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(f"{path} is no regular file; give a model file")
            size = int.from_bytes(file.read(8), "little")
            raw = file.read(size) if 0 < size <= min(status.st_size - 8, MOST_HEADER) else b""
    except OSError as error:
        raise ModelFileError(f"{path} can't be read: {error.strerror}; check the path") from None
    try:
        header = json.loads(json.loads(raw)["__metadata__"][FORMAT])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelFileError(
            f"{path} is not a dicoflex model file, or it is cut short; make one with .save()"
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT or "fingerprint" not in header:
        raise ModelFileError(f"{path} is not a dicoflex model file; make one with .save()")
    if header.get("format_version") != VERSION:
        found = header.get("format_version")
        raise ModelFileError(f"{path} has format version {found}, this dicoflex reads {VERSION}; fit and save it again")
    return header


def fingerprint(header: dict[str, Any], arrays: Arrays) -> str:
    """A short hash of the header and all arrays: it names the model in every result."""
    digest = hashlib.sha256(json.dumps(_own(header), sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(f"{name}{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def _own(header: dict[str, Any]) -> dict[str, Any]:
    """The writer's part of a header, without the entries that `write` adds."""
    return {key: value for key, value in header.items() if key not in ADDED}
