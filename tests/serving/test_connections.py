"""Before anybody is known: requests that don't end, headers without end, and more connections than descriptors."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn

from dicoflex.serving import connections
from dicoflex.serving.connections import BoundedProtocol, most_connections

HALF = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n"


async def live(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http" and scope["method"] == "POST":
        while (await receive()).get("more_body"):
            pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def served(talk: Callable[[int], Any]) -> Any:
    """What comes of talking to a server in this process."""

    async def run() -> Any:
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(live, http=BoundedProtocol, log_config=None, lifespan="off")
        server = uvicorn.Server(config)
        task = asyncio.create_task(server._serve([listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            return await asyncio.wait_for(asyncio.to_thread(talk, listening.getsockname()[1]), 60)
        finally:
            server.should_exit = True
            await task

    return asyncio.run(run())


def said(port: int, *pieces: bytes) -> bytes:
    """All that a server answers to some bytes until it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
        found = b""
        try:
            for piece in pieces:
                one.sendall(piece)
            while data := one.recv(65536):
                found += data
        except (ConnectionResetError, BrokenPipeError):
            pass
        return found


def test_headers_have_bounds() -> None:
    """At 6054cd1 195 MB of headers were taken."""
    many = HALF + b"".join(b"x-%d: 1\r\n" % i for i in range(200)) + b"\r\n"
    long = HALF + b"x: " + b"y" * 100_000 + b"\r\n\r\n"
    endless = [HALF + b"x: ", *[b"y" * 50_000] * 100]
    path = b"GET /" + b"y" * 100_000 + b" HTTP/1.1\r\n\r\n"
    for pieces in ([many], [long], endless, [path]):
        told = served(lambda port, pieces=pieces: said(port, *pieces))
        assert told.startswith(b"HTTP/1.1 431") or told == b"", told[:100]
    good = HALF + b"".join(b"x-%d: 1\r\n" % i for i in range(50)) + b"connection: close\r\n\r\n"
    assert served(lambda port: said(port, good)).startswith(b"HTTP/1.1 200")


def test_a_request_that_does_not_end_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.2)
    assert served(lambda port: said(port, HALF)).startswith(b"HTTP/1.1 408")
    assert served(lambda port: said(port)) == b""
    body = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n123"
    assert served(lambda port: said(port, body)) == b""


def test_unfinished_requests_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 6054cd1 300 of them against 256 descriptors blocked /health/live."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 20)

    def talk(port: int) -> bytes:
        half = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        for one in half:
            one.sendall(HALF)
        try:
            return said(port, HALF + b"connection: close\r\n\r\n")
        finally:
            for one in half:
                one.close()

    assert served(talk).startswith(b"HTTP/1.1 200")


def test_descriptors_are_left_for_files() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 16 <= most_connections() < max(soft, 17)
