"""DiCE, told for each person which features may change and how far each may go."""

from __future__ import annotations

__all__ = ["RANGED", "Ranged"]

from dataclasses import dataclass
from typing import Any

from benchmarks.baselines.dice import Dice, DiceGenetic, DiceRandom
from benchmarks.experiments.recourse.people import FLAGS, GOOD, LAST_YEAR, MOST_YEARS, RESIDENCE
from dicoflex.table.encoding import Values


@dataclass
class Ranged(Dice):
    """One of DiCE's methods with `permitted_range` set from the person's own row; rules it can't be told."""

    def _ask(self, query: Values, target: int, n: int) -> Values:
        usual = self.options
        self.options = usual | {"permitted_range": self._ranges(query)}
        try:
            return super()._ask(query, target, n)
        finally:
            self.options = usual

    def _ranges(self, query: Values) -> dict[str, list[Any]]:
        schema = self.problem_.encoding.schema
        years = query[schema.position(RESIDENCE)]
        ranges: dict[str, list[Any]] = {
            f"f{schema.position(RESIDENCE)}": [int(years), int(min(years + MOST_YEARS, LAST_YEAR))]
        }
        for name in FLAGS:
            j = schema.position(name)
            codes = {int(query[j]), schema[name].levels.index(GOOD)}
            ranges[f"f{j}"] = [str(code) for code in sorted(codes)]
        return ranges


@dataclass
class RangedRandom(Ranged, DiceRandom):
    """DiCE's random search."""


@dataclass
class RangedGenetic(Ranged, DiceGenetic):
    """DiCE's genetic search."""


RANGED: dict[str, type[Ranged]] = {"DiCE, random": RangedRandom, "DiCE, genetic": RangedGenetic}
