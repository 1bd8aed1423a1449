"""What a model says of itself, and the JSON Schema of the questions that it takes."""

from __future__ import annotations

__all__ = ["claims_schema", "facts_of", "request_schema"]

import math
from typing import Any

from dicoflex.constraints.reading import MOST_RULES
from dicoflex.model import Model
from dicoflex.request import LEVELS
from dicoflex.serving.questions import Wish
from dicoflex.serving.rows import GREATEST_ID, LONGEST_ID
from dicoflex.serving.settings import Settings
from dicoflex.table.feature import MAX_NUMBER, Feature
from dicoflex.targets import OTHER

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MOST_ENTRIES = 100


def facts_of(model: Model) -> dict[str, Any]:
    """What is known of a model, ready for JSON."""
    report = model.report
    told = ("rows", "rows_used", "pairs", "surrogate_agreement", "held_out_loss")
    return {
        "fingerprint": model.fingerprint,
        "generator": model.generator.name,
        "classes": model.labels,
        "scores": report.get("score"),
        "features": [str(name) for name in model.schema.names],
        "p": {"least": min(model.exponents), "greatest": max(model.exponents)},
        "confidence": report.get("confidence") or None,
        "is_refined": model.coherence is not None,
        "constraints": model.schema.constraints.model_dump(mode="json"),
        "schema": model.schema.model_dump(mode="json"),
        "learned": {name: report[name] for name in told if name in report},
    }


def request_schema(model: Model, bounds: Settings) -> dict[str, Any]:
    """The JSON Schema of a question to a model: its features, levels and limits."""
    schema = wish_schema(model, bounds)
    rows = {"type": "array", "minItems": 1, "maxItems": bounds.max_rows, "items": row_schema(model)}
    schema["properties"] = {"rows": rows, **schema["properties"]}
    schema["required"] = ["rows", *schema.get("required", [])]
    return {"$schema": DIALECT, "title": "A question", **schema}


def row_schema(model: Model) -> dict[str, Any]:
    """The JSON Schema of one row."""
    values = {str(feature.name): _sent(feature) for feature in model.schema.features}
    own = {"type": "object", "properties": values, "required": list(values), "additionalProperties": False}
    number = {"type": "integer", "minimum": -GREATEST_ID, "maximum": GREATEST_ID}
    name = {"anyOf": [{"type": "string", "maxLength": LONGEST_ID}, number]}
    return {
        "type": "object",
        "properties": {
            "id": {**name, "description": "What the row is called in the answer."},
            "values": own,
            "target": {**_target(model), "description": "What is asked for, where it is not that of all rows."},
        },
        "required": ["values"],
        "additionalProperties": False,
    }


def claims_schema(model: Model, bounds: Settings) -> dict[str, Any]:
    """The JSON Schema of answers to be checked: rows, answers to them, and what they should obey."""
    row, terms = row_schema(model), wish_schema(model, bounds)["properties"]
    claim = {"row": {"type": "integer", "minimum": 0}, "values": row["properties"]["values"]}
    answer = {"type": "object", "properties": claim, "required": list(claim), "additionalProperties": False}
    lists = {"rows": (row, bounds.max_rows), "answers": (answer, bounds.max_answers)}
    properties = {
        name: {"type": "array", "items": items, "minItems": 1, "maxItems": most}
        for name, (items, most) in lists.items()
    }
    return {
        "type": "object",
        "properties": {**properties, "frozen": terms["frozen"], "constraints": terms["constraints"]},
        "required": list(properties),
        "additionalProperties": False,
    }


def wish_schema(model: Model, bounds: Settings) -> dict[str, Any]:
    """The JSON Schema of all of a question but its rows."""
    names = [str(name) for name in model.schema.names]
    told = Wish.model_json_schema()["properties"]
    own: dict[str, Any] = {
        "target": _or_null(_target(model)) if len(model.labels) == 2 else _target(model),
        "n": {"type": "integer", "minimum": 1, "maximum": bounds.max_n, "default": 10},
        "p": _or_null({"type": "number", "minimum": min(model.exponents), "maximum": max(model.exponents)}),
        "frozen": _some(names, len(names) - 1),
        "features_to_vary": _or_null({**_some(names, len(names)), "minItems": 1}),
        "constraints": _constraints(model),
        "confidence": _confidence(model),
        "novel": {"type": "boolean"} if _knows_rows(model) else {"const": False},
    }
    properties = {name: _described(own.get(name, told[name]), told[name]) for name in told}
    required = [] if len(model.labels) == 2 else ["target"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _described(own: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    """A schema with the description that `Request` declares."""
    return own | {name: declared[name] for name in ("description",) if name in declared}


def _target(model: Model) -> dict[str, Any]:
    """What may be asked for: a label, or any of some; of scores, an interval or a change."""
    if model.score is None:
        several = {"type": "array", "items": {"enum": model.labels}, "minItems": 1, "maxItems": MOST_ENTRIES}
        other = [] if OTHER in model.labels else [OTHER]
        return {"anyOf": [{"enum": [*model.labels, *other]}, {**_object({"one_of": several}), "required": ["one_of"]}]}
    end = {"type": "number", "minimum": float(model.score.knots[0]), "maximum": float(model.score.knots[-1])}
    forms = [("at_least",), ("at_most",), ("at_least", "at_most")]
    change = {**_object({"by": {"type": "number"}}), "required": ["by"]}
    return {"anyOf": [*({**_object(dict.fromkeys(form, end)), "required": list(form)} for form in forms), change]}


def _sent(feature: Feature) -> dict[str, Any]:
    """What a value of a feature is in a row that is sent: one that training had; what becomes of others is told."""
    own = _values(feature)
    return own if feature.is_number and feature.missing else {**own, "description": UNSEEN}


def _values(feature: Feature) -> dict[str, Any]:
    """What a value of a feature may be; null only where a training row lacked it."""
    if not feature.is_number:
        return {"enum": [*feature.levels, *([None] if feature.missing else [])]}
    least, greatest = (max(-MAX_NUMBER, min(MAX_NUMBER, bound)) for bound in feature.bounds)
    kind = "integer" if feature.is_whole else "number"
    if feature.is_whole:
        least, greatest = math.ceil(least), math.floor(greatest)
    own = {"type": kind, "minimum": least, "maximum": greatest}
    return _or_null(own) if feature.missing else own


def _confidence(model: Model) -> dict[str, Any]:
    if not model.has_confidence:
        return {"type": "null"}
    lowest, highest = float(model.confidence.lowest.max()), float(model.confidence.highest.min())
    levels = list(LEVELS if model.survival is not None else LEVELS[:2])
    number = {"type": "number", "minimum": min(lowest, highest), "maximum": highest}
    return {"anyOf": [number, {"enum": levels}, NULL]}


def _knows_rows(model: Model) -> bool:
    return model.remembered is not None and model.remembered.key is not None


def _constraints(model: Model) -> dict[str, Any]:
    """What may be constrained in a model; the words are those of `Constraints`."""
    features = model.schema.features
    some = _some([str(f.name) for f in features])
    numbers = [f for f in features if f.is_number]
    picked = [f for f in features if not f.is_number]
    directed = _some([str(f.name) for f in features if f.is_number or f.kind.value == "ordinal"])
    properties: dict[str, Any] = {
        "frozen": some,
        "ranges": _object({str(f.name): RANGE for f in numbers}),
        "increase": directed,
        "decrease": directed,
        "allowed": _object({str(f.name): {**_some(_levels(f)), "minItems": 1} for f in picked}),
        "forbidden": _object({str(f.name): {**_some(_levels(f), len(_levels(f)) - 1), "minItems": 1} for f in picked}),
        "pinned": _object({str(f.name): _pin(f) for f in features}),
        "transitions": _object({str(f.name): _ways(f) for f in picked}),
        "max_changes": _or_null({"type": "integer", "minimum": 1, "maximum": len(features)}),
        "rules": {"type": "array", "items": {"type": "string", "maxLength": 2000}, "maxItems": MOST_RULES},
        "consequences": _object({str(f.name): {"type": "string", "maxLength": 2000} for f in features}),
        "steps": _object({str(f.name): STEP for f in numbers}),
        "cost": _object({str(f.name): {"type": ["number", "object"]} for f in features}),
        "max_cost": _or_null({"type": "number", "minimum": 0}),
        "strict": {"type": "boolean"},
        "override": {"type": "array", "items": {"type": "string"}, "maxItems": MOST_ENTRIES},
    }
    return _object(properties)


UNSEEN = "Values that training had. An answer leaves any other; where handle_unknown is error, another is refused."
NUMBER, NULL = {"type": "number"}, {"type": "null"}
STEP = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_NUMBER}
PAIR = {
    "anyOf": [
        {"type": "array", "prefixItems": ends, "minItems": 2, "maxItems": 2}
        for ends in ([NUMBER, NUMBER], [NUMBER, NULL], [NULL, NUMBER])
    ]
}
ONE_RANGE: list[dict[str, Any]] = [
    PAIR,
    *(
        {"type": "object", "properties": {kind: PAIR}, "required": [kind], "additionalProperties": False}
        for kind in ("relative", "delta")
    ),
]
RANGE = {
    "description": "Least and greatest value, limits relative to the row's or of the difference, or several of these.",
    "anyOf": [*ONE_RANGE, {"type": "array", "items": {"anyOf": ONE_RANGE}, "minItems": 1, "maxItems": MOST_ENTRIES}],
}


def _levels(feature: Feature) -> list[Any]:
    return [*feature.levels, *([None] if feature.missing else [])]


def _pin(feature: Feature) -> dict[str, Any]:
    """A value that every answer may have: within the limits that training rows have."""
    if not feature.is_number:
        return _values(feature)
    return _or_null(_within(feature)) if feature.missing else _within(feature)


def _within(feature: Feature) -> dict[str, Any]:
    least, greatest = feature.minimum or 0.0, feature.maximum or 0.0
    if not feature.is_whole:
        return {"type": "number", "minimum": least, "maximum": greatest}
    return {"type": "integer", "minimum": math.ceil(least), "maximum": math.floor(greatest)}


def _ways(feature: Feature) -> dict[str, Any]:
    """For some levels, those that they may go to."""
    return {**_object({str(level): _some(_levels(feature)) for level in feature.levels}), "minProperties": 1}


def _some(known: list[Any], most: int | None = None) -> dict[str, Any]:
    """A list of different ones of what is known."""
    longest = min(MOST_ENTRIES, len(known)) if most is None else max(0, most)
    return {"type": "array", "items": {"enum": known} if known else {}, "maxItems": longest, "uniqueItems": True}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}
