"""What a caller limits: constraints, pins and refusals one at a time, and the share of draws that each rules out."""

from __future__ import annotations

__all__ = ["Limit", "Wish", "as_body", "parts_of", "pressures_of", "stated_of", "wish_of", "without"]

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dicoflex.answers.query import Query
from dicoflex.answers.shortfall import broken_shares
from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS, OneConstraint
from dicoflex.errors import ConstraintError, named
from dicoflex.explorer.messages import Asking, Limited, NotThis, RefusedError
from dicoflex.explorer.sentences import WORDS, arguments, sentence
from dicoflex.explorer.texts import Names
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.feature import Feature
from dicoflex.table.plain_rows import Cells

REFUSED_SHARE = 0.05
"""Of the move that was refused: how much less a move must be to count as another one."""


@dataclass(frozen=True)
class Limit:
    """One limit: its stable name, its kind as pages have it, its feature in JSON, its words, and what it demands."""

    id: str
    kind: str
    feature: str | None
    sentence: str
    arguments: dict[str, Any]
    one: OneConstraint

    def told(self) -> dict[str, Any]:
        """The limit as plain data."""
        return {
            "id": self.id,
            "kind": self.kind,
            "feature": self.feature,
            "sentence": self.sentence,
            "arguments": self.arguments,
        }


@dataclass(frozen=True)
class Wish:
    """All that a caller demands for one row: as constraints, and one by one."""

    constraints: Constraints
    limits: list[Limit]


def wish_of(asked: Limited, own: Values, names: Names, cells: Cells) -> Wish:
    """The limits of a body for the row `own`; those that can't be read are refused with their feature."""
    stated = stated_of(asked.constraints, names)
    for kind, name in stated.features():
        if name not in names.schema.places:
            raise RefusedError(f"{kind}: {named('feature', name, names.keys)}", place=f"/constraints/{kind}")
    pins = {names.schema.names[_place(key, names, "/pinned")]: value for key, value in asked.pinned.items()}
    limits = [_limit(one, names) for one in stated.one_by_one() if KINDS[one.kind].role == "limit"]
    pinned = Constraints.pin(pins)
    limits += [_limit(one, names) for one in pinned.one_by_one()]
    whole = _merged(stated, pinned)
    for number, refused in enumerate(asked.refused):
        j = _place(refused.feature, names, f"/refused/{number}/feature")
        piece = refusal(refused, names.schema.features[j], cells.shown(j, float(own[j])))
        limits.append(_refused(refused, piece, names, j))
        whole = _with_refusal(whole, piece, names.schema.names[j])
    return Wish(whole, limits)


def stated_of(given: dict[str, Any], names: Names) -> Constraints:
    """The constraints of a body, whose features have the names that JSON has for them."""
    if names.keys == names.schema.names:
        return Constraints(**given)
    by_key = dict(zip(names.keys, names.schema.names, strict=True))
    found = {}
    for field, value in given.items():
        if field not in KINDS or not KINDS[field].names_features:
            found[field] = value
        elif isinstance(value, dict):
            found[field] = [[by_key.get(key, key), item] for key, item in value.items()]
        elif isinstance(value, list):
            found[field] = [by_key.get(key, key) if isinstance(key, str) else key for key in value]
        else:
            found[field] = value
    return Constraints(**found)


def _place(key: str, names: Names, where: str) -> int:
    j = names.place(key)
    if j is None:
        raise RefusedError(named("feature", key, names.keys), place=where)
    return j


def _limit(one: OneConstraint, names: Names) -> Limit:
    feature = None if one.feature is None else names.keys[names.schema.position(one.feature)]
    kind = WORDS.get(one.kind, one.kind)
    return Limit(one.entry, kind, feature, sentence(one, names), arguments(one, names), one)


def _merged(one: Constraints, other: Constraints) -> Constraints:
    return one if other.is_empty else one.merge(other)


# -- "not this" ------------------------------------------------------------------------------------------------------


def refusal(refused: NotThis, feature: Feature, own: Any) -> Constraints:
    """What refusing a change demands: a level is forbidden, a number may not move as far, nor nearly as far.

    >>> import pandas as pd
    >>> from dicoflex.table.schema import Schema
    >>> hours = Schema.infer(pd.DataFrame({"hours": [20, 60]}))["hours"]
    >>> refusal(NotThis(feature="hours", value=50), hours, 40).describe()
    [('ranges', 'hours', 'hours must be at most 49')]
    """
    value, name = refused.value, feature.name
    if not feature.is_number or value is None or own is None or value == own:
        return Constraints(forbidden={name: [value]})
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RefusedError(f"{name} is {value!r}, which is no number; give one", feature=str(name))
    less = value - REFUSED_SHARE * (value - own)
    if feature.is_whole:
        less = np.ceil(less) - 1 if value > own else np.floor(less) + 1
    end = float(max(own, less) if value > own else min(own, less))
    return Constraints(ranges={name: (None, end) if value > own else (end, None)})


def _refused(refused: NotThis, piece: Constraints, names: Names, j: int) -> Limit:
    one = piece.one_by_one()[0]
    text = names.shown(j, refused.value)
    return Limit(
        id=f"refused:{names.keys[j]}:{refused.value!r}",
        kind="refused",
        feature=names.keys[j],
        sentence=f"{names.labels[j]}: not {text}",
        arguments={"value": refused.value, "text": text},
        one=one,
    )


def _with_refusal(whole: Constraints, piece: Constraints, name: Any) -> Constraints:
    """Both together; where they leave the feature no other value, it stays as it is."""
    try:
        return whole.merge(_newly_forbidden(whole, piece, name))
    except ConstraintError:
        left = {
            field: {k: v for k, v in getattr(whole, field).items() if k != name}
            for field in ("ranges", "allowed", "forbidden", "steps")
        }
        kept = whole.model_copy(update=left)
        return kept.merge(Constraints(frozen=[name]))


def _newly_forbidden(whole: Constraints, piece: Constraints, name: Any) -> Constraints:
    """A refusal less what is allowed no more: a listed value that is refused leaves the list."""
    gone: Iterable[Any] = piece.forbidden.get(name, ())
    if name in whole.allowed and any(value in whole.allowed[name] for value in gone):
        left = tuple(value for value in whole.allowed[name] if value not in gone)
        if not left:
            raise ConstraintError(f"forbidden {name!r}: nothing is allowed any more; to keep it, put it in frozen")
        return Constraints(allowed={name: left})
    return piece


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


def pressures_of(model: Model, query: Query, limits: Sequence[Limit]) -> list[dict[str, Any]]:
    """Each limit with its share, the hardest first; only what the model's owner froze binds the draws."""
    if not limits:
        return []
    held = model.schema.mask([name for name in model.schema.constraints.frozen if name in query.request.frozen])
    shares = broken_shares(model, query, np.zeros(1, dtype=np.int64), [limit.one for limit in limits], held=held)
    told = [{**limit.told(), "share": round(float(share[0]), 4)} for limit, share in zip(limits, shares, strict=True)]
    return sorted(told, key=lambda one: -one["share"])
