"""What every request passes: its name, who asks and of whom, the headers of every answer, the log line, the counts."""

from __future__ import annotations

__all__ = ["SAFE", "Gate", "host_of", "problem_response", "request_name"]

import itertools
import re
import secrets
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dicoflex.serving import counters
from dicoflex.serving.logs import log
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
        counters.requests.labels(route, model, str(status)).inc()
        counters.seconds.labels("all").observe(seconds)
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
