"""Load: so many connections that each ask, wait for the answer and ask again, on sockets of this process alone."""

from __future__ import annotations

__all__ = ["Load", "ask_all", "ask_in_turns", "ask_paced"]

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


def ask_all(
    url: str, bodies: Sequence[bytes], *, connections: int, keep: bool = False, others: Sequence[str] = ()
) -> Load:
    """Send every body once, on so many connections; one that the server closes is opened anew.

    others: further servers; who is told that a connection ends opens the next one to the next of them.
    """
    return asyncio.run(_ask_all([url, *others], bodies, connections, keep))


def ask_paced(url: str, bodies: Sequence[bytes], *, connections: int, rate: float, seconds: float) -> Load:
    """Send bodies, again and again, at so many requests per second, for so long."""
    return asyncio.run(_ask_paced(url, bodies, connections, rate, seconds))


def ask_in_turns(urls: Sequence[str], bodies: Sequence[bytes]) -> list[list[float]]:
    """Send every body to each server, one after the other; the seconds that each took."""
    return asyncio.run(_ask_in_turns(urls, bodies))


async def _ask_all(urls: Sequence[str], bodies: Sequence[bytes], connections: int, keep: bool) -> Load:
    found, numbers = Load(), iter(range(len(bodies)))

    async def work() -> None:
        line = _Line(urls)
        for number in numbers:
            text = await line.ask(bodies[number], found)
            if keep:
                found.bodies[number] = text
        line.close()

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(connections)))
    found.seconds = time.perf_counter() - started
    return found


async def _ask_paced(url: str, bodies: Sequence[bytes], connections: int, rate: float, seconds: float) -> Load:
    found, started = Load(), time.perf_counter()

    async def work(turn: int) -> None:
        line = _Line([url])
        while (due := turn / rate) < seconds:
            await asyncio.sleep(max(0.0, started + due - time.perf_counter()))
            await line.ask(bodies[turn % len(bodies)], found)
            turn += connections
        line.close()

    await asyncio.gather(*(work(turn) for turn in range(connections)))
    found.seconds = time.perf_counter() - started
    return found


async def _ask_in_turns(urls: Sequence[str], bodies: Sequence[bytes]) -> list[list[float]]:
    lines, found = [_Line([url]) for url in urls], [Load() for _ in urls]
    for body in bodies:
        for line, own in zip(lines, found, strict=True):
            await line.ask(body, own)
    for line in lines:
        line.close()
    return [own.waits for own in found]


class _Line:
    """A connection to the first of some servers, or to the next one once that has told that it ends."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = list(urls)
        self.reader: Any = None
        self.writer: Any = None

    async def ask(self, body: bytes, found: Load) -> bytes:
        """Ask, wait for the answer, and count it; its text."""
        where = urlsplit(self.urls[0])
        head = f"POST {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        started = time.perf_counter()
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection(where.hostname, where.port)
            self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            status, text, closing = await asyncio.wait_for(_answer(self.reader), SECONDS)
        except (OSError, EOFError, TimeoutError, ValueError):
            status, text, closing = 0, b"", True
        found.waits.append(time.perf_counter() - started)
        found.statuses[status] += 1
        if closing:
            self.close()
            self.urls = self.urls[1:] or self.urls
        return text

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


async def _answer(reader: Any) -> tuple[int, bytes, bool]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    text = await reader.readexactly(int(lines.get("content-length", "0")))
    return int(head.split(" ", 2)[1]), text, lines.get("connection") == "close"
