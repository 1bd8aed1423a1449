"""ASGI middleware: request id, host, key or token, headers, log line and counts; and the reading of bodies.

`Gate` stands before the server's routes, `ExplorerGate` before those of the explorer.
"""

from __future__ import annotations

__all__ = ["JSON", "LINES", "ExplorerGate", "Gate", "deadline_of", "problem_response", "read_body"]

import hmac
import itertools
import re
import secrets
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dicoflex.serving import monitoring
from dicoflex.serving.monitoring import log
from dicoflex.serving.problems import MEDIA_TYPE, Problem
from dicoflex.serving.state import State

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
PUBLIC = ("/health/",)
PROCESS, NUMBERS = secrets.token_hex(8), itertools.count()
MODEL = re.compile(r"/v1/models/([^/@:]+)")
SAFE = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


class Gate:
    """ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, *, state: State) -> None:
        self.app, self.state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = Headers(scope=scope)
        told = scope.setdefault("state", {})
        told["request_id"] = request_name(headers.get("x-request-id"))
        told["facts"] = {}
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._dress(MutableHeaders(raw=message["headers"]), told["request_id"])
            await send(message)

        try:
            self._check(scope["path"], headers, told)
            await self.app(scope, receive, sending)
        except Problem as problem:
            await problem_response(problem, told["request_id"])(scope, receive, sending)
        finally:
            self._tell(scope, told, status, time.perf_counter() - started)

    def _check(self, path: str, headers: Headers, told: dict[str, Any]) -> None:
        """Refuse what is not meant for this server, or comes without a key."""
        names = self.state.settings.host_names
        if names is not None and host_of(headers.get("host", "")) not in names:
            raise Problem("bad-request", "the server is not called by this name; see --host-name")
        if not path.startswith(PUBLIC):
            asked = MODEL.match(path)
            given = headers.get("authorization")
            encoded = None if given is None else given.encode("latin-1")
            key = self.state.keys.check(encoded, None if asked is None else asked[1])
            told |= {"key": None, "models": None} if key is None else {"key": key.name, "models": key.models}

    def _dress(self, headers: MutableHeaders, request_id: str) -> None:
        headers["x-request-id"] = request_id
        for name, value in SAFE.items():
            headers.setdefault(name, value)
        if self.state.is_draining:
            headers["connection"] = "close"

    def _tell(self, scope: Scope, told: dict[str, Any], status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        model = told["facts"].get("model", "")
        monitoring.requests.labels(route, model, str(status)).inc()
        monitoring.seconds.labels("all").observe(seconds)
        log.info(
            "request", id=told["request_id"], method=scope["method"], route=route, status=status, key=told.get("key"),
            ms=round(seconds * 1000, 2), **told["facts"],
        )  # fmt: skip


def problem_response(problem: Problem, request_id: str) -> Response:
    """A problem as the answer to a request."""
    return Response(problem.body(request_id), problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def request_name(given: str | None) -> str:
    """A request's name: its caller's, if that is a fit one, or a new one."""
    return given if given is not None and REQUEST_ID.fullmatch(given) else f"{PROCESS}-{next(NUMBERS)}"


def host_of(given: str) -> str:
    """A Host header without its port."""
    if given.startswith("["):
        return given[1:].partition("]")[0]
    return given.partition(":")[0].lower()


POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
HEADERS = SAFE | {"content-security-policy": POLICY, "cross-origin-resource-policy": "same-origin"}


class ExplorerGate:
    """ASGI middleware around everything. hosts: names that the server goes by. token: what messages bring along."""

    def __init__(self, app: ASGIApp, *, hosts: tuple[str, ...], token: str | None) -> None:
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        name = request_name(headers.get("x-request-id"))
        scope.setdefault("state", {})["request_id"] = name

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                dressed = MutableHeaders(raw=message["headers"])
                dressed["x-request-id"] = name
                for key, value in HEADERS.items():
                    dressed.setdefault(key, value)
            await send(message)

        try:
            self._check(scope["path"], headers)
            await self.app(scope, receive, sending)
        except Problem as problem:
            await problem_response(problem, name)(scope, receive, sending)

    def _check(self, path: str, headers: Headers) -> None:
        # A page of another site that has this machine's address under its own name could ask otherwise.
        if host_of(headers.get("host", "")) not in self.hosts:
            raise Problem("bad-request", "the explorer is not called by this name")
        if self.token is None or not path.startswith("/api/"):
            return
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise Problem("unauthorised", "open the address that 'dicoflex explore' printed")


JSON = ("application/json",)
LINES = ("application/jsonl", "application/x-ndjson", "application/json-lines")
DRAINED = 4
"""How many times the most that is read is taken from a caller who sends too much, so that the answer reaches them."""


async def read_body(request: Request, types: tuple[str, ...], *, most: int) -> bytes:
    """The whole body; another type than `types`, or more than `most` bytes, is a `Problem`."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in types:
        raise Problem("unsupported-media-type", f"send {types[0]}, got {given or 'no type'}")
    body = bytearray()
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size <= most:
                body += chunk
            elif size > DRAINED * most:
                break
    except ClientDisconnect:
        raise Problem("bad-request", "the body broke off") from None
    if size > most:
        raise Problem("too-large", f"the body has more than {most} bytes; send fewer rows at a time")
    return bytes(body)


def deadline_of(request: Request, most: float) -> float:
    """How many seconds a request may take: the server's limit, or less where the caller asks for less."""
    given = request.headers.get("x-timeout")
    if given is None:
        return most
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise Problem("bad-request", "X-Timeout must be a number of seconds above 0")
    return min(most, seconds)
