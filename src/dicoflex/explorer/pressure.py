"""What each limit of a caller's costs: the share of draws without any limits of theirs that it rules out."""

from __future__ import annotations

__all__ = ["pressures_of"]

from collections.abc import Sequence
from typing import Any

import numpy as np

from dicoflex.answers.query import Query
from dicoflex.answers.shortfall import broken_shares
from dicoflex.explorer.limits import Limit
from dicoflex.model import Model


def pressures_of(model: Model, query: Query, limits: Sequence[Limit]) -> list[dict[str, Any]]:
    """Each limit with its share, the hardest first; only what the model's owner froze binds the draws."""
    if not limits:
        return []
    held = model.schema.mask([name for name in model.schema.constraints.frozen if name in query.request.frozen])
    shares = broken_shares(model, query, np.zeros(1, dtype=np.int64), [limit.one for limit in limits], held=held)
    told = [{**limit.told(), "share": round(float(share[0]), 4)} for limit, share in zip(limits, shares, strict=True)]
    return sorted(told, key=lambda one: -one["share"])
