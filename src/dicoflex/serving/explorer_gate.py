"""What every request to the explorer passes: its name, whom it calls, the token, and the headers of every answer."""

from __future__ import annotations

__all__ = ["ExplorerGate"]

import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dicoflex.serving.gate import SAFE, host_of, problem_response, request_name
from dicoflex.serving.problems import Problem

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
