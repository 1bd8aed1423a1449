"""Constraints that features suggest: age waits, what people can't or may not change stays, and no value is withheld.

They are suggested and never imposed: a name says little, and what may change is for people to say.
"""

from __future__ import annotations

__all__ = ["is_growing", "stays", "suggested", "warn_of_protected"]

import warnings
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from dicoflex._types import Bools, Floats, Ints
from dicoflex.constraints import Constraints, delta
from dicoflex.table.feature import Feature, Kind
from dicoflex.table.inference import WORD

GROWING = {"age"}
WAIT = 5
"""For how many years an answer may ask somebody to wait."""
YEARS = (30.0, 130.0)
"""What the greatest age is where it is told in years, and not in months or days."""
PROTECTED = {
    *("sex", "gender", "male", "female", "race", "racetxt", "caste", "ethnicity", "ethnic", "nationality"),
    *("citizenship", "religion", "disability", "disabled"),
    *("birth", "birthday", "birthdate", "birthplace", "birthyear", "born", "dob", "native", "foreign"),
}
PAST = {"ever"}
OTHERS_SAY = {"bureau", "fico", "vantagescore", "schufa"}
EXTERNAL = [{who, what} for who in ("external", "credit") for what in ("risk", "score", "rating")]
SINCE = {"since"}
UNITS = {"days": 365, "d": 365, "weeks": 52, "months": 12, "month": 12, "mo": 12, "m": 12, "years": 1, "yrs": 1, "y": 1}
"""How many of each there are in a year."""
LEAST_ROWS, LEAST_BROKEN, MOST_RULES = 100, 0.05, 20
"""A rule a <= b is suggested if so many rows keep it, and so large a share of rows with b shuffled would break it."""


def suggested(features: Sequence[Feature], rows: pd.DataFrame | None = None) -> Constraints:
    """What the features suggest: `increase` for ages, `frozen` for what is fixed or protected, no new missing values.

    An age in years rises by five at most, and so does time since something: more is no advice. That a value becomes
    missing, or a special one, is none either. rows: where rules between two numbers are looked for.

    >>> from dicoflex.table.schema import Schema
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"Age": [31, 52], "native_country": ["a", "b"], "mortgage": [1.5, None]})
    >>> for _, _, text in suggested(Schema.infer(frame).features).describe():
    ...     print(text)
    native_country may not change
    Age may change by 0 to +5
    Age may only increase
    mortgage may not become missing
    """
    growing = [f for f in features if is_growing(f) or _is_time(f)]
    ordered = [f.name for f in growing if f.is_number or f.kind == Kind.ORDINAL]
    fixed = [f.name for f in features if stays(f) or (f in growing and f.name not in ordered)]
    ages = [f for f in growing if f.name in ordered and f.name not in fixed]
    return Constraints(
        frozen=fixed,
        increase=[f.name for f in ages],
        ranges={f.name: delta(0, wait) for f in ages if (wait := _longest_wait(f)) is not None},
        forbidden={f.name: odd for f in features if f.name not in fixed and (odd := _not_advised(f))},
        rules=[] if rows is None else _orders(features, rows, fixed),
    )


def _is_protected(feature: Feature) -> bool:
    """Whether people can't or may not be asked to change it, by its name: sex, race, birth, religion and the like."""
    return bool(_words(feature) & PROTECTED)


def is_growing(feature: Feature) -> bool:
    """Whether it is an age, by its name, which nobody can lower.

    >>> is_growing(Feature(name="AgeInYears", kind=Kind.INTEGER, dtype="int64", minimum=18, maximum=80))
    True
    """
    return bool(_words(feature) & GROWING)


def warn_of_protected(schema_features: Sequence[Feature], bound: Constraints) -> None:
    """Warn of protected features that answers may change, and of ages that they may lower."""
    limited = {name for _, name in bound.features()}
    moving = [f.name for f in schema_features if _is_protected(f) and f.name not in bound.frozen]
    moving += [f.name for f in schema_features if is_growing(f) and f.name not in {*limited, *moving}]
    if moving:
        listed = ", ".join(map(repr, moving))
        warnings.warn(
            f"answers may change {listed}: by their names, what people can't or must not be asked to change; fit with "
            "schema=Schema.infer(X, suggest=True), which keeps them (--suggest on the command line), or with "
            "constraints of your own",
            stacklevel=3,
        )


def stays(feature: Feature) -> bool:
    """Whether a feature is protected, past, or what others say of somebody.

    >>> stays(Feature(name="fico_score", kind=Kind.INTEGER, dtype="int64", minimum=300, maximum=850))
    True
    """
    words = _words(feature)
    return _is_protected(feature) or bool(words & (PAST | OTHERS_SAY)) or any(both <= words for both in EXTERNAL)


def _is_time(feature: Feature) -> bool:
    """Whether a number tells the time since something."""
    words = _words(feature)
    return feature.is_number and bool(words & SINCE) and bool(words & set(UNITS))


def _longest_wait(feature: Feature) -> float | None:
    """By how much time may pass at most, in the unit of the feature; None where that can't be told."""
    if _is_time(feature):
        return float(WAIT * next(UNITS[word] for word in sorted(_words(feature)) if word in UNITS))
    return float(WAIT) if _is_in_years(feature) else None


def _not_advised(feature: Feature) -> list[Any]:
    """Values that it is no advice to come to: none at all, and what stands for something."""
    return [*([None] if feature.missing else []), *(int(v) if v.is_integer() else v for v in feature.special)]


def _orders(features: Sequence[Feature], rows: pd.DataFrame, fixed: Sequence[Any]) -> list[str]:
    """Rules a <= b between numbers that hold in every row, and would not by chance; none that follows from others."""
    numbers = {f.name: f for f in features if f.is_number}
    columns = {name: pd.to_numeric(rows[name]).to_numpy(dtype=float, na_value=np.nan) for name in numbers}
    plain = {name: ~np.isnan(columns[name]) & ~np.isin(columns[name], f.special) for name, f in numbers.items()}
    shuffled = np.random.default_rng(0).permutation(len(rows))
    found = [
        (a, b)
        for a, b in permutations(columns, 2)
        if not {a, b} <= set(fixed)
        and _is_order(columns[a], columns[b], plain[a] & plain[b], plain[a] & plain[b][shuffled], shuffled)
    ]
    pairs = set(found)
    least = [(a, b) for a, b in found if not any((a, c) in pairs and (c, b) in pairs for c in columns)]
    return [_order_rule(numbers[a], numbers[b]) for a, b in least[:MOST_RULES]]


def _is_order(low: Floats, high: Floats, both: Bools, mixed: Bools, shuffled: Ints) -> bool:
    """Whether low <= high wherever both are measured, and often not where `high` is shuffled."""
    if both.sum() < LEAST_ROWS or (low > high)[both].any() or (low == high)[both].all():
        return False
    return bool((low > high[shuffled])[mixed].mean() >= LEAST_BROKEN)


def _order_rule(a: Feature, b: Feature) -> str:
    """The rule a <= b, for those rows where both are measured."""
    odd = [condition for feature in (a, b) for condition in _odd(feature)]
    return " or ".join([*odd, f"{_quoted(a.name)} <= {_quoted(b.name)}"])


def _odd(feature: Feature) -> Iterator[str]:
    """When a number is none: missing, or standing for something."""
    name = _quoted(feature.name)
    if feature.missing:
        yield f"{name} is missing"
    if feature.special:
        yield f"{name} in [{', '.join(f'{value:g}' for value in feature.special)}]"


def _quoted(name: Any) -> str:
    text = str(name)
    return text if text.isidentifier() else f"`{text.replace('`', '``')}`"


def _is_in_years(feature: Feature) -> bool:
    return feature.is_number and YEARS[0] <= (feature.maximum or 0.0) <= YEARS[1]


def _words(feature: Feature) -> set[str]:
    """The words of a feature's name: `native_country`, `NativeCountry` and `native-country` have the same."""
    return {word.lower() for word in WORD.findall(str(feature.name))}
