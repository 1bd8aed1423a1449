"""Constraints that features suggest: age waits, what people can't or may not change stays, and no value is withheld.

They are suggested and never imposed: a name says little, and what may change is for people to say.
"""

from __future__ import annotations

__all__ = ["suggested"]

import re
from collections.abc import Sequence

from dicoflex.constraints import Constraints, delta
from dicoflex.table.feature import Feature, Kind

GROWING = {"age"}
WAIT = 5
"""For how many years an answer may ask somebody to wait."""
YEARS = (30.0, 130.0)
"""What the greatest age is where it is told in years, and not in months or days."""
FIXED = {
    *("sex", "gender", "race", "ethnicity", "ethnic", "nationality", "citizenship", "religion", "disability"),
    *("birth", "birthday", "birthdate", "birthplace", "birthyear", "born", "native", "foreign"),
}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def suggested(features: Sequence[Feature]) -> Constraints:
    """What the features suggest: `increase` for ages, `frozen` for what is fixed or protected, no new missing values.

    An age in years rises by five at most: more is no advice. That a value becomes missing is none either.

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
    growing = [f for f in features if _words(f) & GROWING]
    ordered = [f.name for f in growing if f.is_number or f.kind == Kind.ORDINAL]
    fixed = [f.name for f in features if _words(f) & FIXED or (f in growing and f.name not in ordered)]
    ages = [f for f in growing if f.name in ordered and f.name not in fixed]
    return Constraints(
        frozen=fixed,
        increase=[f.name for f in ages],
        ranges={f.name: delta(0, WAIT) for f in ages if _is_in_years(f)},
        forbidden={f.name: [None] for f in features if f.missing and f.name not in fixed},
    )


def _is_in_years(feature: Feature) -> bool:
    return feature.is_number and YEARS[0] <= (feature.maximum or 0.0) <= YEARS[1]


def _words(feature: Feature) -> set[str]:
    """The words of a feature's name: `native_country`, `NativeCountry` and `native-country` have the same."""
    return {word.lower() for word in WORD.findall(str(feature.name))}
