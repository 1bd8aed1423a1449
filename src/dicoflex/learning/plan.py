"""How to fit, besides the rows: what the explainer's own words come to, checked."""

from __future__ import annotations

__all__ = ["Plan", "check_room", "mask_set", "schema_for"]

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from dicoflex.errors import DataError, SchemaError, SettingError, named
from dicoflex.learning.config import FitSettings
from dicoflex.learning.training import pick_device
from dicoflex.model_file.layout import LONGEST_HEADER
from dicoflex.runtime.progress import Deadline, Progress
from dicoflex.runtime.randomness import seed_of
from dicoflex.table.inference import check_frame
from dicoflex.table.remembered import new_key, read_key
from dicoflex.table.schema import Schema
from dicoflex.table.suggestions import warn_of_protected
from dicoflex.table.survey import Whole

# The rest of a header is short, but for a line per array.
ROOM = LONGEST_HEADER * 3 // 4


@dataclass(frozen=True)
class Plan:
    """How to fit, besides the rows: schema (None: inferred), masks to train for, settings, seed, device, progress.

    row_key: the key to remember the rows under; None remembers none. deadline: when the fit must have ended.
    epsilon: of differential privacy; None learns from the rows themselves. whole: all rows, where a sample is given.
    """

    settings: FitSettings
    schema: Schema | None
    masks: Sequence[Sequence[Any]] | None
    seed: int
    device: torch.device
    progress: Progress
    row_key: bytes | None = None
    deadline: Deadline = field(default_factory=Deadline)
    epsilon: float | None = None
    whole: Whole | None = None

    @classmethod
    def of(
        cls,
        settings: FitSettings,
        *,
        schema: Schema | None = None,
        masks: Sequence[Sequence[Any]] | None = None,
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool | None = None,
        remember_rows: Any = False,
        max_seconds: float | None = None,
        epsilon: float | None = None,
    ) -> Plan:
        """A plan from the explainer's own words."""
        seed, key = seed_of(random_state), _row_key(remember_rows, settings)
        chosen = pick_device(device)
        return cls(
            settings, schema, masks, seed=seed, device=chosen, progress=Progress(verbose), row_key=key,
            deadline=Deadline(max_seconds), epsilon=epsilon,
        )  # fmt: skip


def _row_key(remember_rows: Any, settings: FitSettings) -> bytes | None:
    """The key to remember rows under: a fresh one for True, or the one given."""
    if remember_rows is False:
        if settings.generator.keeps_rows:
            raise SettingError(
                f"generator {settings.generator.name!r} needs its training rows to answer, so its model file holds "
                "them for all to read; say that this is meant with fit(X, y, remember_rows=True), or choose another"
            )
        return None
    return new_key() if remember_rows is True else read_key(remember_rows, "remember_rows")


def schema_for(X: pd.DataFrame, given: Schema | None, min_count: int) -> Schema:
    """The schema to fit by: the given one, which must have the columns of `X`, or what `X` shows."""
    if given is None:
        made = Schema.infer(X, min_count=min_count)
        warn_of_protected(made.features, made.constraints)
        return made
    if not isinstance(given, Schema):
        raise SettingError(f"schema must be a Schema, got {type(given).__name__}; make one with Schema.infer")
    check_frame(X)
    lacking = [name for name in given.names if name not in X.columns]
    extra = [name for name in X.columns if name not in given.names]
    if lacking or extra:
        what = f"X lacks the column {lacking[0]!r}" if lacking else f"X has the column {extra[0]!r} besides those"
        raise SchemaError(f"{what} of the schema; give the schema of these rows, Schema.infer(X), or leave it out")
    warn_of_protected(given.features, given.constraints)
    return given


def check_room(schema: Schema, names: list[Any]) -> None:
    """Refuse, before the work starts, a table whose description does not fit into a model file."""
    described = json.dumps([schema.model_dump(mode="json"), names, names], ensure_ascii=False)
    size = len(json.dumps(described, ensure_ascii=False).encode())
    if size > ROOM:
        raise DataError(
            f"the columns' names and levels take {size:,} bytes, and a model file has room for {ROOM:,}; "
            "drop columns, or group rare levels"
        )


def mask_set(schema: Schema, masks: Sequence[Sequence[Any]] | None) -> NDArray[np.bool_] | None:
    """The masks to train for, one row each over the features."""
    if masks is None:
        return None
    if len(masks) == 0:
        raise SettingError("masks is empty; give lists of features, or None for any subset")
    return np.stack([_mask(schema, mask) for mask in masks])


def _mask(schema: Schema, names: Any) -> NDArray[np.bool_]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise SettingError(f"masks must be lists of features, got {names!r} among them; write masks=[[{names!r}]]")
    known = list(names)
    for name in known:
        if name not in schema.names:
            raise SettingError(f"masks: {named('feature', name, schema.names)}")
    mask = schema.mask(known)
    if mask.all():
        raise SettingError(f"the mask {known} freezes every feature, so nothing could change; leave one out")
    return mask
