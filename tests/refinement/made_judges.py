"""Judges, limits and rows of random arrays: what refinement promises holds for any of them, and nothing is trained."""

from __future__ import annotations

__all__ = ["KINDS", "Case", "make"]

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex import _core

KINDS = ("perceptron", "trees", "both", "network", "votes")
CELLS, HIDDEN, HEAD, LEVELS = 6, 12, 10, 3
Rng = np.random.Generator
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """Judges and what they judge; `floors` are those of a class's rows."""

    surrogate: _core.Surrogate
    density: _core.RowDensity
    avoided: _core.MarkedPairs
    judges: _core.Judges
    codes: NDArray[np.int64]
    query: Floats
    draws: Floats
    which: NDArray[np.int64]

    def bounds(self, **other: Any) -> _core.Bounds:
        """Limits that allow all, but for what is given."""
        n, d = self.query.shape
        programs = {name: np.zeros(0, np.int64) for name in ("op", "feature", "start")}
        none = _core.Programs(
            np.zeros(1, np.int64), programs["op"], np.zeros(0, bool), programs["feature"], programs["start"],
            np.zeros(0), np.zeros(0), n_features=d,
        )  # fmt: skip
        nothing = np.zeros(0, np.int64)
        fields: dict[str, Any] = {
            "frozen": np.zeros((n, d), bool), "low": np.full((n, d), -np.inf), "high": np.full((n, d), np.inf),
            "states": np.ones((n, self.codes.sum()), bool), "may_keep": np.ones((n, d), bool),
            "offset": np.append(0, np.cumsum(self.codes)), "has_points": np.zeros(d, bool),
            "point_at": np.zeros(d + 1, np.int64), "point": np.zeros(0), "banned_at": np.zeros(d + 1, np.int64),
            "banned": np.zeros(0), "fixed": np.zeros(d), "unit": np.zeros(d), "most_changes": d,
            "most_cost": np.inf, "uncounted": np.zeros(d, bool), "follows": np.zeros(d, bool), "rules": none,
            "consequences": _core.Consequences(none, nothing, nothing, np.zeros(0, bool), n_features=d),
        }  # fmt: skip
        return _core.Bounds(**(fields | other))

    def refined(self, wanted: Floats, bounds: _core.Bounds, *, turned: bool = False) -> tuple[Floats, Any, Floats]:
        """The draws refined, which are kept, and their scores."""
        rows, n = self.draws.copy(), len(self.draws)
        stands, kept, scores = np.zeros(n, bool), np.zeros(n, bool), np.zeros((n, 4))
        _core.refine_rows(
            self.judges, bounds, rows=rows, query=self.query, which=self.which, wanted=wanted, turned=turned, most=n,
            steps=_core.LESS | _core.FOREMOST | _core.NEARER, low=0, high=n, stands=stands, kept=kept, scores=scores,
        )  # fmt: skip
        return rows, kept, scores

    def judged(self, rows: Floats, which: Any, wanted: Floats, bounds: _core.Bounds) -> NDArray[np.bool_]:
        """Which rows stand as they are."""
        n = len(rows)
        stands, scores = np.zeros(n, bool), np.zeros((n, 4))
        _core.judge_rows(
            self.judges, bounds, rows=np.array(rows), query=self.query, which=np.array(which), wanted=wanted,
            feature=np.full(n, -1), origin=np.zeros(n), low=0, high=n, stands=stands, scores=scores,
        )  # fmt: skip
        return stands

    def probabilities(self, rows: Floats) -> Floats:
        """What the surrogate says of the rows."""
        out = np.empty((len(rows), 2))
        self.surrogate.probabilities(rows, 0, len(rows), out)
        return out


def make(kind: str, seed: int, *, numbers: int = 5, levels: int = 3, n: int = 40, avoided: float = 0.02) -> Case:
    """Random judges, four queries and `n` draws of each; avoided: the share of pairs that are."""
    rng, d = np.random.default_rng(seed), numbers + levels
    codes = np.array([0] * numbers + [LEVELS] * levels)
    edges = [np.sort(rng.normal(size=CELLS - 1)) for _ in range(numbers)] + [np.zeros(0)] * levels
    sizes = [CELLS] * numbers + [LEVELS] * levels
    bins = _core.Bins(
        offset=np.cumsum([0, *sizes]), edge=np.concatenate(edges), edge_at=np.cumsum([0, *map(len, edges)]),
        number=codes == 0,
    )  # fmt: skip
    n_cells = sum(sizes)
    own = np.repeat(np.arange(d), sizes)
    marked = (rng.random((n_cells, n_cells)) < avoided) & (own[:, None] != own[None, :])
    pairs, density = _core.MarkedPairs(bins, marked | marked.T), _density(rng, bins, d, n_cells)
    surrogate = _surrogate(kind, rng, codes)
    nothing = np.zeros(0, np.int64)
    judges = _core.Judges(
        surrogate=surrogate, avoided=pairs, density=density,
        dependencies=_core.Dependencies(
            kind=nothing, follows=nothing, at=np.zeros(1, np.int64), source=nothing, weight=np.zeros(0),
            constant=np.zeros(0), scale=np.zeros(0), table_at=np.zeros(1, np.int64), key=np.zeros(0),
            value=np.zeros(0), level=nothing, n_features=d,
        ),
        follower=np.zeros(d, bool), scale=np.ones(d), gaps=np.where(codes > 0, codes - 1, 0).astype(float),
        step=np.zeros(d), digits=np.full(d, 1000.0), stop_at=np.zeros(d + 1, np.int64), stop=np.zeros(0),
        typical=np.concatenate([rng.normal(size=CELLS * numbers), np.tile(np.arange(LEVELS), levels)]),
    )  # fmt: skip
    query, draws = _rows(rng, codes, 4), _rows(rng, codes, 4 * n)
    which = np.repeat(np.arange(4), n)
    kept = rng.random(draws.shape) < 0.4
    draws[kept] = query[which][kept]
    return Case(surrogate, density, pairs, judges, codes, query, draws, which)


def _rows(rng: Rng, codes: NDArray[np.int64], n: int) -> Floats:
    numbers = np.round(rng.normal(size=(n, len(codes))), 3)
    return np.where(codes > 0, rng.integers(0, np.maximum(codes, 1), (n, len(codes))), numbers)


def _floats(rng: Rng, *shape: int, scale: float = 1.0) -> NDArray[np.float32]:
    return (scale * rng.normal(size=shape)).astype(np.float32)


def _density(rng: Rng, bins: _core.Bins, d: int, n_cells: int) -> _core.RowDensity:
    return _core.RowDensity(
        bins, order=rng.permutation(d), told=_floats(rng, n_cells, HIDDEN, scale=0.5), start=_floats(rng, HIDDEN),
        inner=_floats(rng, d, HIDDEN, HEAD, scale=0.4), inner_bias=_floats(rng, d, HEAD),
        outer=_floats(rng, d, HEAD, 8, scale=0.4), outer_bias=_floats(rng, d, 8),
    )  # fmt: skip


def _surrogate(kind: str, rng: Rng, codes: NDArray[np.int64]) -> _core.Surrogate:
    width = np.where(codes > 0, codes, 1)
    first = np.append(0, np.cumsum(width)[:-1])
    places = {
        "codes": codes, "number_at": np.where(codes == 0, first, -1), "level_at": np.where(codes > 0, first, -1),
        "is_pair": np.zeros(len(codes), bool),
    }  # fmt: skip
    parts: dict[str, Any] = {}
    if kind in ("perceptron", "both"):
        sizes = (int(width.sum()), 20, 16, 2)
        weights = {f"w{i}": _floats(rng, sizes[i], sizes[i + 1], scale=0.6) for i in range(3)}
        biases = {f"b{i}": _floats(rng, sizes[i + 1]) for i in range(3)}
        scaling = {"mean": np.zeros(len(codes)), "scale": np.ones(len(codes))}
        parts["perceptron"] = _core.Perceptron(**places, **scaling, **weights, **biases)
    if kind in ("trees", "both", "votes"):
        parts["trees"] = _trees(rng, len(codes), averaged=kind == "votes")
    if kind == "network":
        size = np.array([int(width.sum()), 9, 7, 1])
        n_weights = int((size[:-1] * size[1:]).sum())
        weight, bias = 0.7 * rng.normal(size=n_weights), rng.normal(size=int(size[1:].sum()))
        parts["network"] = _core.Network(**places, size=size, weight=weight, bias=bias, activation=2)
    return _core.Surrogate(n_classes=2, **parts)


def _trees(rng: Rng, d: int, *, averaged: bool, n: int = 30, depth: int = 4) -> _core.Trees:
    """Full trees: node i of a tree has the children 2 i + 1 and 2 i + 2."""
    size = 2 ** (depth + 1) - 1
    at = np.tile(np.arange(size), n)
    base = np.repeat(np.arange(n) * size, size)
    inner = at < 2**depth - 1
    return _core.Trees(
        start=np.arange(n) * size, feature=np.where(inner, rng.integers(0, d, n * size), -1).astype(np.int32),
        threshold=rng.normal(size=n * size), missing_left=rng.random(n * size) < 0.5,
        left=np.where(inner, base + 2 * at + 1, 0).astype(np.int32),
        right=np.where(inner, base + 2 * at + 2, 0).astype(np.int32),
        value=rng.random(n * size) if averaged else 0.4 * rng.normal(size=n * size), baseline=np.zeros(1),
        averaged=float(n) if averaged else 0.0,
    )  # fmt: skip
