"""Tells schemathesis how JSON Lines are sent: as the text that they are."""

from __future__ import annotations

__all__ = ["as_text"]

from typing import Any

import schemathesis


@schemathesis.serializer("application/jsonl")
def as_text(ctx: Any, value: Any) -> bytes:
    """The lines, whatever was made for them."""
    return str(value).encode("utf-8", "replace")
