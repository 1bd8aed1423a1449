"""The models of a folder: loaded, tried out, and replaced while the server runs.

A file that changed is loaded and tried out apart; then its name means the new model, and requests that began keep the
old one. A file that can't be used leaves the last good model in place.
"""

from __future__ import annotations

__all__ = ["Registry", "Served"]

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from dicoflex.errors import UserError, named
from dicoflex.model import Model
from dicoflex.serving import monitoring
from dicoflex.serving.monitoring import log
from dicoflex.serving.problems import Problem
from dicoflex.serving.rows import RowReader
from dicoflex.serving.schemas import facts_of, request_schema
from dicoflex.serving.settings import Settings

ENDING = ".dicoflex"
NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Served:
    """A model under a name."""

    name: str
    model: Model
    loaded_at: str

    @cached_property
    def reader(self) -> RowReader:
        """What reads the rows that are sent for it."""
        return RowReader(self.model.schema)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What is told of it."""
        return {"name": self.name, "loaded_at": self.loaded_at, **facts_of(self.model)}

    def request_schema(self, bounds: Settings) -> dict[str, Any]:
        """The JSON Schema of a question to it."""
        return request_schema(self.model, bounds)


class Registry:
    """Models by name; `scan` brings them up to date with the folder, in any thread.

    ready: called with every new model before it is used.
    """

    def __init__(self, folder: Path, *, trust: Path | None = None, ready: Callable[[Model], None]) -> None:
        self.folder, self.trust, self.ready = folder, trust, ready
        self.served: dict[str, Served] = {}
        self.failed: dict[str, str] = {}
        self.is_complete = False
        self._stamps: dict[str, Stamp] = {}
        self._lock = threading.Lock()

    def get(self, name: str, *, models: frozenset[str] | None = None) -> Served:
        """The model that a name, or a name with its fingerprint (`name@fingerprint`), means; else a `Problem`.

        models: those that may be named to the caller; None is all.
        """
        plain, _, pinned = name.partition("@")
        found = self.served.get(plain)
        if found is None:
            if not self.is_complete:
                raise Problem("not-ready", "models are being loaded", headers={"Retry-After": "1"})
            raise Problem(
                "unknown-model", named("model", plain, sorted(set(self.served) & (models or set(self.served))))
            )
        if pinned and not (len(pinned) >= 16 and found.model.fingerprint.startswith(pinned)):
            text = f"model {plain!r} is now {found.model.fingerprint}; read what it is, and ask that one"
            raise Problem("model-changed", text)
        return found

    def scan(self) -> None:
        """Load what is new or changed, forget what is gone; afterwards the registry is complete."""
        with self._lock:
            files = dict(self._files())
            for name in set(self.served) - set(files):
                self._forget(name)
            for name, path in sorted(files.items()):
                self._refresh(name, path)
            self.is_complete = True

    def _files(self) -> Iterator[tuple[str, Path]]:
        found = [self.folder] if self.folder.is_file() else sorted(self.folder.glob(f"*{ENDING}"))
        for path in found:
            name = path.name.removesuffix(ENDING)
            if NAME.fullmatch(name):
                yield name, path

    def _refresh(self, name: str, path: Path) -> None:
        try:
            stamp = _stamp(path)
            if self._stamps.get(name) == stamp:
                return
            self._stamps[name] = stamp
            model = Model.load(path, trust=self.trust)
            self.ready(model)
        except (UserError, OSError) as error:
            self._fail(name, str(error))
            return
        self.served[name] = Served(name, model, datetime.now(UTC).isoformat(timespec="seconds"))
        self.failed.pop(name, None)
        monitoring.model_info.labels(name, model.fingerprint).set(time.time())
        monitoring.stale.labels(name).set(0)
        log.info("model", name=name, fingerprint=model.fingerprint)

    def _fail(self, name: str, why: str) -> None:
        self.failed[name] = why
        monitoring.reloads_failed.inc()
        monitoring.stale.labels(name).set(1)
        log.error("model can't be used", name=name, why=why)

    def _forget(self, name: str) -> None:
        del self.served[name]
        self._stamps.pop(name, None)
        log.info("model removed", name=name)


def _stamp(path: Path) -> Stamp:
    """What changes when a file is replaced."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino
