"""Cells of text, as CSV files and folder names have them, as the values that a model's features may have."""

from __future__ import annotations

__all__ = ["values_of_texts"]

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dicoflex.table.feature import Feature
from dicoflex.table.files import MISSING_WORDS

TRUTHS = {"true": True, "TRUE": True, "false": False, "FALSE": False}


def values_of_texts(feature: Feature, array: Any) -> pd.Series:
    """A column of text as values of a feature; each distinct text is read once, and what can't be read stays text."""
    coded = array.dictionary_encode() if not pa.types.is_dictionary(array.type) else array
    texts = coded.dictionary.to_pylist()
    read = [*(_number(text) if feature.is_number else _level(feature, text) for text in texts), None]
    codes = coded.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy(zero_copy_only=False)
    known = [value for value in read if value is not None]
    if not feature.is_number and len(set(known)) == len(known) and all(isinstance(value, str) for value in known):
        places = np.cumsum([value is not None for value in read]) - 1
        codes = np.where([value is None for value in read], -1, places)[codes]
        return pd.Series(pd.Categorical.from_codes(codes, pd.Index(known)))
    values = np.empty(len(read), dtype=object)
    values[:] = read
    column = values[codes]
    numbers = feature.is_number and not any(isinstance(value, str) for value in read)
    return pd.Series(column.astype(np.float64) if numbers and _exact(read) else column)


def _number(text: str) -> float | int | str | None:
    """The number that a text is, whole where it is written so; None where it is missing."""
    word = text.strip()
    if word in MISSING_WORDS:
        return None
    for kind in (int, float):
        try:
            return kind(word) if "_" not in word else text
        except ValueError:
            continue
    return text


def _exact(values: list[Any]) -> bool:
    return all(not isinstance(value, int) or abs(value) <= 2**53 for value in values)


def _level(feature: Feature, text: str) -> Any:
    """The level that a text is; None where it is missing, and the text itself where it is none."""
    levels: dict[str, Any] = {str(level): level for level in feature.levels}
    if text in levels:
        return levels[text]
    if text in MISSING_WORDS:
        return None
    if text in TRUTHS and TRUTHS[text] in feature.levels and any(isinstance(v, bool) for v in feature.levels):
        return TRUTHS[text]
    number = _number(text)
    same = [v for v in feature.levels if type(v) in (int, float) and not isinstance(number, str) and v == number]
    return same[0] if same else text
