"""The server's application: its routes, behind the gate."""

from __future__ import annotations

__all__ = ["HTTP_PROBLEMS", "create", "from_environment"]

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from dicoflex.serving.middleware import Gate, problem_response
from dicoflex.serving.monitoring import log
from dicoflex.serving.problems import Problem, of_error
from dicoflex.serving.routes import routes
from dicoflex.serving.server import SETTINGS_VARIABLE
from dicoflex.serving.settings import Settings
from dicoflex.serving.state import State

HTTP_PROBLEMS = {404: "not-found", 405: "method-not-allowed"}


def create(settings: Settings) -> Starlette:
    """The application that serves a folder of models; `app.state.own` is its state."""
    state = State(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:  # noqa: ARG001
        async with state.running():
            yield

    middleware = [Middleware(Gate, state=state)]
    if settings.origins:
        methods, headers = ["GET", "POST"], ["Authorization", "Content-Type", "X-Request-ID", "X-Timeout"]
        allowed = list(settings.origins)
        cors = Middleware(CORSMiddleware, allow_origins=allowed, allow_methods=methods, allow_headers=headers)
        middleware.insert(0, cors)
    app = Starlette(
        routes=routes(state),
        middleware=middleware,
        exception_handlers={Problem: _told, HTTPException: _http, Exception: _internal},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.own = state
    return app


def from_environment() -> Starlette:
    """The application that a worker process makes: its settings are in the environment."""
    return create(Settings.model_validate_json(os.environ[SETTINGS_VARIABLE]))


async def _told(request: Request, error: Any) -> Response:
    return problem_response(error, request.state.request_id)


async def _http(request: Request, error: Any) -> Response:
    code = HTTP_PROBLEMS.get(error.status_code, "bad-request")
    return await _told(request, Problem(code, f"{request.method} of this path", headers=error.headers))


async def _internal(request: Request, error: Exception) -> Response:
    log.error("bug", id=request.state.request_id, error=type(error).__name__, exc_info=error)
    return await _told(request, of_error(error))
