"""One plain dict per query: what is shown of it, before it is text or a page."""

from __future__ import annotations

__all__ = ["ASKED", "Answer", "Card", "Change", "Trust", "Value", "cards", "differences", "labels", "rows"]

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np
import pandas as pd

from dicoflex.constraints import Constraints
from dicoflex.table.feature import Feature, Kind
from dicoflex.table.schema import Schema
from dicoflex.values import plain, typed
from dicoflex.views.words import FIRST_DIGITS, finite, likelihood_word, percent, printable, shown

ASKED = {
    "n": "alternatives",
    "p": "sparsity p",
    "confidence": "confidence at least",
}


class Value(TypedDict):
    """One feature of the query, as text."""

    feature: str
    value: str
    frozen: bool


class Change(TypedDict):
    """One changed cell: texts, direction (up, down, other) and size as a share of the feature's range."""

    before: str
    after: str
    direction: str
    size: float


class Trust(TypedDict):
    """How far an answer can be trusted: its density, as a number, a share of the bar and a word, and the checks."""

    log_density: float | None
    likely: float | None
    word: str
    probability: float | None
    confidence: str
    valid: bool | None


class Answer(Trust):
    """One counterfactual: its changes by feature, and how far it can be trusted."""

    cf: str
    changes: dict[str, Change]


class Card(TypedDict):
    """Everything that is shown of one query."""

    heading: str
    target: str
    asked: list[tuple[str, str]]
    constraints: list[str]
    query: list[Value]
    features: list[str]
    answers: list[Answer]
    shortfall: str
    made: list[tuple[str, str]]
    picture: NotRequired[bytes]


def cards(
    queries: pd.DataFrame,
    frame: pd.DataFrame,
    *,
    info: pd.DataFrame,
    positions: np.ndarray,
    shortfall: pd.DataFrame,
    schema: Schema,
    settings: Mapping[str, Any],
    only: Sequence[int] | None = None,
) -> list[Card]:
    """One card per query, in the order of `queries`; `only` picks queries by position."""
    reasons = _reasons(queries, positions, shortfall)
    order = np.argsort(positions, kind="stable")
    starts = np.searchsorted(positions[order], np.arange(len(queries) + 1))
    made = []
    for i in range(len(queries)) if only is None else only:
        own = order[starts[i] : starts[i + 1]]
        card = _card(queries.iloc[[i]], frame.iloc[own], info=info.iloc[own], schema=schema, settings=settings)
        card["target"] = card["target"] or _target(settings, i)
        card["shortfall"] = reasons.get(i, "")
        made.append(card)
    return made


def differences(before: pd.DataFrame, after: pd.DataFrame) -> np.ndarray:
    """Which cells differ, as a boolean matrix; rows are matched by position and two missing values are equal.

    >>> old = pd.DataFrame({"age": [31, 52], "job": ["clerk", None]})
    >>> new = pd.DataFrame({"age": [31, 50], "job": ["nurse", None]})
    >>> differences(old, new).tolist()
    [[False, True], [True, False]]
    """
    different = np.zeros(after.shape, dtype=bool)
    for j in range(after.shape[1]):
        different[:, j] = _objects(before.iloc[:, j]) != _objects(after.iloc[:, j])
    return different


def labels(schema: Schema) -> list[str]:
    """The features' names as text; quoted where a number and a text would read the same.

    >>> labels(Schema.infer(pd.DataFrame({1: [0, 1], "age": [31, 52]})))
    ['1', 'age']
    """
    names = [str(name) for name in schema.names]
    return names if len(set(names)) == len(names) else [repr(name) for name in schema.names]


def _objects(column: pd.Series) -> np.ndarray:
    """The values as Python objects that compare as the schema tells them apart; missing is None."""
    values = column.astype(object).to_numpy(dtype=object, copy=True)
    if column.dtype == object:
        keys = np.empty(len(values), dtype=object)
        keys[:] = [typed(plain(value)) for value in values]
        values = keys
    values[column.isna().to_numpy()] = None
    return values


def _card(
    query: pd.DataFrame,
    frame: pd.DataFrame,
    *,
    info: pd.DataFrame,
    schema: Schema,
    settings: Mapping[str, Any],
) -> Card:
    names = labels(schema)
    frozen = {typed(plain(name)) for name in settings.get("frozen") or ()}
    answers = _answers(query, frame, info=info, schema=schema)
    return Card(
        heading=_setting(query.index[0]),
        target=_setting(info["target"].iloc[0]) if len(info) else "",
        asked=_asked(settings),
        constraints=_constraints(settings),
        query=[
            Value(feature=name, value=shown(value, feature), frozen=typed(feature.name) in frozen)
            for name, value, feature in zip(names, rows(query)[0], schema.features, strict=True)
        ],
        features=[name for name in names if any(name in answer["changes"] for answer in answers)],
        answers=answers,
        shortfall="",
        made=_made(settings),
    )


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as tuples of plain Python values, each column in its own type.

    >>> rows(pd.DataFrame({"age": [31], "rate": [0.5], "own": [True]}))
    [(31, 0.5, True)]
    """
    columns = [map(plain, frame.iloc[:, j].tolist()) for j in range(frame.shape[1])]
    return list(zip(*columns, strict=True))


def _answers(query: pd.DataFrame, frame: pd.DataFrame, *, info: pd.DataFrame, schema: Schema) -> list[Answer]:
    different = differences(query.iloc[np.zeros(len(frame), dtype=int)], frame)
    named = list(zip(labels(schema), rows(query)[0], schema.features, strict=True))
    changes = [
        {named[j][0]: _change(named[j][1], after[j], named[j][2]) for j in np.flatnonzero(cells)}
        for after, cells in zip(rows(frame), different, strict=True)
    ]
    numbers = frame.index.get_level_values("cf")
    trust = zip(numbers, changes, _trust(info), strict=True)
    return [Answer(cf=str(cf), changes=own, **known) for cf, own, known in trust]


def _trust(info: pd.DataFrame) -> list[Trust]:
    """What is known of each answer besides its values."""
    densities = info["log_density"].to_numpy(dtype=float, na_value=np.nan)
    probabilities = info["probability"].tolist() if "probability" in info else [None] * len(info)
    return [
        Trust(
            log_density=finite(density),
            likely=share,
            word=word,
            probability=finite(probability),
            confidence=percent(finite(probability)),
            valid=None if pd.isna(valid) else bool(valid),
        )
        for density, (share, word), probability, valid in zip(
            densities, _words(densities), probabilities, info["valid"].tolist(), strict=True
        )
    ]


def _change(before: Any, after: Any, feature: Feature) -> Change:
    old, new = _pair(before, after, feature)
    direction, size = _step(before, after, feature)
    return Change(before=old, after=new, direction=direction, size=size)


def _step(before: Any, after: Any, feature: Feature) -> tuple[str, float]:
    """Which way the value moved, and how far on a scale where 1 is the whole range."""
    if pd.isna(before) or pd.isna(after):
        return "other", 1.0
    if feature.is_number:
        step, reach = after - before, (feature.maximum or 0.0) - (feature.minimum or 0.0)
    elif feature.kind is Kind.ORDINAL:
        order = {typed(level): i for i, level in enumerate(feature.levels)}
        step, reach = order[typed(after)] - order[typed(before)], len(feature.levels) - 1
    else:
        return "other", 1.0
    return ("up" if step > 0 else "down"), min(1.0, abs(step) / reach) if reach else 1.0


def _pair(before: Any, after: Any, feature: Feature) -> tuple[str, str]:
    """Two values as text, with as many digits as it takes to tell them apart."""
    texts = ("", "")
    for digits in (FIRST_DIGITS, 6, 9, 17):
        texts = shown(before, feature, digits), shown(after, feature, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _words(log_density: np.ndarray) -> list[tuple[float | None, str]]:
    """For each answer of one query a share of the full bar and a word, both against the most likely one."""
    known = log_density[np.isfinite(log_density)]
    if len(log_density) == 1 and len(known) == 1:
        return [(None, f"log density {known[0]:.1f}")]
    best = known.max() if len(known) else np.nan
    return [likelihood_word(best - value) for value in log_density]


def _target(settings: Mapping[str, Any], position: int) -> str:
    """The label asked for a query without answers, which would carry it."""
    target = settings.get("targets", settings.get("target"))
    if isinstance(target, list | tuple):
        target = target[position] if position < len(target) else None
    return "another class" if target is None else _setting(target)


def _asked(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, _setting(settings[key])) for key in ASKED if settings.get(key) is not None]


def _constraints(settings: Mapping[str, Any]) -> list[str]:
    """What bound the answers, a sentence each; frozen features are marked in the query instead."""
    bound = Constraints(**settings.get("constraints") or {})
    return [printable(text) for kind, _, text in bound.describe() if kind != "frozen"]


def _made(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What else is on record: the version, the seed and the like."""
    said = {*ASKED, "constraints", "frozen", "target", "targets"}
    return [
        (str(key), _setting(value))
        for key, value in settings.items()
        if key not in said and isinstance(value, str | int | float)
    ]


def _setting(value: Any) -> str:
    value = plain(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value))
    return f"{value:g}" if isinstance(value, float) else printable(str(value))


def _reasons(queries: pd.DataFrame, positions: np.ndarray, shortfall: pd.DataFrame) -> dict[int, str]:
    """A sentence for each query that got too few, by position.

    Labels may repeat, so an entry belongs to the first free query with its label and its number of answers.
    """
    counts = np.bincount(positions.astype(int), minlength=len(queries))
    free: dict[tuple[Any, int], list[int]] = {}
    for i, label in enumerate(queries.index):
        free.setdefault((label, int(counts[i])), []).append(i)
    reasons = {}
    for label, wanted, got, reason in shortfall[["row", "wanted", "got", "reason"]].itertuples(index=False, name=None):
        places = free.get((label, int(got)))
        if places:
            reasons[places.pop(0)] = f"{got} of {wanted} found: {printable(str(reason))}"
    return reasons
