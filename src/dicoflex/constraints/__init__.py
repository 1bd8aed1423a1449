"""What an answer may look like, as stated."""

from __future__ import annotations

__all__ = ["Constraints", "delta", "per_unit", "relative"]

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dicoflex.constraints.parts import delta, per_unit, relative
    from dicoflex.constraints.statement import Constraints

# Names are imported when first used: the command line reads the kinds of constraints, and needs no more to start.
_HOME = {"Constraints": "statement", "delta": "parts", "per_unit": "parts", "relative": "parts"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dicoflex.constraints' has no attribute {name!r}")
    return getattr(import_module(f"dicoflex.constraints.{_HOME[name]}"), name)
