"""Requests for results that are made by hand, and queries of what a request asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dicoflex import Constraints
from dicoflex.answers.engine import conditioned
from dicoflex.answers.query import Query
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.unseen import encode_frame


def asked(settings: Mapping[str, Any]) -> Request:
    """A request with these settings, and with nothing else that would be shown."""
    bound = settings.get("constraints") or {}
    return Request.model_construct(
        n=settings.get("n"),
        p=settings.get("p"),
        frozen=tuple(settings.get("frozen", ())),
        constraints=bound if isinstance(bound, Constraints) else Constraints(**bound),
        confidence=settings.get("confidence"),
        novel=False,
        seed=settings.get("random_state"),
    )


def query_of(model: Model, rows: pd.DataFrame, request: Request) -> Query:
    """What a model is asked when each row has one label to go to."""
    _, _, (query,) = conditioned(model, encode_frame(model.encoding, rows), request)
    return query
