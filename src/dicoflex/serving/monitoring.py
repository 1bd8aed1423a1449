"""What a server counts, for Prometheus, and its log of JSON lines: never anybody's values."""

from __future__ import annotations

__all__ = [
    "abandoned",
    "answers",
    "audit_head",
    "connections_left",
    "gathered",
    "log",
    "model_info",
    "page",
    "refused",
    "reloads_failed",
    "requests",
    "rows",
    "seconds",
    "serve_page",
    "shortfall",
    "stale",
    "waiting",
]

import os
import sys
from typing import Any

import structlog
from prometheus_client import REGISTRY as OWN
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
    start_http_server,
)

log: Any = structlog.wrap_logger(
    structlog.WriteLogger(sys.stdout),  # a line in one piece, so that those of workers don't mix
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.JSONRenderer(),
    ],
)


SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

requests = Counter("dicoflex_requests", "Requests by route, model and status.", ["route", "model", "status"])
seconds = Histogram("dicoflex_seconds", "Seconds in the queue, computing, and in all.", ["part"], buckets=SECONDS)
rows = Counter("dicoflex_rows", "Rows that were answered.", ["model"])
answers = Counter("dicoflex_answers", "Counterfactuals that were given.", ["model"])
shortfall = Counter("dicoflex_shortfall", "Rows that got fewer than asked for.", ["model", "status"])
gathered = Histogram("dicoflex_gathered_rows", "Rows that were answered in one call.", buckets=SIZES)
waiting = Gauge("dicoflex_waiting", "Requests that wait.", multiprocess_mode="livesum")
abandoned = Counter("dicoflex_abandoned", "Slices of work that ended, as nobody waited for them any more.")
connections_left = Counter("dicoflex_left", "Callers who left before their answer.")
refused = Counter("dicoflex_refused", "Requests that were refused for want of room.", ["why"])
model_info = Gauge(
    "dicoflex_model_loaded", "When a model was loaded, as seconds since 1970.", ["model", "fingerprint"],
    multiprocess_mode="mostrecent",
)  # fmt: skip
stale = Gauge(
    "dicoflex_model_stale", "1 where a model's file can't be used and the last good one answers.", ["model"],
    multiprocess_mode="max",
)  # fmt: skip
reloads_failed = Counter("dicoflex_reloads_failed", "Model files that could not be loaded.")
audit_head = Gauge("dicoflex_audit_records", "Records in the audit logs of this start.", multiprocess_mode="livesum")


def page() -> bytes:
    """All counts as text, those of all workers together."""
    return bytes(generate_latest(_registry()))


def serve_page(port: int, host: str) -> int:
    """Serve the page on a port of its own, in a thread that ends with the process; returns the port."""
    server, _ = start_http_server(port, host, _registry())
    return int(server.server_port)


def _registry() -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return OWN
    together = CollectorRegistry()
    multiprocess.MultiProcessCollector(together)  # type: ignore[no-untyped-call]
    return together
