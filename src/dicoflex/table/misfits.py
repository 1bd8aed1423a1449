"""Rows of a frame that a model can't take, one by one, each with the reason: the rest can go on without them."""

from __future__ import annotations

__all__ = ["misfits"]

from collections.abc import Callable
from typing import Any

import pandas as pd

from dicoflex.errors import QueryError, UnseenError
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema
from dicoflex.table.unseen import encode_frame
from dicoflex.values import plain

Refusal = Callable[[pd.Series], str | None]


def misfits(encoding: Encoding, frame: pd.DataFrame, places: Values, *, strict: bool = False) -> dict[int, str]:
    """The rows of a frame that do not fit a schema.

    Parameters
    ----------
    encoding : Encoding
        How the model takes rows.
    frame : DataFrame
        Rows with the training columns.
    places : ndarray
        What stands for unseen values, by feature.
    strict : bool
        Whether a value that training never had is a reason.

    Returns
    -------
    dict of int to str
        The reason by the position of the row. The other rows can be explained together.

    Examples
    --------
    >>> import numpy as np
    >>> encoding = Encoding.unit(Schema.infer(pd.DataFrame({"age": [31, 52], "job": ["cook", "nurse"]})))
    >>> rows = pd.DataFrame({"age": [40, 40.5, 41], "job": ["cook", "cook", "pilot"]})
    >>> misfits(encoding, rows, np.zeros(2), strict=True)
    {1: "column 'age' holds fractions, ...", 2: "column 'job' has the value 'pilot', never seen in training; ..."}
    >>> list(misfits(encoding, rows, np.zeros(2)))
    [1]
    """
    found: dict[int, str] = {}
    for j, feature in enumerate(encoding.schema.features):
        refusal = _refusal(feature, places[j : j + 1], strict=strict)
        column = frame[feature.name]
        if refusal(column) is not None:
            for place, why in _each(column, refusal).items():
                found.setdefault(place, why)
    return dict(sorted(found.items()))


def _refusal(feature: Feature, place: Values, *, strict: bool) -> Refusal:
    """What is wrong with a column of a feature; None where nothing is."""
    encoding = Encoding.unit(Schema(features=(feature,)))

    def refusal(column: pd.Series) -> str | None:
        frame = column.to_frame()
        try:
            encoding.encode(frame)
        except UnseenError as error:
            return str(error) if strict else _beyond_unseen(encoding, frame, place)
        except QueryError as error:
            return str(error)
        return None

    return refusal


def _beyond_unseen(encoding: Encoding, frame: pd.DataFrame, place: Values) -> str | None:
    """What is wrong with a column besides values that training never had."""
    try:
        encode_frame(encoding, frame, lambda: place)
    except QueryError as error:
        return str(error)
    return None


def _each(column: pd.Series, refusal: Refusal) -> dict[int, str]:
    """The reason for each row of a column whose value is refused; equal values are looked at once."""
    rows: dict[Any, list[int]] = {}
    for i, value in enumerate(column):
        one = plain(value)
        rows.setdefault((type(one), str(one)), []).append(i)
    first = [places[0] for places in rows.values()]
    alike = {places[0]: places for places in rows.values()}
    wrong: dict[int, str] = {}
    _halve(column, first, refusal, wrong)
    return {place: why for one, why in wrong.items() for place in alike[one]}


def _halve(column: pd.Series, places: list[int], refusal: Refusal, wrong: dict[int, str]) -> None:
    why = refusal(column.iloc[places])
    if why is None:
        return
    if len(places) == 1:
        wrong[places[0]] = why
        return
    middle = len(places) // 2
    for half in (places[:middle], places[middle:]):
        _halve(column, half, refusal, wrong)
