"""Requests for results that are made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dicoflex import Constraints
from dicoflex.request import Request


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
