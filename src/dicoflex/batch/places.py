"""Folders on a disk or in an object store, by `pyarrow.fs`: list, read, put whole files, delete."""

from __future__ import annotations

__all__ = ["Place"]

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from dicoflex.errors import DataError
from dicoflex.runtime.whole_files import replacing

COPIED = 1 << 20


@dataclass(frozen=True)
class Place:
    """A file or folder: `s3://bucket/rows`, `gs://…`, `abfs://…`, `hdfs://…`, or a path of this machine.

    >>> Place.of("rows").is_local
    True
    """

    uri: str

    @classmethod
    def of(cls, given: str | os.PathLike[str]) -> Place:
        """The place that a URI or a path names; a path is made absolute, as workers may stand elsewhere."""
        text = os.fspath(given)
        return cls(text if "://" in text else os.path.abspath(text))

    @property
    def is_local(self) -> bool:
        """Whether it is a path of this machine."""
        return "://" not in self.uri

    @property
    def _opened(self) -> tuple[Any, str]:
        if self.is_local:
            return fs.LocalFileSystem(), self.uri
        try:
            system, path = fs.FileSystem.from_uri(self.uri)
        except (ValueError, NotImplementedError, OSError) as error:
            raise DataError(
                f"{self.uri} can't be opened ({error}); use a path, s3://, gs://, abfs:// or hdfs://"
            ) from None
        return system, path.rstrip("/")

    def files(self) -> Iterator[tuple[str, int]]:
        """The files below, each with its size, in the order of their paths; the file itself where it is one.

        Paths are relative. Files and folders that begin with a dot or an underscore are none.
        """
        system, root = self._opened
        (own,) = system.get_file_info([root])
        if own.type == fs.FileType.NotFound:
            raise DataError(f"{self.uri} is not there; check the path")
        if own.type == fs.FileType.File:
            yield "", own.size
            return
        found = system.get_file_info(fs.FileSelector(root, recursive=True))
        listed = sorted((one.path[len(root) :].strip("/"), one.size) for one in found if one.type == fs.FileType.File)
        yield from (one for one in listed if not any(part[:1] in "._" for part in one[0].split("/")))

    @contextmanager
    def read(self, path: str = "") -> Iterator[Any]:
        """A file below, open for reading at any place."""
        system, root = self._opened
        with system.open_input_file(_below(root, path)) as stream:
            yield stream

    def exists(self, path: str) -> bool:
        """Whether there is such a file below."""
        system, root = self._opened
        return bool(system.get_file_info([_below(root, path)])[0].type == fs.FileType.File)

    def put(self, local: Path, path: str) -> None:
        """Copy a local file to a path below, where it appears as a whole or not at all."""
        system, root = self._opened
        if self.is_local:
            target = Path(root) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target, error=DataError) as draft:
                draft.write_bytes(local.read_bytes())
            return
        # What is written to an object store is seen when its stream is closed.
        with open(local, "rb") as source, system.open_output_stream(_below(root, path)) as sink:
            while chunk := source.read(COPIED):
                sink.write(chunk)

    def put_json(self, path: str, content: Any) -> None:
        """Write a small JSON file."""
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder) / "draft"
            draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
            self.put(draft, path)

    def read_json(self, path: str) -> Any:
        """A JSON file below, None where there is none."""
        if not self.exists(path):
            return None
        with self.read(path) as stream:
            return json.loads(stream.read())

    def delete(self, path: str) -> None:
        """Delete a file below, if it is there."""
        system, root = self._opened
        with suppress(FileNotFoundError):
            system.delete_file(_below(root, path))

    def names(self, folder: str) -> list[str]:
        """The names of all files in a folder below, hidden ones too."""
        system, root = self._opened
        selector = fs.FileSelector(_below(root, folder), allow_not_found=True)
        return sorted(one.base_name for one in system.get_file_info(selector) if one.type == fs.FileType.File)


def _below(root: str, path: str) -> str:
    return f"{root}/{path}" if path else root
