"""How pairs are made."""

from __future__ import annotations

__all__ = ["FitConfig"]

from pydantic import BaseModel, ConfigDict, Field

from dicoflex.table.subsample import MOST_ROWS


class FitConfig(BaseModel):
    """How pairs are made.

    exponents, k, alpha: as in the paper. passes: searches per anchor, each with new conditions. most_anchors: rows
    that a pass searches for at most. most_rows: rows to learn from at most. A larger table is sampled by class, and
    classes of which its share would leave fewer than 5,000 rows keep more; schema, limits, levels, means and what
    `novel` knows still come from all rows, but neighbours are those in the sample, and the black box is asked for no
    others.

    For the default generator alone: each: of the k neighbours found, so many are taken at random. level_weight: how
    much another level counts against a number that is one standard deviation off, in squares: people keep their
    categories where they can. undo_levels: the chance that a change of level is tried to be undone even at the greatest
    p. rounds: how often the model learns from its own draws, own_draws of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    exponents: tuple[float, ...] = Field(default=(0.01, 0.08, 0.25, 1.0, 2.0), min_length=1)
    k: int = Field(default=24, ge=1)
    alpha: float = Field(default=10.0, gt=0)
    passes: int = Field(default=6, ge=1)
    most_anchors: int = Field(default=24_000, ge=1)
    most_rows: int = Field(default=MOST_ROWS, ge=1)
    each: int = Field(default=8, ge=1)
    level_weight: float = Field(default=16.0, gt=0)
    undo_levels: float = Field(default=0.25, ge=0, le=1)
    rounds: int = Field(default=1, ge=0)
    own_draws: int = Field(default=120_000, ge=1)
