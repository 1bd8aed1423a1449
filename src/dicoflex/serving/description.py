"""The description of the server (OpenAPI 3.1): a path for each model's questions, typed by its features."""

from __future__ import annotations

__all__ = ["describe"]

from importlib.metadata import version
from typing import Any

import orjson

from dicoflex._types import Json
from dicoflex.answers.outcome import STATUSES
from dicoflex.examples import rows_like
from dicoflex.serving.problems import MEDIA_TYPE, PROBLEMS
from dicoflex.serving.registry import Served
from dicoflex.serving.schemas import claims_schema, request_schema
from dicoflex.serving.settings import Settings
from dicoflex.serving.state import State
from dicoflex.targets import as_sent
from dicoflex.values import is_missing, plain

ASKING = (400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503, 504)
READING = (401, 403, 404, 409, 500, 503)


def describe(state: State, models: frozenset[str] | None) -> Json:
    """The description of a server as it is now."""
    paths: Json = {
        "/health/live": _get("Whether the process lives.", {"type": "object"}, ()),
        "/health/ready": _get("Whether all models are loaded.", {"type": "object"}, (503,)),
        "/v1/models": _get("The models.", MODELS, READING),
    }
    for name, served in sorted(state.registry.served.items()):
        if models is None or name in models:
            paths |= _paths(served, state.settings)
    keys: Json = {} if state.settings.keys is None else {"security": [{"key": []}]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dicoflex",
            "version": version("dicoflex"),
            "description": "Counterfactual explanations: what would have to be different for another answer.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        **keys,
    }


def _example_question(served: Served) -> Json:
    """A question that the model answers."""
    return {"rows": [_example_row(served)], "target": as_sent(served.model.example_target), "n": 2}


def _example_row(served: Served) -> Json:
    row = rows_like(served.model.schema, 1).iloc[0]
    values = {str(name): None if is_missing(cell) else plain(cell) for name, cell in row.items()}
    return {"id": "A-17", "values": values}


def _paths(served: Served, bounds: Settings) -> Json:
    """The paths of one model."""
    own = f"/v1/models/{served.name}"
    schema = {k: v for k, v in request_schema(served.model, bounds).items() if k != "$schema"}
    question = _example_question(served)
    line = {k: v for k, v in question.items() if k != "rows"}
    claims = claims_schema(served.model, bounds)
    claimed = {"rows": question["rows"], "answers": [{"row": 0, "values": question["rows"][0]["values"]}]}
    return {
        own: _get("What is known of the model.", {"type": "object"}, READING, tagged=True),
        f"{own}/request-schema": _get("The JSON Schema of a question.", {"type": "object"}, READING, tagged=True),
        f"{own}/explain": _post("Answers to some rows.", "application/json", schema, question, ANSWERS),
        f"{own}:explain": _post(
            "Answers to some rows, as KServe's V1 protocol asks for them.", "application/json",
            _of_instances(schema), _as_instances(question), EXPLANATIONS,
        ),
        f"{own}/explain-lines": _post(
            "Answers to many rows: a line of settings, then a row per line.", "application/jsonl",
            {"type": "string"}, "\n".join(map(_text, [line, *question["rows"]])), None,
        ),
        f"{own}/verify": _post("Answers checked again.", "application/json", claims, claimed, VERDICTS),
    }  # fmt: skip


def _of_instances(schema: Json) -> Json:
    """The schema of a question whose rows are instances: values alone, by feature or as a list in order."""
    rows = schema["properties"]["rows"]
    values = rows["items"]["properties"]["values"]
    width = len(values["required"])
    columns = [values["properties"][name] for name in values["required"]]
    listed = {"type": "array", "prefixItems": columns, "items": False, "minItems": width, "maxItems": width}
    others = {name: one for name, one in schema["properties"].items() if name != "rows"}
    required = ["instances", *(name for name in schema["required"] if name != "rows")]
    instances = {**rows, "items": {"anyOf": [values, listed]}}
    return {**schema, "properties": {"instances": instances, **others}, "required": required}


def _as_instances(question: Json) -> Json:
    rest = {name: value for name, value in question.items() if name != "rows"}
    return {"instances": [row["values"] for row in question["rows"]], **rest}


def _get(summary: str, schema: Json, statuses: tuple[int, ...], *, tagged: bool = False) -> Json:
    found: Json = {"200": {"description": "Found.", "content": {"application/json": {"schema": schema}}}}
    if tagged:
        found["304"] = {"description": "Not changed."}
    return {"get": {"summary": summary, "responses": {**found, **_problems(statuses)}}}


def _post(summary: str, media: str, schema: Json, example: Any, answer: Json | None) -> Json:
    body = {"required": True, "content": {media: {"schema": schema, "example": example}}}
    sent = {media: {"schema": {"type": "string"} if answer is None else answer}}
    found = {"200": {"description": "Answered.", "content": sent}}
    return {"post": {"summary": summary, "requestBody": body, "responses": {**found, **_problems(ASKING)}}}


def _problems(statuses: tuple[int, ...]) -> Json:
    """Every status that is a problem, with its sorts."""
    shape = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        str(status): {
            "description": "; ".join(sort.title for sort in PROBLEMS.values() if sort.status == status) + ".",
            "content": shape,
        }
        for status in statuses
    }


def _object(**properties: Json) -> Json:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def _array(items: Json, most: int | None = None) -> Json:
    return {"type": "array", "items": items, **({} if most is None else {"minItems": 1, "maxItems": most})}


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


MODEL = _object(name={"type": "string"}, fingerprint={"type": "string"})
PROBLEM: Json = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"enum": sorted(PROBLEMS)},
        "request_id": {"type": "string"},
        "errors": _array(_object(pointer={"type": "string"}, detail={"type": "string"})),
    },
    "required": ["type", "title", "status", "detail", "code", "request_id"],
}
CHANGE = {"type": "object", "required": ["feature", "before", "after"]}
COUNTERFACTUAL: Json = {
    "type": "object",
    "properties": {
        "target": {},
        "values": {"type": "object"},
        "changes": _array(CHANGE),
        "scores": {"type": "object"},
        "verified": {"type": "boolean"},
    },
    "required": ["values"],
    "additionalProperties": False,
}
RESULT: Json = {
    "type": "object",
    "properties": {
        "id": {"type": ["string", "integer"]},
        "status": {"enum": list(STATUSES)},
        "target": {},
        "needed": {"type": "number", "description": "The confidence that the answers had to reach."},
        "survival": {"type": "number", "description": "An estimate: the share of retrained models that would agree."},
        "counterfactuals": _array(COUNTERFACTUAL),
        "wanted": {"type": "integer"},
        "got": {"type": "integer"},
        "reason": {"type": "string"},
        "search": {"type": "object"},
    },
    "required": ["id", "status", "target", "counterfactuals"],
    "additionalProperties": False,
}
RECEIPT = {
    "anyOf": [_object(file={"type": "string"}, seq={"type": "integer"}, hash={"type": "string"}), {"type": "null"}]
}
ANSWERS = _object(
    model=MODEL, request_id={"type": "string"}, settings={"type": "object"}, results=_array(RESULT), record=RECEIPT
)
EXPLANATIONS = _object(explanations=_array(RESULT), model=MODEL, record=RECEIPT)
MODELS = _object(models=_array({"type": "string"}), served=_array({"type": "object"}), failed=_array({}))
VERDICTS = _object(
    model=MODEL,
    holds={"type": "boolean"},
    verdicts=_array(_object(answer={"type": "integer"}, constraint={"type": "string"}, holds={"type": "boolean"})),
)
