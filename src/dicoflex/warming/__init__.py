"""Warming up: a model is asked in every shape of call, so that no kernel is left to be made when somebody waits."""

from __future__ import annotations

__all__ = ["EXAMPLES", "rows_like", "warm"]

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.answers.asking import explain, log_density, sample
from dicoflex.constraints import Constraints, delta, per_unit, relative
from dicoflex.errors import UserError
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema

EXAMPLES = sorted((Path(__file__).parent / "models").glob("*.dicoflex"))
"""Small models of every sort, which ship with the package: what is made for them fits every other model."""
SIZES = (1, 12)


def warm(model: Model, *, sizes: tuple[int, ...] = SIZES) -> int:
    """Ask a model in every shape of call; returns how many calls that were. What it refuses is left out."""
    calls = 0
    for n_rows in sizes:
        rows = rows_like(model.schema, n_rows)
        for wish in _wishes(model):
            calls += _asked(model, rows, Request.of(target=model.example_target, n=2, random_state=0, **wish))
    return calls


def _wishes(model: Model) -> Iterator[dict[str, Any]]:
    """Questions that between them need everything that answering needs."""
    names = model.schema.names
    yield {}
    yield {"p": min(model.exponents), "refine": False}
    yield {"frozen": names[:1], "variety": 0.5, "plausible": 0.0}
    yield {"coherent": False}
    for constraints in _constraints(model.schema):
        yield {"constraints": constraints}
        yield {"constraints": constraints, "refine": False}


def _constraints(schema: Schema) -> Iterator[Constraints]:
    """A set of constraints of every kind that fits a table, and some together."""
    numbers = [f for f in schema.features if f.is_number and f.minimum != f.maximum]
    picked = [f for f in schema.features if not f.is_number and len(f.levels) > 1]
    yield Constraints(max_changes=max(1, len(schema) - 1))
    if numbers:
        name, low, high = _limits(numbers[0])
        yield Constraints(ranges={name: (low, high)}, strict=True)
        yield Constraints(ranges={name: [relative(-0.5, 0.5), delta(low - high, high - low)]}, rules=_rules(numbers))
        yield Constraints(increase=[name], cost={name: per_unit(0.001)}, max_cost=10.0 + high - low)
        yield Constraints(decrease=[name], steps={name: max(1.0, (high - low) // 10)})
    if picked:
        name, levels = picked[0].name, list(picked[0].levels)
        yield Constraints(allowed={name: levels}, cost={name: 1.0}, max_changes=len(schema))
        yield Constraints(forbidden={name: levels[:1]}, transitions={name: {levels[0]: levels}})
        if numbers and isinstance(levels[0], str) and "'" not in levels[0]:
            number, low, _ = _limits(numbers[0])
            yield Constraints(rules=[f"if `{name}` == '{levels[0]}' then `{number}` >= {low:.17g}"], max_changes=3)


def _limits(feature: Feature) -> tuple[Any, float, float]:
    assert feature.minimum is not None
    assert feature.maximum is not None
    return feature.name, feature.minimum, feature.maximum


def _rules(numbers: list[Feature]) -> list[str]:
    """A rule about one number, and one about two."""
    name, low, _ = _limits(numbers[0])
    rules = [f"`{name}` >= {low:.17g}"]
    if len(numbers) > 1:
        rules.append(f"`{name}` + {1e9:.17g} >= `{numbers[1].name}`")
    return rules


def _asked(model: Model, rows: pd.DataFrame, request: Request) -> int:
    """Ask in all three ways; how many of them were answered."""
    calls = 0
    for ask in (_explain, _sample):
        try:
            ask(model, rows, request)
            calls += 1
        except UserError:
            continue
    return calls


def _explain(model: Model, rows: pd.DataFrame, request: Request) -> None:
    explain(model, rows, request).verify()


def _sample(model: Model, rows: pd.DataFrame, request: Request) -> None:
    draws = sample(model, rows, request)
    if request.constraints.is_empty:
        log_density(model, rows.head(1), draws, request)


def rows_like(schema: Schema, n: int, *, seed: int = 0) -> pd.DataFrame:
    """Rows of any values that a schema knows, missing ones among them."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({feature.name: _column(feature, n, rng) for feature in schema.features})


def _column(feature: Feature, n: int, rng: np.random.Generator) -> list[Any]:
    if feature.is_number:
        numbers = rng.uniform(feature.minimum or 0.0, feature.maximum or 0.0, n)
        found: list[Any] = [int(v) for v in np.rint(numbers)] if feature.is_whole else numbers.tolist()
    else:
        levels = feature.levels or (None,)
        found = [levels[i] for i in rng.integers(len(levels), size=n)]
    return [None if feature.missing and i % 7 == 6 else value for i, value in enumerate(found)]
