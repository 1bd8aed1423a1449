"""The explorer over HTTP: its page, and its messages, answered one after the other."""

from __future__ import annotations

__all__ = ["Door", "create", "open_door"]

import asyncio
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from dicoflex.errors import SettingError, UserError
from dicoflex.explorer import Explorer
from dicoflex.explorer.explorer import STREAMED
from dicoflex.explorer.question import feature_in
from dicoflex.runtime.threads import use_threads
from dicoflex.serving.app import HTTP_PROBLEMS
from dicoflex.serving.connections import BoundedProtocol
from dicoflex.serving.middleware import JSON, LINES, ExplorerGate, problem_response, read_body
from dicoflex.serving.problems import Problem, of_error
from dicoflex.serving.server import listen
from dicoflex.serving.settings import LOOPBACK

STATIC = Path(sys.modules[Explorer.__module__].__file__ or "").parent / "static"
PAGES = {
    "index.html": "text/html; charset=utf-8",
    "explorer.js": "text/javascript; charset=utf-8",
    "later.js": "text/javascript; charset=utf-8",
    "de.json": "application/json",
    "explorer.css": "text/css; charset=utf-8",
    "explorer.svg": "image/svg+xml",
    "licences.txt": "text/plain; charset=utf-8",
}
MOST_BODY = 1_000_000
SETTLED = ("search", "settle", "relax", "receipt")
"""Messages that nobody waits for while dragging."""
MOST_WAITING = 64
Made = TypeVar("Made")


@dataclass(frozen=True)
class Door:
    """Where the explorer listens. token: what messages bring along; another address than this machine's needs one.

    names: what else it may be called by, besides its address.

    >>> Door().host
    '127.0.0.1'
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    names: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """All names that a request may call the server by."""
        return (*LOOPBACK, self.host.lower(), *map(str.lower, self.names))

    def __post_init__(self) -> None:
        if self.host not in LOOPBACK and not self.token:
            raise SettingError(f"to listen on {self.host} without a token would let anybody ask; give one with --token")


def open_door(explorer: Explorer, door: Door, *, opened: Callable[[str], None]) -> None:
    """Answer until told to end; `opened` is told the page's address when everything is ready."""
    listening = listen(door.host, door.port)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    opened(f"http://{shown}:{port}/" + (f"#token={door.token}" if door.token else ""))
    config = uvicorn.Config(
        create(explorer, door), http=BoundedProtocol, log_config=None, access_log=False, server_header=False,
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    # uvicorn passes the signal on that ended it, which is no error.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.Server(config).run(sockets=[listening])


def create(explorer: Explorer, door: Door) -> Starlette:
    """The application: the page at /, and messages under /api."""
    own = _PageRoutes(explorer)
    app = Starlette(
        routes=[
            Route("/", own.page),
            Route("/{name}", own.page),
            Route("/api/{kind}", own.message, methods=["POST"]),
        ],
        middleware=[
            Middleware(
                ExplorerGate, hosts=(*LOOPBACK, door.host.lower(), *map(str.lower, door.names)), token=door.token
            )
        ],
        exception_handlers={Problem: _told, HTTPException: _http, Exception: _internal},
    )
    app.router.redirect_slashes = False
    return app


def _one_thread() -> None:
    use_threads(1)


class _PageRoutes:
    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        # A thread each, also for the core: what is slow makes others of its kind wait, and neither a person who drags a
        # limit nor the machine and its browser.
        self.quick, self.slow = (ThreadPoolExecutor(1, name, initializer=_one_thread) for name in ("quick", "slow"))
        self.waiting = 0

    async def page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in PAGES or not (STATIC / name).is_file():
            raise Problem("not-found", "there is no such page")
        return Response((STATIC / name).read_bytes(), media_type=PAGES[name])

    async def message(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in self.explorer.kinds:
            raise Problem("not-found", "there is no such message")
        raw = await read_body(request, JSON, most=MOST_BODY)
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise Problem("malformed-json", str(error)) from None
        if kind in STREAMED:
            lines = self.explorer.stream(kind, body)
            first = await self._work(lambda: next(lines), self.slow)
            return StreamingResponse(self._lines(first, lines), media_type=LINES[1])
        worker = self.slow if kind in SETTLED else self.quick
        answer = await self._work(lambda: self.explorer.answer(kind, body), worker)
        return Response(orjson.dumps(answer), media_type=JSON[0])

    async def _lines(self, first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Any:
        """The lines of a stream; between two of them, other messages get their turn."""
        line: dict[str, Any] | None = first
        while line is not None:
            yield orjson.dumps(line) + b"\n"
            line = await self._work(lambda: next(rest, None), self.slow)

    async def _work(self, work: Callable[[], Made], worker: ThreadPoolExecutor) -> Made:
        if self.waiting >= MOST_WAITING:
            raise Problem("overloaded", "too many messages wait; ask again in a moment")
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(worker, work)
        except UserError as error:
            told = of_error(error)
            more = {"feature": feature_in(error, self.explorer.names), "place": getattr(error, "place", "") or None}
            raise Problem(told.code, told.detail, more=more) from None
        finally:
            self.waiting -= 1


async def _told(request: Request, error: Any) -> Response:
    return problem_response(error, request.state.request_id)


async def _http(request: Request, error: Any) -> Response:
    code = HTTP_PROBLEMS.get(error.status_code, "bad-request")
    return await _told(request, Problem(code, f"{request.method} of this path", headers=error.headers))


async def _internal(request: Request, error: Exception) -> Response:
    """A bug is told where it happened, and with nobody's values: what an error says may hold some."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:]))
    print(f"bug {request.state.request_id}: {type(error).__name__} at {where}", file=sys.stderr, flush=True)
    return await _told(request, of_error(error))
