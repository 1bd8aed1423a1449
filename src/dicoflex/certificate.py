"""What was found out on held-out rows: how much surer the stand-in must be, and how often answers were valid."""

from __future__ import annotations

__all__ = ["SORTS", "Certificate"]

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SORTS = ("free", "few", "frozen")
"""How tightly was asked: anything may change, few features (p below a half), or some are frozen or limited."""
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
        return cls(np.full((n_classes, 2), margin), np.zeros((n_classes, len(SORTS), 2), dtype=np.int64), "nobody")

    def valid_at_least(self, label: int, sort: str) -> float:
        """A bound on the share of valid answers like these, at 95 % (Clopper and Pearson 1934); 0 without any."""
        valid, total = self.counts[label, SORTS.index(sort)]
        if valid == 0:
            return 0.0
        return float(betaincinv(valid, total - valid + 1, 1 - SURE))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""
        return {"margin": self.margin, "counts": self.counts}

    @classmethod
    def restore(cls, n_classes: int, judge: str, arrays: dict[str, NDArray[Any]]) -> Certificate:
        """What `arrays` were taken from; a `ValueError` where they don't fit."""
        margin, counts = arrays["margin"], arrays["counts"]
        shaped = margin.shape == (n_classes, 2) and counts.shape == (n_classes, len(SORTS), 2)
        if not shaped or margin.dtype != np.float64 or counts.dtype != np.int64 or not isinstance(judge, str):
            raise ValueError("its certificate does not fit its classes")
        if not ((margin >= 0) & (margin <= 1)).all() or (counts[..., 0] > counts[..., 1]).any() or (counts < 0).any():
            raise ValueError("its certificate is not one")
        return cls(margin, counts, judge)
