"""A model file: named arrays (safetensors) and a JSON header. Reading one runs no code from it.

The header is the value of one metadata entry of the safetensors format, so a file is a plain safetensors file that
other tools can open, and the header can be read without the arrays. The fingerprint in it is a checksum: it tells
damage and tells models apart, and is no protection, as whoever alters a file can compute it anew; see `signatures`.
"""

from __future__ import annotations

__all__ = ["ADDED", "FORMAT", "VERSION", "fingerprint", "read", "read_header", "write"]

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BytesIO
from typing import Any

import numpy as np

from dicoflex import signatures
from dicoflex._types import Arrays
from dicoflex.errors import ModelFileError
from dicoflex.model_file.layout import (
    LARGEST,
    LONGEST_HEADER,
    Layout,
    check_sizes,
    read_arrays,
    read_layout,
)
from dicoflex.runtime import strict_json
from dicoflex.runtime.whole_files import opened, replacing

FORMAT = "dicoflex-model"
VERSION = 4
ADDED = ("format", "format_version", "fingerprint")
Path = str | os.PathLike[str]


def write(path: Path, header: dict[str, Any], arrays: Arrays) -> None:
    """Write a model file under a temporary name beside `path`, then rename: an interruption leaves no half file."""
    from safetensors.numpy import save

    full = {"format": FORMAT, "format_version": VERSION, "fingerprint": fingerprint(header, arrays), **_own(header)}
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    data = save(contiguous, metadata={FORMAT: json.dumps(full, allow_nan=False, ensure_ascii=False)})
    _check_room(int.from_bytes(data[:8], "little"), len(data))
    with replacing(path, error=ModelFileError) as draft:
        draft.write_bytes(data)


def _check_room(header: int, whole: int = 0) -> None:
    """Refuse to write what would not be read back: a header or a file of more bytes than there is room for."""
    for what, size, most in (("header", header, LONGEST_HEADER), ("file", whole, LARGEST)):
        if size > most:
            raise ModelFileError(
                f"the model's {what} takes {size:,} bytes, and there is room for {most:,}; fit on fewer columns or "
                "rows, or group rare levels"
            )


def read(path: Path, *, trust: signatures.Key | None = None) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a model file; the fingerprint is checked.

    trust: a public key; a file that was not signed with its private one is refused before anything in it is read.
    """
    with _trusted(path, trust) as (file, size):
        header, layout = _read_header(path, file, size)
        try:
            arrays = read_arrays(file, layout)
        except (ValueError, OSError, MemoryError) as error:
            raise ModelFileError(f"{path} is damaged or cut short ({error}); save the model again") from None
    if fingerprint(header, arrays) != header["fingerprint"]:
        raise ModelFileError(
            f"{path} was altered after it was saved, or is damaged: its checksum does not match; save the model again"
        )
    return header, arrays


def read_header(path: Path) -> dict[str, Any]:
    """The header alone, without touching the arrays; their sizes must add up."""
    with opened(path, most=LARGEST, error=ModelFileError) as (file, size):
        return _read_header(path, file, size)[0]


@contextmanager
def _trusted(path: Path, trust: signatures.Key | None) -> Iterator[tuple[BufferedIOBase, int]]:
    """The file; where a key is given, its bytes as they were when their signature was checked."""
    with opened(path, most=LARGEST, error=ModelFileError) as (file, size):
        if trust is None:
            yield file, size
            return
        data = file.read(size)
    signatures.check_file(path, data, trust)
    yield BytesIO(data), len(data)


def _read_header(path: Path, file: BufferedIOBase, size: int) -> tuple[dict[str, Any], Layout]:
    try:
        layout = read_layout(file, size)
        header = strict_json.loads(layout.texts.get(FORMAT, ""))
        # Half a character, which escapes can spell, would stop whoever prints it.
        json.dumps(header, ensure_ascii=False).encode()
    except (ValueError, OSError) as error:
        raise ModelFileError(
            f"{path} is not a dicoflex model file, or it is cut short ({error}); make one with .save()"
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT or not isinstance(header.get("fingerprint"), str):
        raise ModelFileError(f"{path} is not a dicoflex model file; make one with .save()")
    if header.get("format_version") != VERSION:
        found = str(header.get("format_version"))[:20]
        raise ModelFileError(f"{path} has format version {found}, this dicoflex reads {VERSION}; fit again and save it")
    try:
        check_sizes(layout, size)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged or cut short ({error}); save the model again") from None
    return header, layout


def fingerprint(header: dict[str, Any], arrays: Arrays) -> str:
    """A hash of the header and all arrays, 64 characters: it names the model in every result."""
    digests = {name: _digest(np.asarray(array, order="C")) for name, array in arrays.items()}
    return hashlib.sha256(json.dumps([_own(header), digests], sort_keys=True).encode()).hexdigest()


def _digest(array: Any) -> list[Any]:
    return [array.dtype.str, list(array.shape), hashlib.sha256(array.reshape(-1).view(np.uint8)).hexdigest()]


def _own(header: dict[str, Any]) -> dict[str, Any]:
    """The writer's part of a header, without the entries that `write` adds."""
    return {key: value for key, value in header.items() if key not in ADDED}
