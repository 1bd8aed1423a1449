"""Constraints that the names of features suggest: age does not fall, and what people can't or may not change stays.

They are suggested and never imposed: a name says little, and what may change is for people to say.
"""

from __future__ import annotations

__all__ = ["suggested"]

import re
from collections.abc import Sequence

from dicoflex.constraints import Constraints
from dicoflex.table.feature import Feature, Kind

GROWING = {"age"}
FIXED = {
    *("sex", "gender", "race", "ethnicity", "ethnic", "nationality", "citizenship", "religion", "disability"),
    *("birth", "birthday", "birthdate", "birthplace", "birthyear", "born", "native", "foreign"),
}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def suggested(features: Sequence[Feature]) -> Constraints:
    """What the features' names suggest: `increase` for ages, `frozen` for what is fixed or protected.

    >>> from dicoflex.table.schema import Schema
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"Age": [31, 52], "native_country": ["a", "b"], "mortgage": [1.5, 2.5]})
    >>> for _, _, text in suggested(Schema.infer(frame).features).describe():
    ...     print(text)
    native_country may not change
    Age may only increase
    """
    growing = [f for f in features if _words(f) & GROWING]
    ordered = [f.name for f in growing if f.is_number or f.kind == Kind.ORDINAL]
    fixed = [f.name for f in features if _words(f) & FIXED or (f in growing and f.name not in ordered)]
    return Constraints(frozen=fixed, increase=[name for name in ordered if name not in fixed])


def _words(feature: Feature) -> set[str]:
    """The words of a feature's name: `native_country`, `NativeCountry` and `native-country` have the same."""
    return {word.lower() for word in WORD.findall(str(feature.name))}
