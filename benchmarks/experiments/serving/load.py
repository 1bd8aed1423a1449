"""Load: so many connections that each ask, wait for the answer and ask again, on sockets of this process alone."""

from __future__ import annotations

__all__ = ["Load", "ask_all"]

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np

SECONDS = 60.0


@dataclass
class Load:
    """What came of some requests: seconds in all, of each, statuses (0: no answer), and the bodies where kept."""

    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    bodies: dict[int, bytes] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """Requests per second, p50 and p99 in milliseconds, and how many failed."""
        done = sum(count for status, count in self.statuses.items() if status == 200)
        p50, p99 = np.percentile(self.waits or [np.nan], [50, 99]) * 1000
        total = sum(self.statuses.values())
        return {"requests": total, "rate": done / self.seconds, "p50": p50, "p99": p99, "failed": total - done}


def ask_all(url: str, bodies: Sequence[bytes], *, connections: int, keep: bool = False) -> Load:
    """Send every body once, on so many connections; one that the server closes is opened anew."""
    return asyncio.run(_ask_all(url, bodies, connections, keep))


async def _ask_all(url: str, bodies: Sequence[bytes], connections: int, keep: bool) -> Load:
    found, numbers = Load(), iter(range(len(bodies)))
    started = time.perf_counter()
    await asyncio.gather(*(_connection(url, bodies, numbers, found, keep) for _ in range(connections)))
    found.seconds = time.perf_counter() - started
    return found


async def _connection(url: str, bodies: Sequence[bytes], numbers: Any, found: Load, keep: bool) -> None:
    where = urlsplit(url)
    reader = writer = None
    for number in numbers:
        body = bodies[number]
        head = f"POST {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        started = time.perf_counter()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection(where.hostname, where.port)
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            status, text, closing = await asyncio.wait_for(_answer(reader), SECONDS)
        except (OSError, EOFError, TimeoutError, ValueError):
            status, text, closing = 0, b"", True
        found.waits.append(time.perf_counter() - started)
        found.statuses[status] += 1
        if keep:
            found.bodies[number] = text
        if closing and writer is not None:
            writer.close()
            reader = writer = None
    if writer is not None:
        writer.close()


async def _answer(reader: Any) -> tuple[int, bytes, bool]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    text = await reader.readexactly(int(lines.get("content-length", "0")))
    return int(head.split(" ", 2)[1]), text, lines.get("connection") == "close"
