"""How a model is fitted: the settings of all parts, checked, in one place."""

from __future__ import annotations

__all__ = ["ENDS", "PAPER", "Ends", "FitConfig", "FitSettings", "GeneratorConfig", "TrainingConfig", "as_config"]

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dicoflex.errors import SettingError, named
from dicoflex.generators import get
from dicoflex.generators.base import PAPER_TRAINING, Generator, GeneratorConfig
from dicoflex.table.subsample import MOST_ROWS

PAPER: dict[str, Any] = {"generator": "maf", "k": 16, "alpha": 10.0, "training": PAPER_TRAINING}
"""The paper's settings of an explainer."""


class Ends(NamedTuple):
    """When each stage of a fit must have ended, as a share of `max_seconds`; a stage that ends early leaves the rest.

    Training is what answers depend on most and gets the most. What comes after it took ten times as long as training
    on 200 columns when nothing bounded it.
    """

    coherence: float = 0.2
    first_surrogate: float = 0.3
    pairs: float = 0.45
    training: float = 0.68
    own_draws: float = 0.75
    surrogate: float = 0.83
    retrained: float = 0.89
    certificate: float = 0.98
    leakage: float = 1.0


ENDS = Ends()


class FitConfig(BaseModel):
    """How pairs are made.

    exponents, k, alpha: as in the paper. passes: searches per anchor, each with new conditions. most_anchors: rows
    that a pass searches for at most. most_rows: rows to learn from at most. A larger table is sampled by class, and
    classes of which its share would leave fewer than 5,000 rows keep more; schema, limits, levels, means and what
    `novel` knows still come from all rows, but neighbours are those in the sample, and the black box is asked for no
    others. min_count: what fewer rows have is not told by the model: rare levels, single values and exact extremes.

    For the default generator alone: each: of the k neighbours found, so many are taken at random. level_weight: how
    much another level counts against a number that is one standard deviation off, in squares: people keep their
    categories where they can. undo_levels: the chance that a change of level is tried to be undone even at the greatest
    p. rounds: how often the model learns from its own draws, own_draws of them. blend_rows: of a table of so many rows,
    or fewer, no answer is learned from as it is, but what lies between two of an anchor's neighbours; of larger ones a
    share in proportion. A small table's model tells who was in it otherwise. 0 learns from the rows themselves.

    coherence: also learn what goes together in the table, so that answers are refined: nothing needless, nothing that
    no row has together, as near as possible; pairs of values that fewer than min_count rows have count as not seen.
    marginals: also keep how many rows have what, feature by feature, without small counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    exponents: tuple[float, ...] = Field(default=(0.01, 0.08, 0.25, 1.0, 2.0), min_length=1)
    k: int = Field(default=24, ge=1)
    alpha: float = Field(default=10.0, gt=0)
    passes: int = Field(default=6, ge=1)
    most_anchors: int = Field(default=24_000, ge=1)
    most_rows: int = Field(default=MOST_ROWS, ge=1)
    min_count: int = Field(default=5, ge=1)
    each: int = Field(default=8, ge=1)
    level_weight: float = Field(default=16.0, gt=0)
    undo_levels: float = Field(default=0.25, ge=0, le=1)
    rounds: int = Field(default=1, ge=0)
    own_draws: int = Field(default=120_000, ge=1)
    blend_rows: int = Field(default=10_000, ge=0)
    coherence: bool = True
    marginals: bool = True


class TrainingConfig(BaseModel):
    """How long and how fast: an epoch is one pass over one part of the training pairs.

    min_steps: small tables get as many epochs as it takes. A part with few batches is cut into eight, of 64 at least.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(default=1000, ge=1)
    batch_size: int = Field(default=1024, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0)
    schedule: Literal["constant", "cosine"] = "constant"
    patience: int = Field(default=300, ge=1)
    min_steps: int = Field(default=0, ge=0)
    weight_decay: float = Field(default=0.0, ge=0)
    max_seconds: float | None = Field(default=None, gt=0)


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fit: the density to learn, its own settings, how pairs are made, and how long is trained."""

    generator: type[Generator]
    generator_config: GeneratorConfig
    fit: FitConfig
    training: TrainingConfig

    @classmethod
    def resolve(
        cls,
        generator: str,
        *,
        shared: dict[str, Any],
        generator_config: Any = None,
        fit_config: Any = None,
        training: Any = None,
        max_seconds: float | None = None,
    ) -> FitSettings:
        """What was given, over what the density wants, over the defaults.

        shared: exponents, k, alpha and min_count as the explainer has them; None leaves one out.

        >>> FitSettings.resolve("maf", shared={"k": 8}).fit.k
        8
        """
        kind = get(generator)
        shared = {name: value for name, value in shared.items() if value is not None}
        if "exponents" in shared:
            shared["exponents"] = _exponents(shared["exponents"])
        if isinstance(fit_config, FitConfig):
            fit_config = fit_config.model_dump(exclude_unset=True)
        fit = as_config(FitConfig, fit_config, kind.fit_defaults | shared)
        fit = fit.model_copy(update={"exponents": _exponents(fit.exponents)})
        loop = as_config(TrainingConfig, training, kind.training_defaults)
        if max_seconds is not None:
            loop = as_config(TrainingConfig, {"max_seconds": max_seconds}, loop.model_dump())
        config = as_config(kind.Config, generator_config, {})
        # What a density shares with the making of its pairs is said once.
        common = {"exponents", "k", "alpha"} & set(kind.Config.model_fields)
        return cls(kind, config.model_copy(update={name: getattr(fit, name) for name in common}), fit, loop)


def as_config(kind: Any, given: Any, defaults: dict[str, Any]) -> Any:
    """A config of `kind` from an object, a dict over the defaults, or nothing."""
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, dict):
        raise SettingError(f"settings must be a {kind.__name__} or a dict, got {type(given).__name__}")
    try:
        return kind(**(defaults | (given or {})))
    except ValidationError as error:
        first = error.errors()[0]
    where = ".".join(map(str, first["loc"])) or "settings"
    if first["type"] == "extra_forbidden":
        raise SettingError(f"{kind.__name__}: {named('setting', where, kind.model_fields)}")
    raise SettingError(f"setting {where}: {first['msg']}, got {first['input']!r}")


def _exponents(exponents: Any) -> tuple[float, ...]:
    try:
        values = tuple(sorted(float(p) for p in exponents))
    except (TypeError, ValueError):
        raise SettingError(f"exponents must be numbers above 0, got {exponents!r}") from None
    if not values or not all(0 < p < np.inf for p in values) or len(set(values)) != len(values):
        raise SettingError(f"exponents must be different numbers above 0, got {exponents!r}")
    return values
