"""Signs, marks, counts and numbers as people read them, and text made safe for any terminal."""

from __future__ import annotations

__all__ = [
    "FIRST_DIGITS",
    "LESS_LIKELY_WITHIN",
    "LIKELY_WITHIN",
    "MARKS",
    "MISSING",
    "SIGNS",
    "finite",
    "joined",
    "likelihood_word",
    "narrative",
    "percent",
    "shown",
    "usual_word",
]

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from dicoflex.runtime.printable import printable
from dicoflex.table.feature import Feature, Kind

if TYPE_CHECKING:
    from dicoflex.views.cards import Answer, Card


MISSING = "missing"
SIGNS = {"up": "▲", "down": "▼", "other": "●"}
MARKS = {True: ("✓", "accepted"), False: ("✗", "refused"), None: ("–", "not checked")}
# How many times rarer than the most likely answer of the same query an answer may be to earn its word.
LIKELY_WITHIN = 10.0
LESS_LIKELY_WITHIN = 1_000.0
EMPTY_BAR_AT = 10_000.0
RAREST_TOLD = 0.001
FIRST_DIGITS = 4
ORDINARY_SIZES = (1e-6, 1e15)


def shown(value: Any, feature: Feature, digits: int = FIRST_DIGITS) -> str:
    """A value as text: separators in numbers, `missing`, categories as they are."""
    if pd.isna(value):
        return MISSING
    if not feature.is_number:
        return printable(str(value))
    if float(value).is_integer() and (feature.kind is Kind.INTEGER or abs(value) < ORDINARY_SIZES[1]):
        return f"{int(value):,}"
    return _decimal(float(value), digits)


def _decimal(value: float, digits: int) -> str:
    """A fraction with at least `digits` significant digits, without trailing zeros."""
    low, high = ORDINARY_SIZES
    if not low <= abs(value) < high:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def finite(value: Any) -> float | None:
    return None if pd.isna(value) or not math.isfinite(value) else float(value)


def likelihood_word(gap: float) -> tuple[float | None, str]:
    if math.isnan(gap):
        return None, "unknown"
    share = max(0.0, 1.0 - gap / math.log(EMPTY_BAR_AT))
    if gap <= 0.0:
        return 1.0, "most likely"
    if gap <= math.log(LIKELY_WITHIN):
        return share, "likely"
    return share, "less likely" if gap <= math.log(LESS_LIKELY_WITHIN) else "rare"


def usual_word(plausibility: float) -> str:
    """How usual a row is, from the share of real rows of its class that are less usual.

    >>> usual_word(0.34), usual_word(1.0), usual_word(0.06), usual_word(0.0)
    ('3 in 10', '10 in 10', '1 in 17', 'hardly any')
    """
    if plausibility >= 0.1:
        return f"{math.floor(10 * plausibility)} in 10"
    return f"1 in {1 / plausibility:.0f}" if plausibility >= RAREST_TOLD else "hardly any"


def percent(share: float | None) -> str:
    """A probability as text that never rounds up to certainty.

    >>> percent(0.934), percent(0.9996), percent(1.0)
    ('93 %', '> 99 %', '100 %')
    """
    if share is None:
        return "–"
    if 0.99 < share < 1.0:
        return "> 99 %"
    if 0.0 < share < 0.01:
        return "< 1 %"
    return f"{share:.0%}".replace("%", " %")


def joined(texts: Sequence[str], word: str = "and") -> str:
    """A list as people write it.

    >>> joined(["age"]), joined(["age", "job"]), joined(["age", "job", "hours"], "or")
    ('age', 'age and job', 'age, job or hours')
    """
    *first, last = texts
    return f"{', '.join(first)} {word} {last}" if first else last


# -- a plan in sentences -----------------------------------------------------------------------------------------------

CONFIRMED = {
    True: "The model confirmed this.",
    False: "The model itself refused it.",
    None: "The confidence is an estimate by the surrogate; the model itself was not asked.",
}
NOT_A_PROMISE = (
    "A counterfactual says what the model would answer to another row. It does not say that these changes are "
    "possible, or that they would cause the result, and it is not a promise: the model may change."
)


def narrative(card: Card, units: Mapping[str, str]) -> str:
    """One query's answers in sentences: a paragraph for each, and in the end what they are not."""
    paragraphs = [_paragraph(answer, card, units) for answer in card["answers"]]
    if card["shortfall"]:
        paragraphs.append(f"Row {card['heading']}: {card['shortfall'].rstrip('.')}.")
    if card["answers"]:
        paragraphs.append(NOT_A_PROMISE)
    return "\n\n".join(paragraphs)


def _paragraph(answer: Answer, card: Card, units: Mapping[str, str]) -> str:
    changes = {name: change for name, change in answer["changes"].items() if not change["then"]}
    follow = {name: change for name, change in answer["changes"].items() if change["then"]}
    parts = [
        f"{name} {'were ' if i == 0 else ''}{_value(change['after'], name, units)} "
        f"instead of {_value(change['before'], name, units)}"
        for i, (name, change) in enumerate(changes.items())
    ]
    sure = "" if answer["probability"] is None else f" with a confidence of {answer['confidence']}"
    result = f"the model would answer {card['target']}{sure}"
    sentences = [f"If {joined(parts)}, {result}." if parts else f"Then {result}."]
    if follow:
        others = [f"{name} would be {change['after'].removeprefix('then ')}" for name, change in follow.items()]
        sentences.append(f"As a consequence, {joined(others)}.")
    sentences.append("Everything else stays as it is.")
    if answer["plausibility"] is not None:
        are = "is" if answer["word"].startswith("1 in") else "are"
        sentences.append(f"Of the real rows with this result, {answer['word']} {are} less usual.")
    return " ".join([f"Row {card['heading']}, counterfactual {answer['cf']}.", *sentences, CONFIRMED[answer["valid"]]])


def _value(text: str, name: str, units: Mapping[str, str]) -> str:
    return f"{text} {units[name]}" if name in units and text != MISSING else text
