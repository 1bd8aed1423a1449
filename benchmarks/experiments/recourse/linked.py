"""Draws under random rules and consequences that link features to each other and to the query.

Rules and consequences come from templates, each with a plain Python check of its own that shares nothing with the
library's language.
"""

from __future__ import annotations

__all__ = ["Linked", "linked", "measure"]

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Cell
from benchmarks.methods import explainer
from benchmarks.tasks import prepare
from dicoflex import Constraints, Schema
from dicoflex.answers.verification import verify
from dicoflex.errors import ConstraintError, QueryError

Row = dict[str, Any]
Check = Callable[[Row, Row], bool]
"""From the query and the answer to whether it holds."""


@dataclass(frozen=True)
class Linked:
    """Constraints, and a plain check of each rule and consequence."""

    constraints: Constraints
    checks: tuple[Check, ...]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """Draws of each query under each of many random sets, checked twice."""
    task = prepare(cell)
    model = explainer(cell, task, models, "mixed")
    rng = np.random.default_rng(cell.seed)
    counts = {"sets": 0, "draws": 0, "changed_followers": 0, "unanswerable": 0, "verify": 0, "plain": 0}
    while counts["draws"] < cell.setting("draws"):
        some = rng.choice(len(task.queries), cell.setting("people"), replace=False)
        queries, targets = task.queries.iloc[some], task.targets[some]
        one = linked(task.data.schema, task.data.X_train, rng)
        counts["sets"] += 1
        for i in range(len(queries)):
            asked = {"target": targets[i], "n": cell.setting("each"), "constraints": one.constraints}
            found = _draws(model, queries.iloc[[i]], asked, seed=counts["sets"])
            if found is None:
                counts["unanswerable"] += 1
                continue
            _count(counts, task.data.schema, queries.iloc[[i]], found, one)
    return counts


def _draws(model: Any, query: pd.DataFrame, asked: dict[str, Any], *, seed: int) -> pd.DataFrame | None:
    """Draws, or None where the constraints leave the row none."""
    try:
        found: pd.DataFrame = model.sample(query, random_state=seed, **asked)
    except (ConstraintError, QueryError):
        return None
    return found


def _count(counts: dict[str, int], schema: Schema, query: pd.DataFrame, found: pd.DataFrame, one: Linked) -> None:
    verdicts = verify(query, found, np.zeros(len(found), dtype=int), one.constraints, schema)
    own, rows = _plain(query)[0], _plain(found)
    counts["draws"] += len(found)
    counts["verify"] += int((~verdicts["holds"]).sum())
    counts["plain"] += sum(not check(own, row) for row in rows for check in one.checks)
    counts["changed_followers"] += sum(any(row[n] != own[n] for n in one.constraints.consequences) for row in rows)


def _plain(frame: pd.DataFrame) -> list[Row]:
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()} for row in frame.to_dict("records")
    ]


# -- random sets ------------------------------------------------------------------------------------------------------


def linked(schema: Schema, rows: pd.DataFrame, rng: np.random.Generator) -> Linked:
    """One or two rules, and one or two consequences of different features that follow from others."""
    kit = _Kit(schema, rows, rng)
    followers = kit.some(kit.numbers, 1) + kit.some(kit.levels, int(rng.integers(0, 2)))
    free = [name for name in schema.names if name not in followers]
    made = [kit.consequence(name, free) for name in followers]
    rules = [kit.rule(free) for _ in range(int(rng.integers(1, 3)))]
    rules = list(dict(rules).items())
    return Linked(
        Constraints(
            rules=[text for text, _ in rules],
            consequences={name: text for name, (text, _) in zip(followers, made, strict=True)},
        ),
        (*(check for _, check in rules), *(check for _, check in made)),
    )


@dataclass(frozen=True)
class _Kit:
    """What templates are filled with."""

    schema: Schema
    rows: pd.DataFrame
    rng: np.random.Generator

    @property
    def numbers(self) -> list[str]:
        return [f.name for f in self.schema.features if f.is_number]

    @property
    def levels(self) -> list[str]:
        return [f.name for f in self.schema.features if not f.is_number and f.kind != "ordinal" and not f.missing]

    def some(self, names: list[str], n: int) -> list[str]:
        return [str(name) for name in self.rng.choice(names, n, replace=False)]

    def spread(self, name: str) -> int:
        """A whole number about as large as the feature's usual moves."""
        return max(1, round(float(self.rows[name].std() * self.rng.uniform(0.2, 1.0))))

    def level(self, name: str) -> Any:
        levels = [level for level in self.schema[name].levels if isinstance(level, str)]
        return levels[int(self.rng.integers(len(levels)))] if levels else None

    def consequence(self, name: str, free: list[str]) -> tuple[str, Check]:
        """A feature that follows from others, and its plain check."""
        cause = self.some([other for other in free if other not in self.numbers], 1)[0]
        level = None if self.schema[name].is_number else self.level(name)
        if not self.schema[name].is_number:
            if level is None:
                return f"was.{name}", lambda q, a: a[name] == q[name]
            text = f"if changed({cause}) then '{level}' else was.{name}"
            return text, lambda q, a: a[name] == (level if a[cause] != q[cause] else q[name])
        other = self.some([n for n in self.numbers if n in free], 1)[0]
        low, high = int(self.schema[name].minimum or 0), int(self.schema[name].maximum or 0)
        if self.rng.random() < 0.5:
            text = f"min(max(was.{name} + ({other} - was.{other}), {low}), {high})"
            return text, lambda q, a: a[name] == min(max(q[name] + (a[other] - q[other]), low), high)
        text = f"if {cause} != was.{cause} then {low} else was.{name}"
        # A comparison that touches a missing value is false.
        known = lambda q, a: a[cause] is not None and q[cause] is not None and a[cause] != q[cause]  # noqa: E731
        return text, lambda q, a: a[name] == (low if known(q, a) else q[name])

    def rule(self, free: list[str]) -> tuple[str, Check]:
        """A rule about the query, and its plain check."""
        a, b = self.some([n for n in self.numbers if n in free], 2)
        x = self.some([n for n in free if n not in self.numbers], 1)[0]
        by = self.spread(b)
        match int(self.rng.integers(4)):
            case 0:
                times = round(float(self.spread(a) / max(self.spread(b), 1)), 2) or 1.0
                room = self.spread(a)
                text = f"{a} - was.{a} >= {times:g} * ({b} - was.{b}) - {room}"
                return text, lambda q, r: r[a] - q[a] >= times * (r[b] - q[b]) - room
            case 1:
                return f"if changed({x}) then {a} >= was.{a}", lambda q, r: r[x] == q[x] or r[a] >= q[a]
            case 2:
                text = f"if {a} > was.{a} then {b} <= was.{b} + {by}"
                return text, lambda q, r: r[a] <= q[a] or r[b] <= q[b] + by
            case _:
                text = f"{b} <= max(was.{b}, {by}) or changed({x})"
                return text, lambda q, r: r[b] <= max(q[b], by) or r[x] != q[x]
