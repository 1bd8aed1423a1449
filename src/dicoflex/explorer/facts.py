"""What a page is told of a model once: its features, classes, exponents, confidences, and the owner's own limits."""

from __future__ import annotations

__all__ = ["facts_of"]

import math
from typing import Any

from dicoflex.explorer.messages import MOST_PLANS
from dicoflex.explorer.sentences import WORDS, arguments, sentence
from dicoflex.explorer.texts import Names
from dicoflex.model import Model
from dicoflex.table.feature import Feature, Kind
from dicoflex.table.marginals import is_skewed
from dicoflex.values import jsonable

VERSION = 1
DIGITS = 3


def facts_of(model: Model, names: Names, *, name: str, people: int, wanted: int) -> dict[str, Any]:
    """The answer to `model`."""
    sure, own = model.confidence, model.schema.constraints
    found: dict[str, Any] = {
        "v": VERSION,
        "name": names.texts.name or name,
        "lead": names.texts.lead,
        "fingerprint": model.fingerprint,
        "classes": model.labels,
        "texts": names.classes,
        "wanted": model.labels[wanted],
        "people": {"count": people, "word": names.texts.word},
        "decider": names.texts.decider,
        "features": [_feature(model, names, j) for j in range(len(model.schema))],
        "exponents": {
            "least": min(model.exponents),
            "most": max(model.exponents),
            "usual": min(max(2.0, min(model.exponents)), max(model.exponents)),
        },
        "confidence": {
            str(label): {"lowest": sure.lowest[i], "usual": sure.default[i], "highest": sure.highest[i]}
            | ({} if model.survival is None else {"levels": model.levels(i)})
            for i, label in enumerate(model.labels)
        },
        "has_confidence": model.has_confidence,
        "agreement": model.report.get("surrogate_agreement"),
        "rows": model.report.get("rows"),
        "own": {
            "constraints": own.model_dump(mode="json"),
            "sentences": [sentence(one, names) for one in own.one_by_one()],
            "limits": [
                {
                    "kind": WORDS.get(one.kind, one.kind),
                    "feature": _key(names, one.feature),
                    "sentence": sentence(one, names),
                    "arguments": arguments(one, names),
                }
                for one in own.one_by_one()
            ],
        },
        "most_plans": MOST_PLANS,
    }
    plain: dict[str, Any] = jsonable(found)
    return plain


def _key(names: Names, feature: Any) -> str | None:
    return None if feature is None else names.keys[names.schema.position(feature)]


def _feature(model: Model, names: Names, j: int) -> dict[str, Any]:
    feature, own = model.schema.features[j], names.own(j)
    owner = [one for one in model.schema.constraints.one_by_one() if one.feature == feature.name]
    return {
        "name": names.keys[j],
        "text": names.labels[j],
        "kind": "number" if feature.is_number else "ordinal" if feature.kind is Kind.ORDINAL else "level",
        "integer": feature.is_number and feature.is_whole,
        "decimals": _decimals(model, j),
        "minimum": feature.minimum,
        "maximum": feature.maximum,
        "step": _step(model, j),
        "unit": own.unit,
        "help": own.help,
        "group": own.group,
        "missing": feature.missing,
        "levels": [{"value": level, "text": names.shown(j, level)} for level in feature.levels],
        # True says so in the page's own words.
        "locked": (names.texts.owner or True) if any(one.kind == "frozen" for one in owner) else None,
        "limits": [sentence(one, names) for one in owner if one.kind != "frozen"],
        "marginal": _marginal(model, feature, j),
        "scale": "symlog" if is_skewed(feature, float(model.encoding.scale[j])) else "linear",
    }


def _decimals(model: Model, j: int) -> int:
    """How many digits after the point a number is shown and entered with."""
    feature = model.schema.features[j]
    if not feature.is_number or feature.is_whole:
        return 0
    sensible = max(0, DIGITS - 1 - math.floor(math.log10(float(model.encoding.scale[j]) or 1.0)))
    return sensible if model.coherence is None else min(sensible, int(model.coherence.stops.decimals[j]))


def _step(model: Model, j: int) -> float | None:
    """How far a number's values are apart; None where that can't be told."""
    feature = model.schema.features[j]
    if not feature.is_number:
        return None
    known = 0.0 if model.coherence is None else float(model.coherence.stops.step[j])
    return known or (1.0 if feature.is_whole else None)


def _marginal(model: Model, feature: Feature, j: int) -> dict[str, Any] | None:
    if model.marginals is None:
        return None
    counts = model.marginals.counts(j).tolist()
    return {"edges": model.marginals.edges(j).tolist(), "counts": counts} if feature.is_number else {"counts": counts}
