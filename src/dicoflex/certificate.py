"""What was found out on held-out rows: how much surer the surrogate must be, how often answers are valid and last."""

from __future__ import annotations

__all__ = ["ASKED_AT", "BLACK_BOX", "CROSS_FITTED", "LABELS", "SORTS", "SURVIVES", "Certificate", "Survival"]

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from dicoflex._types import Arrays, Floats, Ints
from dicoflex.errors import ModelFileError
from dicoflex.model_file.taking import refuse, refuse_others, taken

SORTS = ("free", "few", "frozen")
"""How tightly was asked: anything may change, few features (p below a half), or some are frozen or limited."""
BLACK_BOX, NOBODY = "the black box", "nobody"
LABELS, CROSS_FITTED = "a surrogate learned from held-out labels", "surrogates cross-fitted on the labels"
JUDGES = (BLACK_BOX, LABELS, CROSS_FITTED, NOBODY)
"""Who may have said what is valid."""
SURE = 0.95
ASKED_AT = (0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
"""The confidences that a margin is stated for, where it is not one for all."""
SURVIVES = {"safe": 0.85, "sure": 0.95}
"""By named level, the share of retrained models that are to accept an answer still."""
LEAST_ANSWERS = 30
"""Of fewer answers to held-out rows no bound is stated: all of 30 valid is a bound of 90 %, all of 10 one of 74 %."""


@dataclass(frozen=True)
class Certificate:
    """margin: per class, how much surer than asked for the surrogate must be of a refined row: an entry for each of the
    confidences `ASKED_AT`, or one for all; beyond what training rows support (a changed number far out) one more, the
    last, counts (classes, 7 or 2). counts: valid answers and all answers to held-out rows, per class and sort of
    question (classes, sorts, 2). judge: who said what is valid.
    """

    margin: Floats
    counts: Ints
    judge: str

    @classmethod
    def none(cls, n_classes: int, margin: float = 0.02) -> Certificate:
        """Where nothing was held out."""
        return cls(np.full((n_classes, 2), margin), np.zeros((n_classes, len(SORTS), 2), dtype=np.int64), NOBODY)

    def margin_at(self, labels: Ints, confidence: Floats) -> Floats:
        """The margin for each of some classes at a confidence, between those it is stated for interpolated.

        >>> margin = np.array([[0.2, 0.1, 0.1, 0.1, 0.04, 0.02, 0.3]])
        >>> certificate = Certificate(margin, np.zeros((1, 3, 2), dtype=np.int64), BLACK_BOX)
        >>> certificate.margin_at(np.array([0, 0]), np.array([0.55, 0.85])).round(3).tolist()
        [0.15, 0.07]
        """
        near = self.margin[:, :-1]
        if near.shape[1] == 1:
            one: Floats = near[labels, 0]
            return one
        found = np.empty(len(labels))
        for label in np.unique(labels):
            mine = labels == label
            found[mine] = np.interp(confidence[mine], ASKED_AT, near[label])
        return found

    def margin_far_out(self, labels: Ints) -> Floats:
        """The margin for each of some classes where a changed number lies beyond what training rows support."""
        far: Floats = self.margin[labels, -1]
        return far

    def valid_at_least(self, label: int, sort: str) -> float:
        """A bound on the share of valid answers like these, at 95 % (Clopper and Pearson 1934).

        NaN where fewer than 30 answers to held-out rows were judged: the bound would speak of how few there were.
        """
        valid, total = self.counts[label, SORTS.index(sort)]
        if total < LEAST_ANSWERS:
            return math.nan
        if valid == 0:
            return 0.0
        return float(betaincinv(valid, total - valid + 1, 1 - SURE))

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        return {"margin": self.margin, "counts": self.counts}

    @classmethod
    def restore(cls, n_classes: int, judge: Any, arrays: Arrays) -> Certificate:
        """What `arrays` were taken from; refused where they don't fit the classes."""
        if judge not in JUDGES:
            raise ModelFileError("the model file's certificate names no judge that there is; save the model again")
        refuse_others(arrays, ("margin", "counts"))
        margin = taken(arrays, "margin", np.float64, (n_classes, None))
        if margin.shape[1] not in (2, len(ASKED_AT) + 1):
            refuse("margin", "is neither for all confidences nor for each")
        counts = taken(arrays, "counts", np.int64, (n_classes, len(SORTS), 2))
        if not ((margin >= 0) & (margin <= 1)).all():
            refuse("margin", "is no share")
        if (counts < 0).any() or (counts[..., 0] > counts[..., 1]).any():
            refuse("counts", "has more valid answers than answers")
        return cls(margin, counts, judge)


@dataclass(frozen=True)
class Survival:
    """How many retrained models would still accept an answer, by the confidence that is asked for.

    Parameters
    ----------
    confidence : array (classes, levels)
        What answers to held-out rows were asked for, rising.
    share : array (classes, levels)
        The share of surrogates, each learned from a bootstrapped table, that give such answers the target. It never
        falls with the confidence.
    distance : array (classes, levels)
        How far such answers are from their rows: the sum of the changes, each in standard deviations of its feature.

    Examples
    --------
    >>> grid = np.array([[0.5, 0.7, 0.9]])
    >>> found = Survival(grid, np.array([[0.6, 0.8, 0.9]]), np.array([[1.0, 1.5, 2.5]]))
    >>> found.least(0.85).round(3).tolist(), float(found.share_at(0, 0.6).round(3)), found.distance_at(0, 0.8)
    ([0.8], 0.7, 2.0)
    """

    confidence: Floats
    share: Floats
    distance: Floats

    def least(self, share: float) -> Floats:
        """The least confidence per class at which so many models accept; the highest tried where none is enough."""
        found = self.confidence[:, -1].copy()
        for label, (sure, kept) in enumerate(zip(self.confidence, self.share, strict=True)):
            if kept[-1] < share:
                continue
            at = int(np.argmax(kept >= share))
            below = max(at - 1, 0)
            rise = kept[at] - kept[below]
            part = 1.0 if rise <= 0 else (share - kept[below]) / rise
            found[label] = sure[below] + part * (sure[at] - sure[below])
        return found

    def share_at(self, label: int, confidence: float) -> Any:
        """The share of models that accept answers of a class at a confidence, between the levels interpolated."""
        return np.interp(confidence, self.confidence[label], self.share[label])

    def distance_at(self, label: int, confidence: float) -> float:
        """How far answers of a class are at a confidence, between the levels interpolated."""
        return float(np.interp(confidence, self.confidence[label], self.distance[label]))

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        return {"confidence": self.confidence, "share": self.share, "distance": self.distance}

    @classmethod
    def restore(cls, n_classes: int, arrays: Arrays) -> Survival:
        """What `arrays` were taken from; refused where they don't fit the classes."""
        refuse_others(arrays, ("confidence", "share", "distance"))
        sure = taken(arrays, "confidence", np.float64, (n_classes, None))
        share, distance = (taken(arrays, name, np.float64, sure.shape) for name in ("share", "distance"))
        if sure.shape[1] < 1 or (np.diff(sure, axis=1) < 0).any() or not ((sure >= 0) & (sure <= 1)).all():
            refuse("confidence", "is not between 0 and 1, rising")
        if (np.diff(share, axis=1) < 0).any() or not ((share >= 0) & (share <= 1)).all():
            refuse("share", "is not between 0 and 1, rising")
        if (distance < 0).any():
            refuse("distance", "is negative")
        return cls(sure, share, distance)
