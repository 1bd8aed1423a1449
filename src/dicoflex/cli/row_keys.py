"""The key of remembered rows in a file of its own, which its owner alone can read."""

from __future__ import annotations

__all__ = ["made_key", "read_key_file"]

import os
from pathlib import Path

from dicoflex.errors import SettingError


def made_key(path: Path) -> bytes:
    """The key in the file `path`; where there is no such file, a fresh key is written to it."""
    from dicoflex.table.remembered import new_key

    if path.exists():
        return read_key_file(path)
    key = new_key()
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(key.hex() + "\n")
    except OSError as error:
        raise SettingError(f"{path} can't be written: {error.strerror}; give a file in a folder that exists") from None
    return key


def read_key_file(path: Path) -> bytes:
    """The key in the file `path`, 64 hexadecimal digits."""
    from dicoflex.table.remembered import read_key

    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} can't be read as a key: {error}; give the file that 'fit' wrote") from None
    return read_key(text, f"the key in {path}")
