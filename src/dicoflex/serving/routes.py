"""The routes of /v1: models, what they take, explain, explain-lines, verify; and health, metrics, the description."""

from __future__ import annotations

__all__ = ["routes"]

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from dicoflex.errors import UserError
from dicoflex.serving import counters
from dicoflex.serving.asking import LeftError, ask, counted, recorded
from dicoflex.serving.bodies import JSON, LINES, deadline_of, read_body
from dicoflex.serving.description import describe
from dicoflex.serving.lines import Stream
from dicoflex.serving.problems import Problem, of_error
from dicoflex.serving.questions import read_question
from dicoflex.serving.registry import Served
from dicoflex.serving.results import job_of, results_of, settings_of
from dicoflex.serving.state import State
from dicoflex.serving.verifying import read_claims, verdicts_of

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]
LEFT = 499


def routes(state: State) -> list[Route]:
    """All routes of /v1 and around it."""
    own = _Routes(state)
    return [
        Route("/health/live", own.live),
        Route("/health/ready", own.ready),
        *([Route("/metrics", own.metrics)] if state.settings.metrics_port is None else []),
        Route("/openapi.json", own.description),
        Route("/v1/models", own.models),
        Route("/v1/models/{name}", own.model),
        Route("/v1/models/{name}/request-schema", own.request_schema),
        Route("/v1/models/{name}/explain", own.explain, methods=["POST"]),
        Route("/v1/models/{name}/explain-lines", own.explain_lines, methods=["POST"]),
        Route("/v1/models/{name}/verify", own.verify, methods=["POST"]),
    ]


class _Routes:
    def __init__(self, state: State) -> None:
        self.state = state

    # -- around --------------------------------------------------------------------------------------------------

    async def live(self, request: Request) -> Response:  # noqa: ARG002
        return to_json({"live": True})

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        if self.state.is_draining:
            raise Problem("draining", "ask another one", headers={"Retry-After": "1"})
        if not self.state.is_ready:
            raise Problem("not-ready", "models are being loaded", headers={"Retry-After": "1"})
        return to_json({"ready": True})

    async def metrics(self, request: Request) -> Response:
        if request.state.models is not None:
            raise Problem("forbidden", "the metrics name all models, and the key is for some; see --metrics-port")
        return Response(counters.page(), media_type=CONTENT_TYPE_LATEST)

    async def description(self, request: Request) -> Response:
        return to_json(describe(self.state, request.state.models))

    # -- models --------------------------------------------------------------------------------------------------

    async def models(self, request: Request) -> Response:
        registry, own = self.state.registry, request.state.models
        shown = ("name", "fingerprint", "classes", "features", "loaded_at")

        def may(name: str) -> bool:
            return own is None or name in own

        models = [{k: served.facts[k] for k in shown} for name, served in sorted(registry.served.items()) if may(name)]
        return to_json({"models": models, "failed": [{"name": name} for name in sorted(registry.failed) if may(name)]})

    async def model(self, request: Request) -> Response:
        served = self._served(request)
        return _tagged(request, served, served.facts)

    async def request_schema(self, request: Request) -> Response:
        served = self._served(request)
        return _tagged(request, served, served.request_schema(self.state.settings))

    def _served(self, request: Request) -> Served:
        served = self.state.registry.get(request.path_params["name"], models=request.state.models)
        request.state.facts["model"] = served.name
        return served

    # -- answers -------------------------------------------------------------------------------------------------

    async def explain(self, request: Request) -> Response:
        settings = self.state.settings
        served = self._served(request)
        seconds = deadline_of(request, settings.max_seconds)
        body = await read_body(request, JSON, most=settings.max_body)
        question = read_question(body, served.model, served.reader, settings)
        try:
            found = await ask(self.state, job_of(question, served.model), request, seconds)
        except LeftError:
            return Response(status_code=LEFT)
        results = results_of(question.rows.ids, found.rows, question.wish)
        counted(request, served, results, question.wish.n)
        sent = {
            "model": {"name": served.name, "fingerprint": served.model.fingerprint},
            "request_id": request.state.request_id,
            "settings": settings_of(question.wish, found.bound),
            "results": results,
            "record": await recorded(self.state, request, served, question, results),
        }
        return to_json(sent)

    async def explain_lines(self, request: Request) -> Response:
        served = self._served(request)
        seconds = deadline_of(request, self.state.settings.max_seconds)
        body = await read_body(request, LINES, most=self.state.settings.max_lines_body)
        stream = Stream.of(body, self.state, served, seconds)
        return StreamingResponse(stream.lines(request), media_type=LINES[0])

    async def verify(self, request: Request) -> Response:
        served = self._served(request)
        body = await read_body(request, JSON, most=self.state.settings.max_body)
        claims = read_claims(body, served.reader, self.state.settings)
        try:
            checked = await verdicts_of(claims, served.model)
        except UserError as error:
            raise of_error(error) from None
        return to_json({"model": {"name": served.name, "fingerprint": served.model.fingerprint}, **checked})


def to_json(value: Any, **headers: str) -> Response:
    """A value as an answer."""
    return Response(orjson.dumps(value), headers=headers, media_type="application/json")


def _tagged(request: Request, served: Served, value: Any) -> Response:
    """What changes only with the model, under its fingerprint; callers who have it need not get it again."""
    tag = f'"{served.model.fingerprint}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return to_json(value, ETag=tag)
