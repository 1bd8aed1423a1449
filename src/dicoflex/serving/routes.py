"""The routes of /v1: models, what they take, explain, explain-lines, verify; and health, metrics, the description.

`GET /v1/models`, `GET /v1/models/NAME` and `POST /v1/models/NAME:explain` are as KServe's V1 protocol has them, too.
"""

from __future__ import annotations

__all__ = ["routes"]

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import orjson
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from dicoflex.errors import UserError
from dicoflex.serving import monitoring
from dicoflex.serving.asking import LeftError, ask, counted, recorded
from dicoflex.serving.audit import Receipt
from dicoflex.serving.description import describe
from dicoflex.serving.lines import Stream
from dicoflex.serving.middleware import JSON, LINES, deadline_of, read_body
from dicoflex.serving.problems import Problem, of_error
from dicoflex.serving.questions import Question, load_json, of_instances, read_question
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
        Route("/v1/models/{name}:explain", own.explain_instances, methods=["POST"]),
        Route("/v1/models/{name}", own.model),
        Route("/v1/models/{name}/request-schema", own.request_schema),
        Route("/v1/models/{name}/explain", own.explain, methods=["POST"]),
        Route("/v1/models/{name}/explain-lines", own.explain_lines, methods=["POST"]),
        Route("/v1/models/{name}/verify", own.verify, methods=["POST"]),
    ]


@dataclass(frozen=True)
class _Answered:
    """A question and its answers as they are sent; bound: the settings that bound them; record: where they are."""

    question: Question
    results: list[dict[str, Any]]
    bound: dict[str, Any]
    record: Receipt | None


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
        return Response(monitoring.page(), media_type=CONTENT_TYPE_LATEST)

    async def description(self, request: Request) -> Response:
        return to_json(describe(self.state, request.state.models))

    # -- models --------------------------------------------------------------------------------------------------

    async def models(self, request: Request) -> Response:
        registry, own = self.state.registry, request.state.models
        shown = ("name", "fingerprint", "classes", "features", "loaded_at")

        def may(name: str) -> bool:
            return own is None or name in own

        served = [{k: one.facts[k] for k in shown} for name, one in sorted(registry.served.items()) if may(name)]
        failed = [{"name": name} for name in sorted(registry.failed) if may(name)]
        return to_json({"models": [one["name"] for one in served], "served": served, "failed": failed})

    async def model(self, request: Request) -> Response:
        served = self._served(request)
        return _tagged(request, served, {**served.facts, "ready": True})

    async def request_schema(self, request: Request) -> Response:
        served = self._served(request)
        return _tagged(request, served, served.request_schema(self.state.settings))

    def _served(self, request: Request) -> Served:
        served = self.state.registry.get(request.path_params["name"], models=request.state.models)
        request.state.facts["model"] = served.name
        return served

    # -- answers -------------------------------------------------------------------------------------------------

    async def explain(self, request: Request) -> Response:
        served = self._served(request)
        answered = await self._answered(request, served, lambda given: given)
        if answered is None:
            return Response(status_code=LEFT)
        sent = {
            **_whose(served),
            "request_id": request.state.request_id,
            "settings": settings_of(answered.question.wish, answered.bound),
            "results": answered.results,
            "record": answered.record,
        }
        return to_json(sent)

    async def explain_instances(self, request: Request) -> Response:
        """KServe's V1 protocol: one explanation for each instance; settings may stand beside the instances."""
        served = self._served(request)
        answered = await self._answered(request, served, lambda given: of_instances(given, served.model))
        if answered is None:
            return Response(status_code=LEFT)
        return to_json({"explanations": answered.results, **_whose(served), "record": answered.record})

    async def _answered(
        self, request: Request, served: Served, question_of: Callable[[Any], Any]
    ) -> _Answered | None:  # fmt: skip
        """The answers to the question that a body is, counted and recorded; None where the caller has left."""
        settings = self.state.settings
        seconds = deadline_of(request, settings.max_seconds)
        given = question_of(load_json(await read_body(request, JSON, most=settings.max_body)))
        question = read_question(given, served.model, served.reader, settings)
        try:
            found = await ask(self.state, job_of(question, served.model), request, seconds)
        except LeftError:
            return None
        results = results_of(question.rows.ids, found.rows, question.wish)
        counted(request, served, results, question.wish.n)
        record = await recorded(self.state, request, served, question, results)
        return _Answered(question, results, found.bound, record)

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
        return to_json({**_whose(served), **checked})


def _whose(served: Served) -> dict[str, Any]:
    """Which model gave an answer."""
    return {"model": {"name": served.name, "fingerprint": served.model.fingerprint}}


def to_json(value: Any, **headers: str) -> Response:
    """A value as an answer."""
    return Response(orjson.dumps(value), headers=headers, media_type="application/json")


def _tagged(request: Request, served: Served, value: Any) -> Response:
    """What changes only with the model, under its fingerprint; callers who have it need not get it again."""
    tag = f'"{served.model.fingerprint}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return to_json(value, ETag=tag)
