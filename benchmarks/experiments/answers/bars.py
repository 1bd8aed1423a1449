"""The bars that `explain`'s answers are held to, table by table."""

from __future__ import annotations

__all__ = ["BARS", "JUDGED", "bar", "misses"]

from typing import Any

from benchmarks.experiments.answers.measuring import EXPLAIN, SHORT
from benchmarks.pages import Score
from benchmarks.tables import ADULT, BANK, DEFAULT, GMC, LENDING_CLUB

JUDGED = (
    Score("needless", "needless ↓", False),
    Score("reducible", "reducible ↓", False),
    Score("closer", "closer ↓", False),
    Score("unseen", "unseen ↓", False),
    Score("rare", "rare ↓", False),
    Score("validity", "validity ↑", True),
    Score("sure", f"as sure as asked less {SHORT:g} ↑", True),
    Score("enough", "5 answers ↑", True),
    Score("l1", "L1 ↓", False),
    Score("lof", "log LOF ↓", False),
    Score("routes", "routes ↑", True),
    Score("incoherent", "real rows called incoherent ↓", False),
)
"""What has a bar, and which way is better."""

Both = tuple[float | None, float | None]
# For p = 2 and for p = 0.01, a table each.
ORDER = (ADULT, BANK, DEFAULT, GMC, LENDING_CLUB)
BARS: dict[str, tuple[Both, ...]] = {
    "needless": ((0.02, 0.02),) * 5,
    "reducible": ((0.05, 0.05), (0.05, 0.05), (0.06, 0.06), (0.06, 0.06), (0.05, 0.05)),
    "closer": ((0.04, 0.04), (0.04, 0.04), (0.05, 0.05), (0.05, 0.05), (0.04, 0.04)),
    "unseen": ((0.0, 0.0),) * 5,
    "rare": ((0.07, 0.10), (0.07, 0.10), (0.08, 0.12), (0.20, 0.25), (0.07, 0.12)),
    "validity": ((0.995, 0.995), (0.99, 0.99), (0.99, 0.99), (0.985, 0.985), (0.99, 0.99)),
    "sure": ((0.97, 0.97), (0.95, 0.95), (0.97, 0.97), (0.95, 0.95), (0.97, 0.97)),
    "enough": ((1.0, 0.98), (1.0, 0.95), (0.98, 0.95), (0.98, 0.90), (0.98, 0.85)),
    "l1": ((1.6, None), (2.4, None), (2.0, None), (4.2, None), (6.0, None)),
    "lof": ((0.68, None), (0.48, None), (0.52, None), (0.85, None), (0.18, None)),
    "routes": ((0.75, 0.75), (0.75, 0.75), (0.80, 0.80), (0.80, 0.80), (0.65, 0.65)),
    "incoherent": ((0.01, 0.01),) * 5,
}


def bar(name: str, table: str, method: str) -> float | None:
    """What a figure of refined answers should be at most, or at least; None where no bar is set."""
    asked = EXPLAIN.get(method)
    if asked is None or not asked.get("refine", True) or table not in ORDER:
        return None
    return BARS[name][ORDER.index(table)][0 if asked["p"] == 2.0 else 1]


def misses(score: Score, found: Any, wanted: float | None) -> bool:
    """Whether a figure is on the wrong side of its bar; a figure that is not there misses any bar.

    >>> misses(JUDGED[0], 0.03, 0.02), misses(JUDGED[0], 0.02, 0.02), misses(JUDGED[0], 0.5, None)
    (True, False, False)
    """
    return wanted is not None and (found is None or not score.at_least(found, wanted, slack=0.0))
