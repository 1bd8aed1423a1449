"""How good the draws are: raw validity, sparsity, plausibility and diversity on the benchmark tables.

For every table and seed: a black box is trained, 100 test rows per predicted class are the queries, and each method
draws 100 rows per query for the other class, with no black box at hand.

    dicoflex bench quality                            all tables found, two seeds, all methods (hours)
    dicoflex bench quality --quick                    a slice in a few seconds
    dicoflex bench quality --methods mixed oracle --tables adult
"""

from __future__ import annotations

__all__ = ["METHODS", "TITLE", "cells", "figures", "measure", "page"]

from benchmarks.experiments.quality.measuring import METHODS, cells, measure
from benchmarks.experiments.quality.page import TITLE, figures, page
