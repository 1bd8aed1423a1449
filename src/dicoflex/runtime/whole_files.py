"""Writing files so that a half-written one is never seen."""

from __future__ import annotations

__all__ = ["replacing", "write_text"]

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from dicoflex.errors import UserError


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, error: type[UserError] = UserError) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it takes the place of `path` when the block ends well.

    Otherwise nothing is left behind. A place that can't be written to is an `error`.
    """
    final = Path(path)
    draft = final.with_name(f".{final.name}.{uuid4().hex[:8]}.part")
    try:
        yield draft
        os.replace(draft, final)
    except OSError as problem:
        reason = problem.strerror or problem
        raise error(f"{final} can't be written: {reason}; choose a file in a folder that exists and has room") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, line ends as they are."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="")
