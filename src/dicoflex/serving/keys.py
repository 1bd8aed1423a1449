"""Who may ask: keys in a file, as digests, reread when the file changes.

A line is a name, the SHA-256 of the key in hexadecimal digits, and perhaps the models that it is for: `team 9f86… a,b`.
"""

from __future__ import annotations

__all__ = ["Keys"]

import hashlib
import hmac
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from dicoflex.errors import SettingError
from dicoflex.runtime.whole_files import read_bytes
from dicoflex.serving.monitoring import log
from dicoflex.serving.problems import Problem

MOST_BYTES = 2**20
CHALLENGE = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True)
class Key:
    """A key's name, its digest, and the models that it is for; None is any."""

    name: str
    digest: bytes
    models: frozenset[str] | None


class Keys:
    """The keys of a file; without a file anybody may ask."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._stamp = None if path is None else _stamp(path)
        self._keys = [] if path is None else read_keys(path)
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Read the file again if it changed; one that can't be read leaves the keys as they are."""
        if self.path is None:
            return
        with self._lock:
            try:
                stamp = _stamp(self.path)
                if stamp != self._stamp:
                    self._keys, self._stamp = read_keys(self.path), stamp
                    log.info("keys", count=len(self._keys))
            except (SettingError, OSError) as error:
                log.error("keys can't be read", why=str(error))

    def check(self, authorization: bytes | None, model: str | None) -> Key | None:
        """The key that a request came with; a `Problem` where it may not ask, None where no keys are needed.

        All keys are compared, whichever fits, so that the time tells nothing.
        """
        if self.path is None:
            return None
        scheme, _, given = (authorization or b"").partition(b" ")
        digest = hashlib.sha256(given.strip()).digest()
        fitting = [key for key in self._keys if hmac.compare_digest(key.digest, digest)]
        if scheme.lower() != b"bearer" or not fitting:
            raise Problem("unauthorised", "send a key: Authorization: Bearer KEY", headers=CHALLENGE)
        allowed = [key for key in fitting if model is None or key.models is None or model in key.models]
        if not allowed:
            raise Problem("forbidden", f"the key {fitting[0].name!r} is not for this model")
        # One key may stand in several lines, each for some models.
        own = [key.models for key in allowed]
        models = None if None in own else frozenset().union(*(one for one in own if one is not None))
        return replace(allowed[0], models=models)


def read_keys(path: Path) -> list[Key]:
    """The keys of a file; empty lines and those that begin with # are left out."""
    lines = read_bytes(path, most=MOST_BYTES, error=SettingError).decode("utf-8", "replace").splitlines()
    found = [_key(line.split(), f"{path}:{i}") for i, line in enumerate(lines, start=1) if _says_something(line)]
    if not found:
        raise SettingError(f"{path} has no keys; write a line with a name and the SHA-256 of a key")
    return found


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _key(words: list[str], where: str) -> Key:
    try:
        name, digest, *models = words
        known = bytes.fromhex(digest)
    except ValueError:
        known, models = b"", []
    if len(known) != 32 or len(models) > 1:
        raise SettingError(f"{where}: write a name, the SHA-256 of the key, and perhaps models: team 9f86… a,b")
    return Key(name, known, frozenset(models[0].split(",")) if models else None)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
