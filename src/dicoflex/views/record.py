"""The record: everything about a result as nested dicts and lists, ready for JSON."""

from __future__ import annotations

__all__ = ["record", "settings"]

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.targets import as_sent
from dicoflex.values import jsonable
from dicoflex.views.cards import Result, labels, rows
from dicoflex.views.words import finite


def settings(result: Result) -> dict[str, Any]:
    """What was asked for and by which model: enough to ask again."""
    request = result.request
    return {
        "n": request.n,
        "p": request.p,
        "frozen": list(request.frozen),
        "constraints": request.constraints.model_dump(mode="json"),
        "confidence": request.confidence,
        "needed": [
            {"level": level, "confidence": finite(sure), "survival": finite(kept)}
            for level, sure, kept in result.needed.itertuples(index=False)
        ],
        "random_state": request.seed,
        "targets": [as_sent(one) for one in result.targets],
        "novel": request.novel,
        "model": result.model,
    }


def record(result: Result, *, shortfall: pd.DataFrame, verdicts: pd.DataFrame) -> Any:
    """Settings, queries with their answers, what was found too little of, and the verdicts of `verify`."""
    names = labels(result.schema)
    values = [dict(zip(names, row, strict=True)) for row in rows(result.queries)]
    queries: list[dict[str, Any]] = [
        {"row": label, "values": own, "counterfactuals": []}
        for label, own in zip(result.queries.index, values, strict=True)
    ]
    for query, word in zip(queries, result.status, strict=False):
        query["status"] = word
    for place, search in result.searches.items():
        queries[place]["search"] = asdict(search)
    for place, answer in zip(result.positions.tolist(), _answers(result, names), strict=True):
        queries[place]["counterfactuals"].append(answer)
    return jsonable(
        {
            "settings": settings(result),
            "queries": queries,
            "shortfall": shortfall.to_dict("records"),
            "verdicts": verdicts.to_dict("records"),
            "compared_with": verdicts.attrs["compared_with"],
        }
    )


def _answers(result: Result, names: list[str]) -> Iterator[dict[str, Any]]:
    before, after = rows(result.queries), rows(result.frame)
    info = [dict(zip(map(str, result.info.columns), row, strict=True)) for row in rows(result.info)]
    for i, cf in enumerate(result.frame.index.get_level_values("cf")):
        old, new = before[result.positions[i]], after[i]
        changed = np.flatnonzero(result.changed_cells[i])
        changes = [{"feature": names[j], "before": old[j], "after": new[j]} for j in changed]
        yield {"cf": cf, "values": dict(zip(names, new, strict=True)), "changes": changes, "info": info[i]}
