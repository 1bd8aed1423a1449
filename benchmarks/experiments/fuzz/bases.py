"""The models that are forged: small ones of every density and surrogate, with all that a file may hold."""

from __future__ import annotations

__all__ = ["BASES", "Content", "base"]

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from dicoflex import Constraints, delta, model_file, per_unit, relative
from dicoflex._types import Arrays
from dicoflex.examples import EXAMPLES
from dicoflex.table.schema import Schema

Content = tuple[dict[str, Any], Arrays]
RECORDED = Path(__file__).resolve().parents[3] / "tests" / "recording"
SHIPPED = EXAMPLES[0].parent
SURROGATE = "surrogate."
PRESET = Constraints(
    frozen=["city"],
    ranges={"gain": (0, 3000), "price": relative(-0.5, 0.5), "age": delta(0, 20)},
    increase=["age"],
    forbidden={"area": [5]},
    transitions={"grade": {"a": ["b"], "c": ["b", "a"]}},
    max_changes=5,
    rules=["if member == true then gain >= 100", "visits <= price"],
    steps={"gain": 50},
    cost={"age": 1, "gain": per_unit(0.001), "job": 2},
    max_cost=9,
)
DEPENDENCIES: list[dict[str, Any]] = [
    {"kind": "linear", "follows": 0, "of": [4], "weights": [3.0], "constant": 20.0, "decimals": 0},
    {"kind": "product", "follows": 1, "of": [2, 4], "decimals": 1},
    {"kind": "lookup", "follows": 6, "of": [7], "keys": [0.0, 1.0, 2.0], "values": [0.0, 1.0, 0.0]},
]


def _as_it_is(content: Content) -> Content:
    return content


def _with_constraints(content: Content) -> Content:
    header, arrays = content
    schema = Schema.model_validate(header["encoding"]["schema"], strict=False).with_constraints(PRESET)
    return header | {"encoding": header["encoding"] | {"schema": schema.model_dump(mode="json")}}, arrays


def _with_trees_and_dependencies(content: Content) -> Content:
    """The trees are those of another model of the same table."""
    header, arrays = content
    others = model_file.read(RECORDED / "mixed-trees.dicoflex")[1]
    trees = {name: array for name, array in others.items() if name.startswith(SURROGATE)}
    own = {name: array for name, array in arrays.items() if not name.startswith(SURROGATE)}
    return header | {"dependencies": DEPENDENCIES, "surrogate": "trees"}, own | trees


# The file, and what is made of it.
BASES: dict[str, tuple[Path, Callable[[Content], Content]]] = {
    "mixed": (RECORDED / "mixed.dicoflex", _as_it_is),
    "mixed, trees": (RECORDED / "mixed-trees.dicoflex", _as_it_is),
    "mixed, both": (RECORDED / "mixed-labels.dicoflex", _as_it_is),
    "mixed, coherence and constraints": (SHIPPED / "perceptron.dicoflex", _with_constraints),
    "mixed, trees, coherence and dependencies": (SHIPPED / "perceptron.dicoflex", _with_trees_and_dependencies),
    "maf": (RECORDED / "maf.dicoflex", _as_it_is),
    "maf, trees": (SHIPPED / "flow.dicoflex", _as_it_is),
    "nice": (RECORDED / "nice.dicoflex", _as_it_is),
    "realnvp": (RECORDED / "realnvp.dicoflex", _as_it_is),
    "kde, remembered rows": (RECORDED / "kde.dicoflex", _as_it_is),
}


@cache
def base(name: str) -> Content:
    """The header, without what writing adds to it, and the arrays of a base; they are not to be altered in place."""
    path, made = BASES[name]
    header, arrays = model_file.read(path)
    return made(({key: value for key, value in header.items() if key not in model_file.ADDED}, arrays))
