"""An asking with one of its limits changed or left out, as a page would send it."""

from __future__ import annotations

__all__ = ["as_body", "parts_of", "without"]

from typing import Any

from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS
from dicoflex.explorer.limits import Limit, stated_of
from dicoflex.explorer.messages import Asking
from dicoflex.explorer.texts import Names


def without(asked: Asking, limit: Limit, names: Names) -> Asking:
    """The asking less one of its limits."""
    if limit.kind == "pinned" and limit.feature in asked.pinned:
        return asked.model_copy(update={"pinned": {k: v for k, v in asked.pinned.items() if k != limit.feature}})
    if limit.kind == "refused":
        left = [one for one in asked.refused if (one.feature, one.value) != (limit.feature, limit.arguments["value"])]
        return asked.model_copy(update={"refused": left})
    stated = stated_of(asked.constraints, names).without([limit.one.entry])
    return asked.model_copy(update={"constraints": as_body(stated, names)})


def as_body(constraints: Constraints, names: Names) -> dict[str, Any]:
    """Constraints as a body has them: features by the names that JSON has for them."""
    found = constraints.model_dump(mode="json")
    if names.keys == names.schema.names:
        return found
    keys = dict(zip(names.schema.names, names.keys, strict=True))
    for field, value in found.items():
        if KINDS[field].names_features:
            pairs = value.items() if isinstance(value, dict) else value
            mapping = isinstance(getattr(constraints, field), dict)
            found[field] = {keys[k]: v for k, v in pairs} if mapping else [keys[k] for k in pairs]
    return found


def parts_of(asked: Asking) -> dict[str, Any]:
    """The parts of an asking that relaxation it may change."""
    return {
        "constraints": asked.constraints,
        "pinned": asked.pinned,
        "refused": [one.model_dump() for one in asked.refused],
        "confidence": asked.confidence,
    }
