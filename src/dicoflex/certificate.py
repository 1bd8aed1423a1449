"""What was found out on held-out rows: how much surer the stand-in must be, and how often answers were valid."""

from __future__ import annotations

__all__ = ["BLACK_BOX", "CROSS_FITTED", "LABELS", "SORTS", "Certificate"]

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from dicoflex.errors import ModelFileError
from dicoflex.model_file.taking import Arrays, refuse, refuse_others, taken

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SORTS = ("free", "few", "frozen")
"""How tightly was asked: anything may change, few features (p below a half), or some are frozen or limited."""
BLACK_BOX, NOBODY = "the black box", "nobody"
LABELS, CROSS_FITTED = "a stand-in learned from held-out labels", "stand-ins cross-fitted on the labels"
JUDGES = (BLACK_BOX, LABELS, CROSS_FITTED, NOBODY)
"""Who may have said what is valid."""
SURE = 0.95


@dataclass(frozen=True)
class Certificate:
    """margin: per class, how much surer than asked for the stand-in must be of a refined row; beyond what training rows
    support (a changed number far out) the second entry counts (classes, 2). counts: valid answers and all answers to
    held-out rows, per class and sort of question (classes, sorts, 2). judge: who said what is valid.
    """

    margin: Floats
    counts: Ints
    judge: str

    @classmethod
    def none(cls, n_classes: int, margin: float = 0.02) -> Certificate:
        """Where nothing was held out."""
        return cls(np.full((n_classes, 2), margin), np.zeros((n_classes, len(SORTS), 2), dtype=np.int64), NOBODY)

    def valid_at_least(self, label: int, sort: str) -> float:
        """A bound on the share of valid answers like these, at 95 % (Clopper and Pearson 1934); 0 without any."""
        valid, total = self.counts[label, SORTS.index(sort)]
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
        margin = taken(arrays, "margin", np.float64, (n_classes, 2))
        counts = taken(arrays, "counts", np.int64, (n_classes, len(SORTS), 2))
        if not ((margin >= 0) & (margin <= 1)).all():
            refuse("margin", "is no share")
        if (counts < 0).any() or (counts[..., 0] > counts[..., 1]).any():
            refuse("counts", "has more valid answers than answers")
        return cls(margin, counts, judge)
