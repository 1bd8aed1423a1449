"""One plain dict per query: what is shown of it, before it is text or a page."""

from __future__ import annotations

__all__ = [
    "ALREADY",
    "ASKED",
    "SCORE",
    "Answer",
    "Card",
    "Change",
    "Result",
    "Trust",
    "Value",
    "cards",
    "differences",
    "has_rarity",
    "labels",
    "pair_of",
    "rows",
    "starts_group",
    "step_of",
    "ways_text",
]

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, Protocol, TypedDict

import numpy as np
import pandas as pd

from dicoflex.request import Request
from dicoflex.runtime.printable import printable
from dicoflex.table.feature import Feature, Kind
from dicoflex.table.plain_rows import cells_of
from dicoflex.table.schema import Schema
from dicoflex.targets import Goal
from dicoflex.values import plain, typed
from dicoflex.views.words import FIRST_DIGITS, finite, joined, likelihood_word, percent, shown, usual_word

NAME_SHOWN = 16  # of the 64 characters of a model's name; the record has them all
ALREADY = "already"
SCORE = "score"
"""The column of `info` that holds the score of each answer."""
ASKED = {
    "n": "alternatives",
    "p": "sparsity p",
    "confidence": "confidence",
}


class Value(TypedDict):
    """One feature of the query, as text."""

    feature: str
    value: str
    frozen: bool


class Change(TypedDict):
    """One changed cell: texts, direction (up, down, other) and size as a share of the feature's range.

    then: whether it follows from other changes.
    """

    before: str
    after: str
    direction: str
    size: float
    then: bool


class Trust(TypedDict):
    """How far an answer can be trusted: how usual it is, as a number, a share of the bar and a word, and the checks.

    plausibility: the share of real rows that are less usual, where the model knows rows; bar and word tell it then.
    Otherwise they tell the density, against the likeliest answer of the same query.
    """

    log_density: float | None
    plausibility: float | None
    likely: float | None
    word: str
    probability: float | None
    confidence: str
    valid: bool | None


class Answer(Trust):
    """One counterfactual: its changes by feature, the number of its way, and how far it can be trusted."""

    cf: str
    changes: dict[str, Change]
    way: int | None


class Card(TypedDict):
    """Everything that is shown of one query; answers that change the same features stand together."""

    heading: str
    target: str
    asked: list[tuple[str, str]]
    constraints: list[str]
    query: list[Value]
    features: list[str]
    answers: list[Answer]
    shortfall: str
    status: str
    made: list[tuple[str, str]]
    picture: NotRequired[bytes]


class Result(Protocol):
    """What cards are made of: the answers to some queries; `Counterfactuals` is one."""

    @property
    def queries(self) -> pd.DataFrame: ...
    @property
    def frame(self) -> pd.DataFrame: ...
    @property
    def info(self) -> pd.DataFrame: ...
    @property
    def positions(self) -> np.ndarray: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def request(self) -> Request: ...
    @property
    def targets(self) -> Sequence[Any]: ...
    @property
    def status(self) -> Sequence[str]: ...
    @property
    def searches(self) -> Mapping[int, Any]: ...
    @property
    def model(self) -> str | None: ...
    @property
    def changed_cells(self) -> np.ndarray: ...
    @property
    def dependent(self) -> Sequence[Any]: ...
    @property
    def needed(self) -> pd.DataFrame: ...
    @property
    def reasons(self) -> dict[int, tuple[int, int, str]]: ...


def cards(result: Result, *, only: Sequence[int] | None = None) -> list[Card]:
    """One card per query, in the order of the queries; `only` picks queries by position."""
    order = np.argsort(result.positions, kind="stable")
    starts = np.searchsorted(result.positions[order], np.arange(len(result.queries) + 1))
    shared = _shared(result)
    which = range(len(result.queries)) if only is None else only
    return [_card(result, int(i), order[starts[i] : starts[i + 1]], shared) for i in which]


class _Shared(TypedDict):
    """What all cards of a result say alike."""

    asked: list[tuple[str, str]]
    constraints: list[str]
    made: list[tuple[str, str]]


def _shared(result: Result) -> _Shared:
    request = result.request
    # Frozen features are marked in the query instead.
    bound = [printable(text) for kind, _, text in request.constraints.describe() if kind != "frozen"]
    name = None if result.model is None else result.model[:NAME_SHOWN]
    made = {"random_state": request.seed, "novel": request.novel, "model": name}
    asked = {"n": request.n, "p": request.p, "confidence": _confidence(result) or request.confidence}
    return _Shared(
        asked=[(key, _setting(value)) for key, value in asked.items() if value is not None],
        constraints=bound,
        made=[(key, _setting(value)) for key, value in made.items() if value is not None],
    )


def _confidence(result: Result) -> str:
    """What answers had to reach, as text; nothing where that is not known."""
    needed = result.needed.dropna(subset=["confidence"])
    if needed.empty:
        return ""
    level = needed["level"].iloc[0]
    text = f"at least {_span(needed['confidence'])}"
    survival = needed["survival"].dropna()
    kept = "" if survival.empty else f"; an estimated {_span(survival)} of retrained models would agree"
    return f"{text}{kept}" if level is None else f"{level}, {text}{kept}"


def _span(shares: pd.Series) -> str:
    """One percentage, or the least and the greatest."""
    least, greatest = percent(float(shares.min())), percent(float(shares.max()))
    return least if least == greatest else f"{least} to {greatest}"


def has_rarity(card: Card) -> bool:
    """Whether answers are compared with real rows, and not only with one another."""
    return bool(card["answers"]) and all(answer["plausibility"] is not None for answer in card["answers"])


def ways_text(card: Card) -> str:
    """What to say of the ways of a card: that there is one alone, or nothing."""
    answers = card["answers"]
    if len(answers) < 2 or len({answer["way"] for answer in answers}) > 1 or answers[0]["way"] is None:
        return ""
    names = [name for name, change in answers[0]["changes"].items() if not change["then"]]
    return (
        f"one way was found: all of these change {joined(names) if names else ''}, by other amounts or to other values"
    )


def starts_group(card: Card, i: int) -> bool:
    """Whether answer i is the first of its way, where answers of one way stand together below those of another."""
    ways = [answer["way"] for answer in card["answers"]]
    grouped = 1 < len(set(ways)) < len(ways)
    return grouped and i > 0 and ways[i] != ways[i - 1]


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


def shown_names(schema: Schema) -> list[str]:
    """The same for a page or a terminal: control characters are spelt out, as names come from anybody's file."""
    names = [printable(name) for name in labels(schema)]
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


def _card(result: Result, i: int, own: np.ndarray, shared: _Shared) -> Card:
    """The card of query `i`, whose answers stand at `own`."""
    names, values = shown_names(result.schema), rows(result.queries.iloc[[i]])[0]
    frozen = {typed(name) for name in (*result.request.frozen, *result.request.constraints.frozen)}
    several = i < len(result.targets) and isinstance(result.targets[i], Goal)
    answers = _answers(result, values, own, several=several)
    return Card(
        heading=_setting(result.queries.index[i]),
        target=_target(result, i, own),
        query=[
            Value(feature=name, value=shown(value, feature), frozen=typed(feature.name) in frozen)
            for name, value, feature in zip(names, values, result.schema.features, strict=True)
        ],
        features=[name for name in names if any(name in answer["changes"] for answer in answers)],
        answers=answers,
        shortfall=_reason(result, i, own),
        status=_status(result, i),
        asked=shared["asked"],
        constraints=shared["constraints"],
        made=shared["made"],
    )


def _target(result: Result, i: int, own: np.ndarray) -> str:
    """The label asked for; what answers carry, or what is on record for a query without any."""
    target = result.targets[i] if i < len(result.targets) else None
    if len(own) and not isinstance(target, Goal):
        return _setting(result.info["target"].iloc[own[0]])
    return "another class" if target is None else _setting(target)


def _status(result: Result, i: int) -> str:
    return result.status[i] if i < len(result.status) else ""


def _reason(result: Result, i: int, own: np.ndarray) -> str:
    if _status(result, i) == ALREADY:
        return f"this row is {_target(result, i, own)} already; there is nothing to change"
    if i not in result.reasons:
        return ""
    wanted, got, reason = result.reasons[i]
    return f"{got} of {wanted} found: {printable(reason)}"


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as tuples of plain Python values, each column in its own type.

    >>> rows(pd.DataFrame({"age": [31], "rate": [0.5], "own": [True]}))
    [(31, 0.5, True)]
    """
    return [tuple(row) for row in cells_of(frame)]


def _answers(result: Result, values: tuple[Any, ...], own: np.ndarray, *, several: bool) -> list[Answer]:
    """The answers at `own` to a query with these values; where it asked for several labels, each names its own."""
    named = list(zip(shown_names(result.schema), values, result.schema.features, strict=True))
    frame, then = result.frame.iloc[own], {typed(name) for name in result.dependent}
    changes = [
        {named[j][0]: _change(named[j][1], after[j], named[j][2], then) for j in np.flatnonzero(cells)}
        for after, cells in zip(rows(frame), result.changed_cells[own], strict=True)
    ]
    numbers = _numbers(frame.index.get_level_values("cf"), result.info.iloc[own], several=several)
    ways = [None if way is None else int(way) for way in _told(result.info.iloc[own], "way")]
    trust = zip(numbers, changes, ways, _trust(result.info.iloc[own]), strict=True)
    answers = [Answer(cf=cf, changes=changed, way=way, **known) for cf, changed, way, known in trust]
    return sorted(answers, key=lambda answer: answer["way"] or 0)


def _told(info: pd.DataFrame, name: str) -> list[Any]:
    """What is told of each answer under a name; None where nothing is."""
    return info[name].tolist() if name in info else [None] * len(info)


def _numbers(numbers: pd.Index, info: pd.DataFrame, *, several: bool) -> list[str]:
    """What each answer is called: its number, and where it leads if that is not the same for all."""
    if several:
        return [f"{cf} → {_setting(target)}" for cf, target in zip(numbers, info["target"], strict=True)]
    if SCORE in info:
        return [f"{cf} → {score:.4g}" for cf, score in zip(numbers, info[SCORE], strict=True)]
    return [str(cf) for cf in numbers]


def _trust(info: pd.DataFrame) -> list[Trust]:
    """What is known of each answer besides its values."""
    densities = info["log_density"].to_numpy(dtype=float, na_value=np.nan)
    rarities = [finite(plausibility) for plausibility in _told(info, "plausibility")]
    words: list[tuple[float | None, str]] = [(r, usual_word(r)) for r in rarities if r is not None]
    if len(words) < len(info):
        words = _words(densities)
    return [
        Trust(
            log_density=finite(density),
            plausibility=plausibility,
            likely=share,
            word=word,
            probability=finite(probability),
            confidence=percent(finite(probability)),
            valid=None if pd.isna(valid) else bool(valid),
        )
        for density, plausibility, (share, word), probability, valid in zip(
            densities, rarities, words, _told(info, "probability"), info["valid"].tolist(), strict=True
        )
    ]


def _change(before: Any, after: Any, feature: Feature, dependent: set[tuple[str, Any]]) -> Change:
    old, new = pair_of(before, after, feature)
    direction, size = step_of(before, after, feature)
    then = typed(feature.name) in dependent
    return Change(before=old, after=f"then {new}" if then else new, direction=direction, size=size, then=then)


def step_of(before: Any, after: Any, feature: Feature) -> tuple[str, float]:
    """Which way the value moved, and how far on a scale where 1 is the whole range."""
    if pd.isna(before) or pd.isna(after):
        return "other", 1.0
    if feature.is_number:
        step, reach = after - before, (feature.maximum or 0.0) - (feature.minimum or 0.0)
    elif feature.kind is Kind.ORDINAL and feature.is_level(before):
        order = {typed(level): i for i, level in enumerate(feature.levels)}
        step, reach = order[typed(after)] - order[typed(before)], len(feature.levels) - 1
    else:
        return "other", 1.0
    return ("up" if step > 0 else "down"), min(1.0, abs(step) / reach) if reach else 1.0


def pair_of(before: Any, after: Any, feature: Feature) -> tuple[str, str]:
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


def _setting(value: Any) -> str:
    value = plain(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value))
    return f"{value:g}" if isinstance(value, float) else printable(str(value))
