"""Connections before anybody is known: how large a request may be, how long it may take to come, how many may wait.

uvicorn bounds neither the headers of a request nor the time that it takes to arrive, so that whoever can connect could
fill the memory, or take all descriptors with requests that never end.
"""

from __future__ import annotations

__all__ = ["BoundedProtocol", "most_connections"]

import resource
from asyncio import TimerHandle, Transport
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 65_536
HEAD_FIELDS = 100
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
"""How long a body may take, besides what its bytes take at the slowest speed."""
BODY_SPEED = 1_000.0
"""Bytes in a second, at the slowest."""
FRAMING = 8
"""Bytes around one byte of a body, at most: chunks of one byte each have six."""
LINGER_SECONDS = 5.0
"""How long the rest of a body is read whose answer is sent already, so that the answer reaches the caller."""
KEPT_FREE = 64
"""Descriptors that are left to files, libraries and the log."""
MOST_CONNECTIONS = 4_096


class _RefusedError(Exception):
    """Raised within the parser's callbacks, which ends the parsing."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection whose requests come in time and with bounded headers, or are refused (408, 431) and closed.

    Where as many connections are open as the process has descriptors for, the one that has waited longest without a
    request makes room for a new one; whoever is being answered is never closed for it.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.refusal = HTTPStatus.BAD_REQUEST
        self.timer: TimerHandle | None = None
        self.since = self.loop.time()
        self.has_head = self.is_whole = False
        self.head_bytes = self.field_bytes = self.body_bytes = self.later_bytes = 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    # -- the connection ------------------------------------------------------------------------------------------

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Who connects and sends nothing is as one whose request does not end.
        self._begin()
        if len(self.connections) > most_connections():
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.is_whole:
            self._begin()
        if self.has_head:
            self.later_bytes += len(data)
        else:
            self.head_bytes += len(data)
        super().data_received(data)
        # A header that is not whole yet is kept within the parser, in whichever part of a request it stands.
        in_head = not self.has_head and self.head_bytes > HEAD_BYTES
        if in_head or self.later_bytes > 2 * HEAD_BYTES + (1 + FRAMING) * self.body_bytes:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.since = self.loop.time()
        if self.has_head and not self.is_whole and not self.transport.is_closing():
            self._set_timer(LINGER_SECONDS)

    # -- what the parser meets -------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.field_bytes = 0
        if self.is_whole:  # a second request in the bytes of the first
            self._begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self.has_head = True
        self._set_timer(BODY_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self.body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.is_whole = True
        self._set_timer(None)
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what can't be parsed, or was refused while it was parsed."""
        if self.refusal is HTTPStatus.BAD_REQUEST:
            super().send_400_response(msg)
        else:
            self._refuse(self.refusal)

    # -- bounds ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Wait for a request."""
        self.has_head = self.is_whole = False
        self.head_bytes = self.field_bytes = self.body_bytes = self.later_bytes = 0
        self.since = self.loop.time()
        self._set_timer(HEAD_SECONDS)

    def _count(self, size: int) -> None:
        self.field_bytes += size
        if self.field_bytes > HEAD_BYTES or len(self.headers) > HEAD_FIELDS:
            self.refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise _RefusedError

    def _set_timer(self, seconds: float | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None if seconds is None else self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """The time is up, unless it is the server that reads nothing at the moment, or the body comes fast enough."""
        self.timer = None
        if self.transport.is_closing():
            return
        is_answered = self.cycle is not None and self.cycle.response_complete
        if self.pipeline or self.flow.read_paused or (not self.has_head and self.is_busy):
            self._set_timer(HEAD_SECONDS)
        elif self.has_head and not is_answered:
            left = self.since + BODY_SECONDS + self.body_bytes / BODY_SPEED - self.loop.time()
            if left > 0:
                self._set_timer(max(1.0, left))
            else:
                self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)

    def _refuse(self, status: HTTPStatus) -> None:
        """Say why, where no answer has begun, and close."""
        self._set_timer(None)
        if self.transport.is_closing():
            return
        if not self.is_busy and self.head_bytes and not self.has_head:
            line = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(line.encode())
        self.transport.close()

    def _make_room(self) -> None:
        """Close the connection that has waited longest: without a request, else with a body that does not end."""
        others = [one for one in self.connections if isinstance(one, BoundedProtocol) and one is not self]
        waiting = [one for one in others if not one.is_busy] or [one for one in others if not one.is_whole]
        oldest = min(waiting, key=lambda one: one.since, default=self)
        oldest.connections.discard(oldest)
        oldest.transport.abort()


def most_connections() -> int:
    """How many connections may be open: as many as the process has descriptors for, and some left."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = MOST_CONNECTIONS + KEPT_FREE if soft == resource.RLIM_INFINITY else soft
    return max(16, min(MOST_CONNECTIONS, soft - KEPT_FREE))
