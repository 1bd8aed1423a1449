"""The routes of /v2, for platforms that speak the Open Inference Protocol: one tensor per feature in and out.

The protocol has no explain, so an answer is an inference whose outputs are the counterfactuals, one entry each: `row`
says which row it answers, `cf` which answer it is. Settings go into `parameters`, constraints as JSON text.
"""

from __future__ import annotations

__all__ = ["routes"]

import itertools
from importlib.metadata import version
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dicoflex.serving.asking import LeftError, ask, counted, recorded
from dicoflex.serving.bodies import JSON, deadline_of, read_body
from dicoflex.serving.engine import Cells
from dicoflex.serving.problems import Problem
from dicoflex.serving.questions import load_json, read_question
from dicoflex.serving.registry import Served
from dicoflex.serving.results import job_of, results_of
from dicoflex.serving.state import State
from dicoflex.table.feature import Feature

SCORES = {"log_density": "FP64", "probability": "FP64"}
LEFT = 499
ELSEWHERE = ("binary_data_output",)
"""Parameters that clients send for an extension of the protocol that is not offered, and can do without."""


def routes(state: State, live: Any, ready: Any) -> list[Route]:
    """All routes of /v2. live, ready: what tells of the server's health."""
    own = _Adapter(state)
    model = "/v2/models/{name}"
    found = [
        Route("/v2", own.server),
        Route("/v2/health/live", live),
        Route("/v2/health/ready", ready),
    ]
    for path in (model, f"{model}/versions/{{version}}"):
        found += [
            Route(path, own.model),
            Route(f"{path}/ready", own.ready),
            Route(f"{path}/infer", own.infer, methods=["POST"]),
        ]
    return found


class _Adapter:
    def __init__(self, state: State) -> None:
        self.state = state

    async def server(self, request: Request) -> Response:  # noqa: ARG002
        return _json({"name": "dicoflex", "version": version("dicoflex"), "extensions": []})

    async def model(self, request: Request) -> Response:
        served = self._served(request)
        features = [_described(feature) for feature in served.model.schema.features]
        outputs = [_tensor_type("row", "INT64"), _tensor_type("cf", "INT64"), *features]
        return _json(
            {
                "name": served.name,
                "versions": [served.model.fingerprint],
                "platform": "dicoflex",
                "inputs": features,
                "outputs": [*outputs, *(_tensor_type(name, kind) for name, kind in SCORES.items())],
            }
        )

    async def ready(self, request: Request) -> Response:
        return _json({"name": self._served(request).name, "ready": True})

    async def infer(self, request: Request) -> Response:
        settings = self.state.settings
        served = self._served(request)
        seconds = deadline_of(request, settings.max_seconds)
        given = load_json(await read_body(request, _types(request), most=settings.max_body))
        question = read_question(orjson.dumps(_question(given)), served.model, served.reader, settings)
        try:
            found = await ask(self.state, job_of(question, served.model), request, seconds)
        except LeftError:
            return Response(status_code=LEFT)
        results = results_of(question.rows.ids, found.rows, question.wish)
        counted(request, served, results, question.wish.n)
        receipt = await recorded(self.state, request, served, question, results)
        sent = {
            "model_name": served.name,
            "model_version": served.model.fingerprint,
            "outputs": _outputs(served, results),
            "parameters": {
                "status": orjson.dumps([row["status"] for row in results]).decode(),
                **({} if receipt is None else {"record": orjson.dumps(receipt).decode()}),
            },
        }
        return _json(sent | ({"id": given["id"]} if isinstance(given.get("id"), str) else {}))

    def _served(self, request: Request) -> Served:
        name, pinned = request.path_params["name"], request.path_params.get("version")
        served = self.state.registry.get(name if pinned is None else f"{name}@{pinned}", models=request.state.models)
        request.state.facts["model"] = served.name
        return served


def _types(request: Request) -> tuple[str, ...]:
    """The types that a body may say it has: clients of the protocol say none, which a browser's page may not."""
    if "inference-header-content-length" in request.headers:
        raise Problem("invalid-request", "tensors are read as JSON; send them with binary_data=False")
    return JSON if "origin" in request.headers else (*JSON, "")


def _json(value: Any) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")


def _datatype(feature: Feature) -> str:
    if feature.is_number:
        return "INT64" if feature.is_whole and not feature.missing else "FP64"
    kinds = {type(level) for level in feature.levels}
    return {frozenset({bool}): "BOOL", frozenset({int}): "INT64", frozenset({float}): "FP64"}.get(
        frozenset(kinds), "BYTES"
    )


def _described(feature: Feature) -> dict[str, Any]:
    return _tensor_type(str(feature.name), _datatype(feature))


def _tensor_type(name: str, datatype: str) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [-1]}


# -- in --------------------------------------------------------------------------------------------------------------


def _question(given: Any) -> dict[str, Any]:
    """The question of /v1 that an inference request is."""
    if not isinstance(given, dict) or not isinstance(given.get("inputs"), list):
        raise Problem("invalid-request", "the body must be an object with a list of inputs")
    columns = dict(_column(tensor) for tensor in given["inputs"])
    if len({len(column) for column in columns.values()}) != 1:
        raise Problem("invalid-rows", "the tensors must have as many entries each, and at least one")
    rows = [{"values": dict(zip(columns, cells, strict=True))} for cells in zip(*columns.values(), strict=True)]
    return {"rows": rows, **_settings(given.get("parameters", {}))}


def _column(tensor: Any) -> tuple[str, Cells]:
    try:
        name, shape, data = tensor["name"], tensor["shape"], tensor["data"]
        fits = isinstance(name, str) and isinstance(data, list) and list(shape) in ([len(data)], [len(data), 1])
    except (TypeError, KeyError):
        fits = False
    if not fits:
        raise Problem("invalid-rows", "an input is a tensor of one feature: name, datatype, shape [n] or [n, 1], data")
    if any(isinstance(cell, list) for cell in data):
        data = list(itertools.chain.from_iterable(data)) if all(isinstance(cell, list) for cell in data) else data
    return name, data


def _settings(parameters: Any) -> dict[str, Any]:
    if not isinstance(parameters, dict) or "rows" in parameters:
        raise Problem("invalid-request", "parameters must be an object with settings")
    found = {name: value for name, value in parameters.items() if name not in ELSEWHERE}
    for name in ("constraints", "frozen", "include"):
        if isinstance(found.get(name), str):
            found[name] = load_json(found[name].encode())
    return found


# -- out -------------------------------------------------------------------------------------------------------------


def _outputs(served: Served, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers of all rows, a tensor per feature, and which row and answer each entry is."""
    numbered = [(i, k, one) for i, row in enumerate(results) for k, one in enumerate(row["counterfactuals"])]
    found = [
        _tensor("row", "INT64", [i for i, _, _ in numbered]),
        _tensor("cf", "INT64", [k for _, k, _ in numbered]),
    ]
    for feature in served.model.schema.features:
        name = str(feature.name)
        found.append(_tensor(name, _datatype(feature), [one["values"][name] for _, _, one in numbered]))
    for name, kind in SCORES.items():
        found.append(_tensor(name, kind, [one.get("scores", {}).get(name) for _, _, one in numbered]))
    return found


def _tensor(name: str, datatype: str, data: Cells) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [len(data)], "data": data}
