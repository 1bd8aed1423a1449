"""Views of a matrix of values: the parts that distances are measured on, and the reals that flows are trained on.

The *parts* are codes that match or don't, and standardised numbers. The *reals* are scaled numbers and one-hot blocks.
"""

from __future__ import annotations

__all__ = ["Parts", "Reals", "Values"]

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicoflex.table.schema import Schema

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """A table split for distances: codes that match or don't, and standardised numbers that are apart by so much."""

    codes: NDArray[np.int32]
    numbers: NDArray[np.float64]
    code_feature: NDArray[np.int64]
    number_feature: NDArray[np.int64]


@dataclass(frozen=True)
class Reals:
    """The features of a table, and the means and scales of its numbers, by which a matrix gets its views."""

    schema: Schema
    mean: Values
    scale: Values

    @cached_property
    def code_feature(self) -> NDArray[np.int64]:
        """Which feature each code column of `parts` belongs to: picked features, and numbers that may be missing."""
        return np.array([j for j, f in enumerate(self.schema.features) if not f.is_number or f.missing], dtype=np.int64)

    @cached_property
    def number_feature(self) -> NDArray[np.int64]:
        """Which feature each number column of `parts` belongs to."""
        return np.array([j for j, f in enumerate(self.schema.features) if f.is_number], dtype=np.int64)

    def parts(self, values: Values) -> Parts:
        """The matrix split for distances; a missing number is a code of its own and stands at the mean."""
        numeric = np.array([f.is_number for f in self.schema.features])
        codes = values[:, self.code_feature]
        missing_flag = np.isnan(codes)
        whole = np.where(numeric[self.code_feature], missing_flag, codes).astype(np.int32)
        return Parts(whole, self.standardise(values), self.code_feature, self.number_feature)

    def standardise(self, values: Values) -> Values:
        """The number columns alone, standardised, missing ones at 0."""
        at = self.number_feature
        numbers: Values = (values[:, at] - self.mean[at]) / self.scale[at]
        return numbers if np.isfinite(numbers).all() else np.nan_to_num(numbers, nan=0.0)

    @cached_property
    def spread(self) -> Values:
        """The scale of each number, without end for what is picked from levels."""
        return np.where([feature.is_number for feature in self.schema.features], self.scale, np.inf)

    @cached_property
    def blocks(self) -> list[slice]:
        """Where each feature stands among the reals."""
        edges, start = [], 0
        for feature in self.schema.features:
            width = (1 + 2 * feature.missing) if feature.is_number else feature.n_states
            edges.append(slice(start, start + width))
            start += width
        return edges

    @property
    def n_reals(self) -> int:
        """The width of the one-hot table."""
        return int(self.blocks[-1].stop)

    @cached_property
    def is_onehot(self) -> NDArray[np.bool_]:
        """Which reals belong to one-hot blocks, and not to scaled numbers."""
        flags = np.ones(self.n_reals, dtype=bool)
        for feature, block in zip(self.schema.features, self.blocks, strict=True):
            if feature.is_number:
                flags[block.start] = False
        return flags

    def to_reals(self, values: Values) -> NDArray[np.float32]:
        """The paper's encoding: standardised numbers and one-hot levels; one that may be missing has a pair too."""
        reals = np.zeros((len(values), self.n_reals), dtype=np.float32)
        reals[:, self.places[0]] = self.standardise(values)
        reals[np.arange(len(values))[:, None], self._ones_at(values)] = 1.0
        return reals

    def _ones_at(self, values: Values) -> NDArray[np.int64]:
        """Where the ones of each row's one-hot blocks stand among its reals (n, blocks)."""
        _, level_at, may_be_missing = self.places
        codes = values[:, self.code_feature]
        at: NDArray[np.int64] = level_at + np.where(may_be_missing, np.isnan(codes), codes).astype(np.int64)
        return at

    @cached_property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Where numbers stand among the reals, where blocks of levels start, and which of those are a number's pair."""
        starts = np.array([block.start for block in self.blocks], dtype=np.int64)
        of_number = np.isin(self.code_feature, self.number_feature)
        return starts[self.number_feature], starts[self.code_feature] + of_number, of_number

    def from_reals(self, reals: NDArray[Any]) -> Values:
        """The matrix nearest to some reals: a block's largest; the number unscaled, clipped, on its grid."""
        values = np.empty((len(reals), len(self.schema)))
        for j, (feature, block) in enumerate(zip(self.schema.features, self.blocks, strict=True)):
            part = np.asarray(reals[:, block], dtype=np.float64)
            if not feature.is_number:
                values[:, j] = part.argmax(axis=1)
                continue
            number = np.clip(part[:, 0] * self.scale[j] + self.mean[j], feature.minimum, feature.maximum)
            values[:, j] = np.rint(number) if feature.is_whole else number
            if feature.missing:
                values[part[:, 2] > part[:, 1], j] = np.nan
        return values

    def real_mask(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """A mask over features (n, d) spread over the reals (n, D)."""
        widths = [block.stop - block.start for block in self.blocks]
        return np.repeat(mask, widths, axis=1)
