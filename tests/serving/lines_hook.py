"""Tells schemathesis how JSON Lines are sent, as the text that they are, and how many digits numbers have."""

from __future__ import annotations

__all__ = ["as_text", "map_body"]

from typing import Any

import numpy as np
import schemathesis


@schemathesis.serializer("application/jsonl")
def as_text(ctx: Any, value: Any) -> bytes:
    """The lines, whatever was made for them."""
    return str(value).encode("utf-8", "replace")


@schemathesis.hook
def map_body(ctx: Any, body: Any) -> Any:
    """Numbers with the digits that a column of 32-bit floats holds, which no schema can say; others are refused."""
    if isinstance(body, dict):
        return {name: map_body(ctx, part) for name, part in body.items()}
    if isinstance(body, list):
        return [map_body(ctx, part) for part in body]
    if isinstance(body, float) and abs(body) < np.finfo(np.float32).max:
        return float(str(np.float32(body)))
    return body
