"""What an answer may look like, as stated."""

from __future__ import annotations

__all__ = ["Constraints", "delta", "per_unit", "relative"]

from dicoflex.constraints.parts import delta, per_unit, relative
from dicoflex.constraints.statement import Constraints
