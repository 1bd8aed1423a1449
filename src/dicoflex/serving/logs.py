"""The server's log: a line of JSON per request and event, and never anybody's values."""

from __future__ import annotations

__all__ = ["log"]

import sys
from typing import Any

import structlog

log: Any = structlog.wrap_logger(
    structlog.WriteLogger(sys.stdout),  # a line in one piece, so that those of workers don't mix
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.JSONRenderer(),
    ],
)
